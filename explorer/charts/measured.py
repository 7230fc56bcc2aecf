"""A benchmark's result over a simulated one: each figure that both have, and its percentiles on the curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.latency_cdf import CDFS, Curve, axis_text, shape_of
from explorer.charts.style import Cell, Chart, Note, Panel, Result, Table
from simcore.measurements import ServingMeasurement
from simcore.report.overlay import Pair, nearest, pairs, unlike

_HEADLINED: Final = ("serving.tpot_s.mean", "serving.ttft_s.mean", "serving.e2e_s.mean")
_SHARES: Final = {"p50": 0.5, "p99": 0.99}


def panel(result: Result, points: Sequence[ServingMeasurement]) -> Panel:
    """The load point that is most like the run, beside the run."""
    metrics = result["metrics"]
    point = nearest(points, metrics)
    found = pairs(point, metrics)
    curves = (_curve(which, result, found) for which in CDFS)
    return Panel(
        tab="measured",
        headline=_headline(found),
        lede=_lede(point, len(points)),
        notes=tuple(
            Note(text=wording.translated(message), kind="warn", code=message.code)
            for message in unlike(point, metrics)
        ),
        charts=(_figures(found), *(curve for curve in curves if curve is not None)),
    )


def _headline(found: Sequence[Pair]) -> str:
    errors = {pair.metric: style.percent(pair.error_fraction, signed=True) for pair in found}
    parts = [f"{wording.label(name)} {errors[name]}" for name in _HEADLINED if name in errors]
    if not parts:
        return _("Measured beside simulated")
    return _("Simulated against measured: %(parts)s") % {"parts": ", ".join(parts)}


def _lede(point: ServingMeasurement, count: int) -> str:
    words = {
        "tool": point.source_tool,
        "model": point.model or "–",
        "rate": style.number(point.request_per_s, "request_per_s"),
        "count": count,
    }
    if count == 1:
        return _("%(tool)s, model %(model)s, %(rate)s") % words
    return _("%(tool)s, model %(model)s, %(rate)s: the nearest of %(count)s load points") % words


def _figures(found: Sequence[Pair]) -> Chart:
    body = tuple(
        (
            Cell(text=wording.label(pair.metric), muted=True),
            _cell(pair.measured, pair.metric),
            _cell(pair.simulated, pair.metric),
            Cell(text=style.percent(pair.error_fraction, signed=True)),
        )
        for pair in found
    )
    return Chart(
        slug="measured",
        title=_("What was measured and what is simulated"),
        axis=_("The error is what is simulated over what was measured, less one"),
        summary=_("Each figure of the benchmark beside the simulated one."),
        source=_("The uploaded file, and this run"),
        draw="table",
        table=Table(columns=(_("Metric"), _("Measured"), _("Simulated"), _("Error")), rows=body),
        wide=True,
    )


def _cell(value: float, name: str) -> Cell:
    number = style.number(value, name)
    return Cell(text=number.text, unit=number.unit)


def _curve(which: str, result: Result, found: Sequence[Pair]) -> Chart | None:
    """The simulated distribution, with the measured percentiles on it; None where the file has none of them."""
    name = CDFS[which]
    measured = {mark: pair.measured for mark in _SHARES for pair in found if pair.metric == f"{name}.{mark}"}
    curve = style.series(result, f"{which}_cdf")
    if not measured or not curve.get("fraction"):
        return None
    label = wording.label(name)
    return Chart(
        slug=f"measured-{which}",
        title=_("%(name)s: the simulated distribution and the measured percentiles") % {"name": label},
        axis=axis_text(which),
        summary=_("Simulated distribution of %(name)s with the measured percentiles.") % {"name": label},
        source=_("The uploaded file, and this run"),
        draw="plot",
        body=_curve_figure(which, curve, measured),
    )


def _curve_figure(which: str, curve: Curve, measured: Mapping[str, float]) -> dict[str, Any]:
    x = curve[f"{which}_s"]
    simulated = style.line(x, curve["fraction"], name=_("Simulated"), line={"shape": shape_of(which)})
    points = {
        "type": "scatter",
        "mode": "markers+text",
        "x": list(measured.values()),
        "y": [_SHARES[mark] for mark in measured],
        "text": list(measured),
        "textposition": "middle right",
        "name": _("Measured"),
        "marker": {"color": "var(--accent)", "size": 10, "symbol": "diamond"},
    }
    hover = "%{x:.3~s}s · %{y:.1%}<extra>%{fullData.name}</extra>"
    return style.figure(
        [{**trace, "hovertemplate": hover} for trace in (simulated, points)],
        x=style.log_axis([*x, *measured.values()], "x_s"),
        y=style.axis(range=[0, 1.05], tickformat=".0%", dtick=0.25),
        showlegend=True,
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"color": "var(--ink-2)"},
        },
        margin={"l": 48, "r": 16, "t": 48, "b": 36},
    )
