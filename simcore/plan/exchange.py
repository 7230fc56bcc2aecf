"""Tokens on their way to experts of other chips, as a serving plan has them.

Where a replica has several data parallel ranks, each expert layer gathers the tokens of all: every chip sends its
share of its rank's tokens to their experts and takes the results back (`fabric/exchange.py`). Mean field: all ranks
are taken to carry as many tokens in a step as this one, and a step to begin when this one's does. Left out: ranks
that carry more, for which all others wait (the engine keeps ranks in lockstep, an idle one runs an empty step;
`lockstep.py` says what that is at most), and those that carry less, whose tokens the experts do not get. The
slowest of equal ranks is in the rank skew.
With one data parallel rank the tokens are on every chip already, and an all-reduce sums what experts made of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.catalog.types import BYTES_PER_ELEMENT, Chip
from simcore.compute.calibration import arithmetic_dtype
from simcore.compute.ops import bottleneck_stage, imbalance_leaf
from simcore.fabric.collectives import Interconnect
from simcore.fabric.exchange import ExpertExchange, exchange_s, exchange_times_s, moved_bytes
from simcore.plan.types import CollectiveTier, PoolInputs
from simcore.why import Term, constant, leaf, sqrt

_SIXTEEN_BIT_BYTES: Final = 2.0


def expert_exchange(inputs: PoolInputs, chip: Chip, network: Interconnect) -> ExpertExchange | None:
    """Who exchanges what in a layer of experts; None where tokens need not move."""
    arch, parallelism = inputs.architecture, inputs.parallelism
    if parallelism.dp == 1 or not arch.is_moe:
        return None
    width = arch.leaf("moe_latent") if arch.moe_latent else arch.leaf("hidden")
    narrow = arithmetic_dtype(chip, arch.weight_formats(inputs.weights_dtype)[1])
    share = constant(1.0) / leaf(parallelism.tp_ranks, "tp", path="serving.parallelism.tp", dimension="")

    def row_bytes(each: float) -> Term:
        return (width * constant(each, "bytes_per_element") * share).named("bytes_per_row_and_chip", "bytes")

    unbalanced = parallelism.ep > 1 and parallelism.expert_imbalance_ratio != 1
    return ExpertExchange(
        ranks=parallelism.expert_chip_count,
        groups=parallelism.ep,
        chosen=arch.experts_per_token,
        dispatch_row_bytes=row_bytes(min(_SIXTEEN_BIT_BYTES, BYTES_PER_ELEMENT[narrow])),
        combine_row_bytes=row_bytes(_SIXTEEN_BIT_BYTES),
        network=network,
        imbalance=imbalance_leaf(parallelism) if unbalanced else None,
    )


def exchange_tier(exchange: ExpertExchange | None) -> CollectiveTier | None:
    if exchange is None:
        return None
    return "scaleout" if exchange.crosses else "scaleup"


def step_exchanges_s(
    inputs: PoolInputs, exchange: ExpertExchange | None, tokens: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Dispatches and combines of one stage's step, by its tokens."""
    return None if exchange is None else _layers(inputs) * exchange_times_s(exchange, tokens)


def step_exchange(inputs: PoolInputs, exchange: ExpertExchange | None, tokens: float) -> Term | None:
    """The same as a tree, for one number of tokens."""
    if exchange is None:
        return None
    in_step = leaf(tokens, "tokens", kind="derived", source="tokens of the step")
    layers = constant(_layers(inputs), "moe_layers_per_stage")
    return (layers * exchange_s(exchange, in_step)).named("expert_exchange_s", "s")


def exchanged_bytes_per_token(
    inputs: PoolInputs, exchange: ExpertExchange | None, tokens: float
) -> Mapping[CollectiveTier, float]:
    """Bytes that one chip sends over each tier for each token of its rank, in all expert layers of a stage."""
    if exchange is None:
        return {}
    local, remote = moved_bytes(exchange, tokens)
    each: dict[CollectiveTier, float] = {"scaleup": local, "scaleout": remote}
    return {tier: _layers(inputs) * sent / tokens for tier, sent in each.items() if sent}


def _layers(inputs: PoolInputs) -> float:
    return float(bottleneck_stage(inputs.architecture, inputs.parallelism.pp).moe_layers)


def random_imbalance(inputs: PoolInputs, batch: float) -> Term:
    """Rows of the busiest expert rank over the mean, expected of routing that knows no favourites.

    Each of N tokens picks k of E experts; of its rows, a rank with 1/n of the experts gets k/n in the mean, with
    the variance of draws without putting back. The largest of n sums is z standard deviations above (Blom 1958:
    z = Φ⁻¹((n − 3/8) / (n + 1/4)), as if they were normal and independent). What is measured above it is skew of
    the router. Without skew and with many tokens the ratio goes to 1.
    """
    arch, parallelism = inputs.architecture, inputs.parallelism
    ranks, chosen = parallelism.ep, arch.experts_per_token
    tokens = leaf(batch, "batch", kind="derived", source="sequences decoding together", dimension="count")
    tokens = tokens * leaf(parallelism.dp, "dp", path="serving.parallelism.dp", dimension="")
    spread = math.sqrt((ranks - 1) * (arch.experts - chosen) / (chosen * max(1, arch.experts - 1)))
    of_one = leaf(
        spread, "variation_of_one_token_ratio", kind="derived", source="draws of k experts", dimension="ratio"
    )
    highest = leaf(
        NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)), "expected_maximum_in_deviations", kind="derived",
        source="Blom, 1958", dimension="",
    )  # fmt: skip
    return 1 + highest * of_one / sqrt(tokens)
