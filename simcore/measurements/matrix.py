"""Measured traffic matrices: who sent how many bytes to whom, as CSV or as arrays of numpy.

Read are: a square table (`,`, `;` or tab; a header row and a column of names may be there), a list of edges with the
header `source,target,bytes[,messages][,latency_sensitive]` (several rows of one pair are added up), and `.npz` with
`bytes` and, if known, `messages`, `latency_sensitive` (both as large as `bytes`) and `duration_s`. `latency_sensitive`
is a share between 0 and 1, or a truth value. What a rank sends to itself never meets a link and is dropped.
Limits: 4,096 ranks; sizes are bounded before anything is unpacked, and pickled objects are refused.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore.errors import InputError
from simcore.measurements.matrix_text import Columns, read_text

MAX_RANKS: Final = 4096
MAX_BYTES: Final = 256 * 2**20
NPZ_MAGIC: Final = b"PK\x03\x04"
_ARRAYS: Final = ("bytes", "messages", "latency_sensitive")
_PATH: Final = "file"

Form = Literal["table", "edges", "npz"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMatrix:
    """Square arrays, senders by row; None is what the file does not say."""

    moved_bytes: Floats
    message_count: Floats | None = None
    latency_sensitive_fraction: Floats | None = None
    duration_s: float | None = None
    form: Form
    content_sha256: str

    @property
    def rank_count(self) -> int:
        return len(self.moved_bytes)


def read_matrix(raw: bytes, *, max_bytes: int = MAX_BYTES, path: str = _PATH) -> MeasuredMatrix:
    """The matrix of a file. Raises InputError that says where, what was got and what is allowed."""
    if len(raw) > max_bytes:
        raise InputError.at(
            path,
            "matrix.too_large",
            "got {got:,} bytes; a matrix may have {allowed:,}, so send it as npz or as a list of edges",
            got=len(raw),
            allowed=max_bytes,
        )
    form: Form = "npz"
    if raw.startswith(NPZ_MAGIC):
        columns = _from_npz(raw, path)
    else:
        form, columns = read_text(raw, max_ranks=MAX_RANKS, path=path)
    _check(columns, path)
    moved = columns.moved_bytes
    np.fill_diagonal(moved, 0.0)
    if not moved.any():
        raise InputError.at(
            path, "matrix.empty", "no rank sends a byte to another one; give a matrix with traffic in it"
        )
    return MeasuredMatrix(
        moved_bytes=moved,
        message_count=columns.message_count,
        latency_sensitive_fraction=columns.latency_sensitive_fraction,
        duration_s=columns.duration_s,
        form=form,
        content_sha256=hashlib.sha256(raw).hexdigest(),
    )


def _check(columns: Columns, path: str) -> None:
    named = {
        "bytes": columns.moved_bytes,
        "messages": columns.message_count,
        "latency_sensitive": columns.latency_sensitive_fraction,
    }
    shape = columns.moved_bytes.shape
    if len(shape) != 2 or shape[0] != shape[1] or not 2 <= shape[0] <= MAX_RANKS:
        raise InputError.at(
            path,
            "matrix.shape",
            "got {got}; a matrix has as many rows as columns, 2 to {allowed:,}",
            got=" × ".join(f"{size:,}" for size in shape) or "one number",
            allowed=MAX_RANKS,
        )
    for name, array in named.items():
        if array is None:
            continue
        if array.shape != shape:
            raise InputError.at(
                path,
                "matrix.unlike_shapes",
                "{name} is {got}, and bytes is {allowed}; make them equal",
                name=name,
                got=" × ".join(map(str, array.shape)),
                allowed=" × ".join(map(str, shape)),
            )
        _check_range(name, array, 1.0 if name == "latency_sensitive" else np.inf, path)


def _check_range(name: str, array: Floats, most: float, path: str) -> None:
    wrong = ~((array >= 0) & (array <= most) & np.isfinite(array))
    if not wrong.any():
        return
    row, column = (int(place[0]) for place in np.nonzero(wrong))
    raise InputError.at(
        path,
        "matrix.range",
        "{name} from rank {row} to rank {column} is {got:g}; allowed are {allowed}",
        name=name,
        row=row,
        column=column,
        got=float(array[row, column]),
        allowed="0 to 1" if most == 1.0 else "finite numbers from 0",
    )


def _from_npz(raw: bytes, path: str) -> Columns:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            arrays = {name: _array(archive, name, path) for name in (*_ARRAYS, "duration_s")}
    except (
        zlib.error,
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        OSError,
    ) as error:
        raise _unreadable(path, str(error) or "it is cut off") from None
    if arrays["bytes"] is None:
        raise InputError.at(
            path,
            "matrix.no_bytes",
            "the archive has no array named bytes; save it with numpy.savez(file, bytes=…)",
        )
    duration = arrays["duration_s"]
    return Columns(
        moved_bytes=arrays["bytes"],
        message_count=arrays["messages"],
        latency_sensitive_fraction=arrays["latency_sensitive"],
        duration_s=None if duration is None or duration.size != 1 else _duration(float(duration), path),
    )


def _duration(value: float, path: str) -> float:
    if not (0 < value < np.inf):
        raise InputError.at(
            path,
            "matrix.duration",
            "duration_s is {got:g}; it must be a number of seconds above 0",
            got=value,
        )
    return value


def _array(archive: zipfile.ZipFile, name: str, path: str) -> Floats | None:
    """One array, whose size is known from its header before it is unpacked."""
    member = f"{name}.npy"
    if member not in archive.namelist():
        return None
    with archive.open(member) as file:
        try:
            version = np.lib.format.read_magic(file)
            read_header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, in_fortran_order, dtype = read_header(file)
        except (ValueError, KeyError) as error:
            raise _unreadable(path, str(error)) from None
        if dtype.kind not in "biuf" or dtype.hasobject:
            raise InputError.at(
                path,
                "matrix.dtype",
                "{name} holds {got}; numbers or truth values are read, never pickled objects",
                name=name,
                got=str(dtype),
            )
        count = int(np.prod(shape, dtype=np.float64)) if min(shape, default=0) >= 0 else -1
        if count < 0:
            raise _unreadable(path, f"{name} has a negative size")
        if count > MAX_RANKS**2:
            raise InputError.at(
                path,
                "matrix.too_many_ranks",
                "{name} has {got:,} cells; at most {allowed:,} ranks are read",
                name=name,
                got=count,
                allowed=MAX_RANKS,
            )
        content = file.read(count * dtype.itemsize)
    if len(content) != count * dtype.itemsize:
        raise _unreadable(path, f"{name} is cut off")
    found = np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if in_fortran_order else "C")
    return np.array(found, dtype=np.float64, order="C")


def _unreadable(path: str, reason: str) -> InputError:
    return InputError.at(
        path,
        "matrix.unreadable",
        "the archive cannot be read ({reason}); save it with numpy.savez",
        reason=reason,
    )
