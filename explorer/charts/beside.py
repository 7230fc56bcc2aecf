"""What the comparisons of one scenario in several ways share: a row for each way, and the table of their metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Note, Result, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way: its result where there is one, else how far it is, or why it cannot be."""

    name: str
    result: Result | None
    state: str
    planned: Result | None = None  # what is known before it is run
    is_current: bool = False
    refused: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def metric(self, name: str) -> float | None:
        """A metric as a number, the simulation's first."""
        found = style.metric(self.result, name)
        return style.metric(self.planned, name) if found is None else found


def notes(rows: Sequence[Row]) -> list[Note]:
    """Why a way cannot be, and which of the scenario's settings one does not have."""
    found = [
        Note(
            text=_("%(name)s cannot run this: %(reason)s")
            % {"name": wording.capitalised(row.name), "reason": text},
            kind="warn",
        )
        for row in rows
        for text in row.refused
    ]
    return found + [
        Note(text=_("%(name)s: %(reason)s") % {"name": wording.capitalised(row.name), "reason": text})
        for row in rows
        for text in row.dropped
    ]


def table(rows: Sequence[Row], columns: Sequence[str], *, head: str, plain: Sequence[str] = ()) -> Table:
    """Metrics of each way, with the change against the scenario as it stands; `plain` are those without."""
    before = next((row for row in rows if row.is_current), None)
    return Table(
        columns=(head, _("State"), *(wording.label(name) for name in (*columns, *plain))),
        rows=tuple(
            (*_cells(row, columns, before), *(_cell(name, row, None) for name in plain)) for row in rows
        ),
        words=2,
    )


def _cells(row: Row, columns: Sequence[str], before: Row | None) -> tuple[Cell, ...]:
    name = _("%(name)s, now") % {"name": row.name} if row.is_current else row.name
    return (
        Cell(text=name),
        Cell(text=row.state, muted=True),
        *(_cell(column, row, before) for column in columns),
    )


def _cell(column: str, row: Row, before: Row | None) -> Cell:
    value = row.metric(column)
    if value is None:
        return Cell(text="–", muted=True)
    shown = style.number(value, column)
    change = None if row.is_current or before is None else style.delta(value, before.metric(column), column)
    return Cell(text=shown.text, unit=shown.unit, delta=change)
