"""Leaving one line of a grid out: the arithmetic on made-up grids, and the errors of the real tables."""

from collections import defaultdict

import numpy as np
import pytest

from simcore.catalog.measured import measured_tables
from simcore.validation.left_out import left_out, left_out_errors
from tests.simcore.synthetic_tables import grid, require_package, shapes

CHIPS = ("nvidia-h100-sxm", "nvidia-h200-sxm", "nvidia-b200-sxm")
# Mean error over all inner lines of all coordinates and formats, on the chips above.
MOST = {
    "experts": 0.08,
    "attention_prefill": 0.06,
    "attention_decode": 0.07,
    "mla_prefill": 0.06,
    "mla_decode": 0.08,
}
MOST_GEMM = {
    "vLLM 0.19": 0.08,
    "SGLang 0.5": 0.10,
    "TensorRT-LLM 1.2": 0.05,
}  # engines change kernels along m


def test_a_power_law_is_met_without_any_of_its_lines():
    columns = shapes(x=[1, 3, 10, 70], y=[2, 5, 9])
    measured_s = 1e-6 * columns["x"] ** 0.7 * columns["y"] ** 1.2
    errors = left_out_errors(grid(columns, measured_s), lambda found: np.full_like(found["x"], 1e-6))
    assert {name: len(error) for name, error in errors.items()} == {"x": 6, "y": 4}
    assert max(error.max() for error in errors.values()) < 1e-9


def test_a_line_that_stands_out_is_seen_and_edges_are_not_counted():
    columns = shapes(x=[1, 2, 4, 8, 16])
    measured_s = np.array([1.0, 1.0, 2.0, 1.0, 1.0]) * 1e-6
    errors = left_out_errors(grid(columns, measured_s), lambda found: np.full_like(found["x"], 1e-6))["x"]
    assert errors == pytest.approx([2**0.5 - 1, 0.5, 2**0.5 - 1])


@pytest.mark.parametrize("engine", ["vLLM 0.19", "SGLang 0.5", "TensorRT-LLM 1.2"])
def test_real_tables_stand_in_for_their_own_lines(catalog, engine):
    require_package()
    sums, counts = defaultdict(float), defaultdict(int)
    for slug in CHIPS:
        for row in left_out(catalog, catalog.chip(slug), measured_tables(slug, engine)):
            sums[row.kind] += row.mape_fraction * row.count
            counts[row.kind] += row.count
    found = {kind: sums[kind] / counts[kind] for kind in counts}
    most = {**MOST, "gemm": MOST_GEMM[engine]}
    assert found.keys() == most.keys()
    assert {kind: error for kind, error in found.items() if error > most[kind]} == {}
