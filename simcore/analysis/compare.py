"""Comparison: what differs between scenarios, and what that did to the results.

Inputs are compared leaf by leaf on the validated scenarios (so a default and the same value written out
are equal); results metric by metric, with the direction of better from the glossary. Two scenarios are
incomparable where they do different kinds of work: they stand side by side without a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from simcore import glossary
from simcore.errors import InputError
from simcore.scenario.schema import Scenario

MAX_SCENARIOS = 5
GUARD_RAILS = ("fabric.islands", "fabric.guard_rail")
Verdict = Literal["better", "worse", "changed", "same", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRow:
    """One scenario path whose values differ; a value is None where the scenario lacks the path."""

    path: str
    label: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    value: float | str | None
    change_ratio: float | None  # relative to the baseline; None where it has no meaning
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    metric: str
    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """2 to 5 scenarios; column 0 is the baseline."""

    names: tuple[str, ...]
    inputs: tuple[InputRow, ...]
    equal_input_count: int
    metrics: tuple[MetricRow, ...]
    comparable: bool
    conditions: tuple[str, ...] = ()  # what a result rests on, or what breaks it: said beside any saving
    attributions: tuple[
        Mapping[str, Any], ...
    ] = ()  # of each further column, in the form of `Attribution.as_dict`
    sentences: tuple[str, ...] = ()  # what the attributions say

    def as_dict(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "comparable": self.comparable,
            "equal_input_count": self.equal_input_count,
            "conditions": list(self.conditions),
            "attributions": [dict(one) for one in self.attributions],
            "sentences": list(self.sentences),
            "inputs": [
                {"path": row.path, "label": row.label, "values": list(row.values)} for row in self.inputs
            ],
            "metrics": [
                {
                    "metric": row.metric,
                    "label": row.label,
                    "cells": [
                        {"value": cell.value, "change_ratio": cell.change_ratio, "verdict": cell.verdict}
                        for cell in row.cells
                    ],
                }
                for row in self.metrics
            ],
        }


def compare(
    scenarios: Sequence[Scenario],
    metrics: Sequence[Mapping[str, float | str]],
    warnings: Sequence[Sequence[Mapping[str, Any]]] = (),
) -> Comparison:
    """Scenarios and their metrics, column by column, against the first; `warnings` as in Result documents."""
    if not 2 <= len(scenarios) <= MAX_SCENARIOS:
        raise InputError.at(
            "compare",
            "compare.count",
            "got {got} scenarios; compare 2 to {allowed}",
            got=len(scenarios),
            allowed=MAX_SCENARIOS,
        )
    inputs, equal = input_rows([scenario.model_dump(mode="json") for scenario in scenarios])
    comparable = len({(scenario.workload.kind) for scenario in scenarios}) == 1
    return Comparison(
        names=tuple(scenario.name for scenario in scenarios),
        inputs=inputs,
        equal_input_count=equal,
        metrics=tuple(_metric_rows(metrics, comparable)),
        comparable=comparable,
        conditions=tuple(
            f"{scenario.name}: {row['message']}"
            for scenario, rows in zip(scenarios, warnings, strict=False)
            for row in rows
            if row["code"] in GUARD_RAILS
        ),
    )


def input_rows(documents: Sequence[Mapping[str, Any]]) -> tuple[tuple[InputRow, ...], int]:
    """Paths whose values differ between full scenario documents, and how many are equal."""
    flat = [flatten(document) for document in documents]
    paths = sorted({path for one in flat for path in one} - {"name", "description"})
    rows = [(path, tuple(one.get(path) for one in flat)) for path in paths]
    found = tuple(
        InputRow(path=path, label=glossary.label(path), values=values)
        for path, values in rows
        if any(value != values[0] for value in values)
    )
    return found, len(rows) - len(found)


def flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as `a.b.c` -> value; lists stay whole."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{path}.") if value else {}
        else:
            flat[path] = value
    return flat


def _metric_rows(metrics: Sequence[Mapping[str, float | str]], comparable: bool) -> list[MetricRow]:
    names = list(dict.fromkeys(name for one in metrics for name in one))
    return [
        MetricRow(
            metric=name,
            label=glossary.label(name),
            cells=tuple(_cell(name, metrics[0].get(name), one.get(name), comparable) for one in metrics),
        )
        for name in names
    ]


def _cell(metric: str, base: float | str | None, value: float | str | None, comparable: bool) -> Cell:
    if value is None:
        return Cell(value=None, change_ratio=None, verdict="absent")
    if base is None or not comparable:
        return Cell(value=value, change_ratio=None, verdict="absent" if base is None else "changed")
    if value == base:
        return Cell(value=value, change_ratio=0.0 if isinstance(value, int | float) else None, verdict="same")
    if isinstance(value, str) or isinstance(base, str):
        return Cell(value=value, change_ratio=None, verdict="changed")
    return Cell(
        value=value, change_ratio=value / base - 1 if base else None, verdict=verdict(metric, base, value)
    )


def verdict(metric: str, base: float, value: float) -> Verdict:
    """Whether the change is for the better, by the glossary's direction."""
    direction = glossary.better(metric)
    if value == base:
        return "same"
    if direction == "neutral":
        return "changed"
    return "better" if (value > base) == (direction == "up") else "worse"
