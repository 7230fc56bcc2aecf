"""What a scenario's figures depend on: tornado, draws and goal on one page, planned while it is asked for."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import SavedScenario
from explorer.views import sensitivity as view
from tests.explorer.conftest import DOCUMENT, SERVING

pytestmark = pytest.mark.django_db


@pytest.fixture
def serving(alice: User) -> SavedScenario:
    return actions.create_scenario(Viewer(user=alice), SERVING)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a page takes longer."""
    monkeypatch.setattr(view, "SECONDS", 300.0)


def charts_of(page: Any) -> dict[str, Any]:
    return {chart.slug: chart for chart in page.context["panel"].charts}


def test_the_tornado_stands_there_without_a_question(as_alice: Client, serving: SavedScenario) -> None:
    page = as_alice.get(f"/s/{serving.pk}/sensitivity/")
    assert page.status_code == 200
    chart = charts_of(page)["tornado"]
    assert "matters most: Cost per million tokens from " in chart.title
    bars = chart.body
    assert all(0 <= bar.low_left <= 100 and 0 <= bar.high_left + bar.high_width <= 100 for bar in bars)
    assert "±20%, an assumption" in page.content.decode()
    assert b"plotly" not in page.content.split(b"</head>")[0]


def test_intervals_of_a_person_are_read_and_kept(as_alice: Client, serving: SavedScenario) -> None:
    asked = {
        "study": "tornado",
        "metric": "serving.capacity_request_per_s",
        "in:hardware.chip_overrides.hbm_bytes_per_s": "3 to 4 TB/s",
        "in:economics.pue": "",
        "also": "serving.scheduler.max_num_seqs",
    }
    page = as_alice.get(f"/s/{serving.pk}/sensitivity/", asked)
    rows = {row[0].text: row for row in charts_of(page)["tornado"].table.rows}
    assert (rows["HBM bandwidth"][2].text, rows["HBM bandwidth"][3].text) == ("3", "4")
    assert "as you wrote it" in rows["HBM bandwidth"][1].text
    assert "PUE" not in rows
    assert b'value="3 to 4 TB/s"' in page.content
    assert page.context["asked"].metric == "serving.capacity_request_per_s"


def test_draws_say_their_interval_and_what_moves_it(as_alice: Client, serving: SavedScenario) -> None:
    page = as_alice.get(f"/s/{serving.pk}/sensitivity/", {"study": "draws", "draws": "50"})
    charts = charts_of(page)
    assert list(charts) == ["draws", "correlations"]
    assert "nine times in ten" in charts["draws"].title
    assert charts["draws"].source.startswith("50 draws, standard error of the mean")
    assert sum(charts["draws"].body["data"][0]["y"]) <= 50


def test_a_goal_is_found_and_its_trace_is_shown(as_alice: Client, serving: SavedScenario) -> None:
    asked = {
        "study": "goal", "path": "hardware.chip_count", "between": "1 to 16", "find": "smallest",
        "bound_metric": "serving.capacity_request_per_s", "side": "at_least", "bound": "100 request/s",
    }  # fmt: skip
    page = as_alice.get(f"/s/{serving.pk}/sensitivity/", asked)
    chart = charts_of(page)["goal"]
    assert "is the smallest that keeps to Capacity ≥ 100 request/s" in chart.title
    assert {row[1].text for row in chart.table.rows} == {"yes", "no"}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"in:economics.pue": "often"}, "write the ends of a 90 % interval like 5 to 8"),
        ({"also": "serving.router.kind"}, "no number stands here"),
        ({"study": "goal", "bound": "soon"}, "which is not a number"),
        ({"study": "goal", "between": "4 to 2"}, "write the lower end first"),
        (
            {"also": "workload.request_count", "in:workload.request_count": "1 to 5000000"},
            "points are simulated here",
        ),
    ],
)
def test_what_is_wrong_is_said_and_the_form_keeps_it(
    as_alice: Client, serving: SavedScenario, asked: dict[str, str], says: str
) -> None:
    page = as_alice.get(f"/s/{serving.pk}/sensitivity/", asked)
    assert says in page.content.decode()
    for value in asked.values():
        assert value in page.content.decode()


def test_what_takes_too_long_stops_and_says_so(
    as_alice: Client, serving: SavedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "SECONDS", 0.0)
    page = as_alice.get(f"/s/{serving.pk}/sensitivity/", {"study": "draws"})
    assert "with 1 points" in page.content.decode()


def test_a_cluster_without_work_has_a_tornado_of_its_cost(as_alice: Client, alice: User) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), DOCUMENT)
    chart = charts_of(as_alice.get(f"/s/{scenario.pk}/sensitivity/"))["tornado"]
    assert "TCO" in chart.title


def test_a_figure_of_a_run_is_simulated(as_alice: Client, serving: SavedScenario) -> None:
    asked = {"metric": "serving.ttft_s.p95", "in:workload.arrivals.request_per_s": "4 to 20 request/s"}
    page = as_alice.get(f"/s/{serving.pk}/sensitivity/", asked)
    rows = {row[0].text: row for row in charts_of(page)["tornado"].table.rows}
    assert rows["Request rate"][4].text != rows["Request rate"][5].text


def test_a_stranger_finds_nothing(as_bob: Client, as_nobody: Client, serving: SavedScenario) -> None:
    for stranger in (as_bob, as_nobody):
        assert stranger.get(f"/s/{serving.pk}/sensitivity/").status_code == 404


def test_it_speaks_chinese(as_alice: Client, serving: SavedScenario) -> None:
    page = as_alice.get(f"/s/{serving.pk}/sensitivity/", headers={"accept-language": "zh-hans"})
    assert "影响最大" in page.content.decode()
    assert "哪些不确定" in page.content.decode()
