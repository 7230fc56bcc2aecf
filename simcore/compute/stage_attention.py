"""Attention and states of one pipeline stage: all kinds of layers of a model, added up.

A full layer costs per token of the context, a window layer per pair like a full one over at most `window`
keys. Sparse layers read the `topk` entries that an indexer chose, over at most `topk · ratio` tokens of
context, and the indexer reads its own small keys of all of them; compressed layers read one entry per
`ratio` tokens. A recurrent layer reads and writes its state once per sequence and step, and adds nothing
per token of context.
Limits: where layers have windows of two sizes the smaller ones are charged as a share of the larger, right
beyond both; indexers run at the efficiency of fp8 decode attention, which measures larger heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from simcore.catalog.layers import AttentionKind, index_bytes_per_entry, local_window_layers
from simcore.catalog.types import Calibration, Chip, LlmArchitecture
from simcore.compute.attention import Attention, AttentionCost, AttentionSetting, layer_cost
from simcore.compute.calibration import rates
from simcore.compute.local_shape import LocalShape, stage_attention_kinds
from simcore.compute.measured_attention import corrected_cost
from simcore.compute.roofline import roofline_s
from simcore.parallelism import Parallelism, PipelineStage
from simcore.remembered import remembered
from simcore.why import Term, constant, leaf, total


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAttention:
    """All layers of one pipeline stage: seconds per unit of work, whole context and windows apart."""

    decode_s_per_token: Term  # per context token
    decode_s_per_window_token: Term  # per min(context, window) token
    decode_s_per_sequence: Term
    prefill_s_per_pair: Term
    prefill_s_per_window_pair: Term  # per query token × min(context, window)
    window_tokens: int  # 0: no layer has a window
    decode_flop_per_token: Term
    kv_bytes_per_token: Term  # read per context token of the whole context
    window_flop_per_token: Term  # the same two of windows
    window_bytes_per_token: Term
    decode_bytes_per_sequence: Term
    prefill_flop_per_pair: Term
    prefill_bytes_per_pair: Term
    prefill_flop_per_window_pair: Term
    prefill_bytes_per_window_pair: Term
    decode_compute_fraction: float
    prefill_compute_fraction: float


@remembered
def stage_attention(
    arch: LlmArchitecture,
    chip: Chip,
    calibration: Calibration,
    parallelism: Parallelism,
    *,
    stage: PipelineStage,
    kv_dtype: str,
    attention: Attention,
    context_tokens: int,
) -> StageAttention:
    """Sum over the kinds of layers of a stage."""
    setting = AttentionSetting(
        arch=arch,
        chip=chip,
        calibration=calibration,
        parallelism=parallelism,
        kv_dtype=kv_dtype,
        attention=attention,
        context_tokens=context_tokens,
    )
    parts = _Parts()
    costs = []
    for layers, kind in stage_attention_kinds(arch, stage):
        cost = corrected_cost(setting, LocalShape.of(arch, parallelism, kind))
        costs.append(cost)
        count = _layers(layers, "window_layers" if kind.is_window else "full_layers")
        parts.per_sequence.append(count * cost.decode_s_per_sequence)
        parts.per_sequence_bytes.append(count * cost.decode_bytes_per_sequence)
        if kind.is_window:
            parts.add(kind.window_tokens, count, cost)
        else:
            _add_contexts(parts, setting, kind, layers, cost)
    if stage.recurrent_layers:
        moved = _state_bytes(setting, stage)
        parts.per_sequence_bytes.append(moved)
        parts.per_sequence.append(_state_s(setting, moved))
    largest = max(parts.windows, default=0)
    windows, whole = partial(_folded, parts.windows, largest), partial(_whole, parts.whole)
    return StageAttention(
        decode_s_per_token=whole("decode_s_per_token", "decode_attention_s_per_token"),
        decode_s_per_window_token=windows("decode_s_per_token", "decode_attention_s_per_window_token"),
        decode_s_per_sequence=_sum(parts.per_sequence, "decode_attention_s_per_sequence"),
        prefill_s_per_pair=whole("prefill_s_per_pair", "prefill_attention_s_per_pair"),
        prefill_s_per_window_pair=windows("prefill_s_per_pair", "prefill_attention_s_per_window_pair"),
        window_tokens=largest,
        decode_flop_per_token=whole("decode_flop_per_token", "decode_attention_flop_per_token"),
        kv_bytes_per_token=whole("kv_bytes_per_token", "kv_bytes_read_per_token"),
        window_flop_per_token=windows("decode_flop_per_token", "decode_attention_flop_per_window_token"),
        window_bytes_per_token=windows("kv_bytes_per_token", "kv_bytes_read_per_window_token"),
        decode_bytes_per_sequence=_sum(parts.per_sequence_bytes, "decode_attention_bytes_per_sequence"),
        prefill_flop_per_pair=whole("prefill_flop_per_pair", "prefill_attention_flop_per_pair"),
        prefill_bytes_per_pair=whole("prefill_bytes_per_pair", "prefill_attention_bytes_per_pair"),
        prefill_flop_per_window_pair=windows(
            "prefill_flop_per_pair", "prefill_attention_flop_per_window_pair"
        ),
        prefill_bytes_per_window_pair=windows(
            "prefill_bytes_per_pair", "prefill_attention_bytes_per_window_pair"
        ),
        decode_compute_fraction=costs[0].decode_compute_fraction if costs else 0.0,
        prefill_compute_fraction=costs[0].prefill_compute_fraction if costs else 1.0,
    )


_Layers = tuple[Term, AttentionCost]  # how many layers, and what one costs


class _Parts:
    """What a stage consists of, while its kinds of layers are added up."""

    def __init__(self) -> None:
        self.whole: list[_Layers] = []
        self.windows: dict[int, list[_Layers]] = {}  # by window
        self.per_sequence: list[Term] = []
        self.per_sequence_bytes: list[Term] = []

    def add(self, window_tokens: int, layers: Term, cost: AttentionCost) -> None:
        """`layers` that read at most `window_tokens` of the context, or all of it (0)."""
        found = self.windows.setdefault(window_tokens, []) if window_tokens else self.whole
        found.append((layers, cost))


def _layers(count: float, name: str) -> Term:
    return constant(float(round(count, 9)), name)


def _sum(terms: Sequence[Term], name: str) -> Term:
    return total(*terms).named(name) if terms else constant(0.0, name)


def _whole(layers: Sequence[_Layers], figure: str, name: str) -> Term:
    """A figure of one layer, summed over those that read the whole context."""
    return _sum([count * getattr(cost, figure) for count, cost in layers], name)


def _folded(windows: Mapping[int, Sequence[_Layers]], largest: int, figure: str, name: str) -> Term:
    """The same per token of the largest window; smaller ones count in proportion."""
    found = []
    for window, layers in windows.items():
        share = constant(window / largest, "share_of_the_largest_window")
        each = [count * getattr(cost, figure) for count, cost in layers]
        found += each if window == largest else [share * one for one in each]
    return _sum(found, name)


def _add_contexts(
    parts: _Parts, setting: AttentionSetting, kind: AttentionKind, layers: float, cost: AttentionCost
) -> None:
    """Full layers: plain ones read every entry, compressed ones fewer, sparse ones the best of them."""
    arch = setting.arch
    if not arch.context_groups:
        parts.add(0, _layers(layers, "full_layers"), cost)
        return
    share = layers / kind.layer_count
    sparse = layer_cost(setting, LocalShape.of(arch, setting.parallelism, kind), in_latent_space=True)
    for group in arch.context_groups:
        per_token = _layers(group.layer_count * share, "full_layers") / constant(float(group.ratio), "ratio")
        parts.add(group.topk_entries * group.ratio, per_token, sparse if group.topk_entries else cost)
        if group.index_layer_count:
            scoring = _layers(group.index_layer_count * share, "indexed_layers")
            parts.add(0, scoring / constant(float(group.index_ratio), "ratio"), _index_cost(setting))
    if local_window_layers(arch):
        parts.add(arch.window_tokens, _layers(layers, "layers_with_a_local_window"), cost)


def _index_cost(setting: AttentionSetting) -> AttentionCost:
    """Scoring one key on every rank: its heads are few, and its keys are not split."""
    arch, chip = setting.arch, setting.chip
    decode = rates(chip, setting.calibration, "attention_decode", "fp8", name="attention_decode")
    prefill = rates(chip, setting.calibration, "attention_prefill", "bf16", name="attention_prefill")
    heads, dim = arch.leaf("index_heads"), arch.leaf("index_head_dim")
    flop = (constant(2.0) * heads * dim).named("index_flop_per_key", "flop")
    key = leaf(index_bytes_per_entry(arch), "index_key_bytes", kind="catalog", source=arch.name)
    seconds = roofline_s(flop, key, decode).named("index_s_per_layer_key", "s")
    return AttentionCost(
        decode_s_per_token=seconds,
        decode_s_per_sequence=constant(0.0),
        prefill_s_per_pair=(flop / prefill.flop_per_s).named("index_s_per_layer_pair", "s"),
        decode_flop_per_token=flop,
        prefill_flop_per_pair=flop,
        decode_compute_fraction=(flop / decode.flop_per_s).value / seconds.value,
        prefill_compute_fraction=1.0,
        kv_bytes_per_token=key,
        decode_bytes_per_sequence=constant(0.0),
        prefill_bytes_per_pair=constant(0.0),
    )


def _state_bytes(setting: AttentionSetting, stage: PipelineStage) -> Term:
    """Reading and writing the states of one sequence, split over the ranks."""
    tp = leaf(setting.parallelism.tp_ranks, "tp", path="serving.parallelism.tp", dimension="")
    held = _layers(stage.recurrent_layers, "recurrent_layers") * setting.arch.leaf("state_bytes_per_layer")
    return constant(2.0, "read_and_write") * held / tp


def _state_s(setting: AttentionSetting, moved: Term) -> Term:
    streamed = rates(setting.chip, setting.calibration, "attention_decode", "bf16", name="attention_decode")
    return (moved / streamed.bytes_per_s).named("state_s_per_sequence", "s")
