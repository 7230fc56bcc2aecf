"""How a model is cut over chips: tensor, pipeline, data, expert and context parallel degrees.

`tp × pp × cp` chips make one data parallel rank. In serving, a replica has `dp` of them: each attends to its own
sequences with its own KV cache, dense layers are whole on each, and experts are spread over all `dp × tp` chips
of a stage, `ep` groups of which hold whole experts (1: every expert is sliced over all). In training `dp` counts
copies of the model and experts are spread over `ep` chips. Tensor parallel ranks sit next to each other, so a
group of `tp ≤ scale-up domain` never leaves the server.

`expert_imbalance_ratio` is the load of the busiest expert rank over the mean: 1.069 was measured on 16 ranks of
Kimi K3 (medians over GSM8K), 1.008 with vLLM's load balancer (vllm-project/vllm#50647).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field

from simcore.catalog.types import LlmArchitecture
from simcore.spec import Spec


class Parallelism(Spec):
    """Degrees as a user writes them; `tp: auto` is resolved by the plan to the smallest that fits."""

    tp: Literal["auto"] | Annotated[int, Field(ge=1, le=4096)] = "auto"
    pp: int = Field(default=1, ge=1, le=512)
    dp: int = Field(default=1, ge=1, le=1_048_576)
    ep: int = Field(default=1, ge=1, le=4096)
    cp: int = Field(default=1, ge=1, le=4096)
    expert_imbalance_ratio: float = Field(default=1.0, ge=1, le=64)  # busiest expert rank over the mean

    @property
    def tp_ranks(self) -> int:
        """The resolved tensor parallel degree; asking before it is resolved is a programming error."""
        assert isinstance(self.tp, int), "tp is still 'auto'"
        return self.tp

    @property
    def rank_chip_count(self) -> int:
        """Chips of one data parallel rank."""
        return self.tp_ranks * self.pp * self.cp

    @property
    def replica_chip_count(self) -> int:
        """Chips of a replica that serves: all its data parallel ranks."""
        return self.dp * self.rank_chip_count

    @property
    def expert_chip_count(self) -> int:
        """Chips of a stage over which a replica that serves spreads its experts."""
        return self.dp * self.tp_ranks

    @property
    def lanes_per_replica(self) -> int:
        """Batches that a replica keeps in flight: one for each stage of each data parallel rank."""
        return self.dp * self.pp

    @property
    def of_one_rank(self) -> Self:
        """The cut of one data parallel rank, as if there were no other."""
        return self if self.dp == 1 else self.model_copy(update={"dp": 1})


def stage_layers(layers: int, pp: int) -> tuple[int, ...]:
    """Layers of each pipeline stage as vLLM cuts them: even, the rest one each from the last stage but one.

    >>> stage_layers(61, 4), stage_layers(80, 8)[0]
    ((15, 15, 16, 15), 10)
    """
    stages = [layers // pp] * pp
    for extra in range(layers % pp):
        stages[-2 - extra] += 1
    return tuple(stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStage:
    """How many layers of each kind one pipeline stage holds."""

    layers: int
    moe_layers: int
    window_layers: int
    is_first: bool
    is_last: bool
    attention_free_layers: int = 0
    mlp_free_layers: int = 0
    recurrent_layers: int = 0
    share: float = 1.0  # of the model's layers

    @property
    def dense_layers(self) -> int:
        """Layers with an MLP that is not a mixture of experts."""
        return self.layers - self.mlp_free_layers - self.moe_layers

    @property
    def full_layers(self) -> int:
        return self.layers - self.window_layers - self.attention_free_layers

    @property
    def attention_layers(self) -> int:
        return self.layers - self.attention_free_layers

    @property
    def depth(self) -> float:
        """Layers of two blocks (one that mixes tokens, one MLP): what launches and norms count in."""
        mixing = self.attention_layers + self.recurrent_layers
        return (mixing + self.layers - self.mlp_free_layers) / 2


def pipeline_stages(arch: LlmArchitecture, pp: int) -> tuple[PipelineStage, ...]:
    """The stages of a model. Only counts are known, so leading layers are the dense ones and all other kinds
    are spread evenly."""
    stages, start = [], 0
    for index, layers in enumerate(stage_layers(arch.layers, pp)):
        end = start + layers

        def spread(count: int, start: int = start, end: int = end) -> int:
            return round(count * end / arch.layers) - round(count * start / arch.layers)

        mlp_free = spread(arch.mlp_free_layers)
        if not arch.is_moe:
            moe = 0
        elif arch.mlp_free_layers:
            moe = min(spread(arch.moe_layers), layers - mlp_free)
        else:
            moe = layers - max(0, min(end, arch.dense_layers) - start)
        free = spread(arch.attention_free_layers)
        stage = PipelineStage(
            layers=layers,
            moe_layers=moe,
            window_layers=min(spread(arch.window_layers), layers - free),
            attention_free_layers=free,
            mlp_free_layers=mlp_free,
            recurrent_layers=spread(arch.recurrent_layers),
            share=layers / arch.layers,
            is_first=index == 0,
            is_last=index == pp - 1,
        )
        stages.append(stage)
        start = end
    return tuple(stages)
