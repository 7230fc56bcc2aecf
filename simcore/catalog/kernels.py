"""Fitted constants of a chip's kernels, beyond the plain roofline, and how well each fit holds.

One record per operator class and dtype (experts: and kernel, `experts_fitted_as`). The formulas that read them
are in `compute/kernels.py`; the fits that made them in `compute/fitting.py`. `Residuals` are quantiles of
measured ÷ predicted over rows that the constants have not seen; error bands and the calibration page read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from simcore.catalog.sources import Source

# TensorRT-LLM multiplies NVFP4 experts by a kernel of its own where one rank has all of them and they are at most
# 256 (its routing was compiled for DeepSeek's number; flashinfer pull request 1696), by CUTLASS elsewhere.
WHOLE_EXPERTS: Final = "_whole"
_MOST_WHOLE_EXPERTS: Final = 256


def experts_fitted_as(dtype: str, experts: float, ep: float) -> str:
    """Under which name the kernel of an expert layer is fitted.

    >>> experts_fitted_as("nvfp4", experts=256, ep=1), experts_fitted_as("nvfp4", experts=384, ep=1)
    ('nvfp4_whole', 'nvfp4')
    """
    is_whole = dtype == "nvfp4" and ep == 1 and experts <= _MOST_WHOLE_EXPERTS
    return f"{dtype}{WHOLE_EXPERTS}" if is_whole else dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRecord:
    """What was fitted, on how many rows, and the mean and median error on both sides of the hold-out."""

    fitted_rows: int
    held_out_rows: int
    fitted_mape_fraction: float
    held_out_mape_fraction: float
    held_out_median_fraction: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmKernel(FitRecord):
    """Matrix product in tiles: whole waves of tiles over the cores, beside the stream of its operands."""

    tile_rows: int
    tile_columns: int
    overlap_exponent: int  # how nearly time is the larger of arithmetic and memory (8) or their sum (1)
    compute_fraction: float
    memory_fraction: float
    launch_s: float
    wave_fraction: float  # of the idle part of the last wave that is paid for
    prologue_count: float  # columns of K that filling the pipeline costs
    resident_fraction: float  # of L2, below which a repeated weight matrix is found there
    resident_speedup_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertKernel(FitRecord):
    """Fused expert layer: padded rows of each active expert, the weights of those alone."""

    tile_rows: int
    overlap_exponent: int
    compute_fraction: float
    memory_fraction: float
    launch_s: float
    padding_fraction: float  # of the padded rows that is paid for
    passes_ratio: float  # activations' traffic over reading and writing them once
    per_expert_s: float
    resident_speedup_ratio: float
    foreign_fraction: float = 0.0  # of the rows of experts on other ranks that is computed all the same
    foreign_passes_ratio: float = 0.0  # their traffic over reading and writing them once


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillKernel(FitRecord):
    """Causal attention in blocks of 128 rows over the cores, no faster than its longest block."""

    overlap_exponent: int
    compute_fraction: float
    memory_fraction: float
    launch_s: float
    longest_ratio: float  # time of the longest block over its share at the mean rate
    per_block_s: float
    ramp_tokens: float  # prompt length at which half the rate is reached


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeKernel(FitRecord):
    """Attention of one new token per sequence, its KV split over the cores and added up again."""

    overlap_exponent: int
    compute_fraction: float
    memory_fraction: float
    launch_s: float
    split_tokens: float  # the shortest part of a context that is given to one core
    most_split_count: float
    reduction_s: float
    reduction_tokens: float  # context at which half of the reduction is paid
    per_head_s: float
    resident_fraction: float
    resident_speedup_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """All kernel fits of a chip, by dtype (attention decode and both of latent attention: of the KV cache)."""

    gemm: Mapping[str, GemmKernel] = field(default_factory=dict)
    experts: Mapping[str, ExpertKernel] = field(default_factory=dict)
    attention_prefill: Mapping[str, PrefillKernel] = field(default_factory=dict)
    attention_decode: Mapping[str, DecodeKernel] = field(default_factory=dict)
    latent_prefill: Mapping[str, PrefillKernel] = field(default_factory=dict)
    latent_decode: Mapping[str, DecodeKernel] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Measured ÷ predicted in one regime, over rows that were not fitted."""

    row_count: int
    p5_ratio: float
    p50_ratio: float
    p90_ratio: float
    p95_ratio: float
    mape_fraction: float
    source: Source
    coverage_fraction: float | None = None  # of a quarter's rows, between p5 and p95 of the others'
