"""Measured times on a grid of shapes, and the correction that leads a fitted form through them.

What is interpolated is the ratio measured ÷ fitted, linearly in the logarithms of ratio and coordinates:

    t(x) = fitted(x) · exp(Σ w(x) · ln(measured ÷ fitted))        w: weights of the neighbours, Σ w = 1

On a measured shape that is the measurement; between two, the ratio lies between theirs, and what the form knows
(tiles, waves, what is read once) still shows; beyond the last one the form is scaled as there. A changed chip
changes `fitted(x)` and keeps the ratio.
Limits: a shape whose neighbours were not measured takes the ones that were; where none was, there is no correction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from simcore.why import Term, leaf

Floats = NDArray[np.float64]
Amount = TypeVar("Amount", Term, NDArray[np.float64])
Columns = Mapping[str, Floats]
MEASURED_RATIO: Final = "measured_ratio"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Seconds at every combination of its coordinates, all positive; NaN where nothing was measured."""

    names: tuple[str, ...]
    axes: tuple[Floats, ...]  # ascending, one per name
    measured_s: Floats
    source: str

    @property
    def floor_s(self) -> float:
        """The shortest time of all: what a kernel takes that has nothing to do."""
        return float(np.nanmin(self.measured_s))

    @property
    def floors_s(self) -> Floats:
        """The same for each value of the first coordinate: kernels that are chosen by it launch differently."""
        floors: Floats = np.nanmin(self.measured_s.reshape(len(self.axes[0]), -1), axis=1)
        return floors

    def lines(self, at: Mapping[str, float]) -> Iterator[tuple[float, dict[str, float], Floats]]:
        """Weight, other coordinates and times along the first coordinate, of each neighbour of a shape.

        A shape beyond the grid has the neighbours of the nearest edge.
        """
        around = [_neighbours(axis, at[name]) for name, axis in self._others()]
        for corner in product(*around):
            weight = float(np.prod([share for _, share in corner]))
            where = tuple(index for index, _ in corner)
            fixed = {
                name: float(axis[index]) for (name, axis), index in zip(self._others(), where, strict=True)
            }
            line: Any = (slice(None), *where)
            yield weight, fixed, self.measured_s[line]

    def _others(self) -> list[tuple[str, Floats]]:
        return list(zip(self.names[1:], self.axes[1:], strict=True))


def grid_of(columns: Columns, measured_s: Floats, *, source: str) -> Grid:
    """The grid that rows of measurements span; the fastest where a shape was measured more than once."""
    axes = tuple(np.unique(column).astype(np.float64) for column in columns.values())
    found = np.full([len(axis) for axis in axes], np.inf)
    places = tuple(np.searchsorted(axis, column) for axis, column in zip(axes, columns.values(), strict=True))
    np.minimum.at(found, places, measured_s)
    found[np.isinf(found)] = np.nan
    return Grid(names=tuple(columns), axes=axes, measured_s=found, source=source)


def _neighbours(axis: Floats, at: float) -> list[tuple[int, float]]:
    """Places on the axis below and above, with weights by the logarithm; one place where it is met."""
    inside = float(np.clip(at, axis[0], axis[-1]))
    above = int(np.searchsorted(axis, inside))
    if axis[above] == inside:
        return [(above, 1.0)]
    below = above - 1
    share = float(np.log(inside / axis[below]) / np.log(axis[above] / axis[below]))
    return [(below, 1.0 - share), (above, share)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Correction:
    """Measured ÷ fitted along one coordinate, both as logarithms; constant beyond its ends."""

    log_at: Floats
    log_ratio: Floats
    source: str

    def ratio(self, at: Amount) -> Amount:
        """The factor for each value of the coordinate; a term of one value becomes a leaf."""
        if isinstance(at, Term):
            return ratio_leaf(self.ratio(np.asarray(at.value)).item(), self.source)
        # a step without tokens is charged nothing by its caller
        found: Floats = np.exp(np.interp(np.log(np.maximum(at, 1e-30)), self.log_at, self.log_ratio))
        return found


def correction(
    grid: Grid, at: Mapping[str, float], fitted_s: Callable[[Columns], Floats]
) -> Correction | None:
    """Along the grid's first coordinate with the others `at` a shape. None where no neighbour was measured.

    `fitted_s` takes columns of shapes by the names of the grid and gives what the form says of each.
    """
    nodes = np.log(grid.axes[0])
    log_ratio, weights = np.zeros_like(nodes), 0.0
    for weight, fixed, measured_s in grid.lines(at):
        seen = np.isfinite(measured_s)
        if not seen.any():
            continue
        columns = {name: np.full(int(seen.sum()), value) for name, value in fixed.items()}
        fitted = fitted_s({grid.names[0]: grid.axes[0][seen], **columns})
        log_ratio += weight * np.interp(nodes, nodes[seen], np.log(measured_s[seen] / fitted))
        weights += weight
    if not weights:
        return None
    return Correction(log_at=nodes, log_ratio=log_ratio / weights, source=grid.source)


def ratio_leaf(ratio: float, source: str) -> Term:
    """A measured ÷ fitted ratio in a Why tree, by a name that tells measured operators from fitted ones."""
    return leaf(ratio, MEASURED_RATIO, kind="calibrated", source=source, dimension="")
