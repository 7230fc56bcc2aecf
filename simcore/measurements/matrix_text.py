"""A traffic matrix as text: a square table, or a list of edges with a header.

Tables are parsed at once; only where that fails is the file gone through for the first cell that is no number, which
the message then names by line and column.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InputError

Floats = NDArray[np.float64]
SEPARATORS: Final = (",", ";", "\t")
EDGE_COLUMNS: Final = ("source", "target", "bytes", "messages", "latency_sensitive")
_TRUTH: Final = {"true": "1", "false": "0", "yes": "1", "no": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What was read, before it is checked."""

    moved_bytes: Floats
    message_count: Floats | None = None
    latency_sensitive_fraction: Floats | None = None
    duration_s: float | None = None


def read_text(raw: bytes, *, max_ranks: int, path: str) -> tuple[Literal["table", "edges"], Columns]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError.at(
            path, "matrix.not_text", "this is neither UTF-8 text nor an npz archive; give CSV or npz"
        ) from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise InputError.at(path, "matrix.no_rows", "the file is empty; give a table or a list of edges")
    separator = max(SEPARATORS, key=lines[0][1].count)
    head = [cell.strip().strip('"').lower() for cell in lines[0][1].split(separator)]
    if set(EDGE_COLUMNS[:3]) <= set(head):
        return "edges", _edges(lines[1:], head, separator, max_ranks, path)
    return "table", Columns(moved_bytes=_table(lines, separator, max_ranks, path))


def _table(lines: Sequence[tuple[int, str]], separator: str, max_ranks: int, path: str) -> Floats:
    head = lines[0][1].split(separator)
    has_header = not all(_is_number(cell) for cell in head if cell.strip())
    body = lines[1:] if has_header else lines
    if len(body) > max_ranks + 1:
        raise _too_many(len(body), max_ranks, path)
    has_names = bool(body) and not _is_number(body[0][1].split(separator)[0])
    width = len(body[0][1].split(separator)) if body else 0
    found = _numbers(body, separator, range(int(has_names), width), path)
    rows, columns = found.shape
    if rows == columns + 1 and (found[0] == np.arange(columns)).all():  # a header of rank numbers
        return found[1:].copy()
    if columns == rows + 1 and (found[:, 0] == np.arange(rows)).all():  # a column of them
        return found[:, 1:].copy()
    return found


def _edges(
    lines: Sequence[tuple[int, str]], head: Sequence[str], separator: str, max_ranks: int, path: str
) -> Columns:
    known = [name for name in EDGE_COLUMNS if name in head]
    if not lines:
        raise InputError.at(path, "matrix.no_edges", "the list has a header and no edge; add rows below it")
    rows = _numbers(lines, separator, [head.index(name) for name in known], path)
    ends = rows[:, :2]
    wrong = np.flatnonzero(((ends < 0) | (ends != np.floor(ends)) | (ends >= max_ranks)).any(axis=1))
    if len(wrong):
        line, (source, target) = lines[wrong[0]][0], ends[wrong[0]]
        raise InputError.at(
            path,
            "matrix.rank",
            "line {line} goes from rank {source:g} to {target:g}; ranks are whole numbers from 0 to {allowed:,}",
            line=line,
            source=float(source),
            target=float(target),
            allowed=max_ranks - 1,
        )
    source, target = ends.astype(np.int64).T
    count = int(ends.max()) + 1
    place = source * count + target
    columns = {name: rows[:, at] for at, name in enumerate(known)}
    moved = _summed(place, columns["bytes"], count)
    messages = columns.get("messages")
    sensitive = columns.get("latency_sensitive")
    if sensitive is not None:  # the share of a pair's bytes
        weighted = _summed(place, columns["bytes"] * sensitive, count)
        sensitive = np.divide(weighted, moved, out=np.zeros_like(moved), where=moved > 0)
    return Columns(
        moved_bytes=moved,
        message_count=None if messages is None else _summed(place, messages, count),
        latency_sensitive_fraction=sensitive,
    )


def _summed(place: NDArray[np.int64], values: Floats, count: int) -> Floats:
    return np.bincount(place, values, count * count).reshape(count, count).astype(np.float64)


def _numbers(lines: Sequence[tuple[int, str]], separator: str, columns: Sequence[int], path: str) -> Floats:
    text = "\n".join(line for _, line in lines)
    try:
        found: Floats = np.loadtxt(
            io.StringIO(text),
            delimiter=separator,
            usecols=list(columns),
            ndmin=2,
            comments=None,
            quotechar='"',
        )
    except ValueError:
        return _slowly(lines, separator, columns, path)
    widths = {line.count(separator) for _, line in lines[:: max(1, len(lines) // 64)]}
    return found if len(widths) == 1 else _slowly(lines, separator, columns, path)


def _slowly(lines: Sequence[tuple[int, str]], separator: str, columns: Sequence[int], path: str) -> Floats:
    """The same, cell by cell: truth values are numbers too, and what is none is named."""
    width, found = len(lines[0][1].split(separator)), []
    for number, line in lines:
        cells = [cell.strip().strip('"') for cell in line.split(separator)]
        if len(cells) != width:
            raise InputError.at(
                path,
                "matrix.width",
                "line {line} has {got:,} cells and the first has {allowed:,}; make all lines equally long",
                line=number,
                got=len(cells),
                allowed=width,
            )
        row = []
        for column in columns:
            cell = _TRUTH.get(cells[column].lower(), cells[column])
            if not _is_number(cell):
                raise InputError.at(
                    path,
                    "matrix.cell",
                    "line {line}, column {column} is {got!r}; a number is needed, 0 for no traffic",
                    line=number,
                    column=column + 1,
                    got=cells[column][:40],
                )
            row.append(float(cell))
        found.append(row)
    return np.array(found)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _too_many(got: int, allowed: int, path: str) -> InputError:
    return InputError.at(
        path,
        "matrix.too_many_rows",
        "got {got:,} rows; at most {allowed:,} ranks are read, so send blocks of ranks",
        got=got,
        allowed=allowed,
    )
