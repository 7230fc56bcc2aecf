"""A report as it is kept: 2 to 5 scenarios with what came out of them, and the question that they answer.

Everything that a memo says is computed from this and from nothing else, so neither a later edit nor a new price
changes it. `as_dict` is the report's JSON: the comparison's own document (`analysis/compare.py`) with `report` and
`scenarios` beside it. A scenario is kept as it was typed, so that opening the file plans the same scenarios again,
with the same digests. Limit: uploaded traces and own calibrations are named, not enclosed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from simcore.analysis.compare import Comparison, compare
from simcore.scenario import Scenario

KIND: Final = "trimtab.report"
TABLES: Final = ("bill", "where_time_goes")  # what of a result a memo reads
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One scenario: as typed, and what it came to."""

    name: str
    document: Document
    digest: str
    seed: int
    engine_version: str
    metrics: Mapping[str, Any]
    bands: Mapping[str, Any]
    warnings: Sequence[Document]
    tables: Mapping[str, Any]
    why: Mapping[str, Document]

    def number(self, metric: str) -> float | None:
        value = self.metrics.get(metric)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`choice` is the column that its author recommends; None leaves it to the figures."""

    title: str
    question: str
    made_on: str
    columns: tuple[Column, ...]
    choice: int | None = None
    language: str = "en"
    permalink: str = ""
    sensitivities: tuple[Document, ...] = ()
    attribution: tuple[Document, ...] = ()  # messages: which layer of the change earned what

    @property
    def baseline(self) -> Column:
        return self.columns[0]

    @property
    def comparison(self) -> Comparison:
        return compare(
            [Scenario.parse(column.document) for column in self.columns],
            [column.metrics for column in self.columns],
            [column.warnings for column in self.columns],
        )

    def as_dict(self) -> dict[str, Any]:
        about = {
            "title": self.title,
            "question": self.question,
            "made_on": self.made_on,
            "choice": self.choice,
            "language": self.language,
            "permalink": self.permalink,
            "sensitivities": [dict(row) for row in self.sensitivities],
            "attribution": [dict(row) for row in self.attribution],
        }
        return {
            "kind": KIND,
            "schema_version": 1,
            "report": about,
            **self.comparison.as_dict(),
            "scenarios": [asdict(column) for column in self.columns],
        }

    @classmethod
    def from_dict(cls, document: Document) -> Report:
        """The report that `as_dict` wrote."""
        about = dict(document["report"])
        return cls(
            **about | {name: tuple(about[name]) for name in ("sensitivities", "attribution")},
            columns=tuple(Column(**column) for column in document["scenarios"]),
        )


def column(document: Document, result: Document, why: Mapping[str, Document], kept: Iterable[str]) -> Column:
    """A scenario as typed with its Result document; of the traces those in `kept`, which may be long."""
    tables = result.get("tables", {})
    return Column(
        name=str(document.get("name", "")),
        document=dict(document),
        digest=str(result["digest"]),
        seed=int(result["seed"]),
        engine_version=str(result["engine_version"]),
        metrics=dict(result["metrics"]),
        bands=dict(result.get("bands", {})),
        warnings=list(result.get("warnings", ())),
        tables={name: tables[name] for name in TABLES if name in tables},
        why={metric: why[metric] for metric in kept if metric in why},
    )
