"""Comparing scenarios, why a number is what it is, and files that leave the site."""

import csv
import io
import json
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import Run, SavedScenario
from simcore.scenario import load_document
from tests.explorer.conftest import DOCUMENT, SERVING, run_of

pytestmark = pytest.mark.django_db

EVIL = '=HYPERLINK("http://evil.example","x")<script>alert(1)</script>'


@pytest.fixture
def pair(alice: User, work: Any) -> list[SavedScenario]:
    """A Clos, and a rail-only network with a name that means harm."""
    viewer = Viewer(user=alice)
    rail = {**DOCUMENT, "name": EVIL, "topology": {"kind": "rail_only", "radix": 64}}
    scenarios = [actions.create_scenario(viewer, document) for document in (DOCUMENT, rail)]
    for scenario in scenarios:
        assert work(run_of(scenario)).status == "finished"
    return scenarios


def query(scenarios: list[SavedScenario]) -> str:
    return "&".join(f"s={scenario.pk}" for scenario in scenarios)


def test_inputs_and_results_stand_on_one_page(pair: list[SavedScenario], as_alice: Client) -> None:
    page = as_alice.get(f"/c/?{query(pair)}")
    comparison = page.context["comparison"]
    assert "topology.kind" in {row.path for row in comparison.inputs}
    assert "fabric.switch_count" in {row.metric for row in comparison.metrics}
    assert "<script>alert" not in page.content.decode()


def test_a_scenario_is_compared_with_its_own_baseline(alice: User, work: Any, as_alice: Client) -> None:
    rails = {**DOCUMENT, "name": "Rails", "topology": {"kind": "rail_only", "radix": 64}}
    scenario = actions.create_scenario(Viewer(user=alice), rails, baseline=DOCUMENT)
    for run in Run.objects.filter(revision__scenario=scenario):
        work(run)
    address = f"s={scenario.pk}~baseline&s={scenario.pk}"
    page = as_alice.get(f"/c/?{address}")
    assert [entry.name for entry in page.context["entries"]] == ["Two leaves", "Rails"]
    assert page.context["panel"] is not None
    assert as_alice.get(f"/c/export/json/?{page.context['query']}").status_code == 200
    assert as_alice.get(f"/c/?s={scenario.pk}~baseline&s={scenario.pk}~baseline").context["panel"] is None


def test_the_baseline_of_a_stranger_is_not_found(pair: list[SavedScenario], as_bob: Client) -> None:
    assert as_bob.get(f"/c/?s={pair[0].pk}~baseline").status_code == 404


@pytest.mark.parametrize("count", [0, 1])
def test_one_is_not_compared(count: int, pair: list[SavedScenario], as_alice: Client) -> None:
    page = as_alice.get(f"/c/?{query(pair[:count])}")
    assert (page.status_code, page.context["panel"]) == (200, None)


def test_one_that_has_no_result_yet_stands_beside_the_other(
    pair: list[SavedScenario], alice: User, as_alice: Client
) -> None:
    waiting = actions.create_scenario(Viewer(user=alice), {**DOCUMENT, "run": {"seed": 9}})
    page = as_alice.get(f"/c/?{query([pair[0], waiting])}")
    assert (page.status_code, page.context["comparison"]) == (200, None)
    export = as_alice.get(f"/c/export/csv/?{query([pair[0], waiting])}")
    assert export.status_code == 302


def test_csv_runs_nothing_in_a_spreadsheet(pair: list[SavedScenario], as_alice: Client) -> None:
    answer = as_alice.get(f"/c/export/csv/?{query(pair)}")
    assert "attachment" in answer.headers["Content-Disposition"]
    rows = list(csv.reader(io.StringIO(answer.content.decode())))
    assert any(EVIL in cell for row in rows for cell in row)
    assert not any(cell[:1] in ("=", "+", "@", "\t") for row in rows for cell in row)
    assert ["metric", "fabric.switch_count"] in [row[:2] for row in rows]


def test_json_is_read_by_programs(pair: list[SavedScenario], as_alice: Client) -> None:
    loaded = json.loads(as_alice.get(f"/c/export/json/?{query(pair)}").content)
    assert loaded["names"] == ["Two leaves", EVIL]


class Needs(HTMLParser):
    """What a page would fetch or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.plots = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.plots += tag == "svg" and dict(attributes).get("viewbox", "").startswith("0 0 880")  # type: ignore[union-attr]
        self.found += [tag] if tag in ("script", "link", "img", "iframe", "object") else []
        self.found += [name for name, value in attributes if name in ("src", "href") or name.startswith("on")]


def test_html_needs_nothing_but_itself(pair: list[SavedScenario], as_alice: Client) -> None:
    text = as_alice.get(f"/c/export/html/?{query(pair)}").content.decode()
    assert Needs(text).found == []
    assert "url(http" not in text
    assert "Two leaves" in text


def test_html_draws_the_distributions(alice: User, as_alice: Client, work: Any) -> None:
    viewer = Viewer(user=alice)
    faster = {**SERVING, "name": EVIL, "hardware": {"chip": "nvidia-h200-sxm", "chip_count": 1}}
    scenarios = [actions.create_scenario(viewer, document) for document in (SERVING, faster)]
    for scenario in scenarios:
        work(run_of(scenario))
    page = as_alice.get(f"/c/?{query(scenarios)}")
    (tradeoff,) = [one for one in page.context["panel"].charts if one.slug == "compare-tradeoff"]
    assert [len(one["x"]) > 1 for one in tradeoff.body["data"]] == [True, True]
    assert "gives the most per chip" in tradeoff.title
    needs = Needs(as_alice.get(f"/c/export/html/?{query(scenarios)}").content.decode())
    assert (needs.found, needs.plots) == ([], 4)


def test_a_format_that_is_none_is_404(pair: list[SavedScenario], as_alice: Client) -> None:
    assert as_alice.get(f"/c/export/exe/?{query(pair)}").status_code == 404


def test_the_result_document_is_a_file(finished: Run, as_alice: Client) -> None:
    answer = as_alice.get(f"/runs/{finished.pk}/result.json")
    loaded = json.loads(answer.content)
    assert loaded["digest"] == finished.digest
    assert loaded["scenario"]["name"] == "Two leaves"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="two-leaves.json"'


def test_there_is_no_result_document_before_a_result(scenario: SavedScenario, as_alice: Client) -> None:
    assert as_alice.get(f"/runs/{run_of(scenario).pk}/result.json").status_code == 404


def test_a_scenario_leaves_and_comes_back_as_yaml(scenario: SavedScenario, as_alice: Client) -> None:
    text = as_alice.get(f"/s/{scenario.pk}/scenario.yaml").content.decode()
    assert load_document(text) == DOCUMENT
    assert list(load_document(text)) == list(DOCUMENT), "keys in the order in which they were typed"
    assert as_alice.post("/start/", {"text": text}).status_code == 302


@pytest.mark.parametrize("metric", ["fabric.switch_count", "fabric.transceiver_count", "cost.power_w"])
def test_why_shows_the_expression(metric: str, finished: Run, as_alice: Client) -> None:
    page = as_alice.get(f"/runs/{finished.pk}/why/{metric}/")
    assert page.context["value"] == finished.result_document["metrics"][metric]  # type: ignore[index]
    assert page.context["tree"]["value"] == pytest.approx(page.context["value"])
    assert page.context["tree"]["args"]


@pytest.mark.parametrize("metric", ["no.such", "..", "cost"])
def test_why_of_nothing_is_404(metric: str, finished: Run, as_alice: Client) -> None:
    assert as_alice.get(f"/runs/{finished.pk}/why/{metric}/").status_code == 404


def test_an_unfinished_run_has_a_panel(scenario: SavedScenario, as_alice: Client) -> None:
    run = run_of(scenario)
    run.claim(0)
    for tab in ("overview", "fabric", "memory", "serving", "reliability"):
        assert as_alice.get(f"/runs/{run.pk}/panel/{tab}/").status_code == 200
    assert as_alice.get(f"/runs/{run.pk}/panel/secrets/").status_code == 404


def test_the_page_asks_for_the_layers_once_and_then_has_them(
    pair: list[SavedScenario], as_alice: Client
) -> None:
    first = as_alice.get(f"/c/?{query(pair)}")
    assert first.context["layers_wait"]
    assert 'id="layers" class="layers" data-from="/c/layers/?s=' in first.content.decode()
    part = as_alice.get(f"/c/layers/?{query(pair)}").content.decode()
    assert "Only the physical layer changed (Fabric)" in part
    again = as_alice.get(f"/c/?{query(pair)}")
    assert not again.context["layers_wait"]
    assert "Only the physical layer changed (Fabric)" in again.content.decode()


@pytest.mark.parametrize("form", ["md", "csv", "html"])
def test_files_say_what_the_page_found_of_layers(
    form: str, pair: list[SavedScenario], as_alice: Client
) -> None:
    as_alice.get(f"/c/layers/?{query(pair)}")
    text = as_alice.get(f"/c/export/{form}/?{query(pair)}").content.decode()
    assert "Only the physical layer changed" in text
    assert "<script>alert" not in text or form != "html"


def test_layers_need_each_other_or_stand_alone_in_pictures(alice: User, as_alice: Client) -> None:
    viewer = Viewer(user=alice)
    changed = {
        **SERVING,
        "name": "Both",
        "hardware": {"chip": "nvidia-h200-sxm", "chip_count": 1},
        "serving": {"weights_dtype": "fp8"},
    }
    scenarios = [actions.create_scenario(viewer, document) for document in (SERVING, changed)]
    part = as_alice.get(f"/c/layers/?{query(scenarios)}").content.decode()
    assert 'id="1chart-layers"' in part
    assert 'id="1chart-combinations"' in part
    assert part.count("<tr>") >= 4


def test_layers_of_too_many_requests_are_not_run_for_a_page(alice: User, as_alice: Client) -> None:
    viewer = Viewer(user=alice)
    many = {**SERVING, "workload": {**SERVING["workload"], "request_count": 150_000}}
    scenarios = [
        actions.create_scenario(viewer, document)
        for document in (many, {**many, "name": "fp8", "serving": {"weights_dtype": "fp8"}})
    ]
    part = as_alice.get(f"/c/layers/?{query(scenarios)}").content.decode()
    assert "too many requests for a page" in part


def test_any_column_becomes_the_baseline(pair: list[SavedScenario], as_alice: Client) -> None:
    page = as_alice.get(f"/c/?{query(pair)}")
    assert page.context["columns"][1]["as_baseline"] == query(pair[::-1])
    turned = as_alice.get(f"/c/?{page.context['columns'][1]['as_baseline']}")
    assert [entry.name for entry in turned.context["entries"]] == [EVIL, "Two leaves"]
