"""One row per request of a run, as CSV or Parquet: instants in simulated time, lengths and times in seconds.

`arrival_s` to `finish_s` are the engine's own; `ttft_s` and `e2e_s` are a client's and so hold the front end's
time as well, like the metrics. What does not apply is empty: the instants of a rejected request, the time per
output token of an answer of one token, the replica of a request that was sent to none, the arrival of one that was
never sent.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from simcore.errors import InputError
from simcore.serving.records import Floats, Records
from simcore.serving.state import FINISHED, REJECTED
from simcore.workload.sessions import Turns

SUFFIXES: Final = (".csv", ".parquet")
_STATUS: Final = {FINISHED: "finished", REJECTED: "rejected"}
_ROWS_AT_A_TIME: Final = 65_536

Columns = Mapping[str, Any]  # arrays, aligned by request


def check_records_path(path: str) -> None:
    """Refuse, before anything is simulated, a file that could not be written in its format."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise InputError.at(
            "--records",
            "records.format",
            "got {got!r}; name a file that ends in {allowed}",
            got=path,
            allowed=" or ".join(SUFFIXES),
        )
    if suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError.at(
            "--records",
            "records.no_pyarrow",
            "Parquet needs the package pyarrow, which is not installed; pip install 'trimtab[measured]', or name "
            "a file that ends in .csv",
        )


def record_columns(
    records: Records,
    *,
    front_end_s: float,
    classes: Sequence[str] = (),
    class_of: Any = None,
    turns: Turns | None = None,
) -> Columns:
    """The columns by name, in order; `class`, `session` and `turn` (from 1) only where the requests have one."""
    answered = records.output_tokens > 1
    gaps = np.where(answered, records.output_tokens - 1, 1)
    columns = {
        "request": np.arange(len(records.arrival_s)),
        "status": np.array([_STATUS.get(code, "unfinished") for code in range(3)])[records.status],
        "replica": np.ma.masked_less(records.replica, 0),
        "input_tokens": records.input_tokens,
        "output_tokens": records.output_tokens,
        "arrival_s": _where_known(records.arrival_s),
        "scheduled_s": _where_known(records.scheduled_s),
        "first_token_s": _where_known(records.first_token_s),
        "finish_s": _where_known(records.finish_s),
        "queue_s": _where_known(records.queue_s),
        "ttft_s": _where_known(records.ttft_s + front_end_s),
        "tpot_s": _where_known(np.where(answered, records.finish_s - records.first_token_s, np.nan) / gaps),
        "e2e_s": _where_known(records.e2e_s + front_end_s),
        "preemption_count": records.preemption_count,
    }
    if class_of is not None:
        columns["class"] = np.array(classes)[class_of]
    if turns is not None:
        columns |= {"session": turns.session, "turn": turns.turn + 1}
    return columns


def _where_known(values: Floats) -> Any:
    """NaN is masked, and a masked value is written as nothing."""
    return np.ma.masked_invalid(values)


def write_records(columns: Columns, path: str) -> None:
    """Write the file whose name `check_records_path` let pass. Raises OSError where it cannot be written."""
    if Path(path).suffix == ".csv":
        _write_csv(columns, path)
        return
    import pyarrow
    import pyarrow.parquet

    table = {name: pyarrow.array(values) for name, values in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(table), path)


def _write_csv(columns: Columns, path: str) -> None:
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for begin in range(0, len(columns["request"]), _ROWS_AT_A_TIME):
            piece = slice(begin, begin + _ROWS_AT_A_TIME)
            writer.writerows(zip(*(values[piece].tolist() for values in columns.values()), strict=True))
