"""Topologies ranked for given flows: times against closed forms, prices of the bill, reasons for what cannot be."""

import numpy as np
import pytest

from simcore.analysis.matrix import flows_of, pairs_of
from simcore.analysis.matrix_study import study
from simcore.analysis.topologies import rank_topologies
from simcore.catalog import default_catalog
from simcore.errors import InputError
from simcore.fabric import patterns
from simcore.fabric.traffic import FlowGroup
from simcore.measurements.matrix import MeasuredMatrix

CATALOG = default_catalog()
GROUP = FlowGroup(name="any", traffic_class="core")
RANKS = np.arange(256).reshape(1, 256)


def ranked(edges, *, chip="nvidia-h100-sxm", server="dgx-h100", **given):
    found = rank_topologies(
        patterns.flows(GROUP, edges),
        chip=CATALOG.chip(chip),
        server=CATALOG.server(server),
        chip_count=256,
        catalog=CATALOG,
        given=given,
    )
    return {one.kind: one for one in found}


def test_a_ring_of_servers_is_bound_by_the_nic_wherever_switches_do_not_block():
    found = ranked([patterns.sent(RANKS, np.roll(RANKS, -8), 50e9)])
    assert all(
        found[kind].busiest_link_s == pytest.approx(1.0) for kind in ("clos", "rail_optimized", "rail_only")
    )
    assert found["clos"].fair_s == pytest.approx(1.0)


def test_a_taper_costs_less_and_takes_longer():
    across = patterns.sent(RANKS, np.roll(RANKS, 128), 50e9)
    even, tapered = ranked([across])["clos"], ranked([across], oversubscription_ratio=3.0)["clos"]
    assert tapered.busiest_link_s > 2 * even.busiest_link_s
    assert tapered.fabric_capex_usd < even.fabric_capex_usd


def test_rails_that_meet_in_servers_alone_are_cheaper_and_as_quick_for_rail_traffic():
    found = ranked(patterns.ring(RANKS, 8e9, inside=8))
    assert found["rail_only"].fabric_capex_usd < found["rail_optimized"].fabric_capex_usd
    assert found["rail_only"].is_on_front
    assert not found["rail_optimized"].is_on_front


def test_a_broken_part_of_one_topology_keeps_no_other_from_being_built():
    broken = ranked(patterns.ring(RANKS, 1.0, inside=8), degraded=[{"switch": "spine 0"}])
    whole = ranked(patterns.ring(RANKS, 1.0, inside=8))
    assert {kind: one.refused is None for kind, one in broken.items()} == {
        kind: one.refused is None for kind, one in whole.items()
    }


def test_what_cannot_be_comes_last_with_the_reason():
    found = list(ranked(patterns.ring(RANKS, 1.0, inside=8), radix=2).values())
    assert found[-1].refused is not None
    assert "torus" in {one.kind for one in found if one.refused}


def test_chips_with_links_of_their_own_can_be_a_torus():
    found = ranked(patterns.ring(RANKS, 1e9, inside=256), chip="tpu-v5p", server="tpu-v5p-pod")
    assert found["torus"].refused is None
    assert found["torus"].busiest_link_s > 0


def test_flows_between_islands_put_a_topology_behind_all_that_join_them():
    found = list(ranked([patterns.sent(RANKS, np.roll(RANKS, 128), 1e9)], tiers=1, radix=16).values())
    islands = next(one for one in found if one.kind == "rail_only")
    assert islands.unreachable_bytes > 0
    assert not islands.is_on_front


def test_a_study_says_the_matrix_first_and_then_ranks():
    moved = np.zeros((16, 16))
    moved[np.arange(16), (np.arange(16) + 8) % 16] = 1e9
    matrix = MeasuredMatrix(moved_bytes=moved, form="table", content_sha256="")
    found = study(matrix, CATALOG, server="dgx-h100").as_dict()
    assert found["summary"]["locality"][1]["share_fraction"] == 1
    assert found["chip"] == "nvidia-h100-sxm"
    assert flows_of(pairs_of(matrix)).total_bytes == 16e9


def test_a_server_that_no_chip_comes_in_is_refused_with_those_that_do():
    with pytest.raises(InputError, match="dgx-h100"):
        study(
            MeasuredMatrix(moved_bytes=np.ones((2, 2)), form="table", content_sha256=""),
            CATALOG,
            server="pcie-8gpu"
            if "pcie-8gpu" not in {c.default_server for c in CATALOG.chips.values()}
            else "x",
        )
