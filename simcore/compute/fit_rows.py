"""Measured kernels from CSV files: which operator a row is, what is left out, and why.

The columns say the kind: `m n k` a matrix product, `experts topk` an expert layer, `batch new_tokens heads`
attention, `ranks bytes` a collective; all have `measured_us`, and `gpu` and `source` where a file holds more
than one. Rows of other chips, of formats or shapes that no form here describes, and times below what the
chip's peak or its memory allows are rejected with a reason. The shapes are in four parts, of which the first is
held out: a hash of the shape decides, so every run and every chip holds out the same ones.
"""

from __future__ import annotations

import csv
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Literal

import numpy as np

from simcore.catalog.kernels import WHOLE_EXPERTS, experts_fitted_as
from simcore.catalog.types import BYTES_PER_ELEMENT, Chip
from simcore.compute.roofline import Floats
from simcore.errors import InputError

Kind = Literal[
    "gemm",
    "experts",
    "attention_prefill",
    "attention_decode",
    "latent_prefill",
    "latent_decode",
    "collective",
]
HOLD_OUT_ONE_IN: Final = 4
ENGINE_KERNEL_LIMIT_BYTES: Final = 8 * 2**20  # as `fabric.collectives` uses an engine's own all-reduce
DTYPES: Final[Mapping[str, str]] = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "bf16",
    "fp16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "nvfp4",
    "w4a16_mxfp4": "mxfp4",
}
OPERATIONS: Final[Mapping[str, str]] = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "all_to_all": "all_to_all",
}
_COLUMNS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "gemm": ("m", "n", "k"),
    "experts": ("tokens", "hidden", "inter", "topk", "experts", "tp", "ep"),
    "attention_prefill": ("batch", "new_tokens", "ctx_len", "heads", "kv_heads"),
    "attention_decode": ("batch", "new_tokens", "ctx_len", "heads", "kv_heads"),
    "latent_prefill": ("batch", "new_tokens", "ctx_len", "heads"),
    "latent_decode": ("batch", "new_tokens", "ctx_len", "heads"),
    "collective": ("bytes",),
}
# What makes two rows the same shape for the hold-out: a matrix is held out at every batch.
_SHAPE: Final[Mapping[Kind, tuple[str, ...]]] = {
    "gemm": ("n", "k"),
    "experts": ("tokens", "hidden", "inter", "experts", "tp", "ep"),
    "attention_prefill": ("batch", "heads", "kv_heads"),
    "attention_decode": ("batch", "ctx_len", "heads", "kv_heads"),
    "latent_prefill": ("batch", "new_tokens", "heads"),
    "latent_decode": ("batch", "ctx_len", "heads"),
    "collective": ("bytes",),
}
_NOISE: Final = frozenset({"nvidia", "sxm", "server", "amd", "hbm2", "hbm2e", "hbm3", "hbm3e"})
# Column names of `trimtab import nccl-tests`.
_ALIASES: Final = {"operation": "op", "source_tool": "source"}


Folds = np.ndarray[tuple[int], np.dtype[np.int_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What is fitted together: one operator class, one format, one source of measurements."""

    kind: Kind
    dtype: str  # of a collective: "operation/ranks"
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows of one key as columns, and in which quarter of the shapes each is."""

    key: Key
    columns: Mapping[str, Floats]
    measured_s: Floats
    fold: Folds

    @property
    def held_out(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Rows that the shipped constants have not seen: the first of the quarters."""
        return np.asarray(self.fold == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    groups: tuple[Group, ...]
    rejected: Mapping[str, int] = field(default_factory=dict)  # reason -> rows


class _RejectedError(Exception):
    """Why a row is left out."""


def read_rows(paths: Iterable[Path], chip: Chip) -> Measured:
    """All rows of the files that are about this chip, grouped; the rest counted by reason."""
    rows: dict[Key, list[dict[str, float]]] = defaultdict(list)
    rejected: Counter[str] = Counter()
    for path in paths:
        with open_rows(path) as file:
            reader = csv.DictReader(file)
            kind = _kind_of([_ALIASES.get(name, name) for name in reader.fieldnames or ()], path)
            for row in reader:
                try:
                    key, numbers = _row(_named_alike(row), kind, chip)
                except _RejectedError as reason:
                    rejected[str(reason)] += 1
                else:
                    rows[key].append(numbers)
    if not rows:
        raise InputError.at(
            "rows",
            "calibrate.no_rows",
            "no row is about {chip}; left out: {reasons}",
            chip=chip.slug,
            reasons="; ".join(f"{count} × {reason}" for reason, count in rejected.items())
            or "the file is empty",
        )
    return Measured(groups=tuple(_group(key, found) for key, found in rows.items()), rejected=rejected)


def open_rows(path: Path) -> IO[str]:
    """The file, or an error that says which one cannot be read."""
    try:
        return path.open(newline="", encoding="utf-8")
    except OSError as error:
        raise InputError.at(
            str(path), "file.unreadable", "cannot be read: {reason}", reason=error.strerror or "unknown"
        ) from None


def _kind_of(columns: Iterable[str], path: Path) -> str:
    present = set(columns)
    for kind, needed in (
        ("gemm", {"m", "n", "k"}),
        ("experts", {"experts", "topk"}),
        ("attention", {"batch", "new_tokens", "kv_heads"}),
        ("latent", {"batch", "new_tokens", "heads", "kv_dtype"}),
        ("collective", {"ranks", "bytes"}),
    ):
        if needed <= present and present & {"measured_us", "time_s"}:
            return kind
    raise InputError.at(
        path.name,
        "calibrate.columns",
        "these columns are no kernel measurements: {got}; needed are measured_us and m, n, k (products), topk, "
        "experts, tokens, hidden, inter, tp, ep (experts), op, batch, new_tokens, ctx_len, heads, kv_heads "
        "(attention) or op, ranks, bytes (collectives)",
        got=", ".join(sorted(present))[:200] or "none",
    )


def _named_alike(row: Mapping[str, str]) -> dict[str, str]:
    """The row under the names that this module uses, its time in microseconds."""
    found = {_ALIASES.get(name, name): value for name, value in row.items() if name}
    if "measured_us" not in found and found.get("time_s"):
        try:
            found["measured_us"] = str(float(found["time_s"]) * 1e6)
        except ValueError:
            found["measured_us"] = found["time_s"]
    return found


def _row(row: Mapping[str, str], file_kind: str, chip: Chip) -> tuple[Key, dict[str, float]]:
    if not names_chip(row.get("gpu", ""), chip):
        raise _RejectedError("of another chip")
    kind, dtype = _kind_and_dtype(row, file_kind)
    numbers = {name: _number(row, name) for name in (*_COLUMNS[kind], "measured_us")}
    if not all(math.isfinite(value) for value in numbers.values()):
        raise _RejectedError("a number is missing or unreadable")
    if any(value < 0 or (value == 0 and name != "ctx_len") for name, value in numbers.items()):
        raise _RejectedError("a time or size that is not positive")
    _check_physics(kind, dtype, numbers, chip)
    source = row.get("impl") or row.get("source") or "given rows"
    if source.startswith("custom") and numbers["bytes"] > ENGINE_KERNEL_LIMIT_BYTES:
        raise _RejectedError("a payload that engines give to the library, not to their own all-reduce")
    return Key(kind=kind, dtype=dtype, source=source), numbers


def _number(row: Mapping[str, str], name: str) -> float:
    try:
        return float(row[name])
    except (KeyError, ValueError, TypeError):
        raise _RejectedError("a number is missing or unreadable") from None


def _kind_and_dtype(row: Mapping[str, str], file_kind: str) -> tuple[Kind, str]:
    if file_kind == "collective":
        operation = OPERATIONS.get(row.get("op", ""))
        if operation is None:
            raise _RejectedError(f"operation {row.get('op')!r} has no form here")
        return "collective", f"{operation}/{row.get('ranks')}"
    column = "kv_dtype" if file_kind in ("attention", "latent") else "dtype"
    dtype = DTYPES.get(row.get(column, ""))
    if dtype is None:
        raise _RejectedError(f"format {row.get(column)!r} has no form here")
    if file_kind == "gemm":
        return "gemm", dtype
    if file_kind == "experts":
        if row.get("routing", "balanced") != "balanced":
            raise _RejectedError("routing is not balanced")
        return "experts", experts_fitted_as(dtype, _number(row, "experts"), _number(row, "ep"))
    if file_kind == "latent":
        return ("latent_decode" if "decode" in row.get("op", "") else "latent_prefill"), dtype
    if row.get("head_dim", "128") != "128":
        raise _RejectedError("head dimension is not 128")
    if "decode" in row.get("op", ""):
        return "attention_decode", dtype
    if row.get("ctx_len") not in ("", "0", None):
        raise _RejectedError("prefill after a cached prefix")
    return "attention_prefill", DTYPES.get(row.get("attn_dtype", ""), dtype)


def names_chip(text: str, chip: Chip) -> bool:
    """Whether a `gpu` column means this chip; an empty one does.

    >>> from types import SimpleNamespace
    >>> names_chip("h100_sxm", SimpleNamespace(slug="nvidia-h100-sxm"))
    True
    """
    words = set(re.split(r"[-_\s]+", text.lower())) - _NOISE - {""}
    named = set(chip.slug.split("-"))
    if not any(word.endswith("gb") for word in named):  # a memory size tells apart only where a slug has one
        words = {word for word in words if not word.endswith("gb")}
    return words <= named


def _check_physics(kind: Kind, dtype: str, numbers: Mapping[str, float], chip: Chip) -> None:
    if kind == "collective" and numbers["bytes"] <= 0:
        raise _RejectedError("a time or size that is not positive")
    if kind == "gemm":
        flop = 2 * numbers["m"] * numbers["n"] * numbers["k"]
        if flop / chip.peak_flop_per_s(dtype) > 1.1 * numbers["measured_us"] * 1e-6:
            raise _RejectedError("faster than the chip's peak")
    if kind == "experts" and numbers["measured_us"] * 1e-6 < _least_experts_s(dtype, numbers, chip):
        raise _RejectedError("faster than reading the experts that balanced routing reaches")


def _least_experts_s(dtype: str, numbers: Mapping[str, float], chip: Chip) -> float:
    """Reading once from memory what of the active experts' weights L2 cannot hold."""
    rows = numbers["tokens"] * numbers["topk"] / numbers["ep"]
    active = min(numbers["experts"] / numbers["ep"], max(rows, 1.0))
    weights = 3 * numbers["hidden"] * numbers["inter"] / numbers["tp"]
    held_bytes = active * weights * BYTES_PER_ELEMENT[stored_format(dtype)]
    return max(0.0, held_bytes - (chip.l2_bytes or 0.0)) / chip.hbm_bytes_per_s


def _group(key: Key, rows: list[dict[str, float]]) -> Group:
    columns = {name: np.array([row[name] for row in rows]) for name in _COLUMNS[key.kind]}
    names = _SHAPE[key.kind]
    kind = (
        key.dtype if key.kind == "collective" else key.kind
    )  # other payloads of each operation and rank count
    folds = [fold_of(kind, *(int(row[name]) for name in names)) for row in rows]
    return Group(
        key=key,
        columns=columns,
        measured_s=np.array([row["measured_us"] for row in rows]) * 1e-6,
        fold=np.array(folds),
    )


def fold_of(*shape: object) -> int:
    """Which quarter of the shapes this one is in; the first is held out."""
    text = "/".join(str(part) for part in shape)
    return zlib.crc32(text.encode()) % HOLD_OUT_ONE_IN


def stored_format(dtype: str) -> str:
    """The format of the weights, without the kernel that multiplies them."""
    return dtype.removesuffix(WHOLE_EXPERTS)
