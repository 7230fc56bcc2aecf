"""Chips that hold what was pasted: a checkpoint that runs somewhere gets a baseline that runs, not a refusal.

What people paste names no chip. The default is kept where eight of it (or as many as the line's degrees say) hold
the weights with room for a cache; else the first larger one of its family does, and a message says so. Where none
does, the default stays and the plan names what would fit.
"""

from __future__ import annotations

from typing import Any, Final

from simcore.catalog import Catalog
from simcore.catalog.types import LlmArchitecture
from simcore.errors import Message
from simcore.memory.weights import rank_weight_bytes
from simcore.parallelism import Parallelism, pipeline_stages
from simcore.scenario.schema import Hardware

DEFAULT_CHIP: Final[str] = Hardware.model_fields["chip"].default
LARGER: Final = ("nvidia-h200-sxm", "nvidia-b200-sxm", "nvidia-b300-sxm")
DEFAULT_RANKS: Final = 8
USABLE_FRACTION: Final = 0.9
BESIDE_WEIGHTS_BYTES: Final = 8e9  # activations, the engine's own memory and a cache worth having


def choose_chips(document: dict[str, Any], architecture: LlmArchitecture, catalog: Catalog) -> list[Message]:
    """Set `hardware.chip` where the default does not hold the weights; at most one message."""
    if "chip" in document.get("hardware", {}):
        return []
    serving = document.get("serving", {})
    degrees = serving.get("parallelism", {})
    pp, dp = degrees.get("pp", 1), degrees.get("dp", 1)
    tp = degrees.get("tp", DEFAULT_RANKS if dp == 1 else 1)
    if not (0 < tp <= architecture.heads * DEFAULT_RANKS and 0 < pp <= architecture.layers and dp > 0):
        return []  # the plan says what is wrong with them
    dtype = serving.get("weights_dtype", "auto")
    stage = pipeline_stages(architecture, pp)[0]
    weights_dtype = architecture.weights_dtype if dtype == "auto" else dtype
    cut = Parallelism.model_construct(tp=tp, pp=pp, dp=dp)  # the plan says what is wrong with them
    rank = rank_weight_bytes(architecture, cut, stage, weights_dtype=weights_dtype)
    needed = rank.value + BESIDE_WEIGHTS_BYTES
    holds = (
        slug
        for slug in (DEFAULT_CHIP, *LARGER)
        if needed <= USABLE_FRACTION * catalog.chip(slug).hbm_visible_bytes
    )
    chosen = next(holds, DEFAULT_CHIP)
    if chosen == DEFAULT_CHIP:
        return []
    document["hardware"] = {"chip": chosen, **document.get("hardware", {})}
    return [
        Message(
            code="paste.larger_chip",
            template="{gigabytes:,.0f} GB of weights on each of {ranks} chips are more than {small} holds, so {chip} "
            "was taken; choose another under Hardware",
            params={
                "gigabytes": rank.value / 1e9,
                "ranks": tp * pp * dp,
                "small": catalog.chip(DEFAULT_CHIP).name,
                "chip": catalog.chip(chosen).name,
            },
            path="hardware.chip",
        )
    ]
