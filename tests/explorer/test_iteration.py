"""The iteration tab: what its pictures say, that each operator opens its Why, and who may read the trace."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from explorer import actions, charts
from explorer.access import Viewer
from explorer.charts import iteration
from explorer.models import Run
from tests.explorer import documents
from tests.explorer.conftest import SERVING, run_of

SERVES = documents.serving()


@pytest.fixture
def served(alice: User, work: Callable[[Run], Run]) -> Run:
    scenario = actions.create_scenario(Viewer(user=alice), {**SERVING, "name": "taken apart"})
    return work(run_of(scenario))


def test_the_headline_names_what_most_of_a_step_waits_for() -> None:
    assert iteration.headline(SERVES) == "A decode step takes 1.000 ms, and 65 % of it waits for HBM"
    assert "no requests" in iteration.headline(documents.fabric())


def test_points_stand_at_or_under_the_roofs() -> None:
    chart = iteration.roofline(SERVES)
    assert chart is not None
    picture = chart.body
    flat = [roof for roof in picture.roofs if roof.y1 == roof.y2]
    assert flat
    for point in picture.points:
        assert flat[0].y2 <= point.y <= picture.bottom
        assert picture.left <= point.x <= picture.right


def test_labels_do_not_stand_on_each_other() -> None:
    chart = iteration.roofline(SERVES)
    assert chart is not None
    labels = [(point.x, point.label_y) for point in chart.body.points if point.label_y is not None]
    for at, (x, y) in enumerate(labels):
        assert all(abs(x - other_x) > 24 or abs(y - other_y) >= 17 for other_x, other_y in labels[:at])


def test_bars_and_lanes_fill_their_step() -> None:
    split, gantt = iteration.split(SERVES), iteration.gantt(SERVES)
    assert split is not None
    assert gantt is not None
    for bar in split.body:
        assert sum(segment.width for segment in bar.segments) == pytest.approx(100.0, abs=0.1)
    for line in gantt.body:
        ends = [block.left + block.width for lane in line.lanes for block in lane.blocks]
        assert max(ends) == pytest.approx(100.0, abs=0.1)


def test_it_speaks_chinese() -> None:
    with translation.override("zh-hans"):
        shown = charts.panel("iteration", SERVES)
    assert "解码" in shown.headline
    assert "解码" in shown.charts[0].title


def test_each_operator_opens_the_part_of_the_step_that_is_its_own(as_alice: Client, served: Run) -> None:
    document = served.result_document
    assert document is not None
    for row in document["tables"]["operators"]:
        shown = as_alice.get(f"/runs/{served.pk}/why/{iteration.metric_of(row)}/")
        assert shown.status_code == 200, row["term"]
        assert shown.context["value"] == pytest.approx(row["s"])
    assert as_alice.get(f"/runs/{served.pk}/why/compute.decode_step_s@nothing/").status_code == 404


def test_a_number_of_the_offload_tables_opens_its_derivation(as_alice: Client, served: Run) -> None:
    document = served.result_document
    assert document is not None
    page = as_alice.get(f"/s/{served.revision.scenario_id}/memory/").content.decode()
    for row in document["tables"]["kv_tiers"]:
        metric = f"memory.swap_s.{row['tier']}"
        assert f'data-why="{metric}"' in page
        assert as_alice.get(f"/runs/{served.pk}/why/{metric}/").context["value"] == pytest.approx(
            row["swap_s"]
        )
    for row in document["tables"]["swap_or_recompute"]:
        assert f'data-why="{row["term"]}"' in page
        shown = as_alice.get(f"/runs/{served.pk}/why/{row['term']}/")
        assert shown.context["value"] == pytest.approx(row["swap_to_recompute_ratio"])


def test_the_tab_links_every_operator_to_its_why(as_alice: Client, served: Run) -> None:
    page = as_alice.get(f"/s/{served.revision.scenario_id}/iteration/").content.decode()
    assert 'data-why="compute.decode_step_s@qkv_s"' in page
    assert f"/runs/{served.pk}/trace.json" in page


def test_the_trace_is_for_who_may_read_the_run(as_alice: Client, as_bob: Client, served: Run) -> None:
    path = f"/runs/{served.pk}/trace.json"
    assert as_bob.get(path).status_code == Client().get(path).status_code == 404
    answer = as_alice.get(path)
    assert answer["Content-Disposition"] == 'attachment; filename="taken-apart-trace.json"'
    assert len(answer.json()["traceEvents"]) > 100


def test_a_run_without_requests_has_no_trace(as_alice: Client, finished: Run) -> None:
    assert as_alice.get(f"/runs/{finished.pk}/trace.json").status_code == 404
