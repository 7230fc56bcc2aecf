"""What a plan search looks for, among what, and within which limits.

The space is every combination of the values below that the catalog, the model and the servers allow; replicas are
counted up to `max_chips`. Beyond 32 replicas counts go up by a thirty-second of themselves, so the smallest
cluster is found to within 3 %. With `rate: held` every candidate gets the scenario's requests; with `rate: free` each
is tried at shares of its own capacity, and what is sought is the best of those operating points.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from simcore.scenario.schema import MAX_CHIPS, Slug
from simcore.spec import Spec

Objective = Literal[
    "usd_per_million_tokens",
    "usd_per_million_output_tokens",
    "ttft_s",
    "tpot_s",
    "output_token_per_s_per_chip",
    "joule_per_token",
    "chip_count",
    "tco_usd_per_year",
]
MOST_IS_BEST: Final = frozenset({"output_token_per_s_per_chip"})
DEFAULT_CHIPS: Final = (
    "nvidia-l40s",
    "nvidia-a100-80gb-sxm",
    "nvidia-h100-sxm",
    "nvidia-h200-sxm",
    "nvidia-b200-sxm",
    "nvidia-b300-sxm",
    "nvidia-gb200",
    "amd-mi300x",
    "amd-mi355x",
    "tpu-v6e",
)
WeightsDtype = Literal["auto", "bf16", "fp8"]
FabricKind = Literal["auto", "rail_optimized", "rail_only", "clos", "dragonfly", "hyperx", "torus"]
Knob = Literal["auto"] | Annotated[int, Field(ge=1, le=1_048_576)]
Degree = Annotated[int, Field(ge=1, le=1_024)]


class Search(Spec):
    """An objective, its limits and the space; a value of None, or none at all, takes the scenario's or the default."""

    kind: Literal["search"] = "search"
    objective: Objective = "usd_per_million_tokens"
    max_chips: int = Field(default=64, ge=1, le=MAX_CHIPS)
    rate: Literal["held", "free"] = "held"
    ttft_s: float | None = Field(default=None, gt=0, le=86_400)
    tpot_s: float | None = Field(default=None, gt=0, le=3_600)
    max_load_ratio: float = Field(default=0.8, gt=0, le=0.8)
    chips: tuple[Slug, ...] = Field(default=DEFAULT_CHIPS, min_length=1, max_length=40)
    fabrics: tuple[FabricKind, ...] = Field(default=("auto",), min_length=1, max_length=8)
    tp: tuple[Degree, ...] = Field(default=(1, 2, 4, 8, 16), min_length=1, max_length=16)
    pp: tuple[Degree, ...] = Field(default=(1, 2, 4), min_length=1, max_length=16)
    dp: tuple[Degree, ...] = Field(default=(1, 8), min_length=1, max_length=16)  # ranks that share experts
    weights_dtypes: tuple[WeightsDtype, ...] = Field(default=("auto",), min_length=1, max_length=3)
    kv_dtypes: tuple[WeightsDtype, ...] = Field(default=("auto",), min_length=1, max_length=3)
    schedulers: tuple[Literal["chunked_prefill", "continuous", "disaggregated"], ...] = Field(
        default=("chunked_prefill", "disaggregated"), min_length=1, max_length=3
    )
    max_num_seqs: tuple[Knob, ...] = Field(default=("auto", 64, 256), min_length=1, max_length=16)
    max_num_batched_tokens: tuple[Knob, ...] = Field(default=("auto", 2048), min_length=1, max_length=16)
    verified: int = Field(default=8, ge=0, le=100)
