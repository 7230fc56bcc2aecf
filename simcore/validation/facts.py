"""Published facts as data, and the row that each becomes: expected, got, error, met or missed.

A fact names the check that answers it (`checks.py`), the check's inputs, what the source says and how far
off is still a match: `tolerance` is absolute in the fact's own unit, or relative when written `5 %`; 0
means exact. A fact that cannot be met stays here, fails, and carries `known_deviation`, its cause; it is
never tuned away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from simcore.errors import TrimtabError
from simcore.units import printed_text
from simcore.validation.checks import CHECKS

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DATA: Final = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One published number and how to ask for it."""

    id: str
    statement: str
    check: str
    inputs: Mapping[str, Any]
    expected: float
    tolerance: float
    is_relative: bool
    unit: str
    source: str
    kind: str  # read, derived, recalled
    known_deviation: str  # why it cannot be met; "" where it must be
    topic: str

    def evaluate(self) -> FactRow:
        """Ask the program."""
        try:
            got, problem = float(CHECKS[self.check](self.inputs)), ""
        except TrimtabError as error:
            got, problem = float("nan"), str(error)
        return FactRow(fact=self, got=got, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """A fact beside the program's answer."""

    fact: Fact
    got: float
    problem: str = ""

    @property
    def error(self) -> float:
        """Got less expected; over expected where the tolerance is relative."""
        difference = self.got - self.fact.expected
        return difference / self.fact.expected if self.fact.is_relative else difference

    @property
    def passed(self) -> bool:
        # Exact means equal as printed: sums of floats may differ in their last bits.
        slack = 1e-9 * max(1.0, abs(self.fact.expected)) if self.fact.tolerance == 0 else 0.0
        return abs(self.error) <= self.fact.tolerance + slack

    @property
    def is_surprise(self) -> bool:
        """Missed without a known cause, or met although a deviation is on record."""
        return self.passed == bool(self.fact.known_deviation)

    def as_dict(self) -> dict[str, Any]:
        fact = self.fact
        return {
            "id": fact.id,
            "topic": fact.topic,
            "statement": fact.statement,
            "expected": fact.expected,
            "got": self.got,
            "error": self.error,
            "tolerance": fact.tolerance,
            "is_relative": fact.is_relative,
            "passed": self.passed,
            "unit": fact.unit,
            "kind": fact.kind,
            "source": fact.source,
            "note": self.problem or fact.known_deviation,
        }

    @property
    def expected_text(self) -> str:
        return printed_text(self.fact.expected, self.fact.unit, digits=5)

    @property
    def got_text(self) -> str:
        return printed_text(self.got, self.fact.unit, digits=5) if math.isfinite(self.got) else "–"

    @property
    def error_text(self) -> str:
        """Relative where the tolerance is, else in the fact's own unit."""
        if not math.isfinite(self.got):
            return "–"
        return f"{self.error:+.2%}" if self.fact.is_relative else f"{self.error:+.3g}"

    def as_line(self) -> str:
        fact = self.fact
        mark = "met   " if self.passed else "known " if fact.known_deviation else "MISSED"
        numbers = f"{self.expected_text:>16} {self.got_text:>16} {self.error_text:>10}"
        cause = f" ({fact.known_deviation})" if fact.known_deviation else ""
        return f"{mark} {fact.id:<22} {numbers}  {fact.statement} [{fact.source}]{cause}"


def load_facts(data: Path = DATA) -> list[Fact]:
    """All facts, by file and in file order."""
    found = []
    for path in sorted(data.glob("*.yaml")):
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
        found += [_fact(entry, document["sources"], path.stem) for entry in document["facts"]]
    return found


def _fact(entry: Mapping[str, Any], sources: Mapping[str, Any], topic: str) -> Fact:
    tolerance = entry.get("tolerance", 0)
    is_relative = isinstance(tolerance, str)
    source = sources[entry["source"]]
    return Fact(
        id=entry["id"],
        statement=entry["statement"],
        check=entry["check"],
        inputs=entry["inputs"],
        expected=float(entry["expected"]),
        tolerance=float(tolerance.rstrip(" %")) / 100 if is_relative else float(tolerance),
        is_relative=is_relative,
        unit=entry.get("unit", ""),
        source=source["title"],
        kind=source["kind"],
        known_deviation=entry.get("known_deviation", ""),
        topic=topic,
    )


def evaluate_all() -> list[FactRow]:
    """Every fact, answered."""
    return [fact.evaluate() for fact in load_facts()]
