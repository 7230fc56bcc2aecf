"""Collectives: measured curves, NCCL's constants, domains and what lies between them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.catalog import default_catalog, override_chip
from simcore.catalog.types import CollectiveFit, Source
from simcore.fabric import Clos, RailOnly, build_fabric
from simcore.fabric.collectives import (
    ENGINE_KERNEL,
    OPERATIONS,
    Interconnect,
    Operation,
    bus_factor,
    collective_s,
    collective_times_s,
    fit_at,
    hierarchical_all_reduce_s,
    interconnect,
    point_to_point_s,
)
from simcore.why import evaluate, leaves

CHIPS = ("nvidia-h100-sxm", "nvidia-l40s", "nvidia-rtx-pro-6000", "amd-mi300x", "tpu-v4", "nvidia-gb200")
IN_NETWORK_GAIN = 1.75
UNHURRIED = settings(deadline=None)


def network(slug: str) -> Interconnect:
    catalog = default_catalog()
    chip = catalog.chip(slug)
    return interconnect(chip, catalog.server(chip.default_server), catalog.calibration_for(chip))


def without_engine_kernel(over: Interconnect) -> Interconnect:
    fits = {key: fit for key, fit in over.fits.items() if key[0] != ENGINE_KERNEL}
    return replace(over, fits=fits)


def seconds(operation: Operation, payload: float, ranks: int, over: Interconnect) -> float:
    return collective_s(operation, payload, ranks, over).value


@UNHURRIED
@given(
    slug=st.sampled_from(CHIPS),
    operation=st.sampled_from(OPERATIONS),
    ranks=st.integers(1, 200),
    payload=st.floats(1, 1e11),
)
def test_the_vectorised_form_is_the_tree(slug: str, operation: Operation, ranks: int, payload: float) -> None:
    over = network(slug)
    times = collective_times_s(operation, np.array([0.0, payload]), ranks, over)
    assert times[0] == 0
    assert times[1] == pytest.approx(seconds(operation, payload, ranks, over))


@UNHURRIED
@given(
    slug=st.sampled_from(CHIPS),
    operation=st.sampled_from(OPERATIONS),
    ranks=st.integers(2, 200),
    payload=st.floats(1, 1e11),
)
def test_bus_bandwidth_never_exceeds_the_links(
    slug: str, operation: Operation, ranks: int, payload: float
) -> None:
    over = network(slug)
    bus = payload * bus_factor(operation, ranks) / seconds(operation, payload, ranks, over)
    capacity = over.scaleup_bytes_per_s.value
    if ranks > over.domain_size and operation != "all_to_all":
        capacity = min(capacity, over.domain_size * over.scaleout_bytes_per_s.value)
    gain = IN_NETWORK_GAIN if operation == "all_reduce" and ranks <= over.domain_size else 1.0
    assert bus <= capacity * gain * (1 + 1e-9)  # rounding alone


@UNHURRIED
@given(
    slug=st.sampled_from(CHIPS),
    operation=st.sampled_from(OPERATIONS),
    ranks=st.integers(2, 200),
    payload=st.floats(1, 1e10),
)
def test_more_bytes_never_take_less_time(slug: str, operation: Operation, ranks: int, payload: float) -> None:
    over = network(slug)
    assert seconds(operation, 2 * payload, ranks, over) >= seconds(operation, payload, ranks, over)


def test_one_rank_costs_nothing() -> None:
    assert seconds("all_reduce", 1e9, 1, network("nvidia-h100-sxm")) == 0


def test_leaving_the_server_is_slower() -> None:
    over = network("nvidia-h100-sxm")
    for operation in OPERATIONS:
        assert seconds(operation, 1e9, 16, over) > seconds(operation, 1e9, 8, over)


def test_doubling_the_link_speeds_bytes_up_and_leaves_latency() -> None:
    catalog = default_catalog()
    chip = catalog.chip("nvidia-h100-sxm")
    faster = override_chip(chip, {"scaleup_bytes_per_s": "x2"}, path="hardware.chip_overrides")
    reference = chip.scaleup_bytes_per_s
    over = interconnect(
        faster,
        catalog.server("dgx-h100"),
        catalog.calibration_for(chip),
        reference_scaleup_bytes_per_s=reference,
    )
    before = network("nvidia-h100-sxm")
    assert seconds("all_gather", 1e10, 8, over) < 0.52 * seconds("all_gather", 1e10, 8, before)
    small, was = seconds("all_gather", 256, 8, over), seconds("all_gather", 256, 8, before)
    assert small == pytest.approx(was, rel=0.05)


def test_the_tree_follows_its_link() -> None:
    over = network("nvidia-h100-sxm")
    tree = collective_s("all_gather", 1e10, 8, over)
    assert evaluate(tree, {"scaleup_bytes_per_s": 900e9}) < 0.52 * tree.value
    assert all(node.source or node.kind in ("constant", "input") for node in leaves(tree))


def over_clos(ratio: float) -> Interconnect:
    catalog = default_catalog()
    chip, server = catalog.chip("nvidia-h100-sxm"), catalog.server("dgx-h100")
    fabric = build_fabric(Clos(oversubscription_ratio=ratio), chip_count=1024, server=server)
    return interconnect(chip, server, catalog.calibration_for(chip), fabric=fabric)


def test_oversubscription_slows_what_leaves_its_leaf() -> None:
    even, narrow = over_clos(1.0), over_clos(3.0)
    for operation in OPERATIONS:
        assert seconds(operation, 1e11, 1024, narrow) > 2 * seconds(operation, 1e11, 1024, even)
        assert seconds(operation, 1e11, 32, narrow) <= seconds(operation, 1e11, 32, even)


def test_a_longer_way_costs_latency_and_no_bandwidth() -> None:
    """Two servers of one leaf, and 1,024 over leaf, spine and leaf."""
    catalog = default_catalog()
    chip, server = catalog.chip("nvidia-h100-sxm"), catalog.server("dgx-h100")
    for ranks, further in ((16, False), (1024, True)):
        plain = interconnect(chip, server, catalog.calibration_for(chip))
        small = seconds("all_reduce", 1, ranks, over_clos(1.0)) - seconds("all_reduce", 1, ranks, plain)
        large = seconds("all_reduce", 1e12, ranks, over_clos(1.0)) / seconds("all_reduce", 1e12, ranks, plain)
        assert (small > 1e-6) == further
        assert large == pytest.approx(1, rel=1e-3)


def test_rail_only_slows_an_all_to_all_by_one_crossing() -> None:
    catalog = default_catalog()
    chip, server = catalog.chip("nvidia-h100-sxm"), catalog.server("dgx-h100")
    calibration = catalog.calibration_for(chip)
    times = []
    for spec in (Clos(), RailOnly()):
        fabric = build_fabric(
            spec, chip_count=512, server=server, scaleup_bytes_per_s=chip.scaleup_bytes_per_s
        )
        times.append(seconds("all_to_all", 1e9, 512, interconnect(chip, server, calibration, fabric=fabric)))
    assert times[1] / times[0] == pytest.approx(1 + 50 / 450, rel=0.01)


def test_point_to_point_is_slower_across_domains() -> None:
    over = network("nvidia-h100-sxm")
    near = point_to_point_s(1e8, over, crosses_domain=False).value
    assert point_to_point_s(1e8, over, crosses_domain=True).value > 5 * near


def test_a_hierarchical_all_reduce_adds_its_levels() -> None:
    found = hierarchical_all_reduce_s(
        1e9, servers=2048, ranks_per_server=8, scaleup_bytes_per_s=450e9, scaleout_bytes_per_s=50e9
    )
    assert found.value == pytest.approx(8.886e-3, rel=1e-3)


def test_latency_between_measured_rank_counts_lies_between_theirs() -> None:
    source = Source(title="test", kind="measured")

    def fit(alpha_s: float) -> CollectiveFit:
        return CollectiveFit(
            alpha_s=alpha_s, sqrt_s_per_sqrt_byte=0, bus_bytes_per_s=1e11, mape_fraction=0.05, source=source
        )

    fits = {("all_reduce", 2): fit(4e-6), ("all_reduce", 8): fit(8e-6)}
    middle, beyond = fit_at(fits, "all_reduce", 4), fit_at(fits, "all_reduce", 16)
    assert middle is not None
    assert beyond is not None
    assert middle.alpha_s == pytest.approx(6e-6)
    assert beyond.alpha_s == pytest.approx(10e-6)
    assert fit_at(fits, "all_reduce", 16, extend=False) is None
    assert fit_at(fits, "all_gather", 4) is None


MEASURED_CHIPS = {
    "a100_sxm": "nvidia-a100-80gb-sxm",
    "h100_sxm": "nvidia-h100-sxm",
    "h200_sxm": "nvidia-h200-sxm",
    "b200_sxm": "nvidia-b200-sxm",
}


@pytest.mark.parametrize(("gpu", "slug"), MEASURED_CHIPS.items())
@pytest.mark.parametrize("operation", OPERATIONS)
def test_nccl_collectives_on_nvlink_are_met(shared: Path, gpu: str, slug: str, operation: Operation) -> None:
    """Mean error over 2, 4 and 8 ranks: 8 %; an all-to-all is noisier as measured: 13 %."""
    over, errors = without_engine_kernel(network(slug)), []
    with (shared / "data" / "collectives_nccl.csv").open() as file:
        for row in csv.DictReader(file):
            named = row["op"].replace("alltoall", "all_to_all")
            if (row["gpu"], named) == (gpu, operation) and row["impl"].startswith("nccl"):
                got = seconds(operation, float(row["bytes"]), int(row["ranks"]), over)
                errors.append(abs(got / (float(row["measured_us"]) * 1e-6) - 1))
    assert len(errors) >= 60
    assert np.mean(errors) < (0.13 if operation == "all_to_all" else 0.08)


def test_the_engines_own_all_reduce_takes_small_payloads() -> None:
    """vLLM 0.24 on 8×H100: 14.97 µs at 1 MiB, 4.7 µs at 512 B; NCCL takes over above 8 MiB."""
    over = network("nvidia-h100-sxm")
    assert seconds("all_reduce", 2**20, 8, over) == pytest.approx(14.97e-6, rel=0.06)
    assert seconds("all_reduce", 512, 8, over) == pytest.approx(4.68e-6, rel=0.06)
    just_above = seconds("all_reduce", 8 * 2**20 + 1, 8, over)
    assert just_above > seconds("all_reduce", 8 * 2**20, 8, over)


def test_a_torus_takes_its_dimensions_in_turn() -> None:
    """16 × 16 × 16: 45 steps a pass, not 4,095."""
    over = network("tpu-v4")
    ring = replace(over, torus=())
    assert seconds("all_gather", 1, 4096, over) < 0.05 * seconds("all_gather", 1, 4096, ring)
