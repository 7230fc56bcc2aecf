"""An uploaded traffic matrix, as a page: what it says first, then the topologies for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from explorer.charts import ranking, style
from explorer.charts.heat import heat_maps
from explorer.charts.style import Cell, Chart, Panel, Table, Tile
from explorer.wording import capitalised, translated

Study = Mapping[str, Any]  # of `analysis.matrix_study.MatrixStudy`


def panel(study: Study) -> Panel:
    summary = study["summary"]
    return Panel(
        tab="matrix",
        headline=capitalised(translated(summary["pattern"])),
        lede=_lede(summary),
        kpis=_tiles(summary),
        charts=(*heat_maps(summary["views"]), _locality(summary), _blocks(summary), _busiest(summary)),
    )


def ranking_panel(rows: Sequence[Mapping[str, Any]]) -> Panel:
    return Panel(
        tab="ranking", headline=ranking.headline(rows), notes=ranking.notes(rows), charts=ranking.charts(rows)
    )


def _lede(summary: Mapping[str, Any]) -> str:
    said = [
        _("%(bytes)s between %(pairs)s pairs of %(ranks)s ranks, %(density)s of all pairs.")
        % {
            "bytes": style.number(summary["total_bytes"], "bytes"),
            "pairs": f"{summary['pair_count']:,}",
            "ranks": f"{summary['rank_count']:,}",
            "density": style.percent(summary["density_fraction"]),
        }
    ]
    if summary["message_count"] is not None and summary["mean_message_bytes"] is not None:
        words = {
            "count": f"{summary['message_count']:,.0f}",
            "mean": style.number(summary["mean_message_bytes"], "bytes"),
            "rate": f"{summary['message_per_s'] or 0:,.0f}",
        }
        if summary["message_per_s"] is None:
            said.append(_("%(count)s messages of %(mean)s in the mean.") % words)
        else:
            said.append(_("%(count)s messages of %(mean)s in the mean, %(rate)s a second.") % words)
    if summary["latency_sensitive_fraction"] is not None:
        share = style.percent(summary["latency_sensitive_fraction"])
        said.append(_("%(share)s of the bytes are latency-sensitive.") % {"share": share})
    return " ".join(said)


def _tiles(summary: Mapping[str, Any]) -> tuple[Tile, ...]:
    ratios = (
        (_("Busiest sender"), summary["send_imbalance_ratio"]),
        (_("Busiest receiver"), summary["receive_imbalance_ratio"]),
    )
    found = [
        Tile(
            metric="",
            label=label,
            help=_("Bytes of the busiest rank over the mean of all ranks."),
            number=style.Number(text=f"{value:.2f}", unit=_("times the mean")),
        )
        for label, value in ratios
    ]
    if summary["rail_affinity_fraction"] is not None:
        even = style.percent(summary["uniform_rail_affinity_fraction"])
        found.append(
            Tile(
                metric="",
                label=_("Rail affinity"),
                help=_("Of the bytes that leave a scale-up domain, the share that stays on its rail."),
                number=style.Number(text=style.percent(summary["rail_affinity_fraction"])),
                sub=_("spread evenly: %(share)s") % {"share": even},
            )
        )
    return tuple(found)


def _locality(summary: Mapping[str, Any]) -> Chart:
    names = {
        "domain": _("inside a scale-up domain"),
        "rail": _("between domains, along a rail"),
        "other": _("between domains, across rails"),
    }
    rows = summary["locality"]
    most = max(rows, key=lambda row: row["share_fraction"])
    title = _("%(share)s of the bytes go %(where)s") % {
        "share": style.percent(most["share_fraction"], digits=0),
        "where": names[most["place"]],
    }
    return Chart(
        slug="locality",
        title=title,
        axis=_("Bytes by the network that they need, with domains of %(size)s ranks")
        % {"size": summary["domain_size"]},
        summary=title,
        source=_("Counted from the matrix"),
        draw="table",
        table=Table(
            columns=(_("Where"), _("Bytes"), _("Share"), _("Pairs"), _("Messages"), _("Latency-sensitive")),
            rows=tuple(
                (
                    Cell(text=names[row["place"]]),
                    Cell(text=str(style.number(row["moved_bytes"], "bytes"))),
                    Cell(text=style.percent(row["share_fraction"])),
                    Cell(text=f"{row['pair_count']:,}"),
                    Cell(text="" if row["message_count"] is None else f"{row['message_count']:,.0f}"),
                    Cell(
                        text=""
                        if row["latency_sensitive_fraction"] is None
                        else style.percent(row["latency_sensitive_fraction"])
                    ),
                )
                for row in rows
            ),
        ),
    )


def _blocks(summary: Mapping[str, Any]) -> Chart:
    sizes, shares = zip(*summary["inside_blocks"], strict=True)
    half = next(size for size, share in summary["inside_blocks"] if share >= 0.5)
    title = _("Half of the bytes stay in blocks of %(size)s ranks") % {"size": f"{half:,}"}
    names = [f"{size:,}" for size in sizes]
    return Chart(
        slug="locality-curve",
        title=title,
        axis=_("Share of the bytes that stay in aligned blocks of so many ranks"),
        summary=title,
        source=_("Counted from the matrix"),
        draw="plot",
        body=style.figure(
            [
                style.line(
                    names,
                    list(shares),
                    name=_("stays inside"),
                    color="var(--scaleout)",
                    mode="lines+markers",
                    hovertemplate="%{x} · %{y:.1%}<extra></extra>",
                )
            ],
            x=style.axis(type="category", showgrid=False),
            y=style.axis(range=[0, 1.02], tickformat=".0%", nticks=5),
        ),
        table=Table(
            columns=(_("Ranks in a block"), _("Stays inside")),
            rows=tuple(
                style.text_cells(name, style.percent(share))
                for name, share in zip(names, shares, strict=True)
            ),
        ),
    )


def _busiest(summary: Mapping[str, Any]) -> Chart:
    pairs = summary["busiest"]
    share = sum(moved for *_ends, moved in pairs) / summary["total_bytes"]
    title = _("The %(count)s busiest pairs carry %(share)s of the bytes") % {
        "count": len(pairs),
        "share": style.percent(share),
    }
    return Chart(
        slug="busiest-pairs",
        title=title,
        axis=_("Bytes from one rank to another"),
        summary=title,
        source=_("Counted from the matrix"),
        draw="table",
        table=Table(
            columns=(_("From"), _("To"), _("Bytes")),
            words=2,
            rows=tuple(
                style.text_cells(str(source), str(target), str(style.number(moved, "bytes")))
                for source, target, moved in pairs
            ),
        ),
    )
