"""Reading the rows of a trace file into three columns, vectorised, or saying which cell is wrong.

Four formats: `csv` (named columns), `azure` (TIMESTAMP, ContextTokens, GeneratedTokens), `burstgpt`
(Timestamp, Request tokens, Response tokens) and `mooncake` (JSON lines with timestamp in milliseconds,
input_length, output_length and, where given, the prompt's hash_ids). Instants are seconds, or dates and times such as
`2023-11-16 18:17:03.9799600`. The fast way reads whole columns; only when it fails does a slow one walk the
rows, to name the wrong cells (`trace_refusals.py`). Both go through the text in blocks of lines (`text_blocks.py`).
Files that hold prompt text are refused: a trace needs lengths.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InputError
from simcore.workload.arrivals import Columns, TraceFormat
from simcore.workload.block_hashes import HASHES_NAME, Chains, chains_of, joined
from simcore.workload.lengths import MAX_TOKENS
from simcore.workload.text_blocks import blocks
from simcore.workload.trace_prose import refuse_prose, refuse_prose_keys
from simcore.workload.trace_refusals import is_number, wrong_cells, wrong_lines
from simcore.workload.trace_refusals import line_numbers as lines_of

NAMES: Final[dict[TraceFormat, tuple[str, str, str]]] = {
    "azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "burstgpt": ("Timestamp", "Request tokens", "Response tokens"),
    "mooncake": ("timestamp", "input_length", "output_length"),
    "csv": ("timestamp_s", "input_tokens", "output_tokens"),
}
_READING: Final[dict[str, Any]] = {"delimiter": ",", "comments": None, "quotechar": '"', "ndmin": 2}

Raw = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def detect_format(head: bytes) -> TraceFormat | None:
    """The format that the first bytes of a file look like, or None."""
    first = head.lstrip(b"\xef\xbb\xbf \r\n\t").split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    if first.startswith("{"):
        return "mooncake"
    found = {name.strip().strip('"').lower() for name in first.split(",")}
    for kind in ("azure", "burstgpt", "csv"):
        if {name.lower() for name in NAMES[kind]} <= found:
            return kind
    return None


def read_columns(
    raw: bytes, form: TraceFormat, columns: Columns | None, path: str
) -> tuple[Raw, Chains | None]:
    """Seconds (from any origin), input tokens and output tokens of every row; tokens are whole and not negative.

    Beside them the block hashes of the prompts, where the format has them.
    """
    text = _text(raw, form, path)
    if form == "mooncake":
        return _json_columns(text, path)
    names = NAMES[form]
    if columns is not None:
        names = (columns.timestamp_s, columns.input_tokens, columns.output_tokens)
    try:
        return _csv_columns(text, names, path), None
    except csv.Error as error:
        raise InputError.at(
            path,
            "trace.unreadable_csv",
            "the rows cannot be read as CSV: {reason}; check the quotes",
            reason=str(error),
        ) from None


def line_numbers(raw: bytes, form: TraceFormat, rows: Sequence[int]) -> list[int]:
    """The lines on which some rows of a file that was read begin, as an editor counts them."""
    return lines_of(_text(raw, form, ""), rows, json_lines=form == "mooncake")


def _text(raw: bytes, form: TraceFormat, path: str) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.at(
            path,
            "trace.not_text",
            "byte {byte} is not UTF-8 text; give the trace as an uncompressed {form} text file",
            byte=error.start,
            form="JSON-lines" if form == "mooncake" else "CSV",
        ) from None
    return text if form == "mooncake" else text.replace("\r\n", "\n").replace("\r", "\n")


def _csv_columns(text: str, names: tuple[str, str, str], path: str) -> Raw:
    header = [cell.strip() for cell in next(csv.reader(io.StringIO(text[:65_536])), [])]
    places = _places(header, names, path)
    refuse_prose(text, header, places, path)
    try:
        return _possible(_fast_csv(text, places))
    except ValueError:
        raise wrong_cells(text, places, [header[place] for place in places], path) from None


def _possible(rows: Raw) -> Raw:
    """Raises ValueError at what is a number and cannot be: infinite, negative or fractional tokens, absurd lengths."""
    instants, *tokens = rows
    for values in tokens:
        if not ((values >= 0) & (values <= MAX_TOKENS) & (values == np.rint(values))).all():
            raise ValueError("tokens that cannot be")
    if not np.isfinite(instants).all():
        raise ValueError("instants that cannot be")
    return rows


def _places(header: Sequence[str], names: tuple[str, str, str], path: str) -> list[int]:
    lower = [name.lower() for name in header]
    missing = [name for name in names if name.lower() not in lower]
    if missing:
        form = detect_format(",".join(header).encode())
        hint = (
            f"this header is format {form}, so set format: {form}"
            if form
            else "name the columns, as in columns: {timestamp_s: …, input_tokens: …, output_tokens: …}"
        )
        raise InputError.at(
            path,
            "trace.column_missing",
            "the header has no column {missing}; it has {header}; {hint}",
            missing=", ".join(missing),
            header=", ".join(header)[:300] or "nothing",
            hint=hint,
        )
    return [lower.index(name.lower()) for name in names]


def _fast_csv(text: str, places: Sequence[int]) -> Raw:
    rows = csv.reader(io.StringIO(text[:65_536]))
    next(rows, None)
    first = next((row for row in rows if row), None)
    if first is None:
        return np.empty(0), np.empty(0), np.empty(0)
    body = [block for block in blocks(text, text.find("\n") + 1) if not block.isspace()]
    if is_number(first[places[0]]):
        table = np.concatenate([_numbers(block, places) for block in body])
        return table[:, 0], table[:, 1], table[:, 2]
    tokens = np.concatenate([_numbers(block, places[1:]) for block in body])
    instants_ns = np.concatenate([_instants_ns(block, places[0]) for block in body])
    return (instants_ns - instants_ns[0]) / 1e9, tokens[:, 0], tokens[:, 1]


def _numbers(block: str, places: Sequence[int]) -> NDArray[np.float64]:
    return np.loadtxt(io.StringIO(block), usecols=places, **_READING)


def _instants_ns(block: str, place: int) -> NDArray[np.int64]:
    """Dates and times in UTC as nanoseconds since 1970."""
    dates = np.loadtxt(io.StringIO(block), usecols=[place], dtype="U40", **_READING)[:, 0]
    if any(not date[-1:].isdigit() or date[-6:-5] in ("+", "-") for date in (dates[0], dates[-1])):
        dates = np.array([re.sub(r"(Z|[+-]00:?00)$", "", date) for date in dates])
    return dates.astype("datetime64[ns]").astype(np.int64)


def _json_columns(text: str, path: str) -> tuple[Raw, Chains | None]:
    names = NAMES["mooncake"]
    parts: list[NDArray[np.float64]] = []
    chains: list[Chains] = []
    for block in blocks(text, quoted=False):
        chunk = [line for line in block.split("\n") if line and not line.isspace()]
        if not chunk:
            continue
        try:
            rows = json.loads("[" + ",".join(chunk) + "]")
            if len(rows) != len(chunk):
                raise ValueError("one object per line")
            refuse_prose_keys(rows[0], path)
            parts.append(np.array([[row[name] for name in names] for row in rows], dtype=np.float64))
            chains.append(chains_of([row.get(HASHES_NAME) for row in rows]))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise wrong_lines(text, names, path) from None
    if not parts:
        return (np.empty(0), np.empty(0), np.empty(0)), None
    table = np.concatenate(parts)
    try:
        return _possible((table[:, 0] / 1e3, table[:, 1], table[:, 2])), joined(chains)
    except ValueError:
        raise wrong_lines(text, names, path) from None
