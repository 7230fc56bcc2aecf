"""A table of measured lengths: a CSV file whose rows are requests becomes the two lists of `empirical` lengths.

Columns are found by name, `input_tokens` and `output_tokens`; what else a row has is not read. A scenario is a document
of at most a megabyte, so of more than `KEPT_ROWS` rows every k-th is kept, which leaves their distribution as it is
unless the file itself repeats in k rows.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Final

from simcore.errors import InputError, Message
from simcore.workload.lengths import MAX_TOKENS
from simcore.workload.text_blocks import lines

NAMES: Final = ("input_tokens", "output_tokens")
KEPT_ROWS: Final = 20_000
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthTable:
    """Aligned by row."""

    input_tokens: list[int]
    output_tokens: list[int]

    def kept(self) -> tuple[LengthTable, tuple[Message, ...]]:
        """As many rows as a scenario takes, and a word where they are fewer than there were."""
        count = len(self.input_tokens)
        step = -(-count // KEPT_ROWS)
        if step <= 1:
            return self, ()
        thinned = LengthTable(
            input_tokens=self.input_tokens[::step], output_tokens=self.output_tokens[::step]
        )
        told = Message(
            code="lengths.thinned",
            template="a scenario takes {most:,} rows, so of these {count:,} one in {step} is kept",
            params={"most": KEPT_ROWS, "count": count, "step": step},
        )
        return thinned, (told,)


def read_lengths(text: str, path: str) -> LengthTable:
    """The rows of a CSV text. Raises InputError with the line of each wrong cell."""
    reader = csv.reader(lines(text))
    found: list[tuple[int, int]] = []
    wrong: list[Message] = []
    try:
        places = _places([cell.strip().lower() for cell in next(reader, [])], path)
        for row in reader:
            tokens = [_tokens(row[place]) if place < len(row) else None for place in places]
            if None in tokens and row:
                wrong.append(_complaint(reader.line_num, row, tokens, places, path))
            elif row:
                found.append((tokens[0] or 0, tokens[1] or 0))
            if len(wrong) == _SHOWN:
                break
    except csv.Error as error:
        raise InputError.at(
            path,
            "trace.unreadable_csv",
            "the rows cannot be read as CSV: {reason}; check the quotes",
            reason=str(error),
        ) from None
    if wrong:
        raise InputError(*wrong)
    if not found:
        raise InputError.at(path, "lengths.empty", "the file has no row of lengths below its header")
    return LengthTable(input_tokens=[one[0] for one in found], output_tokens=[one[1] for one in found])


def _places(header: list[str], path: str) -> list[int]:
    missing = [name for name in NAMES if name not in header]
    if missing:
        raise InputError.at(
            path,
            "lengths.column_missing",
            "the header has no column {missing}; it has {header}: name the columns input_tokens and output_tokens",
            missing=", ".join(missing),
            header=", ".join(header)[:300] or "nothing",
        )
    return [header.index(name) for name in NAMES]


def _tokens(cell: str) -> int | None:
    text = cell.strip()
    value = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    return value if 1 <= value <= MAX_TOKENS else None


def _complaint(line: int, row: list[str], tokens: list[int | None], places: list[int], path: str) -> Message:
    at = tokens.index(None)
    got = row[places[at]] if places[at] < len(row) else ""
    return Message(
        code="lengths.cell_wrong",
        template="line {line}, column {column}: got {got}; a whole number of tokens from 1 to {most:,} is needed",
        params={
            "line": line,
            "column": NAMES[at],
            "got": repr(got)[:60] if got else "nothing",
            "most": MAX_TOKENS,
        },
        path=path,
    )
