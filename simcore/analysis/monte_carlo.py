"""Monte Carlo over uncertain inputs: what a figure may be when several inputs are only known as intervals.

Draws are a Latin hypercube: each input's law (`intervals.py`) is cut into as many equal shares as there are draws, one
value from each, in an order of its own. Both come from the stream of the seed and the input's path, so two scenarios
with one seed share their draws (common random numbers), and a further input changes no other. Reported are the 5, 50
and 95 % quantiles of each metric, its mean with the standard error `s / √n` (independent draws; a Latin hypercube's
is smaller), chances with `√(p (1 - p) / n)`, and Spearman's rank correlation of each input with each metric. Draws
that cannot be built have no figures: they are counted, and miss every target.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from pydantic import Field

from simcore.analysis.cells import Cell, CellResult
from simcore.analysis.intervals import Uncertain
from simcore.analysis.sensitivity import beyond_measured
from simcore.analysis.targets import Target, all_met
from simcore.analysis.tornado import Ranges, number
from simcore.serving.records import Floats
from simcore.streams import stream

MAX_DRAWS: Final = 10_000
BINS: Final = 24


class MonteCarlo(Ranges):
    """All inputs at once, as often as there are draws."""

    kind: Literal["monte_carlo"] = "monte_carlo"
    draw_count: int = Field(default=200, ge=2, le=MAX_DRAWS)
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    targets: tuple[Target, ...] = Field(default=(), max_length=10)

    def cells(self, document: Mapping[str, Any]) -> list[Cell]:
        """One cell for each draw."""
        columns = self._columns()
        return [
            Cell(
                index=index,
                overrides={**self.hold, **{path: values[index] for path, values in columns.items()}},
            )
            for index in range(self.draw_count)
        ]

    def keeps(self, metric: str) -> bool:
        return metric in self.metrics or any(metric == target.metric for target in self.targets)

    def summary(
        self, document: Mapping[str, Any], results: Sequence[CellResult]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """`distribution`, `histogram` and `rank_correlations` by metric, and the `chances` of the targets."""
        ordered = sorted(results, key=lambda one: one.index)
        columns = self._columns()
        found: dict[str, list[dict[str, Any]]] = {
            "distribution": [],
            "histogram": [],
            "rank_correlations": [],
        }
        for metric in self.metrics:
            having = [(one.index, value) for one in ordered if (value := number(one, metric)) is not None]
            values = np.array([value for _, value in having])
            if not len(values):
                continue
            found["distribution"].append(_distribution(metric, values, ordered))
            found["histogram"] += _histogram(metric, values)
            inputs = {
                path: np.array([drawn[index] for index, _ in having]) for path, drawn in columns.items()
            }
            found["rank_correlations"] += _correlations(metric, inputs, values)
        return {**found, "chances": self._chances(ordered)}

    def _columns(self) -> dict[str, list[float | int]]:
        """The draws of each input."""
        drawn = {path: Uncertain(path=path, given=given) for path, given in self.ranges.items()}
        return {
            path: one.typed(one.quantiles(strata(self.draw_count, self.seed, path)))
            for path, one in drawn.items()
        }

    def _chances(self, results: Sequence[CellResult]) -> list[dict[str, Any]]:
        """How likely each target is met, and all of them together."""
        if not results:
            return []
        asked: list[tuple[str, tuple[Target, ...]]] = [(target.text, (target,)) for target in self.targets]
        if len(self.targets) > 1:
            asked.append(("all", self.targets))
        rows = []
        for text, targets in asked:
            share = sum(all_met(targets, one) for one in results) / len(results)
            rows.append(
                {
                    "target": text,
                    "fraction": share,
                    "standard_error": math.sqrt(share * (1 - share) / len(results)),
                    "draw_count": len(results),
                }
            )
        return rows


def strata(count: int, seed: int, path: str) -> Floats:
    """Shares in (0, 1), one in each of `count` equal parts, in random order."""
    generator = stream(seed, "monte_carlo", path)
    return (generator.permutation(count) + generator.uniform(1e-9, 1 - 1e-9, size=count)) / count


def rank_correlation(first: Floats, second: Floats) -> float | None:
    """Spearman's: Pearson's of the ranks, equal values sharing the mean of theirs; None where one does not vary."""
    ranks = [_ranks(values) for values in (first, second)]
    spreads = [float(np.std(one)) for one in ranks]
    if min(spreads) == 0:
        return None
    together = np.mean((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean()))
    return float(together / (spreads[0] * spreads[1]))


def _ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle: Floats = last - (counts - 1) / 2
    return middle[place]


def _distribution(metric: str, values: Floats, results: Sequence[CellResult]) -> dict[str, Any]:
    p5, p50, p95 = (float(value) for value in np.quantile(values, (0.05, 0.5, 0.95)))
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {
        "metric": metric,
        "p5": p5,
        "p50": p50,
        "p95": p95,
        "mean": float(values.mean()),
        "standard_error": spread / math.sqrt(len(values)),
        "draw_count": len(results),
        "failed_count": sum(bool(one.errors) for one in results),
        "extrapolated_count": sum(beyond_measured(one.warnings) for one in results),
    }


def _histogram(metric: str, values: Floats) -> list[dict[str, Any]]:
    counts, edges = np.histogram(values, bins=min(BINS, max(1, len(values) // 4)))
    return [
        {"metric": metric, "low": float(low), "high": float(high), "count": int(count)}
        for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True)
    ]


def _correlations(metric: str, inputs: Mapping[str, Floats], values: Floats) -> list[dict[str, Any]]:
    rows = [
        {"metric": metric, "path": path, "correlation": found}
        for path, drawn in inputs.items()
        if (found := rank_correlation(drawn, values)) is not None
    ]
    return sorted(rows, key=lambda row: -abs(row["correlation"]))
