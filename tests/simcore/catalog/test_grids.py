"""Interpolation between measured shapes: exact on them, between its neighbours elsewhere, constant beyond."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.catalog.grids import MEASURED_RATIO, Grid, correction, grid_of
from simcore.why import leaf

TIMES = st.floats(1e-7, 1e-1)
AXES = st.lists(st.integers(1, 10**6), min_size=2, max_size=6, unique=True).map(sorted)


@st.composite
def planes(draw):
    """A grid of rows × columns with every shape measured."""
    rows, columns = draw(AXES), draw(AXES)
    count = len(rows) * len(columns)
    measured = draw(st.lists(TIMES, min_size=count, max_size=count))
    x, y = np.meshgrid(rows, columns, indexing="ij")
    return grid_of({"x": x.ravel(), "y": y.ravel()}, np.array(measured), source="made up")


def form(shapes):
    """Some smooth form that fits nothing."""
    return 1e-6 + 1e-9 * shapes["x"] * np.sqrt(shapes["y"])


def interpolated_s(grid: Grid, x, y: float):
    x = np.asarray(x, dtype=float)
    return form({"x": x, "y": np.asarray(y)}) * correction(grid, {"y": y}, form).ratio(x)


@given(planes())
def test_on_every_measured_shape_it_is_the_measurement(grid):
    for at, y in enumerate(grid.axes[1]):
        np.testing.assert_allclose(
            interpolated_s(grid, grid.axes[0], float(y)), grid.measured_s[:, at], rtol=1e-9
        )


@given(planes(), st.floats(0, 1), st.floats(0, 1))
def test_between_measured_shapes_the_ratio_lies_between_theirs(grid, along, across):
    x = grid.axes[0][0] * (grid.axes[0][1] / grid.axes[0][0]) ** along
    y = grid.axes[1][0] * (grid.axes[1][1] / grid.axes[1][0]) ** across
    near = {"x": grid.axes[0][:2, None], "y": grid.axes[1][None, :2]}
    around = grid.measured_s[:2, :2] / form(near)
    ratio = correction(grid, {"y": float(y)}, form).ratio(np.asarray(x)).item()
    assert around.min() * (1 - 1e-9) <= ratio <= around.max() * (1 + 1e-9)


@given(AXES, st.lists(TIMES, min_size=6, max_size=6).map(sorted))
def test_times_rise_where_the_measurements_and_the_form_do(axis, measured):
    grid = grid_of({"x": np.array(axis)}, np.array(measured[: len(axis)]), source="made up")
    along = np.geomspace(axis[0], axis[-1], 50)
    found = correction(grid, {}, lambda shapes: np.full_like(shapes["x"], 1e-6)).ratio(along)
    assert (np.diff(found) >= -1e-9 * found[:-1]).all()


@given(planes(), st.floats(1, 1e6))
def test_beyond_the_grid_the_form_is_scaled_as_at_its_edge(grid, factor):
    last, widest = float(grid.axes[0][-1]), float(grid.axes[1][-1])
    edge = correction(grid, {"y": widest}, form)
    assert edge.ratio(np.asarray(last * factor)) == pytest.approx(edge.ratio(np.asarray(last)))
    wider = correction(grid, {"y": widest * factor}, form)
    np.testing.assert_allclose(wider.log_ratio, edge.log_ratio)


@given(planes(), st.floats(1, 1e6))
def test_a_term_and_an_array_agree_and_the_leaf_says_where_it_is_from(grid, x):
    found = correction(grid, {"y": float(grid.axes[1][0])}, form)
    term = found.ratio(leaf(x, "tokens"))
    assert term.value == found.ratio(np.asarray(x)).item()
    assert (term.name, term.source) == (MEASURED_RATIO, "made up")


def test_a_neighbour_that_was_not_measured_leaves_its_weight_to_the_others():
    x, y = np.meshgrid([1, 10], [1, 100], indexing="ij")
    measured = np.array([2e-6, np.nan, 2e-6, np.nan])
    seen = np.isfinite(measured)
    grid = grid_of({"x": x.ravel()[seen], "y": y.ravel()[seen]}, measured[seen], source="made up")
    assert len(grid.axes[1]) == 1
    holed = Grid(names=grid.names, axes=(grid.axes[0], np.array([1.0, 100.0])),
                 measured_s=measured.reshape(2, 2), source="made up")  # fmt: skip
    flat = correction(holed, {"y": 10.0}, lambda shapes: np.full_like(shapes["x"], 1e-6))
    assert flat.ratio(np.array([1.0, 5.0, 10.0])) == pytest.approx([2.0, 2.0, 2.0])
    assert correction(holed, {"y": 100.0}, form) is None


def test_the_fastest_of_several_measurements_of_a_shape_counts():
    grid = grid_of({"x": np.array([4.0, 4.0, 8.0])}, np.array([3e-6, 2e-6, 5e-6]), source="made up")
    assert grid.measured_s.tolist() == [2e-6, 5e-6]
    assert math.isclose(grid.floor_s, 2e-6)
