"""Expert layers of a training step: grouped products, passes over their rows, launches, exchanged tokens.

- Products: every expert's rows in one grouped GEMM, at `expert_gemm_ratio` of a dense product's rate.
- Rows: `k` per token, permuted in and out, quantised and activated. `expert_passes` times the bytes of a row
  (hidden, gate, up and activation, 16 bit each) move through HBM; fused kernels of 2026 pass a third as often,
  experts with biases and a clamp (GPT-OSS) 2.4 times as often.
- Launch: routing's counts reach the host before it can launch what follows, so a micro-batch lasts at least the
  host's time per layer unless the whole iteration is one CUDA graph.
- Exchange: dispatch and combine, forward and backward. A plain all-to-all sends a token `k` times; a
  deduplicating dispatcher (DeepEP, HybridEP) once to each rank of its domain and once to each other domain
  that holds one of its experts. Overlapped, they hide behind a share of another micro-batch's kernels.
Constants are fitted (stacks.py). Limits: routing is balanced, as in all rows fitted; nothing is dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from simcore.fabric.collectives import collective_s
from simcore.parallelism import PipelineStage
from simcore.training.inputs import TrainingInputs
from simcore.training.products import gemm_rates, operators_of_layers, stream_bytes_per_s, tp_term
from simcore.training.split import ZERO, Split
from simcore.training.stacks import (
    BIASED_EXPERT_RATIO,
    DEDUPLICATED_RATIO,
    EXPERT_WINDOW_FRACTION,
    EXPERTS_SOURCE,
    HOST_S_PER_EXPERT_LAYER,
)
from simcore.why import Term, constant, leaf, maximum

_BYTES = constant(2.0, "activation_bytes")


def expert_products(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> Split:
    """Grouped products of the routed experts of a stage, forward."""
    layers = constant(float(stage.moe_layers), "expert_layers")
    group = inputs.leaf("ep", inputs.parallelism.ep, degree=True)
    found = Split()
    for op in operators_of_layers(inputs):
        if op.operator_class != "moe":
            continue
        reached = gemm_rates(inputs, op.dtype)
        sustained = reached.flop_per_s * _fitted(inputs.stack.expert_gemm_ratio, "expert_gemm_ratio")
        busy_s = (op.flop(tokens) / sustained).named(f"{op.name}_compute_s", "s")
        # a chip holds its share of the experts, and every rank of the group sends it rows
        weights = op.read_weight_bytes(tokens * group) / group
        moved_s = (weights + op.io_bytes_per_token * tokens) / reached.bytes_per_s
        waited = maximum(constant(0.0), moved_s - busy_s) if moved_s.value > busy_s.value else ZERO
        found += Split(
            compute=(layers * busy_s).named(f"{op.name}_stage_compute_s", "s"),
            hbm=(layers * waited).named(f"{op.name}_hbm_s", "s") if waited.value else ZERO,
        )
    return found


def expert_rows_s(inputs: TrainingInputs, stage: PipelineStage, tokens: Term) -> Term:
    """Permutation, quantisation and activation of the rows that experts take, forward."""
    arch = inputs.arch
    width = constant(3.0 if arch.gated_mlp else 2.0, "columns_per_width") * arch.leaf("moe_intermediate")
    per_row = (_BYTES * (width + arch.leaf("hidden")) / tp_term(inputs)).named(
        "bytes_per_expert_row", "bytes"
    )
    passes = _fitted(inputs.stack.passes_over_rows(inputs.spec.dtype), "expert_passes")
    if arch.mlp_bias:
        passes = passes * _fitted(BIASED_EXPERT_RATIO, "biased_expert_ratio")
    rows = tokens * arch.leaf("experts_per_token") * constant(float(stage.moe_layers), "expert_layers")
    return (rows * passes * per_row / stream_bytes_per_s(inputs)).named("expert_rows_s", "s")


def host_wait_s(inputs: TrainingInputs, stage: PipelineStage, work: Split) -> Term:
    """What the host's launches take beyond the work of one micro-batch."""
    each = HOST_S_PER_EXPERT_LAYER[inputs.spec.cuda_graphs]
    if not stage.moe_layers or each * stage.moe_layers <= work.total.value:
        return ZERO
    launched = _fitted(each, "host_s_per_expert_layer") * constant(float(stage.moe_layers), "expert_layers")
    return maximum(constant(0.0), launched - work.total).named("host_launch_wait_s", "s")


def expert_exchange(inputs: TrainingInputs, stage: PipelineStage, *, passes: Term, kernels_s: Term) -> Split:
    """Exposed dispatch and combine of one micro-batch; `passes` are forward, backward, and forward again."""
    once, crosses = _once(inputs)
    seconds = (exchanges(inputs, stage, passes) * once).named("expert_all_to_all_s", "s")
    if inputs.spec.overlap.ep:
        window = kernels_s * _fitted(EXPERT_WINDOW_FRACTION, "expert_window_fraction")
        seconds = maximum(constant(0.0), seconds - window).named("exposed_expert_all_to_all_s", "s")
    if not seconds.value:
        return Split()
    return Split(scaleout=seconds) if crosses else Split(scaleup=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """Bytes that one rank has for the others in one dispatch, in `domains` with `inside` ranks each."""

    inside: int
    domains: int
    routed_bytes: Term | None  # to any rank of the group, where every row goes by itself
    local_bytes: Term | None  # to ranks of its domain, and to other domains, where a row goes once to each
    remote_bytes: Term | None


def dispatched(inputs: TrainingInputs) -> Dispatched:
    ep, chosen, network = inputs.parallelism.ep, inputs.arch.experts_per_token, inputs.scaled_network
    token_bytes = _BYTES * inputs.rank_tokens * inputs.arch.leaf("hidden") / tp_term(inputs)
    token_bytes = token_bytes.named("dispatched_token_bytes", "bytes")
    inside = min(ep, network.domain_size)
    domains = math.ceil(ep / inside)
    if inputs.spec.dispatcher == "all_to_all":
        routed = (token_bytes * inputs.arch.leaf("experts_per_token")).named("routed_bytes", "bytes")
        return Dispatched(
            inside=inside, domains=domains, routed_bytes=routed, local_bytes=None, remote_bytes=None
        )
    local = (token_bytes * _reached(ep, chosen, "ranks_reached")).named("bytes_inside_domain", "bytes")
    remote = None
    if domains > 1:
        remote = token_bytes * _reached(domains, chosen, "domains_reached")
        remote = remote.named("bytes_between_domains", "bytes")
    return Dispatched(
        inside=inside, domains=domains, routed_bytes=None, local_bytes=local, remote_bytes=remote
    )


def exchanges(inputs: TrainingInputs, stage: PipelineStage, passes: Term) -> Term:
    """Dispatches and combines of one micro-batch."""
    return constant(2.0 * stage.moe_layers, "dispatches_and_combines") * passes


def _once(inputs: TrainingInputs) -> tuple[Term, bool]:
    """Seconds of one dispatch, and whether the network takes them."""
    sent, ep, network = dispatched(inputs), inputs.parallelism.ep, inputs.scaled_network
    if sent.routed_bytes is not None:
        return collective_s("all_to_all", sent.routed_bytes, ep, network), sent.domains > 1
    assert sent.local_bytes is not None, "what is not routed row by row goes by domain"
    kept = _fitted(DEDUPLICATED_RATIO, "deduplicated_ratio")
    within = collective_s("all_to_all", sent.local_bytes, sent.inside, network) if sent.inside > 1 else ZERO
    if sent.remote_bytes is None:
        return kept * within, False
    one_of_each = replace(network, domain_size=1, stride=sent.inside)
    across = collective_s("all_to_all", sent.remote_bytes, sent.domains, one_of_each)
    return kept * maximum(within, across), across.value >= within.value


def _reached(places: int, chosen: int, name: str) -> Term:
    """Distinct places that a token's experts lie in, `n (1 − (1 − 1/n)^k)`."""
    value = places * (1.0 - (1.0 - 1.0 / places) ** chosen)
    return leaf(
        value, name, kind="derived", source="n (1 − (1 − 1/n)^k), balanced routing", dimension="count"
    )


def _fitted(value: float, name: str) -> Term:
    return leaf(value, name, kind="calibrated", source=EXPERTS_SOURCE)
