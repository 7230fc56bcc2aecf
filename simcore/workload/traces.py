"""Recorded traces: a file in one of four formats becomes three aligned arrays, or one clear refusal.

Mooncake's block hashes come along: row `i` has `block_hashes[block_offsets[i]:block_offsets[i + 1]]`.

What is done to the rows, in this order: broken cells refuse the file, by line and column; rows without a
token in or out did no work and are skipped, and listed by line; rows are sorted by instant; instants count from the
first row; `window` cuts between two instants (the window's start becomes 0); `limit` keeps the first rows;
`time_scale` multiplies the instants. Size limits are the caller's and are checked before anything is parsed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InputError, Message
from simcore.workload.arrivals import Columns, TraceFormat
from simcore.workload.block_hashes import Chains, Integers, picked
from simcore.workload.trace_formats import Raw, line_numbers, read_columns

MAX_ROWS: Final = 5_000_000
MAX_BYTES: Final = 512 * 2**20
LISTED_ROWS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTable:
    """The rows of a trace in order of time; `content_sha256` is of the file as it was given."""

    timestamp_s: NDArray[np.float64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    content_sha256: str
    skipped_rows: tuple[Message, ...] = ()
    skipped_count: int = 0
    block_offsets: Integers | None = None
    block_hashes: Integers | None = None

    @property
    def block_chains(self) -> Chains | None:
        if self.block_offsets is None or self.block_hashes is None:
            return None
        return self.block_offsets, self.block_hashes

    def __len__(self) -> int:
        return len(self.timestamp_s)


def read_trace(
    source: Path | bytes | IO[bytes],
    *,
    format: TraceFormat,  # noqa: A002 - the scenario's own word
    columns: Columns | None = None,
    time_scale: float = 1.0,
    limit: int | None = None,
    window: tuple[float, float] | None = None,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    path: str = "workload.arrivals",
) -> TraceTable:
    """Read a trace. Raises InputError naming line, column, what was got and what is allowed."""
    raw = _contents(source, max_bytes, path)
    rows = raw.count(b"\n") + (not raw.endswith(b"\n"))
    if rows > max_rows + 1:
        raise InputError.at(
            path,
            "trace.too_many_rows",
            "got about {got:,} rows; at most {allowed:,} are read, so cut the file",
            got=rows - 1,
            allowed=max_rows,
        )
    columns_read, chains = read_columns(raw, format, columns, path)
    kept, idle = _with_work(columns_read)
    table = TraceTable(
        **_shaped(columns_read, chains, kept, time_scale=time_scale, limit=limit, window=window),
        content_sha256=hashlib.sha256(raw).hexdigest(),
        skipped_rows=_skipped(columns_read, idle[:LISTED_ROWS], raw, format, path),
        skipped_count=len(idle),
    )
    if len(table) == 0:
        raise InputError.at(
            path,
            "trace.empty",
            "no row with work is left of {rows} read; widen window or give another file",
            rows=len(columns_read[0]),
        )
    return table


def cut(
    table: TraceTable,
    *,
    time_scale: float = 1.0,
    limit: int | None = None,
    window: tuple[float, float] | None = None,
) -> TraceTable:
    """A trace that was read whole before, cut and scaled as `read_trace` does."""
    rows = (table.timestamp_s, table.input_tokens.astype(float), table.output_tokens.astype(float))
    every = np.arange(len(table))
    shaped = _shaped(rows, table.block_chains, every, time_scale=time_scale, limit=limit, window=window)
    return replace(table, **shaped)


def _contents(source: Path | bytes | IO[bytes], max_bytes: int, path: str) -> bytes:
    try:
        if isinstance(source, bytes):
            raw = source
        elif isinstance(source, Path):
            with source.open("rb") as file:
                raw = file.read(max_bytes + 1)
        else:
            raw = source.read(max_bytes + 1)
    except OSError as error:
        raise InputError.at(
            path,
            "trace.unreadable_file",
            "cannot read {file}: {reason}; give the path of an existing trace file",
            file=str(source),
            reason=(error.strerror or "it is not a file").lower(),
        ) from None
    if len(raw) > max_bytes:
        raise InputError.at(
            path,
            "trace.too_large",
            "the file is larger than {allowed:,} bytes; cut it, or keep only the instants and token counts",
            allowed=max_bytes,
        )
    return raw


def _with_work(rows: Raw) -> tuple[Integers, Integers]:
    """The rows that did work, and those without a token in or out (failed calls in BurstGPT)."""
    _, inputs, outputs = rows
    idle = (inputs == 0) | (outputs == 0)
    return np.flatnonzero(~idle), np.flatnonzero(idle)


def _skipped(rows: Raw, idle: Integers, raw: bytes, form: TraceFormat, path: str) -> tuple[Message, ...]:
    """Why each of these rows is left out, by its line in the file."""
    if len(idle) == 0:
        return ()
    _, inputs, outputs = rows
    return tuple(
        Message(
            code="trace.row_skipped",
            template="line {line} has {inputs:.0f} tokens in and {outputs:.0f} out; it did no work and is skipped",
            params={"line": line, "inputs": float(inputs[row]), "outputs": float(outputs[row])},
            path=path,
        )
        for row, line in zip(idle, line_numbers(raw, form, idle.tolist()), strict=True)
    )


def _shaped(
    columns: Raw,
    chains: Chains | None,
    rows: Integers,
    *,
    time_scale: float,
    limit: int | None,
    window: tuple[float, float] | None,
) -> dict[str, Any]:
    """Some rows in order of time, cut and scaled, as columns of a table."""
    rows = rows[np.argsort(columns[0][rows], kind="stable")]
    instants = columns[0][rows]
    if len(instants):
        instants = instants - instants[0]
    if window is not None:
        inside = slice(*np.searchsorted(instants, window))
        instants, rows = instants[inside] - window[0], rows[inside]
    rows = rows[:limit]
    offsets, hashes = picked(chains, rows) or (None, None)
    return {
        "timestamp_s": instants[:limit] * time_scale,
        "input_tokens": columns[1][rows].astype(np.int64),
        "output_tokens": columns[2][rows].astype(np.int64),
        "block_offsets": offsets,
        "block_hashes": hashes,
    }
