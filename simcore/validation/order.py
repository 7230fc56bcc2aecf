"""Whether simulated loops stand in the measured order: ranks within and across configurations, and pairs.

Spearman's ρ is the correlation of ranks, ties sharing theirs. *Within*: over the users of one configuration, mean over
configurations of at least three rows. *Across*: over all rows. *Pairs*: the share of pairs of one model and lengths
that simulation puts in the measured order, configurations and users mixed. Targets were set before the first loop was
simulated; sizes have none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_FEWEST_ROWS: Final = 3
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """One time of one row."""

    configuration: Hashable
    task: Hashable  # rows of one task are paired
    measured_s: float
    simulated_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """1: all in the measured order, 0: in none."""

    within_ratio: float
    across_ratio: float
    pairs_fraction: float


# Of rows with prefill and decode apart. Found: what the test finds, for Methods to show.
TARGETS: Final[Mapping[str, Order]] = {
    "tpot": Order(within_ratio=0.90, across_ratio=0.80, pairs_fraction=0.85),
    "ttft": Order(within_ratio=0.70, across_ratio=0.60, pairs_fraction=0.75),
}
FOUND: Final[Mapping[str, Order]] = {
    "tpot": Order(within_ratio=1.00, across_ratio=0.94, pairs_fraction=0.90),
    "ttft": Order(within_ratio=0.82, across_ratio=0.71, pairs_fraction=0.83),
}
ROW_COUNT: Final = 264
CONFIGURATION_COUNT: Final = 41


def order_lines() -> list[str]:
    """What was found beside its target, as `trimtab validate` prints it."""

    def line(order: Order) -> str:
        return " ".join(f"{value:.2f}" for value in astuple(order))

    return [f"{phase:<6} {line(found)}   ≥ {line(TARGETS[phase])}" for phase, found in FOUND.items()]


def order_of(rows: Iterable[Times]) -> Order:
    """The order of some rows, of which at least one configuration has three."""
    listed = list(rows)
    within = [rank_correlation(*_columns(group)) for group in configurations(listed)]
    pairs = [_in_order(*_columns(group)) for group in _grouped(listed, "task")]
    return Order(
        within_ratio=float(np.mean(within)),
        across_ratio=rank_correlation(*_columns(listed)),
        pairs_fraction=float(np.concatenate(pairs).mean()),
    )


def configurations(rows: Iterable[Times]) -> list[list[Times]]:
    """Those with rows enough to be ranked."""
    return [group for group in _grouped(rows, "configuration") if len(group) >= _FEWEST_ROWS]


def rank_correlation(one: _Floats, other: _Floats) -> float:
    """Spearman's ρ.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.5
    """
    return round(float(np.corrcoef(_ranks(one), _ranks(other))[0, 1]), 12)


def _ranks(values: _Floats) -> _Floats:
    below = (values[None, :] < values[:, None]).sum(axis=1)
    same = (values[None, :] == values[:, None]).sum(axis=1)
    return np.asarray(below + (same - 1) / 2.0)


def _in_order(measured: _Floats, simulated: _Floats) -> NDArray[np.bool_]:
    """One entry per pair that was measured to differ."""
    first, second = np.triu_indices(len(measured), 1)
    truth = np.sign(measured[first] - measured[second])
    said = np.sign(simulated[first] - simulated[second])
    return np.asarray((truth == said)[truth != 0])


def _columns(rows: Iterable[Times]) -> tuple[_Floats, _Floats]:
    measured, simulated = zip(*((row.measured_s, row.simulated_s) for row in rows), strict=True)
    return np.array(measured), np.array(simulated)


def _grouped(rows: Iterable[Times], key: str) -> list[list[Times]]:
    groups: dict[Hashable, list[Times]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, key)].append(row)
    return list(groups.values())
