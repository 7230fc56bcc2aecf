"""Where a design ends: growth with what it breaks, the share of bytes that may leave a domain, a job beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Bar, Cell, Chart, Table
from explorer.wording import capitalised, translated

Row = Mapping[str, Any]  # of `analysis.boundaries.Boundary`
_FIGURES: Final = (
    "hardware.chip_count",
    "serving.capacity_request_per_s",
    "training.token_per_s",
    "analysis.boundary.per_chip_ratio",
    "fabric.tiers",
    "fabric.island_count",
    "fabric.switch_count",
    "fabric.max_link_load_fraction",
    "cost.capex_usd",
)


def growth(rows: Sequence[Row]) -> Chart:
    """Every case with its figures and what breaks."""
    shown = [name for name in _FIGURES if any(name in row["metrics"] for row in rows)]
    title = _growth_title(rows)
    return Chart(
        slug="growth",
        title=title,
        axis=_("Each row plans the scenario again; load and fixed counts grow with the chips"),
        summary=title,
        source=_("Closed forms; nothing is simulated"),
        draw="table",
        table=Table(
            columns=(_("Case"), _("What breaks"), *(wording.label(name) for name in shown)),
            rows=tuple(_growth_cells(row, shown) for row in rows),
            words=2,
        ),
        wide=True,
    )


def _growth_title(rows: Sequence[Row]) -> str:
    """What a chip still brings at the largest size that can be."""
    grown = [row for row in rows if row["factor"] and "analysis.boundary.per_chip_ratio" in row["metrics"]]
    if not grown:
        return _("What becomes of it")
    last = grown[-1]
    share = last["metrics"]["analysis.boundary.per_chip_ratio"]
    return _("At ×%(factor)s a chip brings %(share)s of what it brings now") % {
        "factor": last["factor"],
        "share": style.percent(share, digits=0),
    }


def _growth_cells(row: Row, shown: Sequence[str]) -> tuple[Cell, ...]:
    said = "; ".join(translated(message) for message in row["breaks"])
    name = Cell(text=capitalised(translated(row["case"])))
    breaks = Cell(text=capitalised(said) if said else _("nothing"), muted=not said)
    return (name, breaks, *(_figure(row["metrics"].get(name), name) for name in shown))


def _figure(value: float | None, name: str) -> Cell:
    if value is None:
        return Cell(text="–", muted=True)
    if name == "analysis.boundary.per_chip_ratio":
        return Cell(text=style.percent(value))
    number = style.number(value, name)
    return Cell(text=number.text, unit=number.unit)


def crossing(found: Mapping[str, Any]) -> Chart:
    """Load of NICs by the share of bytes that leaves a domain."""
    title = capitalised(translated(found["message"]))
    return Chart(
        slug="crossing",
        title=title,
        axis=_("Load of a chip's NICs by the share of its bytes that leave their scale-up domain"),
        summary=title,
        source=_(
            "Closed form: bytes of a chip as its work is cut now, over what the fabric leaves of its NIC"
        ),
        draw="plot",
        body=_crossing_figure(found),
        table=Table(
            columns=(_("Bytes between domains"), _("Load of NICs"), _("Load of scale-up links")),
            rows=tuple(
                tuple(
                    Cell(text=style.percent(row[name]))
                    for name in ("share_fraction", "nic_load_fraction", "scaleup_load_fraction")
                )
                for row in found["rows"]
            ),
        ),
        height=300,
    )


def _crossing_figure(found: Mapping[str, Any]) -> dict[str, Any]:
    shares = [row["share_fraction"] for row in found["rows"]]
    loads = [row["nic_load_fraction"] for row in found["rows"]]
    now, full = found["now_fraction"], found["full_fraction"]
    hover = "%{x:.0%} · %{y:.0%}<extra></extra>"
    data = [
        style.line(shares, loads, name=_("Load of NICs"), color="var(--scaleout)", hovertemplate=hover),
        style.baseline_line([0.0, max(*shares, now)], [1.0, 1.0], name=_("full"), hoverinfo="skip"),
        {
            "type": "scatter",
            "mode": "markers",
            "x": [now],
            "y": [now / full],
            "name": _("now"),
            "marker": {"color": "var(--accent)", "size": 10, "line": {"color": "var(--ink)", "width": 1.5}},
            "hovertemplate": hover,
            "cliponaxis": False,
        },
    ]
    return style.figure(
        data,
        x=style.axis(tickformat=".0%", range=[0, max(*shares, now) * 1.02], showgrid=False),
        y=style.axis(tickformat=".0%", rangemode="tozero", nticks=5),
        annotations=[
            style.direct_label(_("now"), x=now, y=now / full, yshift=16, showarrow=False),
            style.direct_label(_("full"), x=0.0, y=1.0, xanchor="left", yanchor="bottom"),
        ],
    )


def neighbours(rows: Sequence[Mapping[str, Any]], said: Mapping[str, Any]) -> Chart:
    """How many times as long each job's traffic takes beside the other's."""
    title = capitalised(translated(said))
    widest = max(row["slowdown_ratio"] for row in rows)
    return Chart(
        slug="neighbours",
        title=title,
        axis=_("Time of a job's traffic beside the other over the same alone; 1 is undisturbed"),
        summary=title,
        source=_("Max-min fair shares of all links, all flows started together: an upper bound"),
        draw="bars",
        body=tuple(
            Bar(
                label=f"{_placing(row['placing'])}: {row['name']}"[:40],
                resource="scaleout",
                text=f"×{row['slowdown_ratio']:.2f}",
                left=44.0,
                width=max(0.4, row["slowdown_ratio"] / widest * 44.0),
                hatched=False,
            )
            for row in rows
        ),
        table=Table(
            columns=(_("Placed"), _("Job"), _("Chips"), _("Traffic"), _("Waits for NICs"), _("Step")),
            rows=tuple(_neighbour_cells(row) for row in rows),
            words=2,
        ),
        open_table=True,
    )


def _placing(placing: str) -> str:
    return _("in blocks") if placing == "blocks" else _("mixed")


def _neighbour_cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        Cell(text=capitalised(_placing(row["placing"]))),
        Cell(text=row["name"]),
        Cell(text=f"{row['chip_count']:,}"),
        Cell(text=f"×{row['slowdown_ratio']:.2f}"),
        Cell(text=style.percent(row["exposed_fraction"])),
        Cell(text=f"×{row['step_ratio']:.2f}"),
    )
