"""Closed loops as benchmarks drive them: what they count, and which measured rows tell how they were driven."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simcore.catalog import default_catalog
from simcore.validation.loop_rules import LOOP_RULES, LoopRules
from simcore.validation.serving_loops import served
from simcore.validation.step_rows import StepRow

CATALOG = default_catalog()
H100 = CATALOG.chip("nvidia-h100-sxm")
ROW = StepRow(
    phase="ttft",
    engine="vLLM 0.19",
    model="llama-3.1-8b",
    tp=1,
    weights_dtype="bf16",
    kv_dtype="bf16",
    batch_count=8,
    input_tokens=1024.0,
    output_tokens=128.0,
    context_tokens=1088.0,
    measured_s=0.1,
)
INFERENCEX = LOOP_RULES["InferenceX"]


def seconds(phase: str = "ttft", **changes: object) -> float:
    row = replace(ROW, phase=phase, **changes)  # type: ignore[arg-type]
    return served([row], H100, CATALOG)[row]


def test_the_mean_holds_the_first_wave() -> None:
    """All users start at once: of few requests each, the first wave is much of the mean."""
    few, many = (
        seconds(batch_count=64, rules=replace(INFERENCEX, requests_per_user_count=count)) for count in (2, 40)
    )
    assert few > 1.5 * many


def test_a_user_without_a_seat_waits_for_an_answer() -> None:
    """One of C requests always waits, C mean answers share its place: a wait of an answer's time over C."""
    short = LoopRules(output_fractions=(0.95, 1.05), users_without_seat_count=1)
    seated = replace(short, users_without_seat_count=0)
    for answer in (256.0, 1024.0):
        longer = seconds(output_tokens=answer, rules=short) - seconds(output_tokens=answer, rules=seated)
        step_s = seconds("tpot", output_tokens=answer, rules=short)
        assert longer == pytest.approx(answer * step_s / ROW.batch_count, rel=0.15)


def test_waiting_for_company_takes_twenty_steps_of_tensorrt_llm_at_equal_lengths() -> None:
    lengths = {"engine": "TensorRT-LLM 1.0", "input_tokens": 1024.0, "output_tokens": 1024.0}
    waiting = seconds(**lengths, rules=INFERENCEX)
    at_once = seconds(**lengths, rules=replace(INFERENCEX, has_batch_wait=False))
    assert waiting - at_once == pytest.approx(20 * seconds("tpot", **lengths, rules=INFERENCEX), rel=1e-9)
    other = lengths | {"output_tokens": 512.0}
    assert seconds(**other, rules=INFERENCEX) == seconds(
        **other, rules=replace(INFERENCEX, has_batch_wait=False)
    )


def test_answers_of_one_length_keep_users_in_step() -> None:
    """Their prompts come together and delay few tokens of others, however much shorter other lengths are."""
    assert seconds("tpot") < seconds("tpot", rules=INFERENCEX)
