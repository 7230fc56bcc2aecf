"""Questions of network architects, answered by the whole program: N083, N087, N089, N093, N102, N107, N118, N147."""

import pytest

from simcore.errors import InfeasibleError
from simcore.fabric.graph import quotient_graph
from simcore.plan import plan
from simcore.plan.types import Plan
from simcore.scenario import Scenario
from simcore.simulate import simulate
from simcore.why import Term


def planned(**sections: object) -> Plan:
    return plan(Scenario.parse({"name": "question", "workload": {"kind": "none"}, **sections}))


@pytest.mark.parametrize(("chips", "least", "most"), [(1_024, 0.05, 0.2), (16_384, 0.1, 0.2)])
def test_n083_the_network_is_a_tenth_to_a_fifth_of_a_cluster(chips: int, least: float, most: float) -> None:
    """About 20 % is claimed of bills of 16 to 24,576 GPUs; 11 % with two tiers and 16 % with three here."""
    found = planned(hardware={"chip_count": chips}, topology={"kind": "rail_optimized", "radix": 64})
    share = found.terms["fabric.fabric_capex_usd"].value / found.terms["cost.capex_usd"].value
    assert least < share < most


def test_n087_the_single_layer_stands_or_falls_with_the_domain() -> None:
    def rail_only(domain: int, tiers: object) -> Plan:
        return planned(
            hardware={"chip_count": 32_768},
            topology={"kind": "rail_only", "radix": 128, "hb_domain_size": domain, "tiers": tiers},
        )

    assert rail_only(256, 1).fabric.switch_count == 256
    assert rail_only(256, 1).fabric.island_count == 1
    assert rail_only(8, 1).fabric.island_count == 32
    assert rail_only(8, 1).fabric.island_size == 1_024
    assert rail_only(8, "auto").fabric.switch_count == 768


def test_n089_spines_have_a_port_for_every_uplink() -> None:
    """The text's 8 spines of 32 ports cannot take the 512 uplinks of its 32 leaves."""
    fabric = planned(
        hardware={"chip_count": 1_024},
        topology={"kind": "rail_optimized", "radix": 32, "oversubscription_ratio": [1.0, 1.0], "tiers": 3},
    ).fabric
    for lower, upper in zip(fabric.tiers, fabric.tiers[1:], strict=False):
        assert lower.up_port_count == upper.down_port_count
    assert all(tier.spare_port_count >= 0 for tier in fabric.tiers)
    with pytest.raises(InfeasibleError, match="1,024"):
        planned(hardware={"chip_count": 1_024}, topology={"kind": "clos", "radix": 32, "tiers": 2})


def test_n093_experts_make_nearly_all_of_the_traffic() -> None:
    """ "EP > 97 % of traffic", of the training of a large mixture of experts."""
    found = simulate(
        plan(
            Scenario.parse(
                {
                    "name": "question",
                    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 2_048},
                    "model": {"name": "deepseek-v3"},
                    "workload": {"kind": "training"},
                    "training": {
                        "parallelism": {"tp": 1, "pp": 16, "dp": 128, "ep": 64},
                        "sequence_length": 4_096,
                        "global_batch_tokens": 62_914_560,
                    },
                }
            )
        )
    )
    shares = {row["group"]: row["share_fraction"] for row in found.tables["traffic_groups"]}
    assert shares["expert"] > 0.97
    assert sum(shares.values()) == pytest.approx(1.0)


def test_n102_every_latency_of_a_collective_stands_in_its_trace_with_a_source() -> None:
    """One hidden constant changed a bus bandwidth from 45.7 to 2.5 GB/s elsewhere."""
    term = planned(hardware={"chip_count": 256}).terms["fabric.collective.all_reduce_s"]
    latencies = [one for one in leaves(term) if one.name and "latency" in one.name]
    assert latencies
    assert all(one.source for one in latencies)


def leaves(term: Term) -> list[Term]:
    return [one for part in term.args for one in leaves(part)] if term.args else [term]


def test_n107_a_topology_that_cannot_matter_is_said_to_have_no_effect() -> None:
    def codes(chip_count: int) -> set[str]:
        return {
            one.code
            for one in planned(
                hardware={"chip_count": chip_count},
                workload={"kind": "serving", "request_count": 10},
                model={"name": "llama-3.1-70b"},
                serving={"parallelism": {"tp": 16 if chip_count > 8 else 8}},
                topology={"kind": "clos", "oversubscription_ratio": 2.0},
            ).warnings
        }

    assert "topology.no_effect" in codes(8)
    assert "topology.no_effect" not in codes(64)


@pytest.mark.parametrize(
    ("shape", "may_be_twisted"),
    [
        ([4, 4, 4], False), ([4, 4, 8], True), ([4, 8, 8], True), ([8, 8, 16], True), ([8, 16, 16], True),
        ([16, 16, 24], False), ([4, 8, 12], False),
    ],
)  # fmt: skip
def test_n118_which_slices_may_be_twisted(shape: list[int], may_be_twisted: bool) -> None:
    def build(twisted: bool) -> Plan:
        return planned(
            hardware={"chip": "tpu-v5p", "chip_count": shape[0] * shape[1] * shape[2]},
            topology={"kind": "ocs_pod", "generation": "tpu-v5p", "shape": shape, "twisted": twisted},
        )

    assert not build(False).fabric.is_twisted
    if may_be_twisted:
        assert build(True).fabric.is_twisted
    else:
        with pytest.raises(InfeasibleError, match="twisted"):
            build(True)


def test_n118_a_v5p_job_takes_at_most_96_of_its_140_cubes() -> None:
    pod = {"kind": "ocs_pod", "generation": "tpu-v5p"}
    whole = planned(hardware={"chip": "tpu-v5p", "chip_count": 8_960}, topology=pod)
    (said,) = [one for one in whole.warnings if one.path == "topology.generation"]
    assert said.params["limit"] == 6_144


def test_n147_a_picture_of_32_768_chips_has_a_vertex_per_layer() -> None:
    graph = quotient_graph(
        planned(hardware={"chip_count": 32_768}, topology={"kind": "clos", "radix": 128}).fabric
    )
    assert len(graph) <= 6
