"""How a model is cut over chips: tensor, pipeline, data, expert and context parallel degrees.

`tp × pp × cp` chips hold one replica of a dense model; `ep` shares its experts over the same chips
(it must divide them) and adds none; `dp` counts replicas in training. Tensor parallel ranks sit next to
each other, so a group of `tp ≤ scale-up domain` never leaves the server.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from simcore.spec import Spec


class Parallelism(Spec):
    """Degrees as a user writes them; `tp: auto` is resolved by the plan to the smallest that fits."""

    tp: Literal["auto"] | int = Field(default="auto")
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
