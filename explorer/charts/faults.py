"""One fault: what it takes along, and how many components could be to blame for what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Bar, Chart, Result, Table

KPIS: Final = (
    "reliability.blast_radius_chip_count",
    "reliability.expected_suspect_count",
    "analysis.fault_visibility",
)
_COLOURS: Final = {
    "chip": "compute", "hbm": "hbm", "nic": "host", "server": "host", "software": "queue",
    "link": "scaleout", "switch": "scaleout", "ocs": "scaleout",
}  # fmt: skip
_LEFT: Final = 40.0
_WIDEST: Final = 22.0
_SHOWN_SHARE: Final = 0.0005


def blast_radius(result: Result | None) -> Chart | None:
    """Failures by component, each with the chips that it takes out of work."""
    rows = style.rows(result, "blast_radius")
    mean = style.metric(result, "reliability.blast_radius_chip_count")
    if not rows or mean is None:
        return None
    worst = max(rows, key=lambda row: int(row["chip_count"]))
    title = _("A failure takes %(mean)s chips on average; a %(worst)s takes %(most)s") % {
        "mean": f"{mean:,.1f}",
        "worst": _name(str(worst["name"])),
        "most": f"{int(worst['chip_count']):,}",
    }
    return Chart(
        slug="blast-radius",
        title=title,
        axis=_("Share of all failures by component, and the chips that one of them takes out of work"),
        summary=title,
        source=_("Closed form; rates from Llama-3's 419 interruptions, those of links and switches assumed"),
        draw="bars",
        body=_bars(rows, "share_fraction", _taken),
        table=_blast_table(rows),
        wide=True,
    )


def _taken(row: Mapping[str, Any]) -> str:
    words = {"share": style.percent(float(row["share_fraction"])), "chips": f"{int(row['chip_count']):,}"}
    if not int(row["chip_count"]):
        return _("%(share)s · capacity, no chip") % words
    return _("%(share)s · %(chips)s chips") % words


def _bars(rows: Sequence[Mapping[str, Any]], share: str, text: Any) -> tuple[Bar, ...]:
    widest = max(float(row[share]) for row in rows)
    return tuple(
        Bar(
            label=_name(str(row["name"])),
            resource=_COLOURS[str(row["component"])],
            text=text(row),
            left=_LEFT,
            width=max(0.4, float(row[share]) / widest * _WIDEST),
            hatched=str(row["component"]) == "software",
        )
        for row in rows
    )


def _blast_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        columns=(
            _("Component"), _("How many"), _("Chips lost"), _("Failures in 10⁹ h, each"),
            _("Failures a year, all"), _("Share of failures"),
        ),
        rows=tuple(
            style.text_cells(
                _name(str(row["name"])),
                f"{int(row['count']):,}",
                f"{int(row['chip_count']):,}",
                f"{float(row['fit_count']):,.0f}",
                f"{float(row['failures_per_year_count']):,.1f}",
                style.percent(float(row["share_fraction"])),
            )
            for row in rows
        ),
    )  # fmt: skip


def suspects(result: Result | None) -> Chart | None:
    """Who may be to blame when a pair of chips is slow."""
    rows = [row for row in style.rows(result, "suspects") if float(row["blame_fraction"]) >= _SHOWN_SHARE]
    expected = style.metric(result, "reliability.expected_suspect_count")
    probes = style.rows(result, "probes")
    if not rows or expected is None or not probes:
        return None
    title = _("A slow pair of chips leaves %(suspects)s suspects; probes that halve them: %(probes)s") % {
        "suspects": f"{expected:,.0f}" if expected >= 10 else f"{expected:.1f}",
        "probes": int(probes[0]["probe_count"]),
    }
    return Chart(
        slug="suspects",
        title=title,
        axis=_("Share of the blame by component, and how many of them stand on the pair's equal-cost paths"),
        summary=title,
        source=_(
            "Closed form over all pairs; a class is blamed by its rate times the share of paths it is on"
        ),
        draw="bars",
        body=_bars(rows, "blame_fraction", _line_up),
        table=Table(
            columns=(
                _("Component"),
                _("Crossed by a flow"),
                _("On the paths"),
                _("Failures in 10⁹ h, each"),
                _("Share of blame"),
            ),
            rows=tuple(
                style.text_cells(
                    _name(str(row["name"])),
                    f"{float(row['crossed_count']):,.2f}",
                    f"{float(row['suspect_count']):,.1f}",
                    f"{float(row['fit_count']):,.0f}",
                    style.percent(float(row["blame_fraction"])),
                )
                for row in rows
            ),
        ),
        wide=True,
    )


def _line_up(row: Mapping[str, Any]) -> str:
    return _("%(share)s · one of %(count)s") % {
        "share": style.percent(float(row["blame_fraction"])),
        "count": f"{float(row['suspect_count']):,.0f}",
    }


def _name(english: str) -> str:
    """A component in the reader's language; those of a tier carry its name."""
    known = {
        "chip": _("chip"),
        "chip memory": _("chip memory"),
        "server": _("server"),
        "server software": _("server software"),
        "NIC": _("NIC"),
        "optical switch": _("optical switch"),
        "scale-up link": _("scale-up link"),
        "endpoint link": _("endpoint link"),
        "link": _("link"),
        "switch": _("switch"),
        "chip on the way": _("chip on the way"),
        "endpoint's switch": _("endpoint's switch"),
        "switch between": _("switch between"),
    }
    if english in known:
        return known[english]
    where, _space, kind = english.rpartition(" ")
    templates = {"switch": _("%(tier)s switch"), "uplink": _("%(tier)s uplink"), "link": _("%(tier)s link")}
    tiers = {
        "chip": _("chip"),
        "leaf": _("leaf"),
        "spine": _("spine"),
        "core": _("core"),
        "rail": _("rail"),
        "switch": _("switch"),
        "ocs": "OCS",
    }
    tier = "–".join(tiers.get(part, part) for part in where.split("–"))
    return templates[kind] % {"tier": tier} if kind in templates else english


def causes(result: Result | None) -> Chart | None:
    """The published table behind the rates."""
    rows = style.rows(result, "failure_causes")
    if not rows:
        return None
    every = sum(int(row["count"]) for row in rows)
    gpu = sum(int(row["count"]) for row in rows if row["part"] in ("chip", "hbm"))
    return Chart(
        slug="failure-causes",
        title=_("Of %(every)s interruptions of Llama-3's training, %(share)s were GPUs and their memory")
        % {"every": every, "share": style.percent(gpu / every)},
        axis=_("Unexpected interruptions in 54 days on 16,384 GPUs, by cause"),
        summary=_("Interruptions of Llama-3's training by cause."),
        source=_("Llama 3, arXiv 2407.21783, Table 5; the shares are of the counts"),
        draw="table",
        table=Table(
            columns=(_("Cause"), _("Interruptions"), _("Share")),
            rows=tuple(
                style.text_cells(
                    _causes().get(str(row["name"]), str(row["name"])),
                    f"{int(row['count']):,}",
                    style.percent(int(row["count"]) / every),
                )
                for row in rows
            ),
            total=style.text_cells(_("All"), f"{every:,}", style.percent(1)),
        ),
    )


def _causes() -> dict[str, str]:
    return {
        "faulty GPU": _("faulty GPU"),
        "GPU HBM3 memory": _("GPU HBM3 memory"),
        "software bug": _("software bug"),
        "network switch or cable": _("network switch or cable"),
        "unplanned host maintenance": _("unplanned host maintenance"),
        "GPU SRAM memory": _("GPU SRAM memory"),
        "GPU system processor": _("GPU system processor"),
        "NIC": _("NIC"),
        "NCCL watchdog timeout": _("NCCL watchdog timeout"),
        "silent data corruption": _("silent data corruption"),
        "GPU thermal interface and sensor": _("GPU thermal interface and sensor"),
        "SSD": _("SSD"),
        "power supply": _("power supply"),
        "server chassis": _("server chassis"),
        "IO expansion board": _("IO expansion board"),
        "dependency": _("dependency"),
        "CPU": _("CPU"),
        "system memory": _("system memory"),
    }
