"""The operators of one forward step on one chip, read off the architecture's shape.

Each operator has FLOP per token, weight bytes, and input/output bytes per token, as terms that name the
shape they come from. Tensor parallelism splits heads and MLP width by `tp`; KV heads fewer than `tp` are
replicated, as are the latent (A) projections of MLA, the router and the norms. Experts are shared over
`tp` or `ep` alike: per chip the expected work and weight bytes are those of `1/tp` of all experts, and a
step of n tokens touches `1 − (1 − k/E)^n` of them. With `dp` data parallel ranks a chip holds `1/(dp·tp)` of
all experts and computes its share of the rows of every rank, each taken to carry as many tokens as this one:
the arithmetic of a rank alone, a dp-th of its weights. What some layers have beside attention and MLP
(state-space and linear-attention projections, indexers, compressors, latent experts) is one operator per
matrix; the update of a state is FLOP and its inputs and outputs, its traffic is in `attention.py`.
Limits: routing is taken as independent, and as balanced but for `expert_imbalance_ratio` (`busiest`); residual
streams are not charged for their traffic; activations move at the GEMM's fitted bandwidth; embedding lookup is
counted, sampling is a few passes over the logits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from simcore.catalog.kernels import experts_fitted_as
from simcore.catalog.types import Chip, LlmArchitecture, Matrix
from simcore.compute.calibration import OperatorClass, arithmetic_dtype
from simcore.compute.local_shape import LocalShape, element_bytes, kv_bytes_per_layer_token, projected_kinds
from simcore.compute.roofline import Amount, plus, power, times
from simcore.parallelism import Parallelism, PipelineStage, pipeline_stages
from simcore.remembered import remembered
from simcore.why import Term, ceil, constant, leaf, total

_ACTIVATION_BYTES: Final = constant(2.0, "activation_bytes")  # residual stream and outputs stay at 16 bit
_MULTIPLY_ADD: Final = constant(2.0, "flop_per_multiply_add")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One kind of kernel, `count` times per step."""

    name: str
    operator_class: OperatorClass
    dtype: str
    count: Term
    flop_per_token: Term
    weight_bytes: Term
    io_bytes_per_token: Term
    missed_fraction: Term | None = None  # experts: share that one token leaves untouched, 1 − k/E
    fan_in: Term | None = None  # of a matrix product, or of one expert; None: bytes only
    fan_out: Term | None = None
    experts: Term | None = None  # of a layer
    experts_per_token: Term | None = None
    expert_share: Term | None = None  # of the layer's experts that this chip holds
    rows_per_token: Term | None = None  # routed rows of all data parallel ranks; None: experts_per_token
    data_ranks: int = 1  # that send this operator their tokens
    imbalance: Term | None = None  # rows of the busiest chip over the mean; None: balanced
    fitted_as: str = ""  # name of its kernel's fit where that is not its dtype

    @property
    def fit_dtype(self) -> str:
        """Under which name kernels of this operator are fitted."""
        return self.fitted_as or self.dtype

    def flop(self, tokens: Amount) -> Amount:
        return times(self.flop_per_token, tokens)

    @property
    def busiest(self) -> Operator:
        """The same on the chip that most rows are routed to; it reads no further weights."""
        assert self.imbalance is not None, "only unbalanced experts have a busiest chip"
        assert self.experts_per_token is not None, "and they are routed to"
        return replace(
            self,
            flop_per_token=self.flop_per_token * self.imbalance,
            io_bytes_per_token=self.io_bytes_per_token * self.imbalance,
            rows_per_token=(self.rows_per_token or self.experts_per_token) * self.imbalance,
            imbalance=None,
        )

    def read_weight_bytes(self, tokens: Amount) -> Amount:
        """Weight bytes that a step of n tokens reads: all, or the expected share of distinct experts."""
        if self.missed_fraction is None:
            return plus(self.weight_bytes, times(constant(0.0), tokens))
        return times(self.weight_bytes, self.touched_fraction(tokens))

    def touched_fraction(self, tokens: Amount) -> Amount:
        """Expected share of distinct experts that n tokens reach, `1 − (1 − k/E)^n`."""
        assert self.missed_fraction is not None, "only expert layers leave weights untouched"
        return plus(constant(1.0), times(constant(-1.0), power(self.missed_fraction, tokens)))

    def moved_bytes(self, tokens: Amount) -> Amount:
        io_bytes = times(self.io_bytes_per_token, tokens)
        if self.missed_fraction is None:
            return plus(self.weight_bytes, io_bytes)
        return self.read_weight_bytes(tokens) + io_bytes


def bottleneck_stage(arch: LlmArchitecture, pp: int) -> PipelineStage:
    """The pipeline stage with most layers, ties to the one with most expert layers."""
    return max(pipeline_stages(arch, pp), key=lambda stage: (stage.layers, stage.moe_layers))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Formats:
    """Storage and arithmetic format of ordinary layers and of experts."""

    linear: str
    linear_arithmetic: str
    expert: str
    expert_arithmetic: str


@remembered
def layer_operators(
    arch: LlmArchitecture, chip: Chip, parallelism: Parallelism, *, weights_dtype: str, kv_dtype: str
) -> tuple[Operator, ...]:
    """Everything but attention and the LM head, for the layers of the slowest stage."""
    stage = bottleneck_stage(arch, parallelism.pp)
    shape = LocalShape.of(arch, parallelism)
    linear, expert = arch.weight_formats(weights_dtype)
    formats = _Formats(
        linear=linear,
        linear_arithmetic=arithmetic_dtype(chip, linear),
        expert=expert,
        expert_arithmetic=arithmetic_dtype(chip, expert),
    )
    operators: list[Operator] = []
    for count, kind in projected_kinds(arch, stage):
        own = LocalShape.of(arch, parallelism, kind)
        operators += _attention_projections(own, formats, _count(count, "layers_per_stage"))
    operators += _beside(shape, formats, stage)
    if stage.dense_layers:
        width = (arch.leaf("intermediate") / shape.tp).named("mlp_width_per_chip", "")
        operators += _mlp(shape, formats, _count(stage.dense_layers, "dense_layers_per_stage"), width, "mlp")
    if stage.moe_layers:
        routed = _experts(shape, formats, parallelism, _count(stage.moe_layers, "moe_layers_per_stage"))
        operators += routed
    operators.append(_elementwise(shape, stage, kv_dtype))
    return tuple(operators)


def head_operators(arch: LlmArchitecture, parallelism: Parallelism) -> tuple[Operator, ...]:
    """LM head (kept at 16 bit) and sampling, per sampled sequence."""
    shape = LocalShape.of(arch, parallelism)
    rows = (arch.leaf("vocab") / shape.tp).named("vocab_per_chip", "")
    formats = _Formats(linear="bf16", linear_arithmetic="bf16", expert="bf16", expert_arithmetic="bf16")
    once = constant(1.0)
    sampling = Operator(
        name="sampling",
        operator_class="gemm",
        dtype="bf16",
        count=once,
        flop_per_token=constant(0.0),
        weight_bytes=constant(0.0),
        # 16-bit logits in, one 32-bit copy out, then two passes over it (scaling, softmax or maximum)
        io_bytes_per_token=(constant(14.0, "sampling_bytes_per_logit") * arch.leaf("vocab")).named(
            "sampling_bytes_per_sequence", "bytes"
        ),
    )
    return (_linear("lm_head", shape.hidden, rows, formats, once), sampling)


def _count(value: float, name: str) -> Term:
    return leaf(value, name, kind="derived", source="layers shared over pipeline stages", dimension="count")


def _linear(name: str, fan_in: Term, fan_out: Term, formats: _Formats, count: Term) -> Operator:
    """`y = W x`: 2·in·out FLOP per token, in·out weights, both ends through HBM."""
    input_bytes = element_bytes(formats.linear_arithmetic) * fan_in
    weight_bytes = element_bytes(formats.linear) * fan_in * fan_out
    return Operator(
        name=name,
        operator_class="gemm",
        dtype=formats.linear_arithmetic,
        count=count,
        flop_per_token=(_MULTIPLY_ADD * fan_in * fan_out).named(f"{name}_flop_per_token", "flop"),
        weight_bytes=weight_bytes.named(f"{name}_weight_bytes", "bytes"),
        io_bytes_per_token=(input_bytes + _ACTIVATION_BYTES * fan_out).named(
            f"{name}_io_bytes_per_token", "bytes"
        ),
        fan_in=fan_in,
        fan_out=fan_out,
    )


def _attention_projections(shape: LocalShape, formats: _Formats, layers: Term) -> list[Operator]:
    arch = shape.arch
    gate = []
    if arch.attention_gate_width:
        width = (arch.leaf("attention_gate_width") / shape.tp).named("gate_width_per_chip", "")
        gate = [_linear("attention_gate", shape.hidden, width, formats, layers)]
    if arch.is_mla:
        return [*_latent_projections(shape, formats, layers), *gate]
    if arch.q_lora_rank:
        rank, query = arch.leaf("q_lora_rank"), shape.heads * shape.head_dim
        inward = [
            _linear("q_latent", shape.hidden, rank, formats, layers),
            _linear("q_up", rank, query, formats, layers),
            _linear("kv", shape.hidden, _kv_width(shape), formats, layers),
        ]
    else:
        width = _qkv_width(shape).named("qkv_width_per_chip", "")
        inward = [_linear("qkv", shape.hidden, width, formats, layers)]
    return [*inward, *gate, *_output_projection(shape, formats, layers)]


def _qkv_width(shape: LocalShape) -> Term:
    plain = shape.kind.has_value_matrix and shape.kind.head_dim == shape.kind.value_dim
    if plain:
        return (shape.heads + constant(2.0) * shape.kv_heads) * shape.head_dim
    query = shape.heads * shape.head_dim
    return query + _kv_width(shape) if shape.kind.stores_kv else query


def _kv_width(shape: LocalShape) -> Term:
    keys = shape.kv_heads * shape.head_dim
    return keys + shape.kv_heads * shape.value_dim if shape.kind.has_value_matrix else keys


def _output_projection(shape: LocalShape, formats: _Formats, layers: Term) -> list[Operator]:
    """One matrix, or each group of heads into a low rank and all ranks into the residual."""
    arch, joined = shape.arch, shape.heads * shape.value_dim
    if not arch.output_groups:
        return [_linear("attention_output", joined, shape.hidden, formats, layers)]
    groups = ceil(arch.leaf("output_groups") / shape.tp).named("output_groups_per_chip", "")
    ranks = (groups * arch.leaf("output_lora_rank")).named("output_ranks_per_chip", "")
    return [
        _linear("output_down", joined / groups, ranks, formats, layers),
        _linear("output_up", ranks, shape.hidden, formats, layers),
    ]


def _beside(shape: LocalShape, formats: _Formats, stage: PipelineStage) -> list[Operator]:
    """One operator for each matrix that some layers have besides, and one for the update of states."""
    arch = shape.arch
    operators = [
        _linear(
            matrix.name,
            _divided(matrix, matrix.fan_in, "fan_in", shape.tp),
            _divided(matrix, matrix.fan_out, "fan_out", shape.tp),
            formats,
            _count(round(matrix.layer_count * stage.share, 9), f"layers_with_{matrix.name}"),
        )
        for matrix in arch.matrices
    ]
    if stage.recurrent_layers:
        operators.append(_state_update(shape, stage))
    return operators


def _divided(matrix: Matrix, value: int, end: str, tp: Term) -> Term:
    width = leaf(
        value, f"{matrix.name}_{end}", kind="catalog", source="shape of the model", dimension="count"
    )
    return (width / tp).named(f"{matrix.name}_{end}_per_chip", "") if matrix.split == end else width


def _state_update(shape: LocalShape, stage: PipelineStage) -> Operator:
    """FLOP of the recurrence; its inputs and outputs pass twice (convolution, then state)."""
    arch = shape.arch
    columns = sum(m.fan_out for m in arch.matrices if m.group == "recurrent" and m.split == "fan_out")
    passed = leaf(
        columns, "recurrent_projection_width", kind="catalog", source="shape of the model", dimension="count"
    )
    return Operator(
        name="state_update",
        operator_class="gemm",
        dtype="bf16",
        count=_count(stage.recurrent_layers, "recurrent_layers_per_stage"),
        flop_per_token=(arch.leaf("recurrence_flop_per_token") / shape.tp).named(
            "state_update_flop_per_token", "flop"
        ),
        weight_bytes=constant(0.0),
        io_bytes_per_token=(constant(2.0, "passes") * _ACTIVATION_BYTES * passed / shape.tp).named(
            "state_update_io_bytes_per_token", "bytes"
        ),
    )


def _latent_projections(shape: LocalShape, formats: _Formats, layers: Term) -> list[Operator]:
    """MLA: latent projections on every rank, up-projections split by head. Absorbed and plain forms of
    the KV up-projection cost the same per new token."""
    arch = shape.arch
    latent, rope = arch.leaf("kv_lora_rank"), arch.leaf("qk_rope_head_dim")
    nope, value = arch.leaf("qk_nope_head_dim"), arch.leaf("v_head_dim")
    query_width = shape.heads * (nope + rope)
    operators = [_linear("kv_latent", shape.hidden, latent + rope, formats, layers)]
    if arch.q_lora_rank:
        rank = arch.leaf("q_lora_rank")
        operators += [
            _linear("q_latent", shape.hidden, rank, formats, layers),
            _linear("q_up", rank, query_width, formats, layers),
        ]
    else:
        operators.append(_linear("q", shape.hidden, query_width, formats, layers))
    operators += [
        _linear("kv_up", latent, shape.heads * (nope + value), formats, layers),
        _linear("attention_output", shape.heads * value, shape.hidden, formats, layers),
    ]
    return operators


def _mlp(shape: LocalShape, formats: _Formats, layers: Term, width: Term, name: str) -> list[Operator]:
    inputs = constant(2.0, "gate_and_up") * width if shape.arch.gated_mlp else width
    return [
        _linear(f"{name}_up", shape.hidden, inputs, formats, layers),
        _linear(f"{name}_down", width, shape.hidden, formats, layers),
    ]


def _experts(shape: LocalShape, formats: _Formats, parallelism: Parallelism, layers: Term) -> list[Operator]:
    """Router, routed experts (fused) and shared experts of the MoE layers."""
    plain = _Formats(linear="bf16", linear_arithmetic="bf16", expert="bf16", expert_arithmetic="bf16")
    routed = _routed_experts(shape, formats, parallelism, layers)
    if parallelism.dp > 1:
        routed = _of_all_ranks(routed, shape, parallelism)
    if parallelism.ep > 1 and parallelism.expert_imbalance_ratio != 1:
        routed = replace(routed, imbalance=imbalance_leaf(parallelism))
    operators = [_linear("router", shape.hidden, shape.arch.leaf("experts"), plain, layers), routed]
    if shape.arch.shared_intermediate:
        shared = (shape.arch.leaf("shared_intermediate") / shape.tp).named("shared_expert_width_per_chip", "")
        operators += _mlp(shape, formats, layers, shared, "shared_experts")
    return operators


def imbalance_leaf(parallelism: Parallelism) -> Term:
    return leaf(
        parallelism.expert_imbalance_ratio,
        "expert_imbalance_ratio",
        path="serving.parallelism.expert_imbalance_ratio",
    )


def _of_all_ranks(routed: Operator, shape: LocalShape, parallelism: Parallelism) -> Operator:
    """Experts that hold a dp-th of the weights and take the rows of all data parallel ranks, as many from each."""
    ranks = leaf(parallelism.dp, "dp", path="serving.parallelism.dp", dimension="")
    assert routed.missed_fraction is not None, "experts are missed by some tokens"
    assert routed.experts_per_token is not None, "and reached by others"
    assert routed.expert_share is not None, "and shared out"
    assert routed.fan_in is not None, "between two widths"
    assert routed.fan_out is not None, "between two widths"
    matrices = constant(3.0 if shape.arch.gated_mlp else 2.0, "matrices_per_expert")
    rows = (ranks * routed.experts_per_token).named("routed_rows_per_token", "")
    width = (routed.fan_out / ranks).named("expert_width_per_chip", "")
    # a row goes to the chips that share its expert, so each chip sees the rows of its own experts alone
    outer = constant(2.0) * routed.fan_in * routed.expert_share
    return replace(
        routed,
        weight_bytes=(routed.weight_bytes / ranks).named("experts_weight_bytes", "bytes"),
        io_bytes_per_token=(_ACTIVATION_BYTES * rows * (outer + matrices * width)).named(
            "experts_io_bytes_per_token", "bytes"
        ),
        missed_fraction=power(routed.missed_fraction, ranks).named("experts_missed_by_one_token", "fraction"),
        rows_per_token=rows,
        data_ranks=parallelism.dp,
        fan_out=width,
    )


def _routed_experts(shape: LocalShape, formats: _Formats, parallelism: Parallelism, layers: Term) -> Operator:
    """The fused kernel over the experts of one data parallel rank alone."""
    arch = shape.arch
    share = constant(1.0) / leaf(parallelism.ep, "ep", path="serving.parallelism.ep", dimension="")
    experts, chosen = arch.leaf("experts"), arch.leaf("experts_per_token")
    width = (arch.leaf("moe_intermediate") / shape.tp).named("expert_width_per_chip", "")
    matrices = constant(3.0 if arch.gated_mlp else 2.0, "matrices_per_expert")
    outer = arch.leaf("moe_latent") if arch.moe_latent else shape.hidden
    weights_per_expert = (matrices * outer * width).named("parameters_per_expert_and_chip", "count")
    return Operator(
        name="experts",
        operator_class="moe",
        dtype=formats.expert_arithmetic,
        count=layers,
        flop_per_token=(_MULTIPLY_ADD * chosen * weights_per_expert).named("experts_flop_per_token", "flop"),
        weight_bytes=(element_bytes(formats.expert) * experts * weights_per_expert).named(
            "experts_weight_bytes", "bytes"
        ),
        # tokens are permuted in and out of expert order; each expert reads, keeps and writes its rows
        io_bytes_per_token=(_ACTIVATION_BYTES * chosen * (constant(2.0) * outer + matrices * width)).named(
            "experts_io_bytes_per_token", "bytes"
        ),
        missed_fraction=(constant(1.0) - chosen / experts).named("experts_missed_by_one_token", "fraction"),
        experts=experts,
        experts_per_token=chosen,
        expert_share=share,
        # kernels widen mxfp4 in front of a 16-bit product, and were measured so
        fitted_as=formats.expert
        if formats.expert == "mxfp4"
        else experts_fitted_as(formats.expert_arithmetic, experts.value, 1.0 / share.value),
        fan_in=outer,
        fan_out=width,
    )


def _elementwise(shape: LocalShape, stage: PipelineStage, kv_dtype: str) -> Operator:
    """Norms, residual adds, rotary, activation and the KV write: bytes only."""
    arch = shape.arch
    # two fused add-and-norm kernels, each reading and writing the stream and the residual
    norms = constant(8.0, "norm_passes") * shape.hidden
    rotated = constant(2.0) * (shape.heads + shape.kv_heads) * shape.head_dim
    width = arch.experts_per_token * arch.moe_intermediate if arch.is_moe else arch.intermediate
    activated = constant(3.0 if arch.gated_mlp else 2.0) * (constant(float(width), "mlp_width") / shape.tp)
    kv_write = kv_bytes_per_layer_token(shape, kv_dtype)
    attending, with_mlp = (
        stage.attention_layers / stage.depth,
        (stage.layers - stage.mlp_free_layers) / stage.depth,
    )
    if attending != 1:
        share = constant(attending, "share_of_layers_with_attention")
        rotated, kv_write = rotated * share, kv_write * share
    if with_mlp != 1:
        activated = activated * constant(with_mlp, "share_of_layers_with_mlp")
    moved = _ACTIVATION_BYTES * (norms + rotated + activated)
    return Operator(
        name="norms_and_activations",
        operator_class="gemm",
        dtype="bf16",
        count=_count(stage.depth, "layers_per_stage"),
        flop_per_token=constant(0.0),
        weight_bytes=constant(0.0),
        io_bytes_per_token=(moved + kv_write).named("elementwise_bytes_per_token", "bytes"),
    )


def flop_per_token(operators: tuple[Operator, ...]) -> Term:
    return total(*(op.count * op.flop_per_token for op in operators)).named("flop_per_token", "flop")
