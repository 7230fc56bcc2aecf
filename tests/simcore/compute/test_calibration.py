"""Which fit an operator takes, and how launch is charged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simcore.compute.calibration import (
    CLASS_DEFAULTS,
    arithmetic_dtype,
    efficiency,
    engine_overhead,
    quantisation_launch_s,
    rates,
)
from tests.simcore.compute.shapes import efficiency as made
from tests.simcore.compute.shapes import make_calibration, make_chip


def test_a_fitted_dtype_takes_its_fit() -> None:
    assert efficiency(make_calibration(), "gemm", "fp8").compute_fraction == 0.54


def test_half_precision_and_weight_only_formats_take_the_sixteen_bit_fit() -> None:
    for dtype in ("fp16", "int4", "mxfp4"):
        assert efficiency(make_calibration(), "gemm", dtype).compute_fraction == 0.784


def test_an_absent_dtype_takes_the_class_default_scaled_by_the_chip() -> None:
    got = efficiency(make_calibration(), "gemm", "nvfp4")
    default = CLASS_DEFAULTS["gemm"]["nvfp4"]
    scale = 0.784 / CLASS_DEFAULTS["gemm"]["bf16"].compute_fraction
    assert got.compute_fraction == pytest.approx(default.compute_fraction * scale)
    assert got.source.kind == "estimate"


def test_expert_fits_stand_among_the_gemms() -> None:
    calibration = make_calibration()
    fitted = replace(calibration, gemm={**calibration.gemm, "moe_fp8": made(0.21, 0.71, 33.0)})
    assert efficiency(fitted, "moe", "fp8").compute_fraction == 0.21
    assert efficiency(calibration, "moe", "fp8") == CLASS_DEFAULTS["moe"]["fp8"]


def test_a_chip_without_the_units_computes_in_sixteen_bit() -> None:
    old = make_chip(fp8_flop_per_s=None)
    assert arithmetic_dtype(old, "fp8") == "bf16"
    assert arithmetic_dtype(make_chip(), "fp8") == "fp8"
    assert arithmetic_dtype(make_chip(), "int4") == "bf16"


def test_rates_are_catalog_peaks_times_fits_and_say_so() -> None:
    got = rates(make_chip(), make_calibration(), "gemm", "fp8", name="gemm")
    assert got.flop_per_s.value == pytest.approx(0.54 * 1979e12)
    kinds = {leaf.name: leaf.kind for leaf in got.flop_per_s.args}
    assert kinds["gemm_compute_fraction"] == "calibrated"


@pytest.mark.parametrize(
    ("engine", "is_eager"),
    [
        ("eager 1.0", True),
        ("eager 1.9", True),
        ("eager 2.0", False),
        ("eager 12.1", False),
        ("eager 0.9", False),
    ],
)
def test_an_engine_takes_the_overhead_of_the_newest_version_up_to_its_own(
    engine: str, is_eager: bool
) -> None:
    assert (engine_overhead(make_calibration(), engine).eager_per_layer_s > 0) is is_eager


def test_an_engine_that_was_not_measured_takes_the_chips_own_overhead() -> None:
    calibration = make_calibration()
    assert engine_overhead(calibration, "other 1.0") is calibration.step_overhead


def test_quantised_activations_cost_the_difference_of_the_fits() -> None:
    assert quantisation_launch_s(make_calibration(), "fp8").value == pytest.approx(9.5e-6)
    assert quantisation_launch_s(make_calibration(), "bf16").value == 0.0
