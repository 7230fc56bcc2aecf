"""Traffic on the Fabric tab: titles that state the finding, cells that hold the bytes."""

from typing import Any

import pytest

from explorer.charts import heat, panels, ranking, traffic
from simcore.fabric.locality import Placement, coarse
from simcore.fabric.patterns import flows, ring
from simcore.fabric.traffic import FlowGroup
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate
from tests.explorer.test_matrices import RING, TRAINING

GROUP = FlowGroup(name="data", traffic_class="core")


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    document = simulate(plan(Scenario.parse(TRAINING))).as_dict()
    return {**document, "scenario": TRAINING}


def test_groups_say_what_moves_and_how_much_stays_inside(result: dict[str, Any]) -> None:
    table = traffic.charts(result)[0]
    assert table.title.startswith("A step moves")
    assert "tensor and sequence parallelism" in table.title
    assert {row[0].text for row in table.table.rows} >= {"data parallelism", "checkpoints"}  # type: ignore[union-attr]


def test_heat_maps_stand_on_the_fabric_tab(result: dict[str, Any]) -> None:
    slugs = [chart.slug for chart in panels.panel("fabric", result).charts]
    assert {"traffic-groups", "matrix-rank", "matrix-domain", "matrix-rail"} <= set(slugs)


def test_a_cell_is_coloured_by_the_logarithm_of_its_bytes() -> None:
    placement = Placement(rank_count=16, domain_size=8)
    made = flows(GROUP, ring(RING[:16, :16].nonzero()[0].reshape(1, -1)[:, :8], 100.0, inside=8))
    view = coarse(placement, "rank", made.source, made.target, made.moved_bytes).as_dict()
    (chart,) = heat.heat_maps([view])
    (trace,) = chart.body["data"]
    assert trace["z"][0][1] == pytest.approx(2.0)
    assert trace["z"][0][2] is None
    assert "go to a neighbour" in chart.title


def test_a_ranking_names_the_best_and_gives_reasons() -> None:
    rows = [
        {
            "topology": {"kind": kind}, "refused": None, "busiest_link": "leaf 0 → spine 1", "busiest_link_s": time_s,
            "fair_s": None, "fabric_capex_usd": price, "fabric_power_w": 1e4, "switch_count": 4,
            "transceiver_count": 8, "unreachable_bytes": 0.0, "is_on_front": front,
        }
        for kind, time_s, price, front in (("rail_only", 1.0, 1e6, True), ("clos", 1.0, 3e6, False))
    ]  # fmt: skip
    refused = {"template": "no {what}", "params": {"what": "way"}, "text": ""}
    rows.append({**rows[0], "topology": {"kind": "torus"}, "refused": refused, "is_on_front": False})
    assert ranking.headline(rows) == "rail only is the quickest and the cheapest: 1 s, 1 M USD"
    scatter, table = ranking.charts(rows)
    assert scatter.body["data"][0]["text"] == ["rail only", "clos"]
    assert len(table.table.rows) == 2  # type: ignore[union-attr]
    assert [note.text for note in ranking.notes(rows)] == ["torus: no way"]


def test_nothing_is_drawn_where_nothing_moves() -> None:
    assert traffic.charts({"tables": {}}) == ()
