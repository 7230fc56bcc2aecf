"""One step as an expression tree: what the step table holds as arrays, with names, units and sources.

`decode_step` is a batch that decodes at one mean context, `prefill_step` one prompt chunk alone. Both are
built from the operators and rates that fill `StepTimeTable`; a test pins table and tree to 1e-9.
`step_shares` splits a step of the table by the resource waited for, and `roofline_bound` names the
largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from simcore.catalog.types import Calibration, Chip, LlmArchitecture, StepOverhead
from simcore.compute.attention import Attention, Flash
from simcore.compute.calibration import engine_overhead, overhead_leaf
from simcore.compute.operator_time import later_s, operator_paces, operator_time
from simcore.compute.ops import Operator, bottleneck_stage, head_operators, layer_operators
from simcore.compute.stage_attention import StageAttention, stage_attention
from simcore.compute.step_table import (
    StepTimeTable,
    eager_floor,
    launch,
    meeting_ranks,
    prefill_launch,
    skew,
)
from simcore.parallelism import Parallelism, PipelineStage
from simcore.remembered import remembered
from simcore.why import Term, constant, leaf, maximum, minimum, total

Bound = Literal["compute", "hbm_bandwidth", "scaleup", "scaleout", "host"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepModel:
    """What both phases of one replica lane share."""

    arch: LlmArchitecture
    chip: Chip
    calibration: Calibration
    parallelism: Parallelism
    stage: PipelineStage
    layer_operators: tuple[Operator, ...]
    head_operators: tuple[Operator, ...]
    attention: StageAttention
    overhead: StepOverhead


@remembered
def step_model(
    arch: LlmArchitecture,
    chip: Chip,
    calibration: Calibration,
    parallelism: Parallelism,
    *,
    weights_dtype: str,
    kv_dtype: str,
    max_tokens: int,
    attention: Attention | None = None,
    engine: str = "",
) -> StepModel:
    """`max_tokens` and `engine` as given to the table: it decides whether prefill's K and V fit in L2."""
    stage = bottleneck_stage(arch, parallelism.pp)
    return StepModel(
        arch=arch,
        chip=chip,
        calibration=calibration,
        parallelism=parallelism,
        stage=stage,
        layer_operators=layer_operators(
            arch, chip, parallelism, weights_dtype=weights_dtype, kv_dtype=kv_dtype
        ),
        head_operators=head_operators(arch, parallelism),
        attention=stage_attention(
            arch,
            chip,
            calibration,
            parallelism,
            stage=stage,
            kv_dtype=kv_dtype,
            attention=attention or Flash(),
            context_tokens=max_tokens,
        ),
        overhead=engine_overhead(calibration, engine),
    )


def decode_step(
    model: StepModel,
    *,
    batch: float,
    context_tokens: float,
    communication_s: Term | None = None,
    exchange_s: Term | None = None,
    verified_tokens: int = 1,
) -> Term:
    """Step time of `batch` sequences that each decode one token with `context_tokens` cached, or verify several;
    all-reduces and the way of tokens to experts and back are given."""
    sequences = leaf(batch, "batch", kind="derived", source="sequences decoding together", dimension="count")
    tokens = sequences if verified_tokens == 1 else _verified(sequences, verified_tokens)
    kernels = (
        _linear_s(model, tokens),
        _head_s(model, tokens),
        _decode_attention_s(model, sequences, context_tokens, verified_tokens),
    )
    waits = _meetings(model, tokens, communication_s, exchange_s)
    return total(*kernels, *waits, _host(model, sequences)).named("decode_step_s")


def _verified(sequences: Term, verified_tokens: int) -> Term:
    each = leaf(verified_tokens, "verified_tokens", kind="derived", source="draft tokens and one more")
    return (sequences * each).named("tokens_of_the_step", "tokens")


def _decode_attention_s(
    model: StepModel, sequences: Term, context_tokens: float, verified_tokens: int = 1
) -> Term:
    """A context is read once for all tokens that are verified, at the pace of memory unless arithmetic is slower."""
    context = leaf(context_tokens, "context_tokens", kind="derived", source="cached tokens of each sequence")
    cost = model.attention
    whole, window = sequences * context, sequences * minimum(context, _window(cost))
    busy = verified_tokens * cost.decode_compute_fraction
    if verified_tokens > 1 and busy > 1.0:
        slower = leaf(
            busy, "arithmetic_to_memory_ratio", kind="derived", source="queries that share one read"
        )
        whole, window = whole * slower, window * slower
    parts = [whole * cost.decode_s_per_token, sequences * cost.decode_s_per_sequence]
    if cost.window_tokens:
        parts.append(window * cost.decode_s_per_window_token)
    return total(*parts).named("decode_attention_s")


def draft_passes(
    model: StepModel,
    *,
    batch: float,
    context_tokens: float,
    draft_tokens: int,
    first_waits: tuple[Term | None, Term | None] = (None, None),
    further_waits: tuple[Term | None, Term | None] = (None, None),
) -> tuple[Term, Term, Term]:
    """Layers and attention, LM heads, and host work of a draft's passes beside one verification.

    All-reduces and the way to experts are given, of the first pass and of each further one.
    """
    sequences = leaf(batch, "batch", kind="derived", source="sequences decoding together", dimension="count")
    passes = leaf(draft_tokens, "draft_tokens", path="serving.speculative.num_speculative_tokens")
    further = leaf(
        draft_tokens - 1, "further_passes", kind="derived", source="draft tokens but one", dimension="count"
    )
    tokens = _verified(sequences, 1 + draft_tokens)
    once = [_linear_s(model, tokens), *_meetings(model, tokens, *first_waits)]
    again = total(_linear_s(model, sequences), *_meetings(model, sequences, *further_waits))
    attention_s = _decode_attention_s(model, sequences, context_tokens)
    layers = total(*once, further * again, passes * attention_s).named("draft_layers_s", "s")
    heads = (passes * _head_s(model, sequences)).named("draft_heads_s", "s")
    return layers, heads, (passes * _host(model, sequences)).named("draft_host_s", "s")


def prefill_step(
    model: StepModel,
    *,
    tokens: float,
    done_tokens: float = 0.0,
    communication_s: Term | None = None,
    exchange_s: Term | None = None,
) -> Term:
    """Step time of one prompt chunk of `tokens` after `done_tokens` cached ones; it ends the prompt."""
    chunk = leaf(tokens, "chunk_tokens", kind="derived", source="prompt tokens of the step")
    done = leaf(done_tokens, "done_tokens", kind="derived", source="prompt tokens already cached")
    cost = model.attention
    mean_context = (done + chunk / constant(2.0)).named("mean_context_tokens")
    parts = [chunk * mean_context * cost.prefill_s_per_pair]
    if cost.window_tokens:
        parts.append(chunk * minimum(mean_context, _window(cost)) * cost.prefill_s_per_window_pair)
    attention_s = total(*parts).named("prefill_attention_s")
    one = leaf(
        1.0, "sampled_sequences", kind="derived", source="the prompt ends in this step", dimension="count"
    )
    kernels = (_linear_s(model, chunk), _head_s(model, one), attention_s)
    waits = _meetings(model, chunk, communication_s, exchange_s)
    return total(*kernels, *waits, _host(model, one, prefills=True)).named("prefill_step_s")


def prefill_growth(
    model: StepModel, tokens: float, communication_s: Term | None = None, exchange_s: Term | None = None
) -> Term:
    """What a step's tokens make longer, attention aside: their matrix products, launches and collectives."""
    in_step = leaf(tokens, "tokens", kind="derived", source="tokens of the step")
    waits = _meetings(model, in_step, communication_s, exchange_s)
    return total(_linear_growth_s(model, tokens), *waits).named("prefill_growth_s")


@remembered
def _linear_growth_s(model: StepModel, tokens: float) -> Term:
    return _linear_s(model, leaf(tokens, "tokens", kind="derived", source="tokens of the step"))


def prefill_host(model: StepModel) -> Term:
    """Host work of an iteration with prompts, whatever their length."""
    parts = [overhead_leaf(model.overhead, "per_iteration_s")]
    if model.overhead.per_prefill_layer_s:
        parts.append(prefill_launch(model.overhead, model.stage.depth))
    return total(*parts).named("overhead_s")


def _window(cost: StageAttention) -> Term:
    return leaf(cost.window_tokens, "window_tokens", kind="catalog", source="shape of the model")


def _linear_s(model: StepModel, tokens: Term) -> Term:
    kernels = _operators_s(model, model.layer_operators, tokens)
    launch_s = launch(model.layer_operators, model.calibration, model.stage.depth, model.overhead)
    graph_s = total(*kernels, launch_s).named("linear_s", "s")
    if not model.overhead.eager_per_layer_s:
        return graph_s
    return maximum(graph_s, eager_floor(model.overhead, model.stage.depth)).named("linear_s", "s")


def _head_s(model: StepModel, sequences: Term) -> Term:
    return total(*_operators_s(model, model.head_operators, sequences)).named("head_s", "s")


def _operators_s(model: StepModel, operators: Sequence[Operator], tokens: Term) -> list[Term]:
    paces = operator_paces(operators, model.chip, model.calibration)
    found = []
    for op in operators:
        kernel_s = operator_time(op, tokens, paces[op.operator_class, op.dtype]).whole_s
        found.append((op.count * kernel_s.named(f"{op.name}_s_per_layer", "s")).named(f"{op.name}_s", "s"))
    return found


def _meetings(
    model: StepModel, tokens: Term, communication_s: Term | None, exchange_s: Term | None
) -> tuple[Term, ...]:
    """Collectives, and what ranks wait for each other beside them."""
    found = [term for term in (communication_s, exchange_s) if term is not None]
    found += _expert_waits(model, tokens)
    ranks = meeting_ranks(model.arch, model.parallelism)
    return (*found, skew(ranks, model.overhead, model.stage.depth)) if ranks > 1 else tuple(found)


def _expert_waits(model: StepModel, tokens: Term) -> Iterator[Term]:
    """The chip with the busiest experts is later than the mean one, in every layer of experts."""
    unbalanced = [op for op in model.layer_operators if op.imbalance is not None]
    paces = operator_paces(unbalanced, model.chip, model.calibration)
    for op in unbalanced:
        each = later_s(op, tokens, paces[op.operator_class, op.dtype]).named("expert_wait_s_per_layer", "s")
        yield (op.count * each).named("expert_wait_s", "s")


def _host(model: StepModel, sequences: Term, *, prefills: bool = False) -> Term:
    """Work of the host."""
    host = [
        overhead_leaf(model.overhead, "per_iteration_s"),
        sequences * overhead_leaf(model.overhead, "per_sequence_s"),
    ]
    if prefills and model.overhead.per_prefill_layer_s:
        host.append(prefill_launch(model.overhead, model.stage.depth))
    return total(*host).named("overhead_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShares:
    """Seconds of one step by what was waited for."""

    compute_s: float
    hbm_s: float
    scaleup_s: float
    scaleout_s: float
    host_s: float

    @property
    def step_s(self) -> float:
        return self.compute_s + self.hbm_s + self.scaleup_s + self.scaleout_s + self.host_s

    @property
    def bound(self) -> Bound:
        shares: dict[Bound, float] = {
            "compute": self.compute_s,
            "hbm_bandwidth": self.hbm_s,
            "scaleup": self.scaleup_s,
            "scaleout": self.scaleout_s,
            "host": self.host_s,
        }
        return max(shares, key=lambda name: shares[name])


def decode_shares(table: StepTimeTable, *, batch: int, context_tokens: float) -> StepShares:
    """A decode step of the table, with its drafts where there are some, split by resource."""
    attention_s = batch * (
        context_tokens * table.decode_attention_s_per_token
        + min(context_tokens, table.window_tokens) * table.decode_attention_s_per_window_token
        + table.decode_attention_s_per_sequence
    )
    busy = table.decode_attention_compute_fraction * attention_s
    tokens = batch * table.verified_tokens
    head_comm_s = 0.0 if table.head_comm_s is None else float(table.head_comm_s[batch])
    return StepShares(
        compute_s=float(table.linear_compute_s[tokens] + table.head_compute_s[batch]) + busy,
        hbm_s=float(table.linear_hbm_s[tokens] + table.head_hbm_s[batch]) + attention_s - busy,
        scaleup_s=float(table.comm_s[tokens]) - _scaleout_s(table, tokens) + head_comm_s,
        scaleout_s=_scaleout_s(table, tokens),
        host_s=float(table.linear_launch_s[tokens])
        + _head_idle_s(table, batch)
        - head_comm_s
        + table.overhead_s
        + batch * table.overhead_s_per_sequence,
    )


def prefill_shares(table: StepTimeTable, *, tokens: int, done_tokens: float = 0.0) -> StepShares:
    """A prefill step of one chunk, split by resource."""
    context = done_tokens + tokens / 2
    attention_s = tokens * (
        context * table.prefill_attention_s_per_token_context
        + min(context, table.window_tokens) * table.prefill_attention_s_per_window_token
    )
    busy = table.prefill_attention_compute_fraction * attention_s
    return StepShares(
        compute_s=float(table.linear_compute_s[tokens] + table.head_compute_s[1]) + busy,
        hbm_s=float(table.linear_hbm_s[tokens] + table.head_hbm_s[1]) + attention_s - busy,
        scaleup_s=float(table.comm_s[tokens]) - _scaleout_s(table, tokens),
        scaleout_s=_scaleout_s(table, tokens),
        host_s=float(table.linear_launch_s[tokens])
        + _head_idle_s(table, 1)
        + table.overhead_s
        + table.prefill_attention_s
        + table.overhead_s_per_sequence,
    )


def _scaleout_s(table: StepTimeTable, tokens: int) -> float:
    return 0.0 if table.scaleout_s is None else float(table.scaleout_s[tokens])


def _head_idle_s(table: StepTimeTable, sequences: int) -> float:
    """What tiles and waves of the LM head leave idle, beside its arithmetic and its wait for memory."""
    return float(table.head_s[sequences] - table.head_compute_s[sequences] - table.head_hbm_s[sequences])


def roofline_bound(table: StepTimeTable, *, batch: int, context_tokens: float) -> Bound:
    """What most of a decode step at this batch and context waits for."""
    return decode_shares(table, batch=batch, context_tokens=context_tokens).bound
