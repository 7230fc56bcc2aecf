"""How the measured closed loops were driven: what a row's lengths, users and times mean.

InferenceX (scripts of October 2025): `benchmark_serving.py --dataset-name random --random-range-ratio 0.8
--num-prompts 10 × users --request-rate inf --ignore-eos`. A nominal length is the longest: lengths are drawn
evenly between 0.8 of it and all of it. All users start at once, and the times are means over all requests, the
first wave included. TensorRT-LLM at 1,024 → 1,024 on fewer than eight chips ran with `batch_wait_timeout_iters: 20`
(and a token ratio that a few prompts do not reach): a prompt waits for twenty iterations. Check: 64 users of 8,192
tokens on two H100, whose KV cache holds a third of them, measured 59.2 s to the first token; simulated 59.1 s.

NVIDIA's aiconfigurator runs: equal lengths. Little's law on the rows says that beside the prompts in work one
request always waits (1.0 to 1.3 with 8 to 32 users, tp 1 and 2, whatever the answers' length), so the engine had one
seat fewer than users; answers are taken to vary by 5 % (2 to 20 % say the same), for answers of one length keep all
users in step for ever, which the rows do not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRules:
    """Shares of the nominal lengths between which lengths are drawn, and what else a benchmark fixes."""

    input_fractions: tuple[float, float] = (1.0, 1.0)
    output_fractions: tuple[float, float] = (1.0, 1.0)
    requests_per_user_count: int = 10
    users_without_seat_count: int = 0
    has_batch_wait: bool = False  # TensorRT-LLM waited for company before it started a prompt

    @property
    def mean_input_fraction(self) -> float:
        return sum(self.input_fractions) / 2

    @property
    def mean_output_fraction(self) -> float:
        return sum(self.output_fractions) / 2


AS_WRITTEN: Final = LoopRules()
LOOP_RULES: Final[Mapping[str, LoopRules]] = {
    "InferenceX": LoopRules(input_fractions=(0.8, 1.0), output_fractions=(0.8, 1.0), has_batch_wait=True),
    "NVIDIA aiconfigurator silicon run": LoopRules(output_fractions=(0.95, 1.05), users_without_seat_count=1),
}
BATCH_WAIT_ITERATIONS: Final = 20
# Tokens of an iteration: InferenceX's scripts; TensorRT-LLM's own default; SGLang's chunk of a prompt.
TOKEN_BUDGETS: Final[Mapping[str, int]] = {"vLLM": 8192, "TensorRT-LLM": 16384, "SGLang": 8192}
