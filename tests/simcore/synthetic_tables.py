"""Measured tables made up for tests, and the real ones where their package is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from simcore.catalog.grids import Columns, Grid, grid_of
from simcore.catalog.measured import PACKAGE, MeasuredTables, installed_package


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticTables(MeasuredTables):
    """Whatever grids a test gives, by the name of the method that returns them."""

    package: str = "made up 1.0"
    folder: str = "none"
    families: tuple[str, ...] = ()
    grids: Mapping[str, Grid] = field(default_factory=dict)

    def gemm(self, dtype: str) -> Grid | None:
        return self.grids.get("gemm")

    def experts(self, dtype: str, *, hidden: int, experts: int, topk: int) -> Grid | None:
        return self.grids.get("experts")

    def prefill(self, *, heads: int, kv_heads: int, head_dim: int) -> Grid | None:
        return self.grids.get("prefill")

    def decode(self, kv_dtype: str, *, heads: int, kv_heads: int, head_dim: int) -> Grid | None:
        return self.grids.get("decode")

    def latent_prefill(self, *, heads: int) -> Grid | None:
        return self.grids.get("latent_prefill")

    def latent_decode(self, kv_dtype: str, *, heads: int) -> Grid | None:
        return self.grids.get("latent_decode")

    def collective(self, operation: str, ranks: int) -> Grid | None:
        return self.grids.get("collective")

    def engine_all_reduce(self, ranks: int) -> Grid | None:
        return self.grids.get("engine_all_reduce")


def shapes(**axes: list[float]) -> dict[str, np.ndarray]:
    """Every combination of the axes, as columns."""
    combined = np.array(list(product(*axes.values())), dtype=np.float64)
    return dict(zip(axes, combined.T, strict=True))


def grid(columns: Columns, measured_s: np.ndarray) -> Grid:
    return grid_of(columns, measured_s, source="made up 1.0, test/1")


def require_package() -> None:
    """Skip where the measured tables are not installed."""
    if installed_package() is None:
        pytest.skip(f"needs {PACKAGE} with pyarrow: pip install 'trimtab[measured]'")
