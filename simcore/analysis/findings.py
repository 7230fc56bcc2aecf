"""What a piece of the analysis adds to a result, and how it is told as it comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simcore.errors import Message
from simcore.simulate import OnEvent
from simcore.why import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Metrics with their trees, tables, series and sentences, in the form of a Result's own."""

    metrics: Mapping[str, float | str] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)
    series: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    why: Mapping[str, Term] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()


def together(parts: Sequence[Findings]) -> Findings:
    """All parts as one; no two may say the same metric, table or series."""
    return Findings(
        metrics={name: value for part in parts for name, value in part.metrics.items()},
        tables={name: table for part in parts for name, table in part.tables.items()},
        series={name: columns for part in parts for name, columns in part.series.items()},
        why={name: term for part in parts for name, term in part.why.items()},
        messages=tuple(message for part in parts for message in part.messages),
    )


def announce(on_event: OnEvent | None, messages: Sequence[Message]) -> None:
    """Tell whoever listens; a listener may raise to stop the analysis."""
    if on_event is not None:
        for message in messages:
            on_event("finding", message.as_dict() | {"text": message.text})
