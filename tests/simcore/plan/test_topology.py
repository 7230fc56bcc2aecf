"""The topology reaches the engines: times move with it where groups leave their domain, and it is said where not."""

from typing import get_args

import pytest

from simcore.fabric import AnyTopology

MOE = {
    "name": "experts over 64 chips",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 512},
    "model": {"name": "deepseek-v3"},
    "workload": {
        "arrivals": {"kind": "poisson", "request_per_s": 4.0},
        "lengths": {"kind": "constant", "input_tokens": 512, "output_tokens": 32},
        "request_count": 40,
    },
    "serving": {"parallelism": {"tp": 8, "dp": 8, "ep": 64}, "replica_count": 8},
}
DENSE = MOE | {
    "name": "tensor parallel over 64 chips",
    "model": {"name": "llama-3.1-405b"},
    "serving": {"parallelism": {"tp": 64}, "replica_count": 8},
}
TRAINING = {
    "name": "training on 512 chips",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 512},
    "model": {"name": "llama-3.1-70b"},
    "workload": {"kind": "training"},
    "training": {
        "parallelism": {"tp": 8, "pp": 4, "dp": 16},
        "global_batch_tokens": 4_194_304,
        "sequence_length": 8192,
        "overlap": {"dp": False, "tp": False},
    },
}
NARROW = {"oversubscription_ratio": 7.0, "radix": 16}
DEAD_SPINE = [{"switch": "spine 0"}]
PAIRS = {
    "clos": ({"kind": "clos"}, {"kind": "clos", **NARROW}),
    "rail_optimized": ({"kind": "clos"}, {"kind": "rail_optimized"}),
    "rail_only": ({"kind": "clos"}, {"kind": "rail_only"}),
    "torus": ({"kind": "rail_optimized"}, {"kind": "torus"}),
    "ocs_pod": ({"kind": "torus", "dimensions": 2}, {"kind": "ocs_pod"}),
}


def times(planner, topology):
    found = []
    for base in (MOE, DENSE):
        metrics = planner.result({}, base | {"topology": topology}).metrics
        found += [metrics["serving.ttft_s.mean"], metrics["serving.tpot_s.mean"]]
    return [*found, planner.plan({}, TRAINING | {"topology": topology}).metrics["training.step_s"]]


KINDS = [one.model_fields["kind"].default for one in get_args(AnyTopology)]


@pytest.mark.parametrize("kind", KINDS)
def test_another_topology_moves_ttft_tpot_and_the_step(planner, kind):
    """Of a kind without a pair of its own: against the folded Clos, where a few switches may be all the difference."""
    pair = PAIRS.get(kind, ({"kind": "clos"}, {"kind": kind}))
    before, after = (times(planner, topology) for topology in pair)
    assert all(abs(now / then - 1) > 1e-9 for then, now in zip(before, after, strict=True)), (before, after)


def test_fewer_uplinks_slow_everything_that_crosses_them(planner):
    even, narrow = (times(planner, {"kind": "clos", "radix": 16} | more) for more in ({}, NARROW))
    assert all(now > then for then, now in zip(even, narrow, strict=True))


def no_effect(planner, base, overrides):
    warnings = planner.plan(overrides, base).warnings
    return [one for one in warnings if one.code == "topology.no_effect"]


def test_it_says_where_the_topology_can_change_no_time(planner):
    inside = {"serving.parallelism": {"tp": 8}, "serving.replica_count": 64, "topology.kind": "clos"}
    (said,) = no_effect(planner, DENSE | {"model": {"name": "llama-3.1-70b"}}, inside)
    assert said.text.startswith("topology has no effect on times: the 8 chips that work together")


def test_it_says_nothing_where_it_was_not_asked_or_has_one(planner):
    inside = {"serving.parallelism": {"tp": 8}, "serving.replica_count": 64}
    assert not no_effect(planner, DENSE | {"model": {"name": "llama-3.1-70b"}}, inside)
    assert not no_effect(planner, DENSE, {"topology.kind": "clos"})
    assert not no_effect(planner, TRAINING, {"topology.kind": "clos"})
    assert not no_effect(planner, TRAINING | {"workload": {"kind": "none"}}, {"topology.kind": "clos"})


def test_training_inside_one_domain_does_not_see_the_network(planner):
    one = {"hardware.chip_count": 8, "training.parallelism": {"tp": 8}, "topology.kind": "clos"}
    small = TRAINING | {"model": {"name": "llama-3.1-8b"}}
    assert no_effect(planner, small, one | {"training.micro_batch_size": 1, "training.sequence_length": 2048})


def test_a_torus_is_its_own_scale_up_network(planner):
    pod = DENSE | {"model": {"name": "llama-3.1-70b"}, "topology": {"kind": "torus"}}
    assert not no_effect(planner, pod, {"serving.parallelism": {"tp": 8}, "serving.replica_count": 64})


def test_kv_between_pools_meets_the_fabric(planner):
    """Six to one above the leaves: the hand-over takes longer."""
    pools = MOE | {
        "model": {"name": "llama-3.1-70b"},
        "serving": {"weights_dtype": "fp8", "scheduler": {"kind": "disaggregated"}, "parallelism": {"tp": 4}},
    }
    sent = [
        planner.plan({"topology": {"kind": "clos", **more}}, pools).metrics[
            "serving.kv_link_capacity_request_per_s"
        ]
        for more in ({"radix": 16}, NARROW)
    ]
    assert sent[1] < sent[0]


def test_a_dead_spine_slows_what_crosses_it(planner):
    whole, worn = (
        times(planner, {"kind": "clos", "radix": 16} | more) for more in ({}, {"degraded": DEAD_SPINE})
    )
    assert all(now > then for then, now in zip(whole, worn, strict=True))
