"""Prompt text in a trace file: found by the names of columns and by what stands in them, and refused."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any, Final

from simcore.errors import InputError
from simcore.workload.text_blocks import lines

TEXT_NAMES: Final = frozenset(
    "prompt prompts completion completions response responses text content contents message messages body "
    "question answer conversation conversations system_prompt user_prompt generated_text input_text "
    "output_text input output".split()
)
LONGEST_CELL: Final = 256  # of a column that is not read; longer with spaces is prose
_LOOKED_AT_ROWS: Final = 200


def refuse_prose(text: str, header: Sequence[str], places: Sequence[int], path: str) -> None:
    """Refuse columns that are named like prompt text, or that hold prose."""
    unread = [place for place in range(len(header)) if place not in places]
    guilty = [header[place] for place in unread if header[place].lower() in TEXT_NAMES]
    for number, row in enumerate(csv.reader(lines(text))):
        if number > _LOOKED_AT_ROWS:
            break
        guilty += [
            header[place]
            for place in unread
            if place < len(row) and len(row[place]) > LONGEST_CELL and row[place].count(" ") > 8
        ]
    if guilty:
        raise _error(guilty[0], path)


def refuse_prose_keys(row: Any, path: str) -> None:
    """Refuse a row of JSON lines that holds text under such a name, or long text under any."""
    if isinstance(row, dict):
        for key, value in row.items():
            prose = isinstance(value, str) and len(value) > LONGEST_CELL
            if prose or (isinstance(value, str | list | dict) and str(key).lower() in TEXT_NAMES):
                raise _error(str(key), path)


def _error(name: str, path: str) -> InputError:
    return InputError.at(
        path,
        "trace.prompt_text",
        "{name!r} looks like prompt text, which a trace must not hold; remove it and keep the instants and "
        "token counts",
        name=name,
    )
