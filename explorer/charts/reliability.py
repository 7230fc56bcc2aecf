"""Reliability: the share of chips that still form whole slices, with and without optical re-wiring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Chart, Result, Table

KPIS = (
    "reliability.slice_goodput_fraction.mean",
    "reliability.static_goodput_fraction.mean",
    "reliability.slice_goodput_fraction.q97",
    "reliability.static_goodput_fraction.q97",
    "reliability.goodput_fraction",
    "reliability.mtbf_s",
    "reliability.checkpoint_interval_s",
)


def slice_goodput(result: Result | None) -> Chart | None:
    """Goodput against slice size: cubes re-wired by optical switches, and a fixed torus."""
    curve = style.series(result, "slice_goodput")
    sizes = curve.get("slice_chips")
    if not sizes:
        return None
    return Chart(
        slug="slice-goodput",
        title=_("Re-wired slices keep more of the machine than fixed ones"),
        axis=_("Share of all chips in whole slices, against chips per slice"),
        summary=_summary(curve),
        source=_("Closed form: binomial over cubes; exact, nothing is simulated"),
        draw="plot",
        body=_figure(curve, _chosen(result)),
        table=_table(curve),
        wide=True,
    )


def _chosen(result: Result | None) -> float | None:
    scenario = style.scenario_of(result)
    return float(scenario.reliability.slice_chips) if scenario else None


def headline(result: Result | None) -> str:
    """Goodput of the chosen slice size, re-wired and fixed."""
    ocs = style.metric(result, "reliability.slice_goodput_fraction.mean")
    static = style.metric(result, "reliability.static_goodput_fraction.mean")
    size = _chosen(result)
    if ocs is None or static is None or size is None:
        return _("Reliability")
    return _("Slices of %(size)s chips: re-wired they keep %(ocs)s of the machine, fixed %(static)s") % {
        "size": f"{size:,.0f}",
        "ocs": style.percent(ocs),
        "static": style.percent(static),
    }


def _summary(curve: Mapping[str, Sequence[float]]) -> str:
    first, last = 0, len(curve["slice_chips"]) - 1
    told = [
        _("%(size)s chips: OCS %(ocs)s, static %(static)s")
        % {
            "size": f"{curve['slice_chips'][i]:,.0f}",
            "ocs": style.percent(curve["ocs_mean"][i]),
            "static": style.percent(curve["static_mean"][i]),
        }
        for i in (first, last)
    ]
    return _("Mean goodput by slice size, from %(first)s to %(last)s.") % {"first": told[0], "last": told[1]}


def _figure(curve: Mapping[str, Sequence[float]], chosen: float | None) -> dict[str, Any]:
    sizes = curve["slice_chips"]
    lanes: tuple[tuple[str, str, str, dict[str, Any], str], ...] = (
        ("ocs_mean", _("OCS, mean"), "var(--scaleout)", {}, "circle"),
        ("ocs_q97", _("OCS, kept 97 % of the time"), "var(--scaleout)", {"dash": "2px,3px"}, "circle-open"),
        ("static_mean", _("static, mean"), "var(--failure)", {}, "square"),
        (
            "static_q97",
            _("static, kept 97 % of the time"),
            "var(--failure)",
            {"dash": "2px,3px"},
            "square-open",
        ),
    )
    data = [
        style.line(
            sizes, curve[column], name=name, color=color, line=dash, mode="lines+markers",
            marker={"color": color, "symbol": symbol, "size": 7},
            hovertemplate="%{x:,} · %{y:.1%}<extra>%{fullData.name}</extra>",
        )
        for column, name, color, dash, symbol in lanes
        if curve.get(column)
    ]  # fmt: skip
    shapes = []
    if chosen is not None:
        shapes.append(
            {
                "type": "line", "xref": "x", "yref": "paper", "x0": chosen, "x1": chosen, "y0": 0, "y1": 1,
                "line": {"color": "var(--accent)", "width": 1.5},
            }
        )  # fmt: skip
    return style.figure(
        data,
        x=style.axis(type="log", tickvals=_doubled(sizes), tickformat=",", hoverformat=","),
        y=style.axis(range=[0, 1.02], tickformat=".0%", dtick=0.25),
        shapes=shapes,
        showlegend=True,
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"color": "var(--ink-2)"},
        },
        margin={"l": 48, "r": 16, "t": 40, "b": 36},
    )


def _doubled(sizes: Sequence[float]) -> list[int]:
    """Powers of two (of four, where many) within the sizes."""
    powers = [2**power for power in range(24) if min(sizes) <= 2**power <= max(sizes)]
    return powers if len(powers) <= 8 else powers[::2]


def _table(curve: Mapping[str, Sequence[float]]) -> Table:
    columns = [name for name in ("ocs_mean", "ocs_q97", "static_mean", "static_q97") if curve.get(name)]
    headers = {
        "ocs_mean": _("OCS, mean"),
        "ocs_q97": _("OCS, 97 %"),
        "static_mean": _("static, mean"),
        "static_q97": _("static, 97 %"),
    }
    rows = tuple(
        style.text_cells(
            f"{curve['slice_chips'][i]:,.0f}", *(style.percent(curve[name][i]) for name in columns)
        )
        for i in style.thinned(curve["slice_chips"], keep=40)
    )
    return Table(columns=(_("Chips per slice"), *(headers[name] for name in columns)), rows=rows)
