"""Attention on one chip: KV-bandwidth bound in decode, arithmetic bound in prefill.

Decode reads each sequence's KV once per layer: `max(flop/(e_c·peak), KV bytes/(e_m·bw))` per context
token. Prefill costs per *pair* (query, key): 4·heads·head_dim FLOP. Two ways to run it:

- `flash`: scores stay on chip. K and V cross HBM once where those of the heads that run together fit in
  L2; otherwise each block of query rows reads them anew, `2·d·bytes / rows` per pair, with
  `rows = SRAM / (4·d·bytes)` (the Θ(N² d² / M) of the FlashAttention paper).
- `naive`: the N×N scores are written, read and written by softmax and read again, in 16 bit, and the half
  above the diagonal is not skipped.

This is one layer; `stage_attention.py` adds up the kinds of layers of a model.
In a step every core has work: chunk edges, the longest block, splits and reductions of short contexts are in
`kernels.py`, where isolated kernels are compared with measurements, and in the launch time of a layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from simcore.catalog.kernels import DecodeKernel
from simcore.catalog.types import Calibration, Chip, LlmArchitecture
from simcore.compute.calibration import peak, rates
from simcore.compute.kernels import constant_terms, decode_padding
from simcore.compute.local_shape import LocalShape, element_bytes, kv_bytes_per_layer_token
from simcore.compute.roofline import Rates, roofline_s, root_sum
from simcore.parallelism import Parallelism
from simcore.spec import Spec
from simcore.why import Term, constant, floor, maximum, minimum

_SCORE_PASSES: Final = constant(4.0, "score_passes")
_SCORE_BYTES: Final = constant(2.0, "bytes_per_score")


class Flash(Spec):
    """Tiled attention that never writes its scores to HBM."""

    kind: Literal["flash"] = "flash"


class Naive(Spec):
    """Three kernels with the N×N scores in HBM between them."""

    kind: Literal["naive"] = "naive"


Attention = Annotated[Flash | Naive, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCost:
    """Seconds of one layer on one chip, and the FLOP behind them."""

    decode_s_per_token: Term  # per context token, summed over sequences
    decode_s_per_sequence: Term
    prefill_s_per_pair: Term  # per (query token × key token) at or below the diagonal
    decode_flop_per_token: Term
    prefill_flop_per_pair: Term
    decode_compute_fraction: float  # share of the decode time that is flop/(e_c·peak)
    prefill_compute_fraction: float
    kv_bytes_per_token: Term
    decode_bytes_per_sequence: Term  # queries in and outputs out
    prefill_bytes_per_pair: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSetting:
    """What the cost of attention depends on besides the kind of layer."""

    arch: LlmArchitecture
    chip: Chip
    calibration: Calibration
    parallelism: Parallelism
    kv_dtype: str
    attention: Attention
    context_tokens: int  # decides whether K and V of the running heads fit in L2


def attention_cost(
    arch: LlmArchitecture,
    chip: Chip,
    calibration: Calibration,
    parallelism: Parallelism,
    *,
    kv_dtype: str,
    attention: Attention,
    context_tokens: int,
) -> AttentionCost:
    """Cost of one layer of the model's first kind."""
    setting = AttentionSetting(
        arch=arch,
        chip=chip,
        calibration=calibration,
        parallelism=parallelism,
        kv_dtype=kv_dtype,
        attention=attention,
        context_tokens=context_tokens,
    )
    return layer_cost(setting, LocalShape.of(arch, parallelism))


def layer_cost(
    setting: AttentionSetting, shape: LocalShape, *, in_latent_space: bool = False
) -> AttentionCost:
    chip, calibration, kv_dtype = setting.chip, setting.calibration, setting.kv_dtype
    kv_bytes = kv_bytes_per_layer_token(shape, kv_dtype)
    decode_flop = _decode_flop(shape)
    decode_rates = rates(chip, calibration, "attention_decode", _kv_format(kv_dtype), name="attention_decode")
    decode_s, busy_s = _decode_s(setting, shape, decode_flop, kv_bytes, decode_rates)
    ends = constant(4.0, "query_and_output_bytes") * _query_width(shape)
    per_sequence_s = ends / decode_rates.bytes_per_s
    kernel = _decode_kernel(setting, shape)
    if kernel is not None:
        constants = constant_terms(kernel, _decode_name(shape))
        per_sequence_s = per_sequence_s + shape.heads * constants["per_head_s"]
    pair_flop = decode_flop if in_latent_space else _pair_flop(shape)
    prefill_s, pair_bytes, prefill_share = _prefill(setting, shape, pair_flop)
    return AttentionCost(
        decode_s_per_token=decode_s,
        decode_s_per_sequence=per_sequence_s.named("decode_attention_s_per_layer_sequence", "s"),
        prefill_s_per_pair=prefill_s,
        decode_flop_per_token=decode_flop,
        prefill_flop_per_pair=pair_flop,
        decode_compute_fraction=busy_s / decode_s.value,
        prefill_compute_fraction=prefill_share,
        kv_bytes_per_token=kv_bytes,
        decode_bytes_per_sequence=ends,
        prefill_bytes_per_pair=pair_bytes,
    )


def _decode_kernel(setting: AttentionSetting, shape: LocalShape) -> DecodeKernel | None:
    """The fit of grouped-query kernels, or of those for latent attention."""
    if not setting.chip.core_count:
        return None
    kernels = setting.calibration.kernels
    fits = kernels.latent_decode if shape.arch.is_mla else kernels.attention_decode
    return fits.get(_kv_format(setting.kv_dtype))


def _decode_name(shape: LocalShape) -> str:
    return "latent_decode" if shape.arch.is_mla else "attention_decode"


def _decode_s(
    setting: AttentionSetting, shape: LocalShape, flop: Term, kv_bytes: Term, plain: Rates
) -> tuple[Term, float]:
    """Seconds per context token once every core has its part of the KV, and those of them that compute."""
    name = "decode_attention_s_per_layer_token"
    kernel = _decode_kernel(setting, shape)
    if kernel is None:
        return roofline_s(flop, kv_bytes, plain).named(name, "s"), (flop / plain.flop_per_s).value
    constants = constant_terms(kernel, _decode_name(shape))
    # every query head reads the one latent of a token
    group = shape.heads if shape.arch.is_mla else shape.heads / shape.kv_heads
    padded = flop * decode_padding(group, constant(1.0))
    rate = constants["compute_fraction"] * peak(setting.chip, "bf16")
    bandwidth = constants["memory_fraction"] * setting.chip.leaf("hbm_bytes_per_s")
    arithmetic_s = (padded / rate).named("arithmetic_s")
    memory_s = (kv_bytes / bandwidth).named("memory_s")
    seconds = root_sum(memory_s, arithmetic_s, kernel.overlap_exponent)
    return seconds.named(name, "s"), min(arithmetic_s.value, seconds.value)


def _kv_format(kv_dtype: str) -> str:
    return "fp8" if kv_dtype.startswith("fp8") else "bf16"


def _query_width(shape: LocalShape) -> Term:
    if shape.arch.is_mla:
        return shape.heads * (shape.arch.leaf("kv_lora_rank") + shape.arch.leaf("qk_rope_head_dim"))
    return shape.heads * shape.head_dim


def _decode_flop(shape: LocalShape) -> Term:
    """Scores and weighted sum against one cached token; MLA runs in its latent space (absorbed)."""
    if shape.arch.is_mla:
        latent, rope = shape.arch.leaf("kv_lora_rank"), shape.arch.leaf("qk_rope_head_dim")
        flop = constant(2.0) * shape.heads * (constant(2.0) * latent + rope)
    else:
        flop = _score_and_sum_flop(shape)
    return flop.named("decode_attention_flop_per_layer_token", "flop")


def _score_and_sum_flop(shape: LocalShape) -> Term:
    if shape.kind.head_dim == shape.kind.value_dim:
        return constant(4.0) * shape.heads * shape.head_dim
    return constant(2.0) * shape.heads * (shape.head_dim + shape.value_dim)


def _pair_flop(shape: LocalShape) -> Term:
    arch = shape.arch
    if arch.is_mla:
        widths = arch.leaf("qk_nope_head_dim") + arch.leaf("qk_rope_head_dim") + arch.leaf("v_head_dim")
        flop = constant(2.0) * shape.heads * widths
    else:
        flop = _score_and_sum_flop(shape)
    return flop.named("prefill_attention_flop_per_layer_pair", "flop")


def _prefill(setting: AttentionSetting, shape: LocalShape, flop: Term) -> tuple[Term, Term, float]:
    """Seconds and bytes per pair, and the share of the seconds that is arithmetic."""
    chip, calibration = setting.chip, setting.calibration
    compute_s = flop / _prefill_flop_per_s(setting, shape)
    bandwidth = rates(chip, calibration, "gemm", "bf16", name="attention_stream").bytes_per_s
    if setting.attention.kind == "naive":
        # no half is skipped above the diagonal: two computed pairs per useful pair, kernels in sequence
        both = constant(2.0, "pairs_computed_per_useful_pair")
        traffic = (_SCORE_PASSES * _SCORE_BYTES * shape.heads).named("score_bytes_per_pair", "bytes")
        seconds = both * (compute_s + traffic / bandwidth)
        share = (both * compute_s).value / seconds.value
        traffic = both * traffic
    else:
        traffic = flash_bytes_per_pair(shape, chip, setting.context_tokens)
        seconds = maximum(compute_s, traffic / bandwidth)
        share = compute_s.value / seconds.value
    return seconds.named("prefill_attention_s_per_layer_pair", "s"), traffic, share


def _prefill_flop_per_s(setting: AttentionSetting, shape: LocalShape) -> Term:
    """What long prompts reach, which fill all cores with blocks."""
    kernels = setting.calibration.kernels
    fits = kernels.latent_prefill if shape.arch.is_mla else kernels.attention_prefill
    kernel = fits.get("bf16")
    if kernel is None:
        reached = rates(
            setting.chip, setting.calibration, "attention_prefill", "bf16", name="attention_prefill"
        )
        return reached.flop_per_s
    name = "latent_prefill" if shape.arch.is_mla else "attention_prefill"
    reached_fraction = constant_terms(kernel, name)["compute_fraction"]
    return (reached_fraction * peak(setting.chip, "bf16")).named("attention_prefill_flop_per_s", "flop_per_s")


def flash_bytes_per_pair(shape: LocalShape, chip: Chip, context_tokens: int) -> Term:
    """HBM bytes of tiled attention per pair: K and V shared by all query rows, or by one block of rows."""
    element, width = element_bytes("bf16"), shape.head_dim
    keys_and_values = (constant(2.0, "k_and_v") * width * element * shape.kv_heads).named(
        "kv_bytes_per_key", "bytes"
    )
    if fits_l2(shape, chip, context_tokens) or not chip.sram_bytes_per_core:
        # one pass over K and V serves every query row of the prompt
        return keys_and_values / constant(float(context_tokens), "query_rows")
    rows = floor(chip.leaf("sram_bytes_per_core") / (constant(4.0) * width * element)).named("block_rows", "")
    heads = constant(2.0, "k_and_v") * width * element * shape.heads
    return heads / maximum(constant(1.0), rows)


def fits_l2(shape: LocalShape, chip: Chip, context_tokens: int) -> bool:
    """Whether K and V of the heads that run at one time fit in L2. An unknown L2 is taken to hold them."""
    if not chip.l2_bytes:
        return True
    blocks_per_head = max(1.0, context_tokens / 128)
    running = minimum(shape.heads, constant(max(1.0, (chip.core_count or 1) / blocks_per_head)))
    per_head = 2 * context_tokens * shape.head_dim.value * 2
    return running.value * per_head <= chip.l2_bytes
