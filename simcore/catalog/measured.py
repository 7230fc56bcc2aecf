"""The measured tables of the public package `aiconfigurator-core`, if it is installed (`trimtab[measured]`).

Its wheel carries kernels that NVIDIA measured, as files `systems/data/<chip>/<room>/<family>/<version>/….parquet`
(Apache-2.0); its own code is not run, and its end-to-end sample is not read. A table is taken from the family of
the scenario's engine, in its newest version, or from the next family that measured the shape. Files are read when
a shape is first asked for, and kept as grids for the life of the process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from simcore.catalog.grids import Floats, Grid, grid_of
from simcore.errors import InputError

PACKAGE: Final = "aiconfigurator-core"
_FOLDERS: Final[Mapping[str, str]] = {
    "nvidia-a100-80gb-sxm": "a100_sxm",
    "nvidia-h100-sxm": "h100_sxm",
    "nvidia-h200-sxm": "h200_sxm",
    "nvidia-b200-sxm": "b200_sxm",
    "nvidia-b300-sxm": "b300_sxm",
    "nvidia-gb200": "gb200",
    "nvidia-gb300": "gb300",
    "nvidia-l40s": "l40s",
    "nvidia-rtx-pro-6000": "rtx_pro_6000_server",
}
_FAMILIES: Final[Mapping[str, str]] = {"vLLM": "vllm", "SGLang": "sglang", "TensorRT-LLM": "trtllm"}
_FORMATS: Final[Mapping[str, str]] = {
    "bf16": "bfloat16",
    "fp16": "bfloat16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "nvfp4",
    "mxfp4": "w4a16_mxfp4",
}
_OPERATIONS: Final = {"all_to_all": "alltoall"}
_ENGINE_KERNELS: Final = ("vLLM_custom_graph", "SGLang_CustomAllReduce_graph", "TRTLLM")
_BYTES_PER_NUMBER: Final = 2.0  # payloads are stored as counts of 16-bit numbers
_STORED_AS: Final[Mapping[str, tuple[str, ...]]] = {
    "width": ("inter_size", "moe_tp_size"),
    "payload_bytes": ("message_size",),
}

Chosen = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTables:
    """The tables of one chip as an engine uses it."""

    package: str  # with its version: another one is another result
    folder: str
    families: tuple[str, ...]  # the engine's own first

    def gemm(self, dtype: str) -> Grid | None:
        """Products by m (rows), n (fan out) and k (fan in)."""
        return self._grid("gemm", "gemm_perf", ("m", "n", "k"), gemm_dtype=_FORMATS.get(dtype))

    def experts(self, dtype: str, *, hidden: int, experts: int, topk: int) -> Grid | None:
        """Fused gated experts with balanced routing by tokens over all ranks, width per rank, and expert ranks."""
        return self._grid(
            "moe",
            "moe_perf",
            ("num_tokens", "width", "moe_ep_size"),
            moe_dtype=_FORMATS.get(dtype),
            hidden_size=hidden,
            num_experts=experts,
            topk=topk,
            distribution="balanced",
        )

    def prefill(self, *, heads: int, kv_heads: int, head_dim: int) -> Grid | None:
        """Causal attention by prompt tokens and prompts, in bf16."""
        return self._grid(
            "attention",
            "context_attention_perf",
            ("isl", "batch_size"),
            num_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            window_size=0,
            attn_dtype="bfloat16",
            kv_cache_dtype="bfloat16",
        )

    def decode(self, kv_dtype: str, *, heads: int, kv_heads: int, head_dim: int) -> Grid | None:
        """Attention of one new token by cached tokens and sequences."""
        return self._grid(
            "attention",
            "generation_attention_perf",
            ("step", "batch_size"),
            num_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            window_size=0,
            attn_dtype="bfloat16",
            kv_cache_dtype=_FORMATS.get(kv_dtype),
        )

    def latent_prefill(self, *, heads: int) -> Grid | None:
        """Latent (MLA) attention of DeepSeek-V3's widths by prompt tokens and prompts."""
        return self._grid(
            "mla", "context_mla_perf", ("isl", "batch_size"), num_heads=heads, kv_cache_dtype="bfloat16"
        )

    def latent_decode(self, kv_dtype: str, *, heads: int) -> Grid | None:
        """The same of one new token by cached tokens and sequences."""
        return self._grid(
            "mla",
            "generation_mla_perf",
            ("step", "batch_size"),
            num_heads=heads,
            kv_cache_dtype=_FORMATS.get(kv_dtype),
        )

    def collective(self, operation: str, ranks: int) -> Grid | None:
        """NCCL in one domain by payload bytes."""
        name = _OPERATIONS.get(operation, operation)
        chosen = (("op_name", name), ("num_gpus", ranks), ("nccl_dtype", "half"))
        return read_grid(self.package, f"{self.folder}/comm/nccl", "nccl_perf", ("payload_bytes",), chosen)

    def engine_all_reduce(self, ranks: int) -> Grid | None:
        """The all-reduce kernel of the engine, inside a captured graph, by payload bytes."""
        for kernel in _ENGINE_KERNELS:
            found = self._grid(
                "comm", "custom_allreduce_perf", ("payload_bytes",), num_gpus=ranks, kernel_source=kernel
            )
            if found is not None:
                return found
        return None

    def _grid(self, room: str, table: str, names: tuple[str, ...], **chosen: Any) -> Grid | None:
        """Of the first family that measured what was chosen; None where a format or a shape has no rows."""
        if None in chosen.values():
            return None
        for family in self.families:
            place = f"{self.folder}/{room}/{family}"
            if (found := read_grid(self.package, place, table, names, tuple(chosen.items()))) is not None:
                return found
        return None


def measured_tables(chip: str, engine: str) -> MeasuredTables | None:
    """The tables of a chip (its slug), for an engine ("vLLM 0.19"); None where this chip was not measured.

    Raises InputError where the package is not installed.
    """
    package = installed_package()
    if package is None:
        raise InputError.at(
            "serving.kernels",
            "measured.not_installed",
            "measured kernels need the package {package}, which is not installed; pip install 'trimtab[measured]', or "
            "use fitted",
            package=PACKAGE,
        )
    folder = _FOLDERS.get(chip)
    if folder is None:
        return None
    own = _FAMILIES.get(engine.partition(" ")[0], "trtllm")
    return MeasuredTables(
        package=package,
        folder=folder,
        families=tuple(dict.fromkeys((own, "trtllm", "sglang", "vllm"))),
    )


@cache
def installed_package() -> str | None:
    """Name and version of the package with the tables, where it and the reader of its files are there."""
    if find_spec("pyarrow") is None:
        return None
    try:
        return f"{PACKAGE} {version(PACKAGE)}"
    except PackageNotFoundError:
        return None


@lru_cache(maxsize=4096)
def read_grid(package: str, place: str, table: str, names: tuple[str, ...], chosen: Chosen) -> Grid | None:
    """The newest version's rows of what was chosen, as a grid; `package` is in the key of the cache."""
    folder = _data_folder() / place
    versions = sorted(folder.iterdir(), key=_version, reverse=True) if folder.is_dir() else []
    for found in versions:
        path = found / f"{table}.parquet"
        columns = _rows(path, names, dict(chosen)) if path.is_file() else {}
        if columns and len(columns["latency"]):
            measured_s = columns.pop("latency") * 1e-3  # stored in milliseconds
            return grid_of(columns, measured_s, source=f"{package}, {found.parent.name}/{found.name}")
    return None


def _data_folder() -> Path:
    found = find_spec("aiconfigurator_core")
    assert found is not None, "the package is installed"
    assert found.origin is not None, "and has a file of its own"
    return Path(found.origin).parent / "systems" / "data"


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", folder.name)))


def _rows(path: Path, names: tuple[str, ...], chosen: dict[str, Any]) -> dict[str, Floats]:
    """Columns of the rows that were chosen, by name. A table without one of the columns to choose by has no
    variants of it; the width of experts on a rank and the bytes of a payload are not stored, but follow.
    """
    import pyarrow.parquet as parquet

    stored = [column for name in (*names, "latency") for column in _STORED_AS.get(name, (name,))]
    known = set(parquet.read_schema(path).names)
    filters = [(name, "==", value) for name, value in chosen.items() if name in known]
    rows = parquet.read_table(path, columns=stored, filters=filters)
    columns = {name: rows[name].to_numpy().astype(np.float64) for name in stored}
    if "width" in names:
        columns["width"] = columns["inter_size"] / columns["moe_tp_size"]
    if "payload_bytes" in names:
        columns["payload_bytes"] = _BYTES_PER_NUMBER * columns["message_size"]
    positive = np.logical_and.reduce([column > 0 for column in columns.values()])
    return {name: columns[name][positive] for name in (*names, "latency")}
