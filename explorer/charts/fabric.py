"""Fabric: the guard rail, counts with what they save, hops and collectives; `topology.py` draws the picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Bar, Cell, Chart, Delta, Edit, Guard, Number, Result, Table
from simcore.cost import bounds_of

KPIS: Final = (
    "fabric.switch_count",
    "fabric.link_count",
    "fabric.transceiver_count",
    "fabric.ocs_count",
    "fabric.island_count",
    "fabric.tiers",
    "fabric.diameter_hops",
    "fabric.mean_hops",
    "fabric.path_count",
    "fabric.disjoint_path_count",
    "fabric.bisection_bytes_per_s",
    "fabric.routing_adjacency_count",
    "fabric.all_to_all_slowdown_ratio",
    "fabric.fabric_power_w",
    "fabric.fabric_capex_usd",
)


def guard(result: Result | None) -> Guard | None:
    """The inequality that one tier of rail switches must satisfy: broken, with what would satisfy it, or met."""
    said = style.warning(result, "fabric.islands")
    if not said:
        return _held(result)
    chips, domain, radix, limit = (
        int(said[key]) for key in ("chip_count", "hb_domain_size", "radix", "limit")
    )
    islands, size, needed = (int(said[key]) for key in ("island_count", "island_size", "nearest"))
    return Guard(
        equation="N ≤ K × k",
        numbers=f"{chips:,} > {domain:,} × {radix:,} = {limit:,}",
        text=_(
            "These are %(islands)s islands of %(size)s chips. One tier of k-port switches reaches K × k chips, "
            "K being the scale-up domain."
        )
        % {"islands": f"{islands:,}", "size": f"{size:,}"},
        edits=(
            Edit(
                path="topology.hb_domain_size",
                value=str(needed),
                label=f"K = {needed:,}",
                effect=_("one island"),
            ),
            Edit(
                path="topology.tiers",
                value="auto",
                label=_("as many tiers as it needs"),
                effect=_("a Clos per rail"),
            ),
            Edit(
                path="topology.kind",
                value="rail_optimized",
                label=_("rail-optimised"),
                effect=_("a Clos over all chips"),
            ),
        ),
    )


def _held(result: Result | None) -> Guard | None:
    """One tier that joins all chips: what its saving rests on, and what becomes of it with the smallest domain."""
    said = style.warning(result, "fabric.guard_rail")
    if not said:
        return None
    chips, domain, radix, limit = (
        int(said[key]) for key in ("chip_count", "hb_domain_size", "radix", "limit")
    )
    text = _("One tier joins all chips only because a scale-up domain spans %(domain)s.") % {
        "domain": f"{domain:,}"
    }
    smaller = next(
        (row for row in style.rows(result, "scaleup_domains") if int(row["one_tier_island_count"]) > 1), None
    )
    if smaller is not None and smaller["joined_switch_count"] is not None:
        text += " " + _(
            "With domains of %(size)s it would be %(islands)s islands of %(island)s; a Clos per rail would join "
            "them with %(switches)s switches and %(lights)s transceivers."
        ) % {
            "size": f"{int(smaller['hb_domain_size']):,}",
            "islands": f"{int(smaller['one_tier_island_count']):,}",
            "island": f"{int(smaller['one_tier_island_size']):,}",
            "switches": f"{int(smaller['joined_switch_count']):,}",
            "lights": f"{int(smaller['joined_transceiver_count']):,}",
        }
    return Guard(
        equation="N ≤ K × k", numbers=f"{chips:,} ≤ {domain:,} × {radix:,} = {limit:,}", text=text, holds=True
    )


def counts(result: Result | None, baseline: Result | None = None) -> Chart | None:
    """The fabric in numbers, beside the baseline's."""
    table = style.metric_table(KPIS, result, baseline)
    if table is None:
        return None
    title = _counts_title(result, baseline)
    bound = saving(result, baseline)
    return Chart(
        slug="fabric-counts",
        title=title,
        axis=_("Counts of the scale-out fabric; hops are links on a path"),
        summary=title,
        source=_("Closed form; the bound holds at any price of port and transceiver")
        if bound
        else _("Closed form"),
        draw="table",
        table=replace(table, total=_bound_cells(bound)) if bound else table,
        tall=True,
    )


def saving(result: Result | None, baseline: Result | None) -> tuple[float, float] | None:
    """Least and most of the fabric's cost that is saved at any prices; None where nothing is."""
    bound = bounds_of(_bought(baseline), _bought(result))
    return bound if bound and bound[0] > 0 else None


def _bought(result: Result | None) -> tuple[float, float]:
    """Switch ports and transceivers."""
    ports = sum(int(row["switch_count"]) * int(row["radix"]) for row in style.rows(result, "fabric_tiers"))
    return float(ports), style.metric(result, "fabric.transceiver_count") or 0.0


def saving_text(bound: tuple[float, float]) -> str:
    """`66.7 to 80.0 %`."""
    low, high = (style.percent(edge) for edge in bound)
    return low if low == high else _("%(low)s to %(high)s") % {"low": low.removesuffix(" %"), "high": high}


def _bound_cells(bound: tuple[float, float]) -> tuple[Cell, ...]:
    left = [f"{1 - edge:.2f}" for edge in (bound[1], bound[0])]
    now = left[0] if left[0] == left[1] else _("%(low)s to %(high)s") % {"low": left[0], "high": left[1]}
    return (
        Cell(text=_("Fabric cost, any price book")),
        Cell(text="1"),
        Cell(text=now),
        Cell(
            text="",
            delta=Delta(text=saving_text(bound), quality="better", arrow="down", before=Number(text="1")),
        ),
    )


def _counts_title(result: Result | None, baseline: Result | None) -> str:
    names = ("fabric.switch_count", "fabric.transceiver_count")
    now = [style.metric(result, name) for name in names]
    before = [style.metric(baseline, name) for name in names]
    words = {"switches": f"{now[0] or 0:,.0f}", "transceivers": f"{now[1] or 0:,.0f}"}
    if not now[0] and not before[0]:
        return _("One scale-up domain holds all chips: no switch is needed")
    if not before[0] or not before[1] or now == before:
        return _("%(switches)s switches and %(transceivers)s transceivers") % words
    words |= {"before": f"{before[0]:,.0f}", "lights": f"{before[1]:,.0f}"}
    return (
        _("%(before)s switches become %(switches)s, %(lights)s transceivers become %(transceivers)s") % words
    )


def hops(result: Result | None) -> Chart | None:
    """Share of chip pairs by the number of links on their path."""
    listed = [row for row in style.rows(result, "hop_histogram") if float(row["fraction"]) > 0]
    if not listed:
        return None
    widest = max(float(row["fraction"]) for row in listed)
    top = max(listed, key=lambda row: float(row["fraction"]))
    bars = tuple(
        Bar(
            label=_("%(hops)s links") % {"hops": row["hops"]},
            resource="scaleout" if int(row["hops"]) > 1 else "scaleup",
            text=style.percent(float(row["fraction"])),
            left=24.0,
            width=max(0.4, float(row["fraction"]) / widest * 58.0),
            hatched=False,
        )
        for row in listed
    )
    title = _("%(share)s of all pairs are %(hops)s links apart") % {
        "share": style.percent(float(top["fraction"])),
        "hops": top["hops"],
    }
    return Chart(
        slug="hops",
        title=title,
        axis=_("Share of chip pairs by links on the shortest path"),
        summary=title,
        source=_("Closed form, all pairs"),
        draw="bars",
        body=bars,
        table=Table(
            columns=(_("Links"), _("Share of pairs")),
            rows=tuple(
                style.text_cells(str(row["hops"]), style.percent(float(row["fraction"]))) for row in listed
            ),
        ),
    )
