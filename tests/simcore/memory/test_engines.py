"""Engine names: patch levels, spellings, and refusals that list what is known."""

from __future__ import annotations

import pytest

from simcore.errors import InputError
from simcore.memory.engines import GIB, engine_constants


@pytest.mark.parametrize("text", ["vLLM 0.19", "vllm 0.19.0", "VLLM v0.19.3.post1", " vLLM 0.19rc2 "])
def test_patch_levels_and_spellings_are_one_version(text: str) -> None:
    assert engine_constants(text) == engine_constants("vLLM 0.19")


def test_constants_change_with_the_version() -> None:
    assert engine_constants("vLLM 0.16").sampler_copies == 9.6
    assert engine_constants("vLLM 0.17").sampler_copies == 3.7
    assert engine_constants("vLLM 0.17").non_torch_bytes_parallel == 0.55 * GIB
    assert engine_constants("vLLM 0.18").non_torch_bytes_parallel == 2.09 * GIB
    assert not engine_constants("vLLM 0.16").moe_workspace


def test_other_engines_are_known() -> None:
    assert engine_constants("SGLang 0.5.2").family == "SGLang"
    assert engine_constants("TensorRT-LLM 1.2").family == "TensorRT-LLM"


@pytest.mark.parametrize("text", ["vLLM 9.9", "vLLM", "llama.cpp 1.0", "", "0.19"])
def test_an_unknown_engine_is_refused_with_the_list(text: str) -> None:
    with pytest.raises(InputError, match=r"vLLM 0\.2 to") as caught:
        engine_constants(text)
    assert caught.value.message.path == "serving.engine"
