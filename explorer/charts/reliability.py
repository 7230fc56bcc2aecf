"""Reliability: the share of chips that still form whole slices, with and without optical re-wiring."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Chart, Note, Result, Table

_STEP_FRACTION: Final = 0.01  # less than that is no step
_SURE_FRACTION: Final = 0.95

KPIS = (
    "reliability.slice_goodput_fraction.mean",
    "reliability.static_goodput_fraction.mean",
    "reliability.static_any_box_goodput_fraction.mean",
    "reliability.slice_goodput_fraction.q97",
    "reliability.static_goodput_fraction.q97",
    "reliability.goodput_fraction",
    "reliability.mtbf_s",
    "reliability.checkpoint_interval_s",
    "reliability.reconfiguration_s",
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
        source=_curve_source(result),
        draw="plot",
        body=_figure(curve, style.series(result, "any_box_goodput"), _chosen(result)),
        table=_table(curve),
        wide=True,
    )


def _curve_source(result: Result | None) -> str:
    """Closed forms are exact; boxes are drawn, and say how many and what they came to."""
    drawn = style.rows(result, "any_box_slice")
    exact = _("Closed form: binomial over cubes; exact, nothing is simulated")
    if not drawn:
        return exact
    box = drawn[0]
    return _(
        "Closed form: binomial over cubes; any contiguous box by Monte Carlo, %(mean)s (%(low)s – %(high)s, 95 %%) "
        "for %(size)s chips, %(draws)s draws, seed %(seed)s"
    ) % {
        "mean": style.percent(float(box["mean_fraction"])),
        "low": style.percent(float(box["low_fraction"])),
        "high": style.percent(float(box["high_fraction"])),
        "size": f"{int(box['slice_chips']):,}",
        "draws": f"{int(box['draws']):,}",
        "seed": box["seed"],
    }


def quantisation(result: Result | None) -> tuple[Note, ...]:
    """Why a larger slice can keep more of the machine, where it does."""
    scenario = style.scenario_of(result)
    rows = [
        row
        for row in style.rows(result, "slice_goodput_grid")
        if scenario and row["host_availability_fraction"] == scenario.reliability.host_availability_fraction
    ]
    steps = [
        (small, large)
        for small, large in itertools.pairwise(rows)
        if float(large["ocs_mean_fraction"]) > float(small["ocs_mean_fraction"]) + _STEP_FRACTION
    ]
    if not steps:
        return ()
    small, large = steps[0]
    text = _(
        "Only whole slices count: %(small)s chips keep %(less)s and %(large)s chips keep %(more)s, because with a "
        "cube or server down one slice of either size still fits, and the larger one uses more of what is up."
    ) % {
        "small": f"{int(small['slice_chips']):,}",
        "less": style.percent(float(small["ocs_mean_fraction"])),
        "large": f"{int(large['slice_chips']):,}",
        "more": style.percent(float(large["ocs_mean_fraction"])),
    }
    return (Note(text=text),)


def grid(result: Result | None) -> Chart | None:
    """Quarters of the machine as slices, at several availabilities of a host."""
    rows = style.rows(result, "slice_goodput_grid")
    if not rows:
        return None
    availabilities = sorted({float(row["host_availability_fraction"]) for row in rows})
    sizes = sorted({int(row["slice_chips"]) for row in rows})
    found = {(int(row["slice_chips"]), float(row["host_availability_fraction"])): row for row in rows}
    heads = [
        _("%(system)s at %(share)s") % {"system": system, "share": style.percent(share)}
        for system in (_("OCS"), _("static"))
        for share in availabilities
    ]
    return Chart(
        slug="slice-grid",
        title=_("At %(low)s available hosts a fixed torus has little left, a re-wired one most")
        % {"low": style.percent(availabilities[0])},
        axis=_("Mean share of all chips in whole slices, by chips per slice and host availability"),
        summary=_("Mean goodput of re-wired and fixed slices by slice size and host availability."),
        source=_("Closed form: binomial over cubes; exact, nothing is simulated"),
        draw="table",
        table=Table(
            columns=(_("Chips per slice"), *heads),
            rows=tuple(
                style.text_cells(
                    f"{size:,}",
                    *(
                        style.percent(float(found[size, share][column]))
                        for column in ("ocs_mean_fraction", "static_mean_fraction")
                        for share in availabilities
                    ),
                )
                for size in sizes
            ),
        ),
        wide=True,
    )


def spares(result: Result | None) -> Chart | None:
    """What cubes held back cost in promised slices, and how much surer the promise becomes."""
    curve = style.series(result, "slice_spares")
    if len(curve.get("spare_cubes") or ()) < 2:
        return None
    held, promised = curve["spare_cubes"], curve["promised_fraction"]
    sure = next((i for i, kept in enumerate(curve["ocs_kept_fraction"]) if kept >= _SURE_FRACTION), None)
    title = _("No number of spares up to %(most)s keeps the promised slices 95 %% of the time") % {
        "most": f"{held[-1]:,.0f}"
    }
    if sure is not None:
        title = _(
            "With %(spares)s held back %(share)s of the chips are promised, and all up 95 %% of the time or more"
        ) % {
            "spares": f"{held[sure]:,.0f}",
            "share": style.percent(promised[sure]),
        }
    lanes = (
        (
            "promised_fraction",
            _("chips in promised slices"),
            "var(--ink-2)",
            {"dash": "5px,4px", "shape": "hv"},
        ),
        ("ocs_kept_fraction", _("all of them up, OCS"), "var(--scaleout)", {"shape": "hv"}),
        ("static_kept_fraction", _("all of them up, static"), "var(--failure)", {"shape": "hv"}),
    )
    return Chart(
        slug="slice-spares",
        title=title,
        axis=_(
            "Share of chips that are promised, and of time that all promised slices are up, by how many cubes or "
            "servers are held back"
        ),
        summary=title,
        source=_("Closed form: binomial over cubes; exact, nothing is simulated"),
        draw="plot",
        body=style.figure(
            [
                style.line(
                    held, curve[column], name=name, color=color, line=dash,
                    hovertemplate="%{x:,} · %{y:.1%}<extra>%{fullData.name}</extra>",
                )
                for column, name, color, dash in lanes
            ],
            x=style.axis(rangemode="tozero", tickformat=","),
            y=style.axis(range=[0, 1.02], tickformat=".0%", dtick=0.25),
            showlegend=True,
            legend=dict(style.LEGEND),
            margin={"l": 48, "r": 16, "t": 40, "b": 36},
        ),
        table=Table(
            columns=(_("Held back"), *(name for _column, name, _color, _dash in lanes)),
            rows=tuple(
                style.text_cells(f"{held[i]:,.0f}", *(style.percent(curve[column][i]) for column, *_rest in lanes))
                for i in style.thinned(held)
            ),
        ),
        wide=True,
    )  # fmt: skip


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


def _figure(
    curve: Mapping[str, Sequence[float]], boxes: Mapping[str, Sequence[float]], chosen: float | None
) -> dict[str, Any]:
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
    if boxes.get("mean"):
        data.append(_box_line(boxes))
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


def _box_line(boxes: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Any contiguous box, with the interval of its draws."""
    mean, low, high = boxes["mean"], boxes["low"], boxes["high"]
    color = "var(--host)"
    return style.line(
        boxes["slice_chips"], mean, name=_("static, any box"), color=color, mode="lines+markers",
        marker={"color": color, "symbol": "diamond", "size": 7},
        error_y={
            "type": "data", "symmetric": False, "color": color, "thickness": 1.5, "width": 3,
            "array": [above - at for at, above in zip(mean, high, strict=True)],
            "arrayminus": [at - below for at, below in zip(mean, low, strict=True)],
        },
        hovertemplate="%{x:,} · %{y:.1%}<extra>%{fullData.name}</extra>",
    )  # fmt: skip


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
