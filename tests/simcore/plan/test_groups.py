"""The table of collectives: the groups that the scenario has, each algorithm, and the one that a step pays for."""

from itertools import groupby

import pytest

from simcore.plan.serving import all_reduces_per_step
from tests.simcore.plan.test_topology import DENSE, MOE, TRAINING


def rows(planner, base, overrides=None):
    return planner.plan(overrides or {}, base).tables["collectives"]


def nodes(term):
    yield term
    for argument in term.args:
        yield from nodes(argument)


def key(row):
    return row["group"], row["operation"], row["ranks"], row["payload_bytes"]


@pytest.mark.parametrize("base", [DENSE, MOE, TRAINING])
def test_one_algorithm_of_each_group_is_taken_and_stands_first(planner, base):
    for _, group in groupby(rows(planner, base), key):
        first, *others = list(group)
        assert first["taken"]
        assert not any(row["taken"] for row in others)


@pytest.mark.parametrize("base", [DENSE, MOE, TRAINING])
def test_bus_bandwidth_is_payload_over_time(planner, base):
    for row in rows(planner, base):
        assert row["s"] > 0
        assert 0 < row["bus_bytes_per_s"] < 2 * 450e9
        if row["operation"] == "all_reduce":
            factor = 2 * (row["ranks"] - 1) / row["ranks"]
            assert row["bus_bytes_per_s"] == pytest.approx(factor * row["payload_bytes"] / row["s"])


def test_a_decode_step_pays_for_the_row_that_is_taken(planner):
    planned = planner.plan({}, DENSE)
    (taken,) = [row for row in rows(planner, DENSE) if row["group"] == "tensor_decode" and row["taken"]]
    step = planned.terms["compute.decode_step_s"]
    (paid,) = [term for term in nodes(step) if term.name == "communication_s"]
    assert paid.value == pytest.approx(all_reduces_per_step(planned.serving.inputs) * taken["s"])


def test_groups_are_those_of_the_cut(planner):
    ranks = {(row["group"], row["ranks"]) for row in rows(planner, TRAINING)}
    assert ranks == {("tensor", 8), ("data", 16), ("all", 512)}
    ranks = {(row["group"], row["ranks"]) for row in rows(planner, MOE)}
    assert ranks == {(f"{what}_{step}", size) for what, size in (("tensor", 8), ("experts", 64))
                     for step in ("decode", "prefill")} | {("all", 512)}  # fmt: skip


def test_the_row_of_all_chips_is_the_metric(planner):
    planned = planner.plan({}, DENSE)
    for row in planned.tables["collectives"]:
        if row["group"] == "all" and row["taken"]:
            assert row["s"] == planned.metrics[f"fabric.collective.{row['operation']}_s"]


def test_experts_by_domain_are_two_groups(planner):
    """DeepEP's way: inside the domain, and once to each other domain."""
    moe = TRAINING | {"model": {"name": "mixtral-8x7b"}}
    cut = {"tp": 1, "pp": 4, "dp": 128, "ep": 8}
    assert [
        key(row)[2] for row in rows(planner, moe, {"training.parallelism": cut}) if row["group"] == "experts"
    ]


def test_islands_have_no_row_of_all_chips(planner):
    apart = {"topology.kind": "rail_only", "topology.tiers": 1, "topology.radix": 16}
    assert "all" not in {row["group"] for row in rows(planner, DENSE, apart)}
