"""Reading the rows of a trace file into three columns, vectorised, or saying which cell is wrong.

Four formats: `csv` (named columns), `azure` (TIMESTAMP, ContextTokens, GeneratedTokens), `burstgpt`
(Timestamp, Request tokens, Response tokens) and `mooncake` (JSON lines with timestamp in milliseconds,
input_length, output_length and, where given, the prompt's hash_ids). Instants are seconds, or dates and times such as
`2023-11-16 18:17:03.9799600`. The fast way reads whole columns; only when it fails does a slow one walk the
rows, to name up to five of the wrong cells. Files that hold prompt text are refused: a trace needs lengths.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InputError, Message
from simcore.workload.arrivals import Columns, TraceFormat
from simcore.workload.block_hashes import HASHES_NAME, Chains, chains_of, joined

NAMES: Final[dict[TraceFormat, tuple[str, str, str]]] = {
    "azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "burstgpt": ("Timestamp", "Request tokens", "Response tokens"),
    "mooncake": ("timestamp", "input_length", "output_length"),
    "csv": ("timestamp_s", "input_tokens", "output_tokens"),
}
TEXT_NAMES: Final = frozenset(
    "prompt prompts completion completions response responses text content contents message messages body "
    "question answer conversation conversations system_prompt user_prompt generated_text input_text "
    "output_text input output".split()
)
LONGEST_CELL: Final = 256  # of a column that is not read; longer with spaces is prose
_SHOWN_ERRORS: Final = 5
_PROSE_ROWS: Final = 200
_JSON_ROWS: Final = 20_000
_DATE: Final = re.compile(r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]00:?00)?$")

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
    """Seconds (from any origin), input tokens and output tokens of every row, as floats not yet checked.

    Beside them the block hashes of the prompts, where the format has them.
    """
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
    if form == "mooncake":
        return _json_columns(text, path)
    names = NAMES[form]
    if columns is not None:
        names = (columns.timestamp_s, columns.input_tokens, columns.output_tokens)
    try:
        return _csv_columns(text.replace("\r\n", "\n").replace("\r", "\n"), names, path), None
    except csv.Error as error:
        raise InputError.at(
            path,
            "trace.unreadable_csv",
            "the rows cannot be read as CSV: {reason}; check the quotes",
            reason=str(error),
        ) from None


def _csv_columns(text: str, names: tuple[str, str, str], path: str) -> Raw:
    header = [cell.strip() for cell in next(csv.reader(io.StringIO(text[:65_536])), [])]
    places = _places(header, names, path)
    _refuse_prose(text, header, places, path)
    try:
        return _fast_csv(text, places)
    except ValueError:
        raise _wrong_cells(_csv_cells(text, places), [header[place] for place in places], path) from None


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


def _refuse_prose(text: str, header: Sequence[str], places: Sequence[int], path: str) -> None:
    """Refuse columns that are named like prompt text, or that hold prose."""
    unread = [place for place in range(len(header)) if place not in places]
    guilty = [header[place] for place in unread if header[place].lower() in TEXT_NAMES]
    for number, row in enumerate(csv.reader(io.StringIO(text))):
        if number > _PROSE_ROWS:
            break
        guilty += [
            header[place]
            for place in unread
            if place < len(row) and len(row[place]) > LONGEST_CELL and row[place].count(" ") > 8
        ]
    if guilty:
        raise prose_error(guilty[0], path)


def prose_error(name: str, path: str) -> InputError:
    return InputError.at(
        path,
        "trace.prompt_text",
        "{name!r} looks like prompt text, which a trace must not hold; remove it and keep the instants and "
        "token counts",
        name=name,
    )


def _fast_csv(text: str, places: Sequence[int]) -> Raw:
    options: dict[str, Any] = {
        "delimiter": ",",
        "skiprows": 1,
        "comments": None,
        "quotechar": '"',
        "ndmin": 2,
    }
    rows = csv.reader(io.StringIO(text[:65_536]))
    next(rows, None)
    first = next((row for row in rows if row), None)
    if first is None:
        return np.empty(0), np.empty(0), np.empty(0)
    if _number(first[places[0]]) is not None:
        table = np.loadtxt(io.StringIO(text), usecols=places, **options)
        return table[:, 0], table[:, 1], table[:, 2]
    tokens = np.loadtxt(io.StringIO(text), usecols=places[1:], **options)
    dates = np.loadtxt(io.StringIO(text), usecols=places[:1], dtype="U40", **options)[:, 0]
    return _seconds(dates), tokens[:, 0], tokens[:, 1]


def _seconds(dates: NDArray[np.str_]) -> NDArray[np.float64]:
    """Dates and times in UTC as seconds since the first of them."""
    if any(not date[-1:].isdigit() or date[-6:-5] in ("+", "-") for date in (dates[0], dates[-1])):
        dates = np.array([re.sub(r"(Z|[+-]00:?00)$", "", date) for date in dates])
    instants = dates.astype("datetime64[ns]").astype(np.int64)
    seconds: NDArray[np.float64] = (instants - instants[0]) / 1e9
    return seconds


def _csv_cells(text: str, places: Sequence[int]) -> Iterator[tuple[int, list[str | None]]]:
    reader = csv.reader(io.StringIO(text))
    next(reader, None)
    number = 0
    for row in reader:
        if row:
            number += 1
            yield number, [row[place] if place < len(row) else None for place in places]


def _wrong_cells(
    cells: Iterator[tuple[int, list[str | None]]], names: Sequence[str], path: str
) -> InputError:
    messages: list[Message] = []
    more = 0
    dated: bool | None = None
    for number, row in cells:
        if dated is None:
            dated = row[0] is not None and _number(row[0]) is None and bool(_DATE.match(row[0].strip()))
        for place, cell in enumerate(row):
            allowed = _complaint(cell, instant=place == 0, dated=dated)
            if allowed and len(messages) < _SHOWN_ERRORS:
                messages.append(cell_message(number, names[place], cell, allowed, path))
            elif allowed:
                more += 1
    if more:
        messages.append(
            Message(
                code="trace.more_wrong_cells",
                template="{more} more cells like these; mend the file or remove the rows",
                params={"more": more},
                path=path,
            )
        )
    if not messages:
        messages.append(
            Message(code="trace.unreadable", template="the rows cannot be read; check the quotes", path=path)
        )
    return InputError(*messages)


def _complaint(cell: str | None, *, instant: bool, dated: bool) -> str:
    """What is allowed, or "" where the cell is right."""
    if instant and dated:
        good = cell is not None and bool(_DATE.match(cell.strip()))
        return (
            ""
            if good
            else "a date and time such as 2023-11-16 18:17:03.9799600 is needed, as in the first row"
        )
    number = None if cell is None else _number(cell)
    return complaint_about(number, instant=instant)


def complaint_about(number: float | None, *, instant: bool) -> str:
    """What is allowed in place of `number`, or "" where it is right."""
    if number is None or not math.isfinite(number):
        return "a finite number is needed" if instant else "a whole number of tokens is needed"
    if not instant and (number < 0 or number != int(number)):
        return "a whole number of tokens, 0 or more, is needed"
    return ""


def cell_message(number: int, name: str, got: object, allowed: str, path: str) -> Message:
    return Message(
        code="trace.cell_wrong",
        template="row {row}, column {column!r}: got {got}; {allowed}; mend the row or remove it",
        params={
            "row": number,
            "column": name,
            "got": "nothing" if got in (None, "") else repr(got)[:60],
            "allowed": allowed,
        },
        path=path,
    )


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _json_columns(text: str, path: str) -> tuple[Raw, Chains | None]:
    lines = [line for line in text.split("\n") if line and not line.isspace()]
    names = NAMES["mooncake"]
    parts: list[NDArray[np.float64]] = []
    chains: list[Chains] = []
    for begin in range(0, len(lines), _JSON_ROWS):
        chunk = lines[begin : begin + _JSON_ROWS]
        try:
            rows = json.loads("[" + ",".join(chunk) + "]")
            if len(rows) != len(chunk):
                raise ValueError("one object per line")
            _refuse_prose_keys(rows[0], path)
            parts.append(np.array([[row[name] for name in names] for row in rows], dtype=np.float64))
            chains.append(chains_of([row.get(HASHES_NAME) for row in rows]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise _wrong_lines(chunk, begin, names, path) from None
    if not parts:
        return (np.empty(0), np.empty(0), np.empty(0)), None
    table = np.concatenate(parts)
    return (table[:, 0] / 1e3, table[:, 1], table[:, 2]), joined(chains)


def _refuse_prose_keys(row: Any, path: str) -> None:
    if isinstance(row, dict):
        for key, value in row.items():
            prose = isinstance(value, str) and len(value) > LONGEST_CELL
            if prose or (isinstance(value, str | list | dict) and str(key).lower() in TEXT_NAMES):
                raise prose_error(str(key), path)


def _wrong_lines(lines: Sequence[str], begin: int, names: Sequence[str], path: str) -> InputError:
    messages: list[Message] = []
    for number, line in enumerate(lines, begin + 1):
        if len(messages) >= _SHOWN_ERRORS:
            break
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            messages.append(cell_message(number, "(line)", line, "one JSON object per line is needed", path))
            continue
        _refuse_prose_keys(row, path)
        for place, name in enumerate(names):
            value = row.get(name)
            number_of = (
                float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            )
            allowed = complaint_about(number_of, instant=place == 0)
            if allowed:
                messages.append(cell_message(number, name, value, allowed, path))
        if not _are_hashes(row.get(HASHES_NAME)):
            allowed = "a list of whole numbers of 64 bits is needed"
            messages.append(cell_message(number, HASHES_NAME, row[HASHES_NAME], allowed, path))
    if not messages:
        messages.append(
            Message(code="trace.unreadable", template="the lines cannot be read as JSON", path=path)
        )
    return InputError(*messages)


def _are_hashes(value: Any) -> bool:
    try:
        chains_of([value])
    except (ValueError, TypeError):
        return False
    return True
