"""What a memory budget is asked for, and its inputs as leaves."""

from __future__ import annotations

from dataclasses import dataclass

from simcore.catalog.types import Chip, LlmArchitecture
from simcore.memory.engines import EngineConstants
from simcore.parallelism import Parallelism
from simcore.why import Term, leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRequest:
    """Everything that the budget depends on; `changed` versions of it are what suggestions try."""

    arch: LlmArchitecture
    chip: Chip
    parallelism: Parallelism
    engine: EngineConstants
    weights_dtype: str
    kv_dtype: str
    gpu_memory_utilization: float = 0.9
    max_num_seqs: int | None = None  # None: the engine's own default for this card
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None  # None: the model's, cut to what fits
    block_size_tokens: int = 16
    num_gpu_blocks_override: int | None = None
    kv_cache_memory_bytes: float | None = None
    draft: LlmArchitecture | None = None  # a model that drafts for it, on the same ranks

    @property
    def cache_was_asked_for(self) -> bool:
        """The cache has the size that the user gave, whatever the utilisation would leave."""
        return self.num_gpu_blocks_override is not None or self.kv_cache_memory_bytes is not None

    @property
    def sequences(self) -> int:
        """As given; the engine's own default never exceeds the token budget, since each needs a token."""
        default = self.engine.default_max_num_seqs(self.chip.hbm_visible_bytes)
        return self.max_num_seqs or min(default, self.batched_tokens)

    @property
    def batched_tokens(self) -> int:
        return self.max_num_batched_tokens or self.engine.default_max_num_batched_tokens(
            self.chip.hbm_visible_bytes
        )


def input_leaf(value: float, name: str, section: str, dimension: str) -> Term:
    return leaf(value, name, path=f"{section}.{name}", dimension=dimension)


def block_size_leaf(request: MemoryRequest) -> Term:
    return input_leaf(request.block_size_tokens, "block_size", "serving.kv", "tokens")


def tp_leaf(request: MemoryRequest) -> Term:
    return input_leaf(request.parallelism.tp_ranks, "tp", "serving.parallelism", "")
