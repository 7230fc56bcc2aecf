"""What a memo rests on: the leaves of its traces, ordered by how sure they are.

Typed by the author, printed by a vendor or paper, calibrated on measurements, drawn by the simulation, and assumed. An
input that nobody typed is the product's default, and is listed with the assumptions. Each leaf is listed once, with
its value and source; the surest groups come last, because a reader who doubts begins with the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simcore.analysis.compare import flatten
from simcore.errors import Message
from simcore.report.frozen import Report
from simcore.report.language import Language
from simcore.why import Term, from_dict, is_plain_number, leaves

LISTED: Final = 12  # of each group; the traces in the appendix have all of them
_GROUPS: Final = (
    ("assumption", Message(code="report.grounds", template="Assumed:")),
    ("default", Message(code="report.grounds", template="Left at the product's defaults:")),
    ("input", Message(code="report.grounds", template="Set by the author:")),
    ("calibrated", Message(code="report.grounds", template="Calibrated on measurements:")),
    ("catalog", Message(code="report.grounds", template="From data sheets and price books:")),
)


def grounds(report: Report, language: Language) -> list[tuple[str, tuple[str, ...]]]:
    """Groups with their lines, empty ones left out."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for group, leaf in _leaves(report):
        found.setdefault(group, {}).setdefault((leaf.path or leaf.name, leaf.text), _line(leaf, language))
    return [
        (language.say(title), _cut(list(found[group].values()), language))
        for group, title in _GROUPS
        if group in found
    ]


def _leaves(report: Report) -> Iterator[tuple[str, Term]]:
    for column in report.columns:
        typed = flatten(column.document)
        for tree in column.why.values():
            for leaf in leaves(from_dict(tree)):
                if not is_plain_number(leaf):
                    yield _group(leaf, typed.keys()), leaf


def _group(leaf: Term, typed: object) -> str:
    is_typed = any(path.startswith(leaf.path) for path in typed) if leaf.path else False  # type: ignore[attr-defined]
    return "default" if leaf.kind == "input" and not is_typed else leaf.kind


def _line(leaf: Term, language: Language) -> str:
    name = language.label(leaf.path) if leaf.path else language.term(leaf.name)
    source = language.source(leaf.source)
    return f"{name}: {leaf.text} ({source})" if source else f"{name}: {leaf.text}"


def _cut(lines: list[str], language: Language) -> tuple[str, ...]:
    more = len(lines) - LISTED
    if more <= 0:
        return tuple(lines)
    rest = Message(code="report.more", template="and {count:,} more, in the appendix", params={"count": more})
    return (*lines[:LISTED], language.say(rest))
