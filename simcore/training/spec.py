"""What a scenario may say about training: how the step is cut over chips, and what is recomputed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from simcore.spec import Spec
from simcore.training.stacks import Graphs, StackName

Recompute = Literal["none", "selective", "full"]
Dispatcher = Literal["all_to_all", "deduplicating"]
TrainingDtype = Literal["bf16", "fp16", "fp8", "fp8_block", "nvfp4"]


class TrainingParallelism(Spec):
    """Degrees as a user writes them. `tp: auto` is the smallest that fits, `dp: auto` uses all chips."""

    tp: Literal["auto"] | Annotated[int, Field(ge=1, le=4096)] = "auto"
    pp: int = Field(default=1, ge=1, le=512)
    dp: Literal["auto"] | Annotated[int, Field(ge=1, le=1_048_576)] = "auto"
    cp: int = Field(default=1, ge=1, le=4096)
    ep: int = Field(default=1, ge=1, le=4096)


class Overlap(Spec):
    """Which collectives run behind the kernels instead of before them."""

    dp: bool = Field(default=True, description="gradients and weights, behind the last backward pass")
    tp: bool = Field(default=False, description="in chunks, behind the matrix products of a layer")
    ep: bool = Field(default=False, description="dispatch and combine, behind another micro-batch's kernels")


class Lora(Spec):
    """Adapters beside frozen weights: two thin matrices of this rank at each matrix of the targets; 0: none."""

    rank: int = Field(default=0, ge=0, le=65_536)
    targets: Literal["attention", "all"] = "attention"


class Training(Spec):
    """One training step: the batch, how it is cut, what is kept and what is computed again."""

    parallelism: TrainingParallelism = Field(default_factory=TrainingParallelism)
    sequence_length: int = Field(default=8192, ge=1, le=16_777_216)
    global_batch_tokens: int = Field(default=4_194_304, ge=1, le=10**12)
    micro_batch_size: int = Field(default=1, ge=1, le=65_536)
    virtual_stages: int = Field(default=1, ge=1, le=512)
    zero_stage: Literal[0, 1, 2, 3] = 1
    recompute: Recompute = "selective"
    sequence_parallel: bool = True
    overlap: Overlap = Field(default_factory=Overlap)
    total_tokens: Annotated[float, Field(gt=0, le=1e18)] | None = None
    dtype: TrainingDtype = "bf16"
    stack: StackName = "megatron-core"
    dispatcher: Dispatcher = "deduplicating"
    cuda_graphs: Graphs = "full"
    multi_token_prediction: bool = False
    lora: Lora = Field(default_factory=Lora)
