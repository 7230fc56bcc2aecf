"""The text that nccl-tests and rccl-tests print, line by line.

    # Collective test starting: all_reduce_perf
    #  Rank  0 Group  0 Pid 12345 on host device  0 [0x07] NVIDIA H100 80GB HBM3
    #       size     count   type  redop  root   time  algbw  busbw #wrong   time  algbw  busbw #wrong
         8388608   2097152  float    sum    -1  118.5   70.8  123.9      0  118.1   71.0  124.3      0

The operation comes from the test's name, which old versions do not print: it is then the caller's to say.
Each line gives an out-of-place row and, where printed, an in-place one. Bytes are the size as printed (the
larger buffer of the two), times are microseconds and rates 1e9 bytes per second there. Lines of other
programs, and the marks that mpirun puts before each line, are passed over. Sizes of zero bytes are left out.
"""

from __future__ import annotations

import re
from typing import Final

from simcore.errors import InputError
from simcore.measurements.rows import CollectiveMeasurement

MAX_TEXT_BYTES: Final = 8 * 2**20
MAX_ROWS: Final = 100_000
OPERATIONS: Final = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all", "all_to_all": "all_to_all", "broadcast": "broadcast", "reduce": "reduce",
    "sendrecv": "send_receive", "gather": "gather", "scatter": "scatter", "hypercube": "hypercube",
}  # fmt: skip
_MPI_MARK: Final = re.compile(r"^\[\d+,\d+\](<\w+>)?:?\s?")
_STARTING: Final = re.compile(r"(\w+?)_perf\b")
_RANK: Final = re.compile(r"^#\s*Rank\s+(\d+)\s.*?\bdevice\s+\d+\s+\[[^\]]*\]\s*(.*)$")
_HEAD_CELLS: Final = 5  # size, count, type, redop, root
_SIDE_CELLS: Final = 4  # time, algbw, busbw, wrong


def read_nccl_tests(
    raw: bytes, *, operation: str | None = None, path: str = ""
) -> list[CollectiveMeasurement]:
    """The rows of one or more runs in a file. `operation` wins over the name in the text."""
    if len(raw) > MAX_TEXT_BYTES:
        raise InputError.at(
            path,
            "measurement.too_large",
            "the file is larger than {allowed:,} bytes; keep only what nccl-tests printed",
            allowed=MAX_TEXT_BYTES,
        )
    named, ranks, gpu, rows = operation, 0, "", list[CollectiveMeasurement]()
    fresh = True  # whether ranks of a new run are still to be counted
    for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), start=1):
        text = _MPI_MARK.sub("", line).strip()
        started = _STARTING.search(text) if not operation else None
        if started and started[1] in OPERATIONS:
            named = OPERATIONS[started[1]]
        if rank := _RANK.match(text):
            number_of_rank = int(rank[1][:9])
            ranks, fresh = (number_of_rank + 1 if fresh else max(ranks, number_of_rank + 1)), False
            gpu = " ".join(rank[2].split())[:100]
        elif text[:1].isdigit() and len(cells := text.split()) >= _HEAD_CELLS + 3:
            fresh = True
            if not (cells[0].isdecimal() and cells[1].isdecimal()):
                continue
            where = f"line {number}"
            _refuse_unknown(named, ranks, where)
            rows += _rows(cells, named or "", ranks, gpu, where)
            if len(rows) > MAX_ROWS:
                raise InputError.at(
                    path, "measurement.too_many_rows", "more than {allowed:,} rows; cut it", allowed=MAX_ROWS
                )
    if not rows:
        raise InputError.at(
            path,
            "nccl.no_rows",
            "no line of sizes, times and bandwidths; give the text that nccl-tests printed",
        )
    return rows


def _refuse_unknown(operation: str | None, ranks: int, where: str) -> None:
    if not operation:
        raise InputError.at(
            where,
            "nccl.operation",
            "the text does not say which collective this is; name it with --operation ({allowed})",
            allowed=", ".join(sorted(set(OPERATIONS.values()))),
        )
    if not ranks:
        raise InputError.at(
            where,
            "nccl.ranks",
            "no `# Rank` lines stand before the rows, so the number of ranks is unknown; keep the head of the text",
        )


def _rows(cells: list[str], operation: str, ranks: int, gpu: str, where: str) -> list[CollectiveMeasurement]:
    size = int(cells[0]) if len(cells[0]) < 20 else 0
    if not size:
        return []
    sides = [cells[_HEAD_CELLS : _HEAD_CELLS + 3]]
    if len(cells) >= _HEAD_CELLS + _SIDE_CELLS + 3:
        sides.append(cells[_HEAD_CELLS + _SIDE_CELLS : _HEAD_CELLS + _SIDE_CELLS + 3])
    found = []
    for side, texts in enumerate(sides):
        time, algbw, busbw = (
            _figure(text, name, where) for text, name in zip(texts, ("time", "algbw", "busbw"), strict=True)
        )
        if time > 0:
            found.append(
                CollectiveMeasurement(
                    operation=operation,
                    gpu=gpu,
                    ranks=ranks,
                    bytes=size,
                    time_s=time * 1e-6,
                    algbw_bytes_per_s=algbw * 1e9,
                    busbw_bytes_per_s=busbw * 1e9,
                    in_place=side == 1,
                )
            )
    return found


def _figure(text: str, name: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e15:
        raise InputError.at(
            where,
            "nccl.figure",
            "{name}: got {got!r}; a number from 0 up is needed",
            name=name,
            got=text[:30],
        )
    return value
