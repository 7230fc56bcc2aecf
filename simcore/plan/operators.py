"""One iteration of a serving plan, taken apart: operators, the chip's roofs, and bytes moved per token.

All at the operating point of the closed forms, so that the rows of a phase sum to `compute.decode_step_s`
and `compute.prefill_step_s`. Bytes per output token are those of a decode step over all chips of a replica,
divided by its batch. Times are at datasheet bandwidth; energies are an assumption per byte, off-chip only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from simcore.compute.calibration import peak
from simcore.compute.ops import Operator
from simcore.compute.step_operators import OperatorRow, decode_rows, prefill_rows
from simcore.fabric.collectives import bus_factor
from simcore.plan.exchange import exchanged_bytes_per_token, expert_exchange
from simcore.plan.serving import (
    BYTES_OF_ACTIVATION,
    all_reduces_per_step,
    lane_network,
    mean_batch,
    mean_chunk,
)
from simcore.plan.types import CollectiveTier, ServingPlan
from simcore.why import Term, constant, leaf, minimum, total

HBM_JOULE_PER_BYTE: Final = 31.2e-12  # 3.9 pJ/bit
LINK_JOULE_PER_BYTE: Final = 40e-12  # 5 pJ/bit


def operator_rows(serving: ServingPlan) -> list[OperatorRow]:
    """Rows of the mean decode step, then of the mean prefill step, over all stages that a batch passes."""
    pool, stages = serving.pool, serving.pool.parallelism.pp
    decode, prefill = (
        pool.terms[name] if stages == 1 else pool.terms[name].args[0]
        for name in ("compute.decode_step_s", "compute.prefill_step_s")
    )
    point = pool.operating_point
    rows = decode_rows(pool.step_model, decode, batch=mean_batch(point), context_tokens=point.context_tokens)
    rows += prefill_rows(pool.step_model, prefill, tokens=mean_chunk(point, pool.scheduler))
    return [_over(pool.exchange_tier, row).through(stages) for row in rows]


def _over(tier: str | None, row: OperatorRow) -> OperatorRow:
    """Experts wait for the links that their tokens come over."""
    return replace(row, bound=tier) if tier and row.operator == "expert_exchange" else row


def operator_tables(serving: ServingPlan) -> dict[str, Any]:
    """`operators`: the rows; `roofs`: what the chip could reach at most; `data_movement` per output token."""
    chip, rows = serving.pool.chip, operator_rows(serving)
    dtypes = dict.fromkeys(row.dtype for row in rows if row.flop)
    peaks = [{"kind": "compute", "dtype": dtype, "per_s": peak(chip, dtype).value} for dtype in dtypes]
    return {
        "operators": [_row(row) for row in rows],
        "roofs": [*peaks, {"kind": "hbm", "dtype": "", "per_s": chip.hbm_bytes_per_s}],
        "data_movement": _movement_rows(serving),
    }


def _row(row: OperatorRow) -> dict[str, Any]:
    return {
        "phase": row.phase,
        "operator": row.operator,
        "term": row.term,
        "lane": row.lane,
        "per_layer": row.per_layer,
        "count": row.count,
        "flop": row.flop,
        "bytes": row.moved_bytes,
        "s": row.s,
        "bound": row.bound,
        "dtype": row.dtype,
        "source": row.source,
        "intensity_flop_per_byte": row.flop / row.moved_bytes if row.moved_bytes else None,
        "attained_flop_per_s": row.flop / row.s if row.s and row.flop else None,
    }


def movement_terms(serving: ServingPlan) -> dict[str, Term]:
    """What a token moves by tier, as trees: weights and KV over HBM, all-reduces over links.

    `compute.moved_bytes_per_output_token.<tier>`; of them the time at full bandwidth,
    `compute.moved_per_output_token_s.<tier>`, and the energy, `compute.moved_joule_per_output_token.<tier>` and
    over all tiers.
    """
    inputs, pool = serving.inputs, serving.pool
    batch = leaf(
        mean_batch(pool.operating_point), "batch", kind="derived", source="sequences decoding together",
        dimension="count",
    )  # fmt: skip
    tp = leaf(pool.parallelism.tp_ranks, "tp", path="serving.parallelism.tp", dimension="")
    stages = leaf(pool.parallelism.pp, "pp", path="serving.parallelism.pp", dimension="")
    model = pool.step_model
    weights = _summed(model.layer_operators, lambda op: op.read_weight_bytes(batch), "weight_bytes_read")
    passed = _summed(
        model.layer_operators, lambda op: op.io_bytes_per_token * batch, "activation_bytes_moved"
    )
    head = _summed(model.head_operators, lambda op: op.moved_bytes(batch), "head_bytes_moved")
    kv = _kv_bytes(serving, batch)
    on_chip = total(weights, passed, head, kv).named("moved_bytes_per_step_and_chip", "bytes")
    name = "compute.moved_bytes_per_output_token"
    found = {f"{name}.hbm": on_chip * tp * stages / batch}
    if pool.parallelism.tp_ranks > 1:
        width = inputs.architecture.leaf("hidden") * constant(BYTES_OF_ACTIVATION, "bytes_per_element")
        calls = constant(all_reduces_per_step(inputs), "all_reduces_per_step")
        crossed = constant(bus_factor("all_reduce", pool.parallelism.tp_ranks), "bus_factor")
        found[f"{name}.{pool.collective_tier}"] = width * calls * crossed * tp * stages
    for tier, each in _exchanged(serving).items():
        sent = each * tp * stages
        found[f"{name}.{tier}"] = found[f"{name}.{tier}"] + sent if f"{name}.{tier}" in found else sent
    moved = {key.rpartition(".")[2]: term.named(key) for key, term in found.items()}
    return found | _time_terms(serving, moved, tp * stages) | _energy_terms(moved)


def _exchanged(serving: ServingPlan) -> dict[CollectiveTier, Term]:
    """Bytes that a chip sends to experts and back for each token of its rank, by what they cross."""
    inputs, chip = serving.inputs, serving.pool.chip
    exchange = expert_exchange(inputs, chip, lane_network(inputs, chip))
    batch = mean_batch(serving.pool.operating_point)
    return {
        tier: leaf(
            sent,
            "exchanged_bytes_per_token_and_chip",
            kind="derived",
            source="rows to k experts and back, by the quicker kernel, in all expert layers of a stage",
        )
        for tier, sent in exchanged_bytes_per_token(inputs, exchange, batch).items()
    }


def _time_terms(serving: ServingPlan, moved: Mapping[str, Term], chips: Term) -> dict[str, Term]:
    """Over NICs none: they are shared, and the step has their time."""
    chip = serving.pool.chip
    link = "scaleup_bytes_per_s" if chip.scaleup_bytes_per_s else "pcie_bytes_per_s"
    rates = {"hbm": chip.leaf("hbm_bytes_per_s"), "scaleup": chip.leaf(link)}
    return {
        f"compute.moved_per_output_token_s.{tier}": term / (chips * rates[tier])
        for tier, term in moved.items()
        if tier in rates and rates[tier].value
    }


def _energy_terms(moved: Mapping[str, Term]) -> dict[str, Term]:
    name = "compute.moved_joule_per_output_token"
    energies = {
        f"{name}.{tier}": (term * _joule_per_byte(tier)).named(f"{name}.{tier}")
        for tier, term in moved.items()
    }
    return energies | {name: total(*energies.values())}


def _joule_per_byte(tier: str) -> Term:
    if tier == "hbm":
        return leaf(
            HBM_JOULE_PER_BYTE,
            "hbm_joule_per_byte",
            kind="assumption",
            source="3.9 pJ/bit, HBM2 with its interface (O'Connor et al., MICRO 2017)",
        )
    return leaf(
        LINK_JOULE_PER_BYTE,
        "link_joule_per_byte",
        kind="assumption",
        source="5 pJ/bit for an electrical link with its SerDes",
    )


def _summed(operators: Sequence[Operator], moved: Callable[[Operator], Term], name: str) -> Term:
    return total(*(op.count * moved(op) for op in operators)).named(name, "bytes")


def _kv_bytes(serving: ServingPlan, batch: Term) -> Term:
    cost, tokens = serving.pool.step_model.attention, serving.pool.operating_point.context_tokens
    context = leaf(tokens, "context_tokens", kind="derived", source="cached tokens of each sequence")
    parts = [batch * context * cost.kv_bytes_per_token, batch * cost.decode_bytes_per_sequence]
    if cost.window_tokens:
        window = leaf(cost.window_tokens, "window_tokens", kind="catalog", source="shape of the model")
        parts.append(batch * minimum(context, window) * cost.window_bytes_per_token)
    return total(*parts).named("kv_bytes_read", "bytes")


def _movement_rows(serving: ServingPlan) -> list[dict[str, Any]]:
    terms = movement_terms(serving)
    rows = []
    for name, term in terms.items():
        if not name.startswith("compute.moved_bytes_per_output_token."):
            continue
        tier = name.rpartition(".")[2]
        seconds, joule = terms.get(f"compute.moved_per_output_token_s.{tier}"), _joule_per_byte(tier)
        rows.append(
            {
                "tier": tier,
                "bytes_per_output_token": term.value,
                "s_per_output_token": seconds.value if seconds else None,
                "joule_per_output_token": terms[f"compute.moved_joule_per_output_token.{tier}"].value,
                "joule_per_byte": joule.value,
                "source": joule.source,
            }
        )
    return rows
