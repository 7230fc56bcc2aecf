"""How a fabric is put together: ports by tier, what the scale-up domains do and are, what people have to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.network_bill import tier_label
from explorer.charts.style import Cell, Chart, Result, Table

Row = Mapping[str, Any]


def ports(result: Result | None) -> Chart | None:
    """The port budget of each tier: down, up, spare."""
    listed = style.rows(result, "fabric_tiers")
    if not listed:
        return None
    spare = sum(int(row["spare_port_count"]) for row in listed)
    owned = sum(int(row["switch_count"]) * int(row["radix"]) for row in listed)
    title = _("Every port of every switch is used")
    if spare:
        title = _("%(spare)s of %(owned)s ports stay free, %(share)s") % {
            "spare": f"{spare:,}",
            "owned": f"{owned:,}",
            "share": style.percent(spare / owned),
        }
    rows = tuple(
        style.text_cells(
            tier_label(str(row["name"])),
            f"{int(row['switch_count']):,} × {int(row['radix']):,}",
            f"{int(row['down_port_count']):,}",
            f"{int(row['up_port_count']):,}",
            f"{int(row['spare_port_count']):,}",
        )
        for row in listed
    )
    return Chart(
        slug="ports",
        title=title,
        axis=_("Port budget by tier, all switches together"),
        summary=title,
        source=_("Closed form"),
        draw="table",
        table=Table(columns=(_("Tier"), _("Switches × ports"), _("Down"), _("Up"), _("Spare")), rows=rows),
    )


def domains(result: Result | None) -> Chart | None:
    """What the size of the scale-up domain does to one tier of rails, and what a Clos per rail costs instead."""
    listed = style.rows(result, "scaleup_domains")
    if not listed:
        return None
    broken = [row for row in listed if int(row["one_tier_island_count"]) > 1]
    title = _("At every size of the scale-up domain shown, one tier of rails joins all chips")
    if broken:
        first = broken[0]
        title = _("With a scale-up domain of %(size)s, one tier of rails is %(islands)s islands") % {
            "size": f"{int(first['hb_domain_size']):,}",
            "islands": f"{int(first['one_tier_island_count']):,}",
        }
    return Chart(
        slug="hb-domains",
        title=title,
        axis=_("Beyond N = K × k chips one tier falls apart, and a Clos per rail joins them again"),
        summary=title,
        source=_("Closed form"),
        draw="table",
        table=Table(
            columns=(
                _("Domain, K"),
                _("One tier"),
                _("Joined: switches"),
                _("Transceivers"),
            ),
            rows=tuple(_domain_row(row) for row in listed),
        ),
    )


def _domain_row(row: Row) -> tuple[Cell, ...]:
    islands, size = int(row["one_tier_island_count"]), f"{int(row['one_tier_island_size']):,}"
    if islands > 1:
        told = _("%(islands)s islands of %(size)s") % {"islands": f"{islands:,}", "size": size}
    else:
        told = _("one island")
    return (
        Cell(
            text=f"{int(row['hb_domain_size']):,}",
            unit=_("this scenario") if row["is_own"] else "",
        ),
        Cell(text=told),
        _count(row["joined_switch_count"]),
        _count(row["joined_transceiver_count"]),
    )


def _count(value: object) -> Cell:
    return Cell(text=f"{value:,}") if isinstance(value, int) else Cell(text="–", muted=True)


def scaleup(result: Result | None) -> Chart | None:
    """The scale-up domains' own bill: bought with the servers, so that the fabric's bill does not show it."""
    listed = style.rows(result, "scaleup")
    if not listed:
        return None
    row = listed[0]
    words = {"domains": f"{int(row['domain_count']):,}", "size": f"{int(row['chip_count']):,}"}
    if not row["is_known"]:
        title = _(
            "No machine in the catalog has a scale-up domain of %(size)s: what joins it is in no bill here"
        )
    elif row.get("scaleup_switch_count"):
        words["switches"] = f"{int(row['scaleup_switch_count']):,}"
        title = _("Inside the scale-up domains stand %(switches)s more switch chips")
    else:
        title = _("The %(domains)s scale-up domains join their chips without a switch")
    title %= words
    return Chart(
        slug="scaleup-bill",
        title=title,
        axis=_("Scale-up domains, bought with the servers and not part of the fabric"),
        summary=title,
        source=str(row.get("name") or _("Assumed domain size")),
        draw="table",
        table=Table(columns=(_("Scale-up"), _("One domain"), _("All")), rows=tuple(_scaleup_rows(row))),
    )


def _scaleup_rows(row: Row) -> Sequence[tuple[Cell, ...]]:
    domains = int(row["domain_count"])
    each = int(row["chip_count"])
    rows = [_both(_("Chips"), f"{each:,}", _("%(count)s domains") % {"count": f"{domains:,}"})]
    counts = (
        (_("Switch chips"), "scaleup_switch_count"),
        (_("Links"), "scaleup_link_count"),
        (_("Copper cables"), "scaleup_cable_count"),
    )
    for label, name in counts:
        if row.get(name):
            everything = int(row[name])
            rows.append(
                (
                    Cell(text=label, muted=True),
                    Cell(text=f"{everything // domains:,}"),
                    Cell(text=f"{everything:,}", metric=f"fabric.{name}"),
                )
            )
    if row.get("switch_port_count"):
        rows.append(_both(_("Ports of a switch chip"), f"{int(row['switch_port_count']):,}", ""))
    if row.get("domain_bytes_per_s"):
        speed = str(style.number(float(row["domain_bytes_per_s"]), "domain_bytes_per_s", digits=4))
        rows.append(_both(_("Bandwidth, both ways"), speed, ""))
    return rows


def _both(label: str, one: str, every: str) -> tuple[Cell, ...]:
    return (Cell(text=label, muted=True), Cell(text=one), Cell(text=every, muted=True))


def operations(result: Result | None) -> Chart | None:
    """Hours of people by tier and device; every rate is an assumption that Why shows."""
    listed = style.rows(result, "operations")
    hours = style.metric(result, "fabric.deploy_hours")
    if not listed or not hours:
        return None
    cables = sum(float(row["deploy_hours"]) for row in listed if row["device"] == "cable")
    title = _("Deploying takes %(hours)s hours of work, %(share)s of them pulling cables") % {
        "hours": f"{hours:,.0f}",
        "share": style.percent(cables / hours, digits=0),
    }
    works = ("deploy_hours", "monitor_hours_per_year", "upgrade_hours")
    return Chart(
        slug="operations",
        title=title,
        axis=_("Hours of one person by tier and device; hours per device are assumptions"),
        summary=title,
        source=_("Assumption: hours per device; counts in closed form"),
        draw="table",
        table=Table(
            columns=(_("Tier"), _("Devices"), _("Deploy"), _("Watch, per year"), _("Upgrade once")),
            rows=tuple(_work_row(row, works) for row in sorted(listed, key=_by_tier)),
            total=(
                Cell(text=_("Hours")),
                Cell(text=""),
                *(
                    Cell(text=f"{style.metric(result, f'fabric.{work}') or 0:,.0f}", metric=f"fabric.{work}")
                    for work in works
                ),
            ),
        ),
        wide=True,
    )


def _by_tier(row: Row) -> tuple[bool, str, str]:
    return row["tier"] != "chip", str(row["tier"]), str(row["device"])


def _work_row(row: Row, works: Sequence[str]) -> tuple[Cell, ...]:
    devices = {
        "switch": _("switches"),
        "optic": _("modules"),
        "cable": _("cables"),
        "nic_port": _("NIC ports"),
        "ocs": _("optical circuit switches"),
        "adjacency": _("routing sessions"),
    }
    words = {"tier": tier_label(str(row["tier"])), "item": devices[str(row["device"])]}
    return (
        Cell(text=_("%(tier)s: %(item)s") % words, muted=True),
        Cell(text=f"{int(row['count']):,}"),
        *(Cell(text=f"{float(row[work]):,.0f}") for work in works),
    )
