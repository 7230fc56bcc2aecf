"""Which cells of a broken trace file are wrong: a slow walk over its rows, for files that cannot be taken.

Up to five cells are named by line, as an editor counts them, with what was got and what is allowed; the rest
is counted. The same walk finds the lines of rows that are left out.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from simcore.errors import InputError, Message, Phrases
from simcore.workload.block_hashes import HASHES_NAME, chains_of
from simcore.workload.lengths import MAX_TOKENS
from simcore.workload.text_blocks import lines
from simcore.workload.trace_prose import refuse_prose_keys

_SHOWN: Final = 5
_NUMBER: Final = Message(code="trace.number", template="a finite number is needed")
_WHOLE: Final = Message(code="trace.whole_number", template="a whole number of tokens, 0 or more, is needed")
_TOO_MANY: Final = Message(
    code="trace.too_many_tokens",
    template="at most {allowed:,} tokens are allowed",
    params={"allowed": MAX_TOKENS},
)
_INSTANT: Final = Message(
    code="trace.date",
    template="a date and time such as 2023-11-16 18:17:03.9799600 is needed, as in the first row",
)
_OBJECT: Final = Message(code="trace.object", template="one JSON object per line is needed")
_HASHES: Final = Message(code="trace.hashes", template="a list of whole numbers of 64 bits is needed")
_DATE: Final = re.compile(r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]00:?00)?$")


class _Refusal:
    """The first few complaints about a file, and how many there were."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._messages: list[Message] = []
        self._count = 0

    def add(self, line: int, column: str, got: object, allowed: Message) -> None:
        self._count += 1
        if self._count > _SHOWN:
            return
        self._messages.append(
            Message(
                code="trace.cell_wrong",
                template="line {line}, column {column!r}: got {got}; {allowed}; mend the row or remove it",
                params={
                    "line": line,
                    "column": column,
                    "got": "nothing" if got in (None, "") else repr(got)[:60],
                    "allowed": Phrases((allowed,)),
                },
                path=self._path,
            )
        )

    def error(self, otherwise: Message) -> InputError:
        """What was found, or `otherwise` where the walk saw nothing wrong."""
        if self._count <= _SHOWN:
            return InputError(*(self._messages or [otherwise]))
        more = Message(
            code="trace.more_wrong_cells",
            template="{more:,} more cells like these; mend the file or remove the rows",
            params={"more": self._count - _SHOWN},
            path=self._path,
        )
        return InputError(*self._messages, more)


def wrong_cells(text: str, places: Sequence[int], names: Sequence[str], path: str) -> InputError:
    """Of a CSV file, by the places of its three columns."""
    refusal = _Refusal(path)
    dated: bool | None = None
    for line, row in _csv_rows(text):
        cells = [row[place] if place < len(row) else None for place in places]
        if dated is None:
            dated = cells[0] is not None and _number(cells[0]) is None and bool(_DATE.match(cells[0].strip()))
        for place, cell in enumerate(cells):
            allowed = _complaint(cell, instant=place == 0, dated=dated)
            if allowed:
                refusal.add(line, names[place], cell, allowed)
    return refusal.error(
        Message(code="trace.unreadable", template="the rows cannot be read; check the quotes", path=path)
    )


def wrong_lines(text: str, names: Sequence[str], path: str) -> InputError:
    """Of a file of JSON lines, by the names of its three keys."""
    refusal = _Refusal(path)
    for line, written in _json_rows(text):
        try:
            row = json.loads(written)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            refusal.add(line, "(line)", written, _OBJECT)
            continue
        refuse_prose_keys(row, path)
        for place, name in enumerate(names):
            allowed = _complaint_about(_json_number(row.get(name)), instant=place == 0)
            if allowed:
                refusal.add(line, name, row.get(name), allowed)
        if not _are_hashes(row.get(HASHES_NAME)):
            refusal.add(line, HASHES_NAME, row[HASHES_NAME], _HASHES)
    return refusal.error(
        Message(code="trace.unreadable", template="the lines cannot be read as JSON", path=path)
    )


def line_numbers(text: str, rows: Sequence[int], *, json_lines: bool) -> list[int]:
    """The lines on which some rows (from 0, in ascending order) begin; the first line of a file is 1."""
    wanted = set(rows)
    found: list[int] = []
    for row, (line, _) in enumerate(_json_rows(text) if json_lines else _csv_rows(text)):
        if row in wanted:
            found.append(line)
            if len(found) == len(wanted):
                break
    return found


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Rows below the header with their first lines; a quoted cell may go on over several."""
    reader = csv.reader(lines(text))
    next(reader, None)
    before = reader.line_num
    for row in reader:
        if row:
            yield before + 1, row
        before = reader.line_num


def _json_rows(text: str) -> Iterator[tuple[int, str]]:
    for line, written in enumerate(lines(text, quoted=False), start=1):
        if not written.isspace():
            yield line, written.removesuffix("\n")


def _complaint(cell: str | None, *, instant: bool, dated: bool) -> Message | None:
    """What is allowed, or None where the cell is right."""
    if instant and dated:
        return None if cell is not None and _DATE.match(cell.strip()) else _INSTANT
    return _complaint_about(None if cell is None else _number(cell), instant=instant)


def _complaint_about(number: float | None, *, instant: bool) -> Message | None:
    finite = number is not None and math.isfinite(number)
    if instant:
        return None if finite else _NUMBER
    if number is None or not finite or number < 0 or number != int(number):
        return _WHOLE
    return _TOO_MANY if number > MAX_TOKENS else None


def is_number(cell: str) -> bool:
    """Whether a cell is a number, finite or not."""
    return _number(cell) is not None


def _number(cell: str) -> float | None:
    """As the columns are read: Python alone would take 1_000 for a number."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _json_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _are_hashes(value: Any) -> bool:
    try:
        chains_of([value])
    except (ValueError, TypeError):
        return False
    return True
