"""How a model is cut over chips: tensor, pipeline, data, expert and context parallel degrees.

`tp × pp × cp` chips hold one replica of a dense model; `ep` shares its experts over the same chips
(it must divide them) and adds none; `dp` counts replicas in training. Tensor parallel ranks sit next to
each other, so a group of `tp ≤ scale-up domain` never leaves the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

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

    @property
    def tp_ranks(self) -> int:
        """The resolved tensor parallel degree; asking before it is resolved is a programming error."""
        assert isinstance(self.tp, int), "tp is still 'auto'"
        return self.tp

    @property
    def replica_chip_count(self) -> int:
        return self.tp_ranks * self.pp * self.cp


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
