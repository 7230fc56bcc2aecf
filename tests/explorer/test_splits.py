"""A scenario under every split of its chips into prefill and decode: each once, by the ordinary runs."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from explorer import actions, beside, splits
from explorer.access import Viewer
from explorer.charts import splits as charts
from explorer.charts.beside import Row
from explorer.models import Run, SavedScenario
from tests.explorer import documents
from tests.explorer.conftest import SERVING, run_of

CAPACITY = "serving.{}_capacity_request_per_s"


def apart(*, chip_count: int = 4, **scheduler: Any) -> dict[str, Any]:
    hardware = {"chip": "nvidia-h100-sxm", "chip_count": chip_count}
    serving = {"parallelism": {"tp": 1}, "scheduler": {"kind": "disaggregated", **scheduler}}
    return {**SERVING, "hardware": hardware, "serving": serving}


def made(alice: User, **options: Any) -> SavedScenario:
    return actions.create_scenario(Viewer(user=alice), apart(**options))


def variants(scenario: SavedScenario) -> list[beside.Variant]:
    return beside.variants(scenario, splits.ways(scenario))


def press(client: Client, scenario: SavedScenario) -> Any:
    return client.post(f"/s/{scenario.pk}/splits/run/", follow=True)


@pytest.mark.django_db
def test_one_press_runs_every_split_and_the_scenarios_own_run_speaks_for_its_own(
    alice: User, as_alice: Client, work: Callable[[Run], Run]
) -> None:
    scenario = made(alice)
    press(as_alice, scenario)
    assert [variant.name for variant in variants(scenario)] == ["1:3", "2:2", "3:1"]
    for run in Run.objects.all():
        work(run)
    found = variants(scenario)
    assert all(variant.run and variant.run.status == "finished" for variant in found)
    assert run_of(scenario).pk in {variant.run.pk for variant in found if variant.run}
    assert Run.objects.count() == len(found)
    shown = as_alice.get(f"/s/{scenario.pk}/splits/").context["panel"]
    assert [chart.slug for chart in shown.charts] == ["split-served", "split-capacity", "splits"]
    assert "within the objectives" in shown.headline
    assert sum(", now" in cells[0].text for cells in shown.charts[2].table.rows) == 1


@pytest.mark.django_db
def test_a_second_press_runs_nothing_again(alice: User, as_alice: Client) -> None:
    scenario = made(alice)
    press(as_alice, scenario)
    press(as_alice, scenario)
    assert (Run.objects.count(), scenario.revisions.count()) == (3, 3)


@pytest.mark.django_db
def test_capacities_are_proportional_to_the_replicas_and_known_before_any_run(
    alice: User, as_alice: Client
) -> None:
    """Each replica carries as much as the next: a straight line through zero."""
    scenario = made(alice)
    shown = as_alice.get(f"/s/{scenario.pk}/splits/").context["panel"]
    least, prefill, decode, link = shown.charts[1].body["data"][:4]
    assert [rate / prefill["y"][0] for rate in prefill["y"]] == pytest.approx([1, 2, 3])
    assert [rate / decode["y"][2] for rate in decode["y"]] == pytest.approx([3, 2, 1])
    drawn = zip(prefill["y"], decode["y"], link["y"], strict=True)
    assert least["y"] == pytest.approx([min(rates) for rates in drawn])


@pytest.mark.django_db
def test_a_split_that_cannot_be_says_why_and_all_others_are_there(alice: User, as_alice: Client) -> None:
    """Three and three replicas are asked of four chips."""
    scenario = made(alice, prefill={"replica_count": 3}, decode={"replica_count": 3})
    assert [variant.name for variant in variants(scenario)] == ["3:3", "1:3", "2:2", "3:1"]
    page = press(as_alice, scenario).content.decode()
    assert "3:3 cannot run this: 3 prefill replica(s) of 1 and 3 decode replica(s) of 1 chips need 6" in page
    assert all(variant.run for variant in variants(scenario)[1:])


@pytest.mark.django_db
def test_replicas_that_leave_chips_idle_are_a_split_of_their_own(alice: User) -> None:
    scenario = made(alice, prefill={"replica_count": 1}, decode={"replica_count": 1})
    found = {variant.name: variant for variant in variants(scenario)}
    assert set(found) == {"1:1", "1:3", "2:2", "3:1"}
    assert found["1:1"].document == scenario.document


@pytest.mark.django_db
def test_where_each_has_chips_of_its_own_there_is_nothing_to_divide(alice: User) -> None:
    document = apart(decode={"pool": "decode"})
    document["hardware"]["pools"] = [{"name": "decode", "chip": "nvidia-h200-sxm", "chip_count": 2}]
    scenario = actions.create_scenario(Viewer(user=alice), document)
    assert [(variant.name, variant.refused) for variant in variants(scenario)] == [("4:2", ())]


@pytest.mark.django_db
def test_a_scenario_of_one_pool_has_no_splits_and_no_button(
    alice: User, as_alice: Client, work: Callable[[Run], Run]
) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    work(run_of(scenario))
    assert "share their replicas" in press(as_alice, scenario).content.decode()
    assert Run.objects.count() == 1
    assert "/splits/run/" not in as_alice.get(f"/s/{scenario.pk}/serving/").content.decode()


@pytest.mark.django_db
def test_the_serving_page_has_the_button(alice: User, as_alice: Client, work: Callable[[Run], Run]) -> None:
    scenario = made(alice)
    work(run_of(scenario))
    page = as_alice.get(f"/s/{scenario.pk}/serving/").content.decode()
    assert f'action="/s/{scenario.pk}/splits/run/"' in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("roles", "names"),
    [({"decode": "big"}, ["4:2"]), ({"prefill": "big", "decode": "big"}, ["1:1"])],
    ids=["a pool each", "a further pool for both"],
)
def test_only_chips_of_one_pool_are_split(alice: User, roles: dict[str, str], names: list[str]) -> None:
    """Four main chips are no decode replicas of another pool's, and none where both roles are elsewhere."""
    document = apart(**{role: {"pool": pool} for role, pool in roles.items()})
    document["hardware"]["pools"] = [{"name": "big", "chip": "nvidia-h200-sxm", "chip_count": 2}]
    scenario = actions.create_scenario(Viewer(user=alice), document)
    assert [variant.name for variant in variants(scenario)] == names


@given(st.integers(1, 600), st.data())
def test_at_most_twelve_are_run_ends_apart_and_the_present_one_among_them(count: int, data: Any) -> None:
    found = [(prefill, count + 1 - prefill) for prefill in range(1, count + 1)]
    now = data.draw(st.none() | st.sampled_from(found))
    kept = splits.spread(found, now)
    assert len(kept) == min(count, splits.MOST)
    assert kept == sorted(set(kept))
    assert set(kept) <= set(found)
    assert now is None or now in kept


def row(name: str, *, goodput: float, ttft_p99_s: float = 1.0, **capacities: float) -> Row:
    result = documents.serving()
    rates = {"prefill": 9.0, "decode": 9.0, "kv_link": 90.0} | capacities
    result["metrics"] |= {CAPACITY.format(part): rate for part, rate in rates.items()} | {
        "serving.slo_goodput_request_per_s": goodput,
        "serving.ttft_s.p99": ttft_p99_s,
        "serving.capacity_request_per_s": min(rates.values()),
    }
    return Row(name=name, result=result, state="finished")


def test_the_headline_says_which_split_serves_most_and_what_binds_it() -> None:
    panel = charts.panel([row("1:3", goodput=5.0, prefill=6.0), row("2:2", goodput=8.0, decode=8.5)])
    assert (
        panel.headline
        == "2:2 serves most within the objectives: 8 request/s; decode binds it at 8.50 request/s"
    )
    assert panel.charts[1].title == "2:2 carries most: 8.50 request/s, where decode binds"


def test_of_equals_the_quickest_is_named() -> None:
    panel = charts.panel(
        [row("1:3", goodput=8.0, ttft_p99_s=0.9), row("2:2", goodput=8.0, ttft_p99_s=0.5, kv_link=8.5)]
    )
    assert panel.headline == (
        "2 splits serve as much within the objectives, 8 request/s; of these 2:2 has the shortest TTFT p99, and the "
        "KV link binds it at 8.50 request/s"
    )


def test_no_split_that_meets_the_objectives_is_said() -> None:
    assert (
        charts.panel([row("1:3", goodput=0.0)]).headline == "No split serves a request within the objectives"
    )


def test_what_has_not_run_is_a_gap_and_is_counted() -> None:
    waiting = Row(name="2:2", result=None, state="not run")
    panel = charts.panel([row("1:3", goodput=5.0), waiting])
    assert panel.headline == "1 of 2 splits have run"
    assert panel.charts[0].body["data"][0]["y"] == [5.0, None]
