"""What is pasted stands on chips that hold it."""

import json

import pytest

from simcore.catalog import default_catalog
from simcore.errors import InfeasibleError
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.scenario.imports import document_from_text


def paste(text):
    return document_from_text(text, default_catalog())


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        ("Qwen/Qwen3-32B", None),
        ("meta-llama/Llama-3.1-70B-Instruct", None),
        ("deepseek-ai/DeepSeek-V3", "nvidia-h200-sxm"),
        ("vllm serve deepseek-ai/DeepSeek-V3 -tp 8", "nvidia-h200-sxm"),
        ("vllm serve deepseek-ai/DeepSeek-V3 -tp 16", None),
        ("vllm serve meta-llama/Llama-3.1-405B -tp 8", "nvidia-h200-sxm"),
        ("vllm serve meta-llama/Llama-3.1-405B -tp 8 --quantization fp8", None),
        ("vllm serve meta-llama/Llama-3.1-405B -tp 4", "nvidia-b300-sxm"),
        ("vllm serve meta-llama/Llama-3.1-70B -tp 1", "nvidia-b200-sxm"),
    ],
)
def test_the_baseline_of_what_is_pasted_fits(text, chip):
    document, warnings = paste(text)
    assert document.get("hardware", {}).get("chip") == chip
    assert [one.code for one in warnings] == (["paste.larger_chip"] if chip else [])
    planned = plan(Scenario.parse({**document, "topology": None, "workload": {"request_count": 10}}))
    assert planned.metrics["memory.kv_token_capacity"] > 0


def test_what_no_chip_holds_keeps_the_default_and_its_refusal():
    document, warnings = paste("vllm serve meta-llama/Llama-3.1-405B -tp 1")
    assert document["hardware"] == {"chip_count": 1}
    assert warnings == []
    with pytest.raises(InfeasibleError):
        plan(Scenario.parse(document))


def test_a_config_of_any_size_gets_chips(shared):
    text = (shared / "reference/hf_configs/deepseek-ai--DeepSeek-V3_config.json").read_text()
    document, (warning,) = paste(text)
    assert document["hardware"] == {"chip": "nvidia-h200-sxm"}
    assert "more than NVIDIA H100 SXM holds, so NVIDIA H200 SXM was taken" in warning.text


def test_degrees_that_cannot_be_are_left_to_the_plan():
    for options in ("-tp 0", "-tp -1", "-tp 4 -pp 1000"):
        document, _ = paste(f"vllm serve meta-llama/Llama-3.1-405B {options}")
        assert "chip" not in document.get("hardware", {})


def test_a_chip_that_is_named_stays():
    document, _ = paste(json.dumps({"name": "x", "hardware": {"chip": "nvidia-l40s"}}))
    assert document["hardware"] == {"chip": "nvidia-l40s"}
