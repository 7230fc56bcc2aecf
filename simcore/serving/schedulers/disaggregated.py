"""Prefill and decode on replicas of their own, as DistServe, Splitwise, Mooncake and vLLM's KV connectors do it.

Both pools batch by chunked prefill within their own `max_num_seqs` and `max_num_batched_tokens`; what happens
between them, and when, is `serving/handover.py`. The P:D ratio is that of the two replica counts; where they are left
open, the plan deals the chips out.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from simcore.parallelism import Parallelism
from simcore.serving.queue_order import QueueKind
from simcore.spec import Spec

MAIN_POOL: Final = "main"  # the name of the pool that `hardware.chip` describes


class RolePool(Spec):
    """The replicas that prefill, or those that decode: their own cut of the model, batch and budget."""

    pool: str = Field(default=MAIN_POOL, min_length=1, max_length=80)  # of hardware.pools, or the main chips
    parallelism: Parallelism | None = None  # None: serving.parallelism
    replica_count: Literal["auto"] | Annotated[int, Field(ge=1, le=1_048_576)] = "auto"
    max_num_seqs: Literal["auto"] | Annotated[int, Field(ge=1, le=65_536)] = "auto"
    max_num_batched_tokens: Literal["auto"] | Annotated[int, Field(ge=1, le=1_048_576)] = "auto"


class Disaggregated(Spec):
    """Replicas that prefill, replicas that decode, and the link that KV moves over."""

    kind: Literal["disaggregated"] = "disaggregated"
    prefill: RolePool = Field(default_factory=RolePool)
    decode: RolePool = Field(default_factory=RolePool)
    kv_link: Literal["scaleout", "scaleup"] = "scaleout"
    kv_link_bytes_per_s: Literal["auto"] | Annotated[float, Field(gt=0, le=1e15)] = "auto"  # of one chip
    kv_link_latency_s: Literal["auto"] | Annotated[float, Field(ge=0, le=10)] = "auto"  # of one transfer
    layerwise: bool = False  # layers are sent as they are computed
    queue: QueueKind = "fcfs"  # in front of prefill
    prediction_cv: float = Field(default=0.0, ge=0, le=10)  # of the predicted length
