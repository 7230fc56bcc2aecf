"""Owning against renting and buying tokens: cost over utilisation, and what a token costs under each reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table

Row = Mapping[str, Any]
_CLOUD, _API = "cost.cloud_break_even_fraction", "cost.api_break_even_fraction"
_LINES: Final = ("own_usd", "cloud_usd", "api_usd")
_TOKENS: Final = (
    "cost.usd_per_million_output_tokens",
    "cost.good_usd_per_million_output_tokens",
    "cost.saturated_usd_per_million_output_tokens",
    "cost.slo_premium_ratio",
    "cost.usd_per_million_tokens",
    "cost.usd_per_million_tokens.input",
    "cost.usd_per_million_tokens.output",
    "cost.api_usd_per_million_tokens",
    "cost.chip_usd_per_hour",
    "cost.cloud_chip_usd_per_hour",
    "cost.usd_per_training_run",
)


def break_even(result: Result | None) -> Chart | None:
    """Three curves that cross: what is owned gets cheaper with use, what is rented or bought stays."""
    rows = style.rows(result, "break_even")
    if not rows or not any(rows[0][name] is not None for name in _LINES[1:]):
        return None
    title = title_of(result)
    tokens = rows[0]["per"] == "million_tokens"
    return Chart(
        slug="break-even",
        title=title,
        axis=_("USD per million tokens, input and output together, over the share of capacity that is used")
        if tokens
        else _("USD per chip-hour that is used, over the share of time that chips are used"),
        summary=title,
        source=_("Closed form; rent and API prices of the price book or the scenario"),
        draw="plot",
        body=_figure(rows, result),
        table=_table(rows),
        wide=True,
    )


def title_of(result: Result | None) -> str:
    """From which utilisation on owning pays, against whoever asks something."""
    rows = style.rows(result, "break_even")
    asked = [name for name in ("cloud", "api") if rows and rows[0][f"{name}_usd"] is not None]
    cloud, api = style.metric(result, _CLOUD), style.metric(result, _API)
    words = {"cloud": _share(cloud), "api": _share(api)}
    if "cloud" in asked and cloud is not None:
        if "api" not in asked:
            return _("Owning is cheaper than a cloud above %(cloud)s utilisation") % words
        if api is not None:
            return _("Owning beats a cloud above %(cloud)s utilisation and an API above %(api)s") % words
        return _("Owning beats a cloud above %(cloud)s utilisation, and an API never") % words
    if api is not None:
        return _("Owning beats an API above %(api)s of the capacity") % words
    return _("Owning is dearer than what others ask, at any utilisation")


def _share(fraction: float | None) -> str:
    return "" if fraction is None else style.percent(fraction, digits=0)


def _name(line: str) -> str:
    return {"own_usd": _("own"), "cloud_usd": _("cloud"), "api_usd": _("API")}[line]


def _figure(rows: Sequence[Row], result: Result | None) -> dict[str, Any]:
    used = [float(row["utilisation_fraction"]) for row in rows]
    drawn = [name for name in _LINES if rows[0][name] is not None]
    colours = {"own_usd": "var(--accent)", "cloud_usd": "var(--ink)", "api_usd": "var(--ink-3)"}
    dashes = {"own_usd": "solid", "cloud_usd": "5px,4px", "api_usd": "2px,3px"}
    data = [
        style.line(
            used,
            [float(row[name]) for row in rows],
            name=_name(name),
            color=colours[name],
            line={"dash": dashes[name], "width": 2},
            hovertemplate="%{x:.0%} · %{y:.3~f} USD<extra>%{fullData.name}</extra>",
        )
        for name in drawn
    ]
    data += [_crossing(rows, style.metric(result, met), name) for name, met in _MET if name in drawn]
    values = [float(row[name]) for row in rows for name in drawn]
    return style.figure(
        [trace for trace in data if trace],
        x=style.axis(tickformat=".0%", range=[0, 1.02], showgrid=False),
        y=style.log_axis(values, "usd"),
        showlegend=True,
        legend=style.LEGEND,
        margin={"l": 56, "r": 16, "t": 40, "b": 36},
    )


_MET: Final = (("cloud_usd", _CLOUD), ("api_usd", _API))


def _crossing(rows: Sequence[Row], met: float | None, name: str) -> dict[str, Any]:
    """A point where owning costs as much; nothing where they do not meet."""
    if met is None:
        return {}
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [met],
        "y": [float(rows[0][name])],
        "text": [style.percent(met, digits=0)],
        "textposition": "top right",
        "textfont": {"color": "var(--ink)", "size": 14},
        "marker": {"color": "var(--accent)", "size": 10},
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _table(rows: Sequence[Row]) -> Table:
    drawn = [name for name in _LINES if rows[0][name] is not None]
    return Table(
        columns=(_("Utilisation"), *(_name(name) for name in drawn)),
        rows=tuple(
            (
                Cell(text=style.percent(float(row["utilisation_fraction"]), digits=0), muted=True),
                *(Cell(text=str(style.number(float(row[name]), "usd"))) for name in drawn),
            )
            for row in rows
        ),
    )


def token_prices(result: Result | None, baseline: Result | None = None) -> Chart | None:
    """What a token costs at this load, within the SLO, with all capacity used, and elsewhere."""
    table = style.metric_table(_TOKENS, result, baseline, first=_("What it costs"))
    if table is None:
        return None
    premium = style.metric(result, "cost.slo_premium_ratio")
    title = _("What is bought with the money")
    if premium is not None:
        title = _("A token within the SLO costs %(times)s times one with all capacity used") % {
            "times": f"{premium:.1f}" if premium < 10 else f"{premium:,.0f}"
        }
    return Chart(
        slug="token-prices",
        title=title,
        axis=_("USD per million tokens or per hour, at the load of this run unless it says otherwise"),
        summary=title,
        source=_("Simulated load, closed-form capacity"),
        draw="table",
        table=table,
    )
