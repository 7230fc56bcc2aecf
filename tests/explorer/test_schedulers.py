"""A scenario under every scheduler: by the ordinary runs, within the ordinary limits, new schedulers included."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions, beside, schedulers
from explorer.access import Viewer
from explorer.charts import schedulers as charts
from explorer.charts.beside import Row
from explorer.models import Run, SavedScenario
from simcore.errors import InfeasibleError, Message
from simcore.scenario.overrides import union_members
from tests.explorer import documents
from tests.explorer.conftest import SERVING, run_of

pytestmark = pytest.mark.django_db
KINDS = [str(model.model_fields["kind"].default) for model in union_members("serving.scheduler")]


@pytest.fixture
def serves(alice: User) -> SavedScenario:
    return actions.create_scenario(Viewer(user=alice), SERVING)


def press(client: Client, scenario: SavedScenario) -> Any:
    return client.post(f"/s/{scenario.pk}/schedulers/run/", follow=True)


def variants(scenario: SavedScenario) -> list[beside.Variant]:
    return beside.variants(scenario, schedulers.ways(scenario))


def runnable(scenario: SavedScenario) -> list[beside.Variant]:
    return [variant for variant in variants(scenario) if not variant.refused]


def test_one_press_runs_every_scheduler_of_the_union(
    serves: SavedScenario, as_alice: Client, work: Callable[[Run], Run]
) -> None:
    """The scenario stays as it stands, and its own run speaks for the scheduler that it has."""
    before = serves.current
    page = press(as_alice, serves)
    assert page.status_code == 200
    found = variants(serves)
    assert [variant.name for variant in found] == KINDS
    for variant in runnable(serves):
        assert variant.run is not None, variant.name
        if variant.run.status == "queued":
            work(variant.run)
    serves.refresh_from_db()
    assert serves.current == before
    assert {run.status for run in Run.objects.all()} == {"finished"}
    assert run_of(serves).pk in {variant.run.pk for variant in runnable(serves) if variant.run}
    shown = as_alice.get(f"/s/{serves.pk}/schedulers/").context["panel"]
    table = shown.charts[0].table
    assert len(table.rows) == len(KINDS)
    assert [chart.slug for chart in shown.charts] == ["schedulers", "compare-ttft", "compare-itl"]
    assert len(shown.charts[1].body["data"]) == len(runnable(serves))


def test_a_second_press_runs_nothing_again(
    serves: SavedScenario, as_alice: Client, queue: list[tuple[str, int]]
) -> None:
    press(as_alice, serves)
    sent, revisions = len(queue), serves.revisions.count()
    press(as_alice, serves)
    assert (len(queue), serves.revisions.count()) == (sent, revisions)


def test_runs_beside_the_scenarios_own_do_not_make_it_stale_and_an_edit_makes_them_so(
    alice: User, serves: SavedScenario, as_alice: Client
) -> None:
    press(as_alice, serves)
    assert not Run.objects.filter(status="cancelled").exists()
    actions.edit(Viewer(user=alice), serves, {"workload.arrivals.request_per_s": "9"})
    waiting = Run.objects.filter(status="queued")
    assert [run.revision_id for run in waiting] == [serves.current_id]


def test_a_scheduler_that_cannot_says_why_and_the_others_run(
    serves: SavedScenario, as_alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one would that needs chips for two pools."""
    plan_document = actions.plan_document

    def choosy(document: dict[str, Any], viewer: Viewer) -> Any:
        if (document.get("serving") or {}).get("scheduler", {}).get("kind") == "static_batch":
            said = "got {got} chip, and two pools need {allowed}"
            raise InfeasibleError(Message(code="x.chips", template=said, params={"got": 1, "allowed": 2}))
        return plan_document(document, viewer)

    monkeypatch.setattr(actions, "plan_document", choosy)
    page = press(as_alice, serves).content.decode()
    assert "Static batch cannot run this: got 1 chip, and two pools need 2" in page
    assert {variant.name for variant in variants(serves) if variant.run} >= {"continuous"}


def test_settings_that_a_scheduler_does_not_have_are_told(alice: User, as_alice: Client) -> None:
    chunk = {"serving": {"scheduler": {"kind": "chunked_prefill", "long_prefill_token_threshold": 256}}}
    scenario = actions.create_scenario(Viewer(user=alice), {**SERVING, **chunk})
    page = press(as_alice, scenario).content.decode()
    assert "Continuous: long_prefill_token_threshold was dropped" in page.replace(
        "long prefill token threshold", "x"
    )


def test_more_than_may_run_at_a_time_wait_for_another_press(
    serves: SavedScenario, as_alice: Client, settings: Any, work: Callable[[Run], Run]
) -> None:
    settings.MAX_ACTIVE_RUNS_PER_OWNER = 2
    assert "2 simulations of yours are under way" in press(as_alice, serves).content.decode()
    assert Run.objects.count() == 2
    for run in Run.objects.all():
        work(run)
    assert "Run every scheduler" in as_alice.get(f"/s/{serves.pk}/schedulers/").content.decode()
    press(as_alice, serves)
    assert Run.objects.count() == min(len(runnable(serves)), 4)


def test_who_may_only_read_sees_what_was_run_and_no_button(
    serves: SavedScenario, as_alice: Client, as_bob: Client
) -> None:
    actions.set_visibility(serves, "link")
    page = as_bob.get(f"/s/{serves.pk}/schedulers/").content.decode()
    assert "Run every scheduler" not in page
    assert as_bob.post(f"/s/{serves.pk}/schedulers/run/").status_code == 404


def test_the_serving_page_has_the_button(
    serves: SavedScenario, as_alice: Client, work: Callable[[Run], Run]
) -> None:
    work(run_of(serves))
    page = as_alice.get(f"/s/{serves.pk}/serving/").content.decode()
    assert f'action="/s/{serves.pk}/schedulers/run/"' in page


def test_a_fabric_alone_has_nothing_to_compare(scenario: SavedScenario, as_alice: Client) -> None:
    assert "serves no requests" in press(as_alice, scenario).content.decode()
    assert Run.objects.count() == 1


def row(name: str, *, goodput: float, ttft_p99_s: float = 1.0, **options: Any) -> Row:
    result = documents.serving()
    result["metrics"] |= {
        "serving.slo_goodput_request_per_s": goodput,
        "serving.ttft_s.p99": ttft_p99_s,
    }
    return Row(name=name, result=result, state="finished", **options)


def test_the_headline_names_best_and_least_or_the_quickest_of_equals() -> None:
    apart = charts.panel([row("chunked prefill", goodput=8.0), row("static batch", goodput=5.0)])
    assert apart.headline == (
        "Chunked prefill serves most within the objectives: 8 request/s, and static batch least: 5 request/s"
    )
    equal = charts.panel(
        [row("continuous", goodput=8.0, ttft_p99_s=0.5), row("static batch", goodput=8.0, ttft_p99_s=0.7)]
    )
    assert equal.headline == (
        "All serve as much within the objectives; continuous has the shortest TTFT p99: 500 ms"
    )


def test_one_that_cannot_is_a_row_and_a_note() -> None:
    cannot = Row(name="disaggregated", result=None, state="cannot", refused=("it needs two chips",))
    panel = charts.panel([row("continuous", goodput=8.0, is_current=True), cannot])
    assert panel.headline == "Only continuous can run this scenario"
    assert panel.notes[0].text == "Disaggregated cannot run this: it needs two chips"
    assert panel.charts[0].table is not None
    assert [cell.text for cell in panel.charts[0].table.rows[1]][:3] == ["disaggregated", "cannot", "–"]
    assert panel.charts[0].table.rows[0][0].text == "continuous, now"
