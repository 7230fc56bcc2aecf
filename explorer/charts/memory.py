"""Memory: what a chip's HBM is spent on, and how many KV tokens that leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Fall, Nearest, Result, Segment, StackBar, Table

MOVED_JOULE: Final = "compute.moved_joule_per_output_token"
KPIS = (
    "memory.kv_token_capacity",
    "memory.kv_block_count",
    "memory.max_concurrency_at_max_len",
    "serving.kv_usage_fraction.max",
    "memory.prefix_hit_fraction",
    "model.kv_bytes_per_token",
    "memory.weight_bytes_per_chip",
)


def waterfall(result: Result | None) -> Chart | None:
    """From the datasheet's bytes down to the KV cache, one deduction after the other."""
    rows = style.rows(result, "memory_waterfall")
    training = not rows
    rows = rows or style.rows(result, "training_memory")
    if not rows:
        return None
    return Chart(
        slug="memory-waterfall",
        title=_title(rows),
        axis=_("One chip's memory, from what the driver shows down to what is left"),
        summary=_summary(rows),
        source=_("Closed form, the engine's own accounting"),
        draw="waterfall",
        body=tuple(_falls(rows)),
        table=Table(
            columns=(_("Item"), _("Note"), _("Size")),
            words=2,
            rows=tuple(
                (
                    Cell(text=_item(row)),
                    Cell(text=_note(row)),
                    Cell(
                        text=str(style.number(float(row["bytes"]), "bytes")),
                        metric=_why(row, training=training),
                    ),
                )
                for row in rows
            ),
        ),
        wide=True,
    )


def _item(row: Mapping[str, Any]) -> str:
    names = {
        "datasheet": _("Datasheet"),
        "visible": _("Visible to the driver"),
        "utilization_cut": _("Left free for others"),
        "weights": _("Weights"),
        "draft": _("Draft model"),
        "rotary": _("Rotary tables"),
        "activation": _("Activation peak"),
        "moe_workspace": _("Expert workspace"),
        "non_torch": _("Outside the allocator"),
        "kv": _("KV cache"),
        "gradients": _("Gradients"),
        "optimizer": _("Optimiser states"),
        "activations": _("Activations"),
        "reserved": _("Reserved"),
        "free": _("Free"),
    }
    item = str(row["item"])
    return names.get(item) or wording.capitalised(wording.term(item.replace("_", " ")))


def _why(row: Mapping[str, Any], *, training: bool) -> str:
    """What opens the row's Why: the metric that leaves what is free, and the row's term within it."""
    whole = "training.free_bytes_per_chip" if training else "memory.left_bytes_per_chip"
    terms = {
        "visible": "hbm_visible_bytes",
        "weights": "weight_bytes_per_chip",
        "draft": "draft_weight_bytes",
        "rotary": "rotary_table_bytes",
        "activation": "activation_bytes",
        "moe_workspace": "moe_workspace_bytes",
        "non_torch": "non_torch_bytes",
        "kv": "kv_bytes_per_chip",
        "gradients": "gradient_bytes_per_chip",
        "optimizer": "optimizer_bytes_per_chip",
        "activations": "activation_bytes_per_chip",
        "logits": "logit_bytes_per_chip",
        "reserved": "reserved_bytes",
    }
    item = str(row["item"])
    if item == "state":
        return "memory.state_bytes_per_chip"
    return f"{whole}@{terms[item]}" if item in terms else whole


def _note(row: Mapping[str, Any]) -> str:
    notes = {
        "what the driver reports": _("what the driver reports"),
        "left free by gpu_memory_utilization": _("left free by gpu_memory_utilization"),
        "logits of max_num_seqs bind": _("logits of max_num_seqs bind"),
        "MLP of max_num_batched_tokens binds": _("MLP of max_num_batched_tokens binds"),
        "table of sines and cosines": _("table of sines and cosines"),
        "weights of the model that drafts": _("weights of the model that drafts"),
        "device context, communication buffers": _("device context, communication buffers"),
        "fp32 copy and two moments": _("fp32 copy and two moments"),
        "kept for the backward pass": _("kept for the backward pass"),
    }
    note = str(row.get("note") or "")
    return notes.get(note, note)


def _falls(rows: Sequence[Mapping[str, Any]]) -> list[Fall]:
    """Totals start at zero; each loss or use hangs from where the one before ended."""
    scale = max(float(row["bytes"]) for row in rows) or 1.0
    level = 0.0
    falls = []
    for row in rows:
        size = float(row["bytes"])
        kind = str(row.get("kind", "use"))
        if kind == "total":
            left, level = 0.0, size
        elif kind == "free":
            left = max(level - size, 0.0)
        else:
            left = max(level - size, 0.0)
            level = left
        falls.append(
            Fall(
                label=_item(row),
                text=str(style.number(size, "bytes")),
                kind=kind,
                left=round(36 + left / scale * 50, 3),
                width=round(max(0.3, size / scale * 50), 3),
                note=_note(row),
            )
        )
    return falls


def _title(rows: Sequence[Mapping[str, Any]]) -> str:
    whole = float(rows[0]["bytes"])
    kv = next(
        (float(row["bytes"]) for row in reversed(rows) if row.get("kind") == "free" or row["item"] == "kv"),
        0.0,
    )
    if kv <= 0:
        return _("The model does not fit: nothing is left")
    words = {
        "kv": style.number(kv, "bytes"),
        "whole": style.number(whole, "bytes"),
        "share": style.percent(kv / whole, digits=0),
    }
    if rows[-1]["item"] != "kv":
        return _("Of %(whole)s, %(kv)s (%(share)s) stay free") % words
    return _("Of %(whole)s, %(kv)s (%(share)s) hold the KV cache") % words


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    parts = ", ".join(f"{_item(row)} {style.number(float(row['bytes']), 'bytes')}" for row in rows)
    return _("Memory of one chip, from top to bottom: %(parts)s.") % {"parts": parts}


PARTS: Final = (
    ("memory.kv_useful_fraction", "hbm", False),
    ("memory.kv_reserved_waste_fraction", "queue", True),
    ("memory.kv_internal_waste_fraction", "bubble", True),
    ("memory.kv_external_waste_fraction", "failure", True),
)


def kv_parts(result: Result | None, baseline: Result | None = None) -> Chart | None:
    """What allocated KV memory holds: tokens, promises, rounding, and gaps; now and in the baseline."""
    useful = style.metric(result, "memory.kv_useful_fraction")
    if useful is None:
        return None
    bars = [_parts_bar(_("Now"), result)]
    if style.metric(baseline, "memory.kv_useful_fraction") is not None:
        bars.insert(0, _parts_bar(_("Baseline"), baseline))
    names = [name for name, _resource, _hatched in PARTS]
    told = style.tiles(names, result)
    before = style.metric(baseline, "memory.kv_useful_fraction")
    words = {"share": style.percent(useful), "before": style.percent(before or 0.0)}
    title = _("%(share)s of the KV memory holds tokens") % words
    if before is not None and abs(before - useful) > 5e-4:
        title = _("%(share)s of the KV memory holds tokens, %(before)s in the baseline") % words
    return Chart(
        slug="kv-parts",
        title=title,
        axis=_("Share of the KV memory, mean over the run"),
        summary=", ".join(f"{item.label} {item.number}" for item in told),
        source=_("Simulated"),
        draw="stack",
        body=tuple(bars),
        table=style.metric_table(names, result, baseline),
        open_table=True,
        wide=True,
    )


def _parts_bar(name: str, result: Result | None) -> StackBar:
    left = 0.0
    segments = []
    for metric, resource, hatched in PARTS:
        share = style.metric(result, metric) or 0.0
        width = share * 96.0
        if share > 0.002:
            segments.append(
                Segment(
                    resource=resource,
                    label=wording.label(metric),
                    left=round(left, 3),
                    width=round(width, 3),
                    text=style.percent(share) if width > 9 and not hatched else "",
                    on="on-l",
                    hatched=hatched,
                )
            )
        left += width
    useful = style.metric(result, PARTS[0][0]) or 0.0
    return StackBar(name=name, total=style.percent(useful), width=96.0, segments=tuple(segments))


def headline(result: Result | None) -> str:
    """How much KV cache one replica has, in tokens and in requests of full length."""
    trained = style.metric(result, "training.memory_bytes_per_chip")
    if trained is not None:
        return _("Training takes %(bytes)s of each chip") % {"bytes": style.number(trained, "bytes")}
    tokens = style.metric(result, "memory.kv_token_capacity")
    requests = style.metric(result, "memory.max_concurrency_at_max_len")
    if tokens is None:
        return _("Memory")
    words = {"tokens": f"{tokens:,.0f}", "requests": f"{requests or 0:,.1f}"}
    if requests is None:
        return _("One replica holds %(tokens)s tokens of KV cache") % words
    return _("One replica holds %(tokens)s tokens of KV cache: %(requests)s requests of full length") % words


def capacity(result: Result | None, baseline: Result | None = None) -> Chart | None:
    """The KV cache in tokens, blocks and requests, as a table."""
    names = [
        "model.parameter_count",
        "model.active_parameter_count",
        "model.weight_bytes",
        "memory.weight_bytes_per_chip",
        "training.memory_bytes_per_chip",
        "memory.kv_bytes_per_chip",
        "model.kv_bytes_per_token",
        "memory.kv_token_capacity",
        "memory.kv_block_count",
        "memory.max_concurrency_at_max_len",
        "serving.kv_usage_fraction.mean",
        "serving.kv_usage_fraction.max",
        "memory.kv_useful_fraction",
        "memory.kv_reserved_waste_fraction",
        "memory.kv_internal_waste_fraction",
        "memory.kv_external_waste_fraction",
        "memory.prefix_hit_fraction",
        "memory.prefix_hit_fraction.host_dram",
        "memory.prefix_hit_fraction.nvme",
        "memory.prefix_hit_fraction.remote",
        "serving.preemption_count",
        "memory.swap_count",
    ]
    table = style.metric_table(names, result, baseline)
    if table is None:
        return None
    title = headline(result)
    return Chart(
        slug="kv-capacity",
        title=_("The model, the cache and how full it gets"),
        axis=_("Per replica where tokens or blocks are counted, per chip where the name says so"),
        summary=title,
        source=_("Closed form; use and preemptions simulated"),
        draw="table",
        table=table,
        wide=True,
    )


def nearest(messages: Sequence[Mapping[str, Any]], chip_count: float | None = None) -> list[Nearest]:
    """The changes that an infeasible run named, each with what it leaves; chips that it needs are bought too."""
    found = []
    for message in messages:
        for one in (message.get("params") or {}).get("nearest") or ():
            fields = {str(path): str(value) for path, value in one["edits"].items()}
            chips = one.get("chips")
            if chips and chip_count and chips > chip_count:
                fields["hardware.chip_count"] = str(chips)
            found.append(Nearest(fields=fields, label=_edit_label(fields), effect=_edit_effect(one)))
    return found


def _edit_label(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{wording.label(path)} {value}" for path, value in fields.items())


def _edit_effect(one: Mapping[str, Any]) -> str:
    if "capacity" in one:
        return _("leaves room for %(count)s tokens") % {"count": f"{one['capacity']:,}"}
    if "token_per_s" in one:
        return _("trains at %(rate)s") % {"rate": style.number(float(one["token_per_s"]), "token_per_s")}
    return ""


def movement(result: Result | None) -> Chart | None:
    """Bytes moved for each output token by tier, with their time and energy."""
    rows = style.rows(result, "data_movement")
    if not rows:
        return None
    cells = tuple(_movement_cells(row) for row in rows)
    total_j = sum(float(row["joule_per_output_token"]) for row in rows)
    most = max(rows, key=lambda row: float(row["bytes_per_output_token"]))
    title = _("Each output token moves %(bytes)s over %(tier)s") % {
        "bytes": style.number(float(most["bytes_per_output_token"]), "bytes"),
        "tier": wording.resource(str(most["tier"])),
    }
    return Chart(
        slug="data-movement",
        title=title,
        axis=_("Decode at the mean batch, all chips of a replica together; energy is an assumption per byte"),
        summary=title,
        source=_("; ").join(
            _("%(title)s: %(printed)s")
            % {"title": wording.resource(str(row["tier"])), "printed": wording.source(str(row["source"]))}
            for row in rows
        ),
        draw="table",
        table=Table(
            columns=(_("Tier"), _("Bytes per output token"), _("Time at full bandwidth"), _("Energy")),
            rows=cells,
            total=(
                Cell(text=_("Together")),
                Cell(text=""),
                Cell(text=""),
                _quantity_cell(total_j, MOVED_JOULE),
            ),
        ),
        wide=True,
    )


def _movement_cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    tier, seconds = str(row["tier"]), row.get("s_per_output_token")
    moved = style.number(float(row["bytes_per_output_token"]), "bytes")
    return (
        Cell(text=wording.resource(tier), key=tier),
        Cell(text=moved.text, unit=moved.unit, metric=f"compute.moved_bytes_per_output_token.{tier}"),
        Cell(text="–", muted=True)
        if seconds is None
        else _quantity_cell(float(seconds), f"compute.moved_per_output_token_s.{tier}"),
        _quantity_cell(float(row["joule_per_output_token"]), f"{MOVED_JOULE}.{tier}"),
    )


def _quantity_cell(value: float, metric: str) -> Cell:
    shown = style.number(value, metric)
    return Cell(text=shown.text, unit=shown.unit, metric=metric)
