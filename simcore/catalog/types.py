"""The catalog's entities: chips, servers, switches, optics, models, prices, calibrations.

All are frozen, in SI, and carry a source for every figure. An entity is loaded from one YAML file
(`loader.py`); nothing here reads files. A figure that a vendor does not print is `None`, never 0.
Conventions: peaks are dense; link bandwidth is per direction; `hbm_bytes` is the datasheet's figure and
`hbm_visible_bytes` what the driver reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from simcore.catalog.kernels import Kernels, Residuals
from simcore.catalog.measured import MeasuredTables
from simcore.catalog.sources import Source as Source
from simcore.catalog.sources import SourceKind as SourceKind
from simcore.why import Term, leaf

BYTES_PER_ELEMENT: Mapping[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "int8": 1.0,
    "nvfp4": 0.5625,  # 4 bits and one fp8 scale per 16 elements
    "mxfp4": 0.53125,  # 4 bits and one 8-bit scale per 32 elements
    "int4": 0.5,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure as printed by its source, and in SI."""

    value: float
    printed: str
    source: Source
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """What every catalog entry has: a slug, a name, its figures with their sources, and where its shape
    (counts, names) was read."""

    slug: str
    name: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    source: Source | None = None

    def leaf(self, figure: str) -> Term:
        """The figure or count as a leaf of a Why tree. A figure overridden by the user is an input."""
        value: float = getattr(self, figure)
        found = self.figures.get(figure)
        source = found.source if found else self.source
        if source is None:
            return leaf(value, figure, kind="assumption", source="default of the catalog loader")
        kinds: dict[str, Any] = {"assumption": "assumption", "estimate": "assumption", "user": "input"}
        path = f"hardware.chip_overrides.{figure}" if source.kind == "user" else ""
        title = f"{source.title}: {found.printed}" if found else source.title
        return leaf(value, figure, kind=kinds.get(source.kind, "catalog"), source=title, path=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip(Entity):
    vendor: str
    year: int
    bf16_flop_per_s: float
    fp8_flop_per_s: float | None = None
    int8_flop_per_s: float | None = None
    fp4_flop_per_s: float | None = None
    hbm_bytes: float
    hbm_visible_bytes: float
    hbm_bytes_per_s: float
    l2_bytes: float | None = None
    sram_bytes_per_core: float | None = None
    core_count: int | None = None
    scaleup_bytes_per_s: float | None = None  # per direction; None: no scale-up link, PCIe carries it
    pcie_bytes_per_s: float | None = None  # per direction
    tdp_w: float
    default_server: str
    default_topology: Mapping[str, Any] = field(default_factory=dict)
    calibration: str = ""  # slug of its calibration; "" = class defaults, wider error band

    def peak_flop_per_s(self, dtype: str) -> float:
        """Dense peak for a compute dtype; falls back to bf16 where the chip lacks the format."""
        by_dtype = {
            "fp8": self.fp8_flop_per_s,
            "fp8_block": self.fp8_flop_per_s,
            "int8": self.int8_flop_per_s,
            "nvfp4": self.fp4_flop_per_s,
        }
        return by_dtype.get(dtype) or self.bf16_flop_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Server(Entity):
    chips_per_server: int
    scaleup_domain_chip_count: int  # chips that reach each other over the scale-up link
    scaleup_kind: Literal["nvswitch", "nvlink", "xgmi", "ici", "pcie"]
    nic_count: int
    nic_bytes_per_s: float  # each NIC, per direction
    host_memory_bytes: float
    host_power_w: float  # server power without its chips, typical load
    default_topology: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleupDomain(Entity):
    """How the chips of one scale-up domain are joined, in machines that are sold."""

    servers: tuple[str, ...]  # in whose servers it is
    chip_count: int
    links_per_chip: int
    switch_count: int = 0  # 0: chips are joined directly
    switch_port_count: int = 0
    cable_count: int = 0  # copper cables; 0: traces of one board
    link_bytes_per_s: float  # per direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(Entity):
    radix: int
    port_bytes_per_s: float
    power_w: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Optic(Entity):
    medium: Literal["optical", "copper", "active_optical"]
    port_bytes_per_s: float
    power_w: float
    reach_m: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpticalSwitch(Entity):
    port_count: int
    usable_port_count: int
    power_w: float
    reconfiguration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A linear map that some layers have beside their attention and MLP (state-space and linear-attention
    projections, indexers, compressors, latent experts), and what tensor parallelism divides of it."""

    name: str
    fan_in: int
    fan_out: int
    layer_count: int
    split: Literal["fan_in", "fan_out", "none"] = "fan_out"
    group: Literal["attention", "recurrent", "experts_latent"] = "attention"

    @property
    def parameter_count(self) -> int:
        """Of one layer."""
        return self.fan_in * self.fan_out


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextGroup:
    """Full-attention layers that do not simply read all KV: they keep one entry per `ratio` tokens, read
    at most `topk_entries` of them, and some score the entries with an indexer that has keys of its own."""

    layer_count: int
    cached_layer_count: int  # layers that store KV; the others read what these store
    ratio: int = 1
    topk_entries: int = 0  # 0: all entries are read
    index_layer_count: int = 0
    index_cached_layer_count: int = 0
    index_ratio: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmArchitecture(Entity):
    """Shape of a decoder: attention, MLP, experts, and the layers that hold a state instead of KV.

    `layers` counts what the config calls layers. Every layer has attention and an MLP unless it is among
    `attention_free_layers` or `mlp_free_layers`; `recurrent_layers` hold a constant state per sequence
    (mostly the attention-free ones; Falcon-H1 has both in each layer).
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int  # MLP width of dense layers
    vocab: int
    tied_embeddings: bool = False
    gated_mlp: bool = True
    attention_bias: bool = False  # on q, k, v
    output_bias: bool = False  # on the attention's output projection
    mlp_bias: bool = False  # on MLP, experts and router
    norm_bias: bool = False
    norms_per_layer: int = 2
    qk_norm: bool = False
    attention_gate_width: int = 0  # columns of a gate on the attention's output
    value_from_key: bool = False  # full layers have no value matrix (Gemma 4)
    learned_positions: int = 0  # rows of a learned position table
    max_position: int = 4096
    # mixture of experts (0 experts: dense)
    experts: int = 0
    experts_per_token: int = 0
    moe_intermediate: int = 0
    shared_intermediate: int = 0  # width of all shared experts together, or of an MLP beside the experts
    moe_latent: int = 0  # width that experts read and write (0: hidden)
    dense_layers: int = 0  # leading layers without experts
    # multi-head latent attention (0: absent)
    kv_lora_rank: int = 0
    q_lora_rank: int = 0
    qk_rope_head_dim: int = 0
    qk_nope_head_dim: int = 0
    v_head_dim: int = 0  # also where values are narrower or wider than keys (0: as head_dim)
    # sliding or chunked window attention, with its own shape where that differs (0: as full layers)
    window_layers: int = 0
    window_tokens: int = 0
    window_kv_heads: int = 0
    window_head_dim: int = 0
    window_v_head_dim: int = 0
    # layers that reuse the KV of an earlier layer, by kind
    shared_kv_full_layers: int = 0
    shared_kv_window_layers: int = 0
    # sparse and compressed attention (empty: full layers read all of their KV)
    context_groups: tuple[ContextGroup, ...] = ()
    kv_stored_once: bool = False  # one vector serves as key and value
    index_heads: int = 0
    index_head_dim: int = 0
    index_key_bytes: int = 0  # of one key of an indexer (0: fp8 with a 32-bit scale)
    output_groups: int = 0  # grouped low-rank output projection
    output_lora_rank: int = 0
    # layers without attention or MLP, and layers with a recurrent state
    attention_free_layers: int = 0
    mlp_free_layers: int = 0
    recurrent_layers: int = 0
    recurrence: str = ""  # gated_delta_net, kimi_delta, mamba, mamba2, lightning, short_convolution
    state_bytes_per_layer: int = 0  # held per sequence
    recurrence_flop_per_token: int = 0  # of one layer, beside its matrices
    matrices: tuple[Matrix, ...] = ()
    small_parameter_count: int = 0  # convolutions, decays, inner norms, residual mixers: at 16 bit everywhere
    reused_parameter_count: int = (
        0  # counted in every layer that uses them, held once (Zamba2's shared blocks)
    )
    lookup_parameter_count: int = 0  # tables read by row (n-gram memory, per-layer embeddings)
    extra_parameter_count: int = 0  # vision and audio towers: counted, not run per text token
    mtp_layers: int = 0  # multi-token-prediction layers: not part of the counts, loaded for speculation only
    weights_dtype: str = "bf16"
    linear_weights_dtype: str = ""  # where a checkpoint keeps all but the experts wider ("": the same)
    kv_dtype: str = ""  # of the KV cache, where a checkpoint states it ("": 16 bit)
    also_known_as: tuple[str, ...] = ()  # other model ids that share this shape

    @property
    def full_layers(self) -> int:
        return self.layers - self.window_layers - self.attention_free_layers

    @property
    def attention_layers(self) -> int:
        return self.layers - self.attention_free_layers

    @property
    def is_moe(self) -> bool:
        return self.experts > 0

    @property
    def is_mla(self) -> bool:
        return self.kv_lora_rank > 0

    @property
    def mlp_layers(self) -> int:
        """Layers with an MLP or experts."""
        return self.layers - self.mlp_free_layers

    @property
    def moe_layers(self) -> int:
        return self.mlp_layers - self.dense_layers if self.is_moe else 0

    def weight_formats(self, weights_dtype: str) -> tuple[str, str]:
        """Storage format of (ordinary linear layers, experts) when run with these weights: as the checkpoint
        keeps them, and MXFP4 quantises experts only."""
        if self.is_moe and self.linear_weights_dtype and weights_dtype == self.weights_dtype:
            return self.linear_weights_dtype, weights_dtype
        return ("bf16" if weights_dtype == "mxfp4" and self.is_moe else weights_dtype), weights_dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one unit of an item costs: low, mid, high, in USD of the book's date."""

    low_usd: float
    mid_usd: float
    high_usd: float
    source: Source
    note: str = ""

    def scaled(self, ratio: float) -> Price:
        """The same item dearer or cheaper by a ratio, which its source then says."""
        return replace(
            self,
            low_usd=self.low_usd * ratio,
            mid_usd=self.mid_usd * ratio,
            high_usd=self.high_usd * ratio,
            source=replace(self.source, title=f"{self.source.title} × {ratio:g}"),
        )


OFFERS: Final = ("cloud:", "api_input:", "api_output:")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """Dated prices by item key, for example `chip:nvidia-h100-sxm`, `server:dgx-h100`, `switch:64x400g`,
    `switch_port`, `transceiver`, `link`, `nic`, `ocs:palomar-136`. An item that is absent is unpriced. What others
    offer: `cloud:nvidia-h100-sxm` per chip-hour, `api_input:` and `api_output:llama-3.1-70b` per million tokens."""

    slug: str
    name: str
    dated: str
    prices: Mapping[str, Price]

    def get(self, item: str) -> Price | None:
        return self.prices.get(item)

    def scaled(self, ratio: float) -> PriceBook:
        """Every price of what is bought times a ratio: a discount, or prices that rose since the book's date.

        What is rented or asked of an API stays: those are other people's prices."""
        if ratio == 1.0:
            return self
        prices = {
            item: price if item.startswith(OFFERS) else price.scaled(ratio)
            for item, price in self.prices.items()
        }
        return replace(self, prices=prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Fitted roofline of one operator class: `t = max(flop/(e_c·peak), bytes/(e_m·bw)) + launch`."""

    compute_fraction: float
    memory_fraction: float
    launch_s: float
    mape_fraction: float  # mean absolute error of the fit over its rows
    p90_fraction: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveFit:
    """`t = alpha + c·sqrt(w) + w/bandwidth`, w = bytes × bus-bandwidth factor."""

    alpha_s: float
    sqrt_s_per_sqrt_byte: float
    bus_bytes_per_s: float
    mape_fraction: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOverhead:
    """What an engine adds to each iteration beside the kernels: CPU, scheduling, launch gaps.

    An eager engine launches every kernel from the host: its layers take at least `eager_per_layer_s`, during
    which the chip may wait (0: the layers are captured in a graph). An engine whose graphs hold decode steps
    alone launches the layers of an iteration with prompts from the host: `per_prefill_layer_s` each.
    `per_request_s` is the front end (HTTP, tokens of the prompt, the way back of the first token): no iteration
    waits for it."""

    per_iteration_s: float
    per_layer_s: float
    per_sequence_s: float
    rank_skew_s: float = 4e-6  # per layer and doubling of tensor-parallel ranks that wait for each other
    eager_per_layer_s: float = 0.0
    per_prefill_layer_s: float = 0.0
    per_request_s: float = 0.0
    mape_fraction: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRange:
    """The steps that the overheads and residuals were measured on; beyond them a time is extrapolated."""

    most_sequences_count: float
    most_context_tokens: float
    most_ranks_count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Fitted constants of one chip: GEMM and attention by dtype, collectives by (operation, ranks).

    `gemm` and the two `attention_…` tables are plain rooflines; `kernels` holds the richer forms where they
    were fitted. `engine_overheads` holds overheads by "family first-version", `residuals` by regime."""

    slug: str
    name: str
    gemm: Mapping[str, Efficiency]  # by dtype
    attention_prefill: Mapping[str, Efficiency]
    attention_decode: Mapping[str, Efficiency]
    collectives: Mapping[tuple[str, int], CollectiveFit]
    step_overhead: StepOverhead
    is_class_default: bool = False
    kernels: Kernels = field(default_factory=Kernels)
    engine_overheads: Mapping[str, StepOverhead] = field(default_factory=dict)
    residuals: Mapping[str, Residuals] = field(default_factory=dict)
    step_range: StepRange | None = None
    measured: MeasuredTables | None = None  # what corrects the fitted forms, where the scenario asks for it
    measured_on: Chip | None = None  # the chip of these tables: the catalog's, before overrides
    fitted_on: str = ""
    chip: str = ""  # slug of the chip it was fitted for; "" where the slug says it
    content_sha256: str = ""  # of the file, where it is a user's own
    latency_ratio: float = (
        1.0  # launches and latencies over those measured: what the analysis tries, no file sets it
    )
