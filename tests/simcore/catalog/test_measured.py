"""Which measured tables a chip and an engine have, and what is said where their package is missing."""

import numpy as np
import pytest

from simcore.catalog import measured
from simcore.catalog.measured import measured_tables
from simcore.errors import InputError
from tests.simcore.synthetic_tables import require_package

H200 = "nvidia-h200-sxm"


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(measured, "installed_package", lambda: None)
    with pytest.raises(InputError, match=r"serving\.kernels.*pip install 'trimtab\[measured\]'"):
        measured_tables(H200, "vLLM 0.19")


def test_a_chip_that_nobody_measured_has_no_tables(monkeypatch):
    monkeypatch.setattr(measured, "installed_package", lambda: "made up 1.0")
    assert measured_tables("amd-mi300x", "vLLM 0.19") is None


@pytest.mark.parametrize(
    ("engine", "family"),
    [("vLLM 0.19", "vllm"), ("SGLang 0.5", "sglang"), ("TensorRT-LLM 1.2", "trtllm"), ("other 1", "trtllm")],
)
def test_tables_of_the_own_engine_come_first_and_each_family_once(monkeypatch, engine, family):
    monkeypatch.setattr(measured, "installed_package", lambda: "made up 1.0")
    families = measured_tables(H200, engine).families
    assert families[0] == family
    assert sorted(families) == ["sglang", "trtllm", "vllm"]


def test_the_newest_version_is_read_and_a_format_without_rows_has_no_grid():
    require_package()
    tables = measured_tables(H200, "vLLM 0.19")
    grid = tables.gemm("bf16")
    assert grid.source == f"{tables.package}, vllm/0.24.0"
    assert tables.gemm("nvfp4") is None
    assert tables.gemm("int4") is None


def test_what_another_family_measured_is_taken_from_there():
    require_package()
    grid = measured_tables(H200, "vLLM 0.19").latent_decode("bf16", heads=16)
    assert "trtllm/" in grid.source


def test_payloads_are_bytes():
    """NCCL on eight H200 moves 512 MiB in 2.04 ms (nccl-tests of the same package: 460 GB/s bus bandwidth)."""
    require_package()
    grid = measured_tables(H200, "vLLM 0.19").collective("all_reduce", 8)
    measured_s = grid.measured_s[np.searchsorted(grid.axes[0], 2.0**29)]
    assert 2.0**29 * 1.75 / measured_s == pytest.approx(460e9, rel=0.01)
