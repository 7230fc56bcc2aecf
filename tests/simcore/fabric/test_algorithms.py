"""Collectives by the name of their algorithm, on every kind of fabric, and against measured systems of many servers."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.catalog import default_catalog
from simcore.fabric import AnyTopology, build_fabric
from simcore.fabric.collectives import (
    OPERATIONS,
    Interconnect,
    Operation,
    bus_factor,
    collective_s,
    curves,
    every_curve,
    hierarchical_all_reduce_s,
    interconnect,
)
from simcore.fabric.curves import SCALEOUT_FRACTION
from simcore.fabric.nccl import IN_NETWORK_GAIN, ll_limit_bytes_per_s
from simcore.why import constant

KINDS = get_args(AnyTopology)
IDEAL_GAIN = 2.0
UNHURRIED = settings(deadline=None)
CHIPS = {
    "a100_sxm": "nvidia-a100-80gb-sxm",
    "h100_sxm": "nvidia-h100-sxm",
    "h200_sxm": "nvidia-h200-sxm",
    "b200_sxm": "nvidia-b200-sxm",
}


def network(slug: str = "nvidia-h100-sxm", kind: type | None = None, chips: int = 512) -> Interconnect:
    catalog = default_catalog()
    chip = catalog.chip(slug)
    server = catalog.server(chip.default_server)
    fabric = None
    if kind is not None:
        fabric = build_fabric(
            kind(), chip_count=chips, server=server, scaleup_bytes_per_s=chip.scaleup_bytes_per_s
        )
    return interconnect(chip, server, catalog.calibration_for(chip), fabric=fabric)


OVER = {kind: network(kind=kind) for kind in KINDS}


@UNHURRIED
@given(
    kind=st.sampled_from(KINDS),
    operation=st.sampled_from(OPERATIONS),
    ranks=st.sampled_from([2, 8, 16, 64, 100, 512]),
    payload=st.floats(1, 1e12),
)
def test_no_algorithm_is_faster_than_the_least_capacity_on_its_path(
    kind: type, operation: Operation, ranks: int, payload: float
) -> None:
    over = OVER[kind]
    inside = ranks <= over.domain_size
    for curve in every_curve(operation, ranks, over):
        bus = payload * bus_factor(operation, ranks)
        reached = bus / float(curve.times_s(np.asarray(bus)))
        capacity = over.scaleup_bytes_per_s.value
        if not inside and operation != "all_to_all":
            nics = over.domain_size * over.reached_bytes_per_s(ranks).value
            capacity = min(capacity, nics) if curve.algorithm in ("ring", "tree", "in_network") else capacity
        gain = IDEAL_GAIN if curve.algorithm in ("in_network", "engine") else 1.0
        assert reached <= capacity * gain * (1 + 1e-9), curve


@UNHURRIED
@given(kind=st.sampled_from(KINDS), ranks=st.integers(9, 512), payload=st.floats(1, 1e11))
def test_what_is_taken_is_the_fastest_that_a_tuner_may_choose(kind: type, ranks: int, payload: float) -> None:
    over = OVER[kind]
    taken = collective_s("all_reduce", payload, ranks, over).value
    for name in ("ring", "tree"):
        if any(curve.algorithm == name for curve in every_curve("all_reduce", ranks, over)):
            assert taken <= collective_s("all_reduce", payload, ranks, over, algorithm=name).value


def test_every_algorithm_can_be_asked_for_by_name() -> None:
    over = network()
    across = {curve.algorithm for curve in every_curve("all_reduce", 64, over)}
    inside = {curve.algorithm for curve in every_curve("all_reduce", 8, over)}
    assert across == {"ring", "tree", "halving_doubling", "hierarchical", "in_network"}
    assert inside == {"ring", "tree", "halving_doubling", "in_network", "engine"}
    assert [curve.algorithm for curve in every_curve("all_to_all", 64, over)] == ["pairwise"]


def test_switches_reduce_only_where_that_was_measured() -> None:
    names = {curve.algorithm for curve in every_curve("all_reduce", 8, network("nvidia-a100-80gb-sxm"))}
    assert "in_network" not in names
    with pytest.raises(AssertionError, match="no all_reduce runs as in_network"):
        collective_s("all_reduce", 1e6, 8, network("nvidia-a100-80gb-sxm"), algorithm="in_network")


def test_between_servers_the_switches_gain_what_was_measured_and_no_more() -> None:
    over = network()
    ring, switched = (
        collective_s("all_reduce", 1e12, 64, over, algorithm=name).value for name in ("ring", "in_network")
    )
    assert ring / switched == pytest.approx(IN_NETWORK_GAIN, rel=1e-3)


def test_few_bytes_go_by_tree_and_many_by_ring() -> None:
    over = network()
    for payload, best in ((1e4, "tree"), (1e11, "ring")):
        taken = collective_s("all_reduce", payload, 64, over).value
        assert taken == collective_s("all_reduce", payload, 64, over, algorithm=best).value


@given(domains=st.sampled_from([2, 4, 16]), payload=st.floats(1e9, 1e12))
def test_levels_in_turn_are_the_closed_form(domains: int, payload: float) -> None:
    """Without latency, and over full links: reduce-scatter, all-reduce of shards, all-gather."""
    over = replace(network("amd-mi300x"), scaleup_bytes_per_s=constant(400e9, "link"))
    (curve,) = (
        one
        for one in curves("all_reduce", 8 * domains, over, algorithm="hierarchical")
        if one.protocol == "simple"
    )
    bus = payload * bus_factor("all_reduce", 8 * domains)
    moved_s = float(curve.times_s(np.asarray(bus))) - curve.latency_s.value
    expected = hierarchical_all_reduce_s(
        payload,
        servers=domains,
        ranks_per_server=8,
        scaleup_bytes_per_s=400e9 * 0.816,
        scaleout_bytes_per_s=over.scaleout_bytes_per_s.value * SCALEOUT_FRACTION,
    )
    assert moved_s == pytest.approx(expected.value, rel=1e-6)


def test_halving_takes_fewer_steps_than_a_ring() -> None:
    over = network()
    ring, halving = (
        collective_s("all_reduce", 1, 512, over, algorithm=name).value
        for name in ("ring", "halving_doubling")
    )
    assert halving < 0.1 * ring


@pytest.mark.parametrize(("year", "servers", "limit"), [(2015, 2, 39e9), (2022, 4, 35e9), (2025, 2, 90e9)])
def test_the_low_latency_protocol_has_the_limit_of_its_generation(
    year: int, servers: int, limit: float
) -> None:
    assert ll_limit_bytes_per_s(year, servers=servers) == limit


def test_measured_systems_are_met_where_bytes_decide(shared: Path) -> None:
    """Mean error of an all-reduce from 128 MiB on, one server and four: 8 %."""
    errors: dict[tuple[str, int], list[float]] = defaultdict(list)
    with (shared / "data" / "collectives_multinode.csv").open() as file:
        for row in csv.DictReader(file):
            if row["op"] == "all_reduce" and row["measured_us"] and float(row["bytes"]) >= 2**27:
                ranks = int(row["ranks"])
                got = collective_s("all_reduce", float(row["bytes"]), ranks, network(CHIPS[row["gpu"]])).value
                errors[row["gpu"], ranks].append(abs(got / (float(row["measured_us"]) * 1e-6) - 1))
    assert len(errors) == 4
    # four servers over EFA start slower than the network of NCCL's constants: −31 % at 128 MiB, +6 % at 1 GiB
    allowed = {("b200_sxm", 32): 0.12}
    for system, found in errors.items():
        assert np.mean(found) < allowed.get(system, 0.08), (system, np.mean(found))
