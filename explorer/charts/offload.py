"""KV behind HBM: what each tier holds, and where bringing a prompt back beats computing it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table


def tier_name(tier: str) -> str:
    names = {
        "peer_hbm": _("HBM of other chips"),
        "host_dram": _("Host memory"),
        "nvme": _("NVMe drives"),
        "remote": _("Remote memory"),
    }
    return names.get(tier) or wording.capitalised(tier.replace("_", " "))


def tiers(result: Result | None) -> Chart | None:
    """The tiers behind HBM, with both times for the mean prompt and the length at which they meet."""
    rows = style.rows(result, "kv_tiers")
    if not rows:
        return None
    prompt = f"{float(rows[0]['prompt_tokens']):,.0f}"
    winners = [
        tier_name(str(row["tier"])) for row in rows if float(row["swap_s"]) < float(row["recompute_s"])
    ]
    title = _("A prompt of %(tokens)s tokens is better computed again than brought back") % {"tokens": prompt}
    if winners:
        title = _("A prompt of %(tokens)s tokens is better brought back from: %(tiers)s") % {
            "tokens": prompt,
            "tiers": _("; ").join(winners),
        }
    used = any("read_bytes" in row for row in rows)
    return Chart(
        slug="kv-tiers",
        title=title,
        axis=_("Each chip brings back its own share of the keys and values; nothing overlaps"),
        summary=title,
        source=(
            _("Closed form; what was written, read and hit is simulated")
            if used
            else _("Closed form; latencies are orders of magnitude")
        ),
        draw="table",
        table=Table(
            columns=(
                _("Tier"),
                _("Bandwidth per chip"),
                _("Holds, tokens"),
                _("Bring back"),
                _("Compute again"),
                _("Better from, tokens"),
                *((_("Written"), _("Read"), _("Prefix hits")) if used else ()),
            ),
            rows=tuple((*_tier_cells(row), *(_use_cells(row) if used else ())) for row in rows),
        ),
        wide=True,
    )


def _tier_cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    tier, swap_s, again_s = str(row["tier"]), float(row["swap_s"]), float(row["recompute_s"])
    return (
        Cell(text=tier_name(tier)),
        _quantity(float(row["bytes_per_s"]), "bytes_per_s", f"memory.tier_bytes_per_s.{tier}"),
        _count(row["capacity_tokens"], _("no limit"), f"memory.tier_capacity_tokens.{tier}"),
        _quantity(swap_s, "swap_s", f"memory.swap_s.{tier}", muted=swap_s > again_s),
        _quantity(again_s, "recompute_s", "memory.recompute_s", muted=again_s >= swap_s),
        _from_length(row["break_even_tokens"], f"memory.break_even_tokens.{tier}"),
    )


def _use_cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    """What the simulation sent to a tier and brought back from it, over the whole run and all replicas."""
    if "read_bytes" not in row:
        return (Cell(text=_("not used"), muted=True), Cell(text=""), Cell(text=""))
    hits = row["hit_fraction"]
    return (
        _quantity(float(row["written_bytes"]), "written_bytes"),
        _quantity(float(row["read_bytes"]), "read_bytes"),
        Cell(text="")
        if hits is None
        else _quantity(float(hits), "hit_fraction", f"memory.prefix_hit_fraction.{row['tier']}"),
    )


def _quantity(value: float, name: str, why: str = "", *, muted: bool = False) -> Cell:
    shown = style.number(value, name)
    return Cell(text=shown.text, unit=shown.unit, muted=muted, metric=why)


def _count(value: float | None, without: str, why: str) -> Cell:
    return Cell(text=without, muted=True) if value is None else Cell(text=f"{float(value):,.0f}", metric=why)


def _from_length(tokens: float | None, why: str) -> Cell:
    return Cell(text=_("any length"), metric=why) if tokens == 0 else _count(tokens, _("never"), why)


def break_even(result: Result | None) -> Chart | None:
    """Time to bring back ÷ time to compute again, by prompt length and bandwidth."""
    rows = style.rows(result, "swap_or_recompute")
    if not rows:
        return None
    rates = sorted({float(row["bytes_per_s"]) for row in rows})
    lengths = sorted({int(row["prompt_tokens"]) for row in rows})
    cells = {(int(row["prompt_tokens"]), float(row["bytes_per_s"])): _ratio(row) for row in rows}
    title = _("Swap or recompute: below 1, bringing the prompt back is quicker")
    return Chart(
        slug="swap-or-recompute",
        title=title,
        axis=_(
            "Time to bring a prompt back ÷ time to compute it again, by length and bandwidth of each chip"
        ),
        summary=title,
        source=_("Closed form; latencies are orders of magnitude"),
        draw="table",
        table=Table(
            columns=(_("Prompt tokens"), *(str(style.number(rate, "bytes_per_s")) for rate in rates)),
            rows=tuple(
                (Cell(text=f"{tokens:,}"), *(cells[tokens, rate] for rate in rates)) for tokens in lengths
            ),
        ),
        wide=True,
    )


def _ratio(row: Mapping[str, Any]) -> Cell:
    ratio = float(row["swap_to_recompute_ratio"])
    text = f"{ratio:.2g}" if ratio < 1 else f"{ratio:,.2f}"
    return Cell(text=text, muted=ratio >= 1, metric=str(row.get("term", "")))
