"""The fit finds constants that made the data, whatever lies among it; rows it cannot use are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simcore.catalog.kernels import ExpertKernel
from simcore.compute.fit_rows import Group, Key, fold_of, names_chip, read_rows
from simcore.compute.fitting import fit_kernel, least_squares, out_of_fold_s
from simcore.compute.forms import Bound, predicted_s
from simcore.errors import InputError
from tests.simcore.compute.shapes import (
    DECODE_KERNEL,
    EXPERT_KERNEL,
    GEMM_KERNEL,
    PREFILL_KERNEL,
    SOURCE,
    make_chip,
)

CHIP = make_chip(slug="nvidia-h100-sxm")
SIZES = (1024, 2048, 4096, 8192, 16384)


def products(noise: float = 0.0) -> Group:
    """Times that the formula itself gives for known constants, times a log-normal factor."""
    grid = np.array(
        [(m, n, k) for m in (1, 16, 64, 129, 512, 2048, 8192) for n in SIZES for k in SIZES], float
    )
    columns = dict(zip("mnk", grid.T, strict=True))
    folds = np.array([fold_of("gemm", int(n), int(k)) for _, n, k in grid])
    made = Group(
        key=Key(kind="gemm", dtype="bf16", source="made"),
        columns=columns,
        measured_s=np.ones(len(grid)),
        fold=folds,
    )
    factor = np.exp(noise * np.random.default_rng(1).standard_normal(len(grid)))
    return replace(made, measured_s=predicted_s(GEMM_KERNEL, made, CHIP) * factor)


def test_constants_that_made_the_data_are_found_again() -> None:
    found = fit_kernel(products(), CHIP, source=SOURCE)
    assert found.held_out_mape_fraction < 0.01
    for name in ("tile_rows", "tile_columns"):
        assert getattr(found, name) == getattr(GEMM_KERNEL, name)
    for name in ("compute_fraction", "memory_fraction", "launch_s"):
        assert getattr(found, name) == pytest.approx(getattr(GEMM_KERNEL, name), rel=0.03)


def test_the_stated_error_is_that_of_rows_not_seen() -> None:
    group = products(noise=0.1)
    found = fit_kernel(group, CHIP, source=SOURCE)
    error = np.abs(predicted_s(found, group, CHIP) / group.measured_s - 1.0)
    assert found.held_out_mape_fraction == pytest.approx(error[group.held_out].mean())
    assert found.fitted_rows + found.held_out_rows == len(group.measured_s)
    assert 0.05 < found.held_out_mape_fraction < 0.12


def test_a_few_wild_rows_do_not_move_the_fit() -> None:
    group = products()
    wild = group.measured_s.copy()
    wild[::17] *= 5.0
    found = fit_kernel(replace(group, measured_s=wild), CHIP, source=SOURCE)
    assert found.compute_fraction == pytest.approx(GEMM_KERNEL.compute_fraction, rel=0.05)


def test_bounds_hold() -> None:
    bounds = [Bound(start=1.0, low=0.5, high=2.0)]
    for truth, expected in ((10.0, 2.0), (0.1, 0.5), (1.3, 1.3)):
        values, _ = least_squares(lambda v: v[0] * np.ones(5), bounds, np.log(np.full(5, truth)))
        assert values[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "kernel"),
    [
        ("attention_prefill", PREFILL_KERNEL),
        ("attention_decode", DECODE_KERNEL),
        ("latent_prefill", PREFILL_KERNEL),
        ("latent_decode", DECODE_KERNEL),
    ],
)
def test_attention_kernels_are_fitted_too(kind: str, kernel: object) -> None:
    shapes = [
        (batch, length, heads, kv_heads)
        for batch in (1, 8, 64)
        for length in (128, 1024, 4096, 16384)
        for heads, kv_heads in ((8, 1), (32, 8), (32, 32))
    ]
    batch, length, heads, kv_heads = np.array(shapes, float).T
    decodes = kind.endswith("decode")
    columns = {
        "batch": batch,
        "heads": heads,
        "kv_heads": kv_heads,
        "new_tokens": np.ones_like(length) if decodes else length,
        "ctx_len": length - 1 if decodes else np.zeros_like(length),
    }
    group = Group(
        key=Key(kind=kind, dtype="bf16", source="made"),  # type: ignore[arg-type]
        columns=columns,
        measured_s=np.ones(len(shapes)),
        fold=np.arange(len(shapes)) % 4,
    )
    group = replace(group, measured_s=predicted_s(kernel, group, CHIP))  # type: ignore[arg-type]
    assert fit_kernel(group, CHIP, source=SOURCE).held_out_mape_fraction < 0.03


def test_a_row_has_no_part_in_what_is_said_of_it_out_of_its_fold() -> None:
    group = products(noise=0.1)
    record = fit_kernel(group, CHIP, source=SOURCE)
    before = out_of_fold_s(record, group, CHIP)
    for fold in (1, 2, 3):
        changed = replace(group, measured_s=np.where(group.fold == fold, 3.0, 1.0) * group.measured_s)
        after = out_of_fold_s(record, changed, CHIP)
        assert after[group.fold == fold] == pytest.approx(before[group.fold == fold])
        assert not np.allclose(after[group.fold != fold], before[group.fold != fold])


def expert_rows(kernel: ExpertKernel, ranks: tuple[int, ...]) -> Group:
    shapes = [
        (tokens, hidden, inter, 8, 128, 1, ep)
        for tokens in (1, 8, 32, 128, 512, 2048, 8192)
        for hidden, inter in ((2048, 768), (4096, 1536), (7168, 2048))
        for ep in ranks
    ]
    names = ("tokens", "hidden", "inter", "topk", "experts", "tp", "ep")
    group = Group(
        key=Key(kind="experts", dtype="bf16", source="made"),
        columns=dict(zip(names, np.array(shapes, float).T, strict=True)),
        measured_s=np.ones(len(shapes)),
        fold=np.arange(len(shapes)) % 4,
    )
    return replace(group, measured_s=predicted_s(kernel, group, CHIP))


def test_rows_of_experts_elsewhere_are_told_from_a_ranks_own() -> None:
    kernel = replace(EXPERT_KERNEL, foreign_fraction=0.5, foreign_passes_ratio=1.0)
    found = fit_kernel(expert_rows(kernel, (1, 8, 32)), CHIP, source=SOURCE)
    assert isinstance(found, ExpertKernel)
    assert found.foreign_fraction == pytest.approx(0.5, rel=0.1)
    assert found.held_out_mape_fraction < 0.03


def test_constants_that_no_row_tells_of_are_zero() -> None:
    found = fit_kernel(expert_rows(EXPERT_KERNEL, (1,)), CHIP, source=SOURCE)
    assert isinstance(found, ExpertKernel)
    assert (found.foreign_fraction, found.foreign_passes_ratio) == (0.0, 0.0)


# ---- reading rows


def write(folder: Path, text: str) -> Path:
    file = folder / "rows.csv"
    file.write_text(text)
    return file


def test_rows_that_cannot_be_used_are_counted_by_reason(tmp_path: Path) -> None:
    rows = """gpu,dtype,m,n,k,measured_us,source
h100_sxm,bfloat16,1,1024,1024,5.0,a
b200_sxm,bfloat16,1,1024,1024,5.0,a
h100_sxm,int3,1,1024,1024,5.0,a
h100_sxm,fp8,1,1024,1024,-5.0,a
h100_sxm,fp8,1,1024,x,5.0,a
h100_sxm,fp8,8192,16384,16384,5.0,a
"""
    found = read_rows([write(tmp_path, rows)], CHIP)
    assert [group.key.dtype for group in found.groups] == ["bf16"]
    assert dict(found.rejected) == {
        "of another chip": 1,
        "format 'int3' has no form here": 1,
        "a time or size that is not positive": 1,
        "a number is missing or unreadable": 1,
        "faster than the chip's peak": 1,
    }


def test_rows_of_the_import_command_are_read(tmp_path: Path) -> None:
    rows = """source_tool,operation,gpu,ranks,bytes,time_s
nccl-tests,all_reduce,NVIDIA H100 80GB HBM3,8,8388608,0.000118
"""
    (group,) = read_rows([write(tmp_path, rows)], CHIP).groups
    assert group.key.dtype == "all_reduce/8"
    assert group.measured_s[0] == pytest.approx(118e-6)


def test_experts_faster_than_their_weights_can_be_read_are_left_out(tmp_path: Path) -> None:
    """32 tokens on 8 of 256 experts each reach all: 22.5 GB in fp8 at 3.35 TB/s, less 50 MB in L2, are 6.7 ms."""
    rows = """gpu,dtype,tokens,hidden,inter,topk,experts,tp,ep,routing,measured_us
h100_sxm,fp8,32,14336,2048,8,256,1,1,balanced,6600
h100_sxm,fp8,32,14336,2048,8,256,1,1,balanced,6800
"""
    found = read_rows([write(tmp_path, rows)], CHIP)
    assert [list(group.measured_s) for group in found.groups] == [[6800e-6]]
    assert dict(found.rejected) == {"faster than reading the experts that balanced routing reaches": 1}


def test_narrow_experts_are_grouped_by_the_kernel_that_multiplies_them(tmp_path: Path) -> None:
    rows = """gpu,dtype,tokens,hidden,inter,topk,experts,tp,ep,routing,measured_us
h100_sxm,nvfp4,1,7168,2048,8,256,1,1,balanced,500
h100_sxm,nvfp4,1,7168,2048,8,256,1,8,balanced,500
h100_sxm,nvfp4,1,7168,2048,8,384,1,1,balanced,500
h100_sxm,w4a16_mxfp4,1,2880,2880,4,128,1,1,balanced,500
"""
    groups = read_rows([write(tmp_path, rows)], CHIP).groups
    assert {g.key.dtype: len(g.measured_s) for g in groups} == {"nvfp4_whole": 1, "nvfp4": 2, "mxfp4": 1}


def test_latent_attention_is_told_by_its_columns(tmp_path: Path) -> None:
    rows = """gpu,op,dtype,kv_dtype,batch,new_tokens,ctx_len,heads,tp,measured_us,source
h100_sxm,mla_prefill,bfloat16,bfloat16,1,512,0,16,4,25,a
h100_sxm,mla_decode,bfloat16,fp8,1,1,127,16,4,14,a
"""
    groups = read_rows([write(tmp_path, rows)], CHIP).groups
    assert {(g.key.kind, g.key.dtype) for g in groups} == {
        ("latent_prefill", "bf16"),
        ("latent_decode", "fp8"),
    }


def test_a_file_of_something_else_is_refused_with_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rows.csv: .*got|these columns are no kernel measurements: a, b"):
        read_rows([write(tmp_path, "a,b\n1,2\n")], CHIP)
    with pytest.raises(InputError, match="no row is about nvidia-h100-sxm"):
        read_rows([write(tmp_path, "gpu,m,n,k,measured_us\nb200,1,1,1,1\n")], CHIP)
    with pytest.raises(InputError, match="cannot be read"):
        read_rows([tmp_path / "absent.csv"], CHIP)


@pytest.mark.parametrize(
    ("text", "is_named"),
    [("h100_sxm", True), ("", True), ("h100-80gb", True), ("H200", False), ("NVIDIA H100 80GB HBM3", True)],
)
def test_names_of_a_chip_in_other_files(text: str, is_named: bool) -> None:
    assert names_chip(text, CHIP) is is_named
