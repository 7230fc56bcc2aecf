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
    dp: int = Field(default=1, ge=1, le=1_000_000)
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

    @property
    def dense_layers(self) -> int:
        return self.layers - self.moe_layers

    @property
    def full_layers(self) -> int:
        return self.layers - self.window_layers


def pipeline_stages(arch: LlmArchitecture, pp: int) -> tuple[PipelineStage, ...]:
    """The stages of a model. Only counts are known, so leading layers are the dense ones and window layers
    are spread evenly."""
    stages, start = [], 0
    for index, layers in enumerate(stage_layers(arch.layers, pp)):
        end = start + layers
        dense = max(0, min(end, arch.dense_layers) - start) if arch.is_moe else layers
        window = round(arch.window_layers * end / arch.layers)
        window -= round(arch.window_layers * start / arch.layers)
        stage = PipelineStage(
            layers=layers,
            moe_layers=layers - dense,
            window_layers=window,
            is_first=index == 0,
            is_last=index == pp - 1,
        )
        stages.append(stage)
        start = end
    return tuple(stages)
