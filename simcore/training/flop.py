"""FLOP of a training step over the whole model: what is useful, and what is computed again.

Useful: every multiplied parameter that a token meets, two FLOP forward and four backward, and attention over
causal pairs (sequence ÷ 2 keys per query, a window's or the chosen entries where those are fewer), three
times its forward. Lookup of embeddings is no multiplication. Recomputation repeats the forward pass of the
layers, or of their core attention. Frozen weights have no gradient of their own: two FLOP forward and two
backward, beside the adapters'. Each layer that predicts a further token is one more layer with one more head.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.catalog.layers import AttentionKind, attention_kinds, context_groups
from simcore.catalog.parameters import active_parameter_count, parameter_terms
from simcore.catalog.types import LlmArchitecture
from simcore.parallelism import pipeline_stages
from simcore.training.adapters import adapter_parameters
from simcore.training.inputs import TrainingInputs
from simcore.training.split import ZERO
from simcore.why import Term, constant, leaf, minimum, total


def useful_flop(inputs: TrainingInputs) -> Term:
    """FLOP that the model needs for one step's tokens."""
    per_token = _of_products(inputs) + attention_flop_per_token(inputs)
    if inputs.spec.multi_token_prediction:
        per_token = per_token + _of_prediction(inputs)
    return (per_token.named("useful_flop_per_token", "flop") * _tokens(inputs)).named("useful_flop", "flop")


def recomputed_flop(inputs: TrainingInputs) -> Term:
    """FLOP of one step that are computed a second time."""
    third = constant(1.0 / 3.0, "forward_share")
    if inputs.spec.recompute == "full":
        products = constant(2.0, "forward_flop_per_parameter") * _of_layers(inputs.arch)
        again = products + third * attention_flop_per_token(inputs)
        return (again * _tokens(inputs)).named("recomputed_flop", "flop")
    if inputs.spec.recompute == "selective" and inputs.stack.attention == "naive":
        return (third * attention_flop_per_token(inputs) * _tokens(inputs)).named("recomputed_flop", "flop")
    return ZERO


def _tokens(inputs: TrainingInputs) -> Term:
    return inputs.leaf("global_batch_tokens", inputs.spec.global_batch_tokens)


def _of_products(inputs: TrainingInputs) -> Term:
    each = constant(6.0, "flop_per_parameter_and_token")
    if not inputs.spec.lora.rank:
        return each * _multiplied(inputs.arch)
    frozen = constant(4.0, "flop_per_frozen_parameter_and_token") * _multiplied(inputs.arch)
    return frozen + each * _adapters(inputs)


def _multiplied(arch: LlmArchitecture) -> Term:
    """Parameters that a token is multiplied with."""
    multiplied = active_parameter_count(arch)
    if arch.tied_embeddings:
        return multiplied
    looked_up = float(parameter_terms(arch).embedding)
    return multiplied - leaf(looked_up, "embedding_parameters", kind="catalog", source=arch.name)


def _of_layers(arch: LlmArchitecture) -> Term:
    return _multiplied(arch) - (arch.leaf("hidden") * arch.leaf("vocab")).named("head_parameters", "count")


def _adapters(inputs: TrainingInputs) -> Term:
    """Adapter parameters of the whole model."""
    stages = pipeline_stages(inputs.arch, inputs.parallelism.pp)
    ranks = inputs.leaf("tp", inputs.parallelism.tp_ranks, degree=True)
    return total(*(adapter_parameters(inputs, stage) for stage in stages)) * ranks


def _of_prediction(inputs: TrainingInputs) -> Term:
    arch = inputs.arch
    one = _of_layers(arch) / arch.leaf("layers") + arch.leaf("hidden") * arch.leaf("vocab")
    joined = constant(2.0, "joining_matrix") * arch.leaf("hidden") * arch.leaf("hidden")
    count = constant(6.0 * arch.mtp_layers, "flop_per_parameter_and_prediction_layer")
    return (count * (one + joined)).named("prediction_flop_per_token", "flop")


def attention_flop_per_token(inputs: TrainingInputs) -> Term:
    """Scores and weighted values over the keys that a token sees, and updates of states; all three passes."""
    parts = list(_attention_parts(inputs))
    return (parts[0] if len(parts) == 1 else total(*parts)).named("attention_flop_per_token", "flop")


def _attention_parts(inputs: TrainingInputs) -> Iterator[Term]:
    arch = inputs.arch
    mean = inputs.leaf("sequence_length", inputs.spec.sequence_length) / constant(2.0)
    kinds = attention_kinds(arch)
    full = next((kind for kind in kinds if not kind.is_window), None)
    for kind in kinds:
        if kind.is_window:
            seen = minimum(mean, constant(float(kind.window_tokens), "window_tokens"))
            yield constant(float(kind.layer_count), "window_layers") * _pair_flop(arch, kind) * seen
    for group in context_groups(arch):
        if full is None:
            break
        entries = mean if group.ratio == 1 else mean / constant(float(group.ratio), "tokens_per_entry")
        if group.topk_entries:
            entries = minimum(entries, constant(float(group.topk_entries), "chosen_entries"))
        yield constant(float(group.layer_count), "full_layers") * _pair_flop(arch, full) * entries
    if arch.recurrent_layers:
        layers = constant(3.0 * arch.recurrent_layers, "passes_over_recurrent_layers")
        yield layers * arch.leaf("recurrence_flop_per_token")


def _pair_flop(arch: LlmArchitecture, kind: AttentionKind) -> Term:
    """FLOP of one (query, key) pair in one layer: forward and twice backward."""
    if arch.is_mla:
        widths = arch.leaf("qk_nope_head_dim") + arch.leaf("qk_rope_head_dim") + arch.leaf("v_head_dim")
    else:
        widths = constant(float(kind.head_dim + kind.value_dim), "score_and_value_width")
    return constant(6.0, "flop_per_multiply_and_pass") * arch.leaf("heads") * widths
