"""Distributions of the times of a request against what was promised.

TTFT and TPOT have objectives of their own. A gap between tokens is held against the TPOT objective, which bounds the
mean of a request's gaps; an end-to-end time against both together, where every answer has the same length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Chart, Result, Table
from simcore.workload.lengths import Constant

CDFS: Final = {
    "ttft": "serving.ttft_s", "tpot": "serving.tpot_s", "itl": "serving.itl_s", "e2e": "serving.e2e_s",
}  # fmt: skip
Curve = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A limit, and the name under which it stands at its mark."""

    limit_s: float
    label: str


def cdf(which: str, result: Result | None, baseline: Result | None = None) -> Chart | None:
    """Share of requests (of gaps, for ITL) whose time is at most x, with the objective marked."""
    curve = style.series(result, f"{which}_cdf")
    x, share = curve.get(f"{which}_s"), curve.get("fraction")
    if not x or not share:
        return None
    objective = objective_of(which, result)
    before = style.series(baseline, f"{which}_cdf")
    return Chart(
        slug=f"{which}-cdf",
        title=_title(which, result, baseline, objective),
        axis=axis_text(which),
        summary=_summary(which, result),
        source=style.simulated(result),
        draw="plot",
        body=_figure(which, x, share, before, objective),
        table=_table(which, x, share),
    )


def axis_text(which: str) -> str:
    """What such a picture counts."""
    words = {"name": wording.label(CDFS[which])}
    if which == "itl":
        return _("Share of the gaps between tokens (%(name)s) that are at most x, log scale") % words
    return _("Share of requests whose %(name)s is at most x, log scale") % words


def objective_of(which: str, result: Result | None) -> Objective | None:
    """What was promised of this time; None where it follows from no promise, or each class has its own."""
    scenario = style.scenario_of(result)
    if scenario is None or scenario.workload.classes:
        return None
    slo, lengths = scenario.workload.slo, scenario.workload.lengths
    if which == "ttft":
        return Objective(limit_s=slo.ttft_s, label=_("SLO"))
    if which == "tpot":
        return Objective(limit_s=slo.tpot_s, label=_("SLO"))
    if which == "itl":
        return Objective(limit_s=slo.tpot_s, label=_("TPOT SLO"))
    if scenario.workload.arrivals.kind == "trace" or not isinstance(lengths, Constant):
        return None
    return Objective(
        limit_s=slo.ttft_s + slo.tpot_s * (lengths.output_tokens - 1), label=_("TTFT and TPOT SLO")
    )


def share_within(curve: Curve, which: str, limit: float) -> float | None:
    """The fraction of requests at or below a limit, read off the curve by linear interpolation."""
    x, y = curve.get(f"{which}_s") or [], curve.get("fraction") or []
    if not x or not y:
        return None
    if limit < x[0]:
        return 0.0
    for index in range(1, len(x)):
        if limit < x[index]:
            span = x[index] - x[index - 1]
            part = (limit - x[index - 1]) / span if span > 0 else 1.0
            return y[index - 1] + part * (y[index] - y[index - 1])
    return y[-1]


def _title(which: str, result: Result | None, baseline: Result | None, objective: Objective | None) -> str:
    name = wording.label(CDFS[which])
    if objective is not None:
        return _promised(which, name, result, baseline, objective.limit_s)
    half, tail = style.metric(result, f"{CDFS[which]}.p50"), style.metric(result, f"{CDFS[which]}.p99")
    if half is None or tail is None:
        return name
    words = {"name": name, "half": style.number(half, "x_s"), "tail": style.number(tail, "x_s")}
    return _("%(name)s: half within %(half)s, 99 of 100 within %(tail)s") % words


def _promised(which: str, name: str, result: Result | None, baseline: Result | None, limit_s: float) -> str:
    now = share_within(style.series(result, f"{which}_cdf"), which, limit_s) or 0.0
    before = share_within(style.series(baseline, f"{which}_cdf"), which, limit_s)
    words = {
        "share": style.percent(now),
        "name": name,
        "limit": style.number(limit_s, "limit_s"),
        "before": style.percent(before or 0.0),
    }
    same = before is None or abs(now - before) < 5e-4
    if which == "itl":
        if same:
            return _("%(share)s of the gaps between tokens are within %(limit)s, the TPOT objective") % words
        return _("%(share)s of the gaps between tokens are within %(limit)s, %(before)s before") % words
    if same:
        return _("%(share)s of requests meet the %(limit)s %(name)s objective") % words
    if now > (before or 0.0):
        return _("%(share)s of requests meet the %(limit)s %(name)s objective, up from %(before)s") % words
    return _("%(share)s of requests meet the %(limit)s %(name)s objective, down from %(before)s") % words


def _summary(which: str, result: Result | None) -> str:
    parts = [
        f"{mark} {style.number(value, 'x_s')}"
        for mark in ("p50", "p90", "p95", "p99")
        if (value := style.metric(result, f"{CDFS[which]}.{mark}")) is not None
    ]
    return _("Cumulative distribution of %(name)s: %(parts)s.") % {
        "name": wording.label(CDFS[which]),
        "parts": ", ".join(parts),
    }


def _figure(
    which: str, x: Sequence[float], share: Sequence[float], before: Curve, objective: Objective | None
) -> dict[str, Any]:
    data = []
    if before.get(f"{which}_s"):
        data.append(style.baseline_line(before[f"{which}_s"], before["fraction"], name=_("Baseline")))
    data.append(style.line(x, share, name=_("Now")))
    for trace in data:
        trace["hovertemplate"] = "%{x:.3~s}s · %{y:.1%}<extra>%{fullData.name}</extra>"
        trace["line"] = {**trace["line"], "shape": shape_of(which)}
    shapes, annotations = _mark(objective) if objective else ([], [])
    drawn = [*x, *before.get(f"{which}_s", ()), *([objective.limit_s] if objective else [])]
    return style.figure(
        data,
        x=style.log_axis(drawn, "x_s"),
        y=style.axis(range=[0, 1.02], tickformat=".0%", dtick=0.25),
        shapes=shapes,
        annotations=annotations,
    )


def shape_of(which: str) -> str:
    """Gaps are counted in bins, so their share rises within one; every other time is a step of its own."""
    return "linear" if which == "itl" else "hv"


def _mark(objective: Objective) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    limit_s = objective.limit_s
    mark = {
        "type": "line", "xref": "x", "yref": "paper", "x0": limit_s, "x1": limit_s, "y0": 0, "y1": 1,
        "line": {"color": "var(--worse)", "width": 1.5, "dash": "2px,3px"},
    }  # fmt: skip
    text = f"{objective.label} {style.number(limit_s, 'limit_s')}"
    note = style.direct_label(
        text, x=math.log10(limit_s), y=0.02, yref="paper", xanchor="right", yanchor="bottom"
    )
    note["font"] = {"color": "var(--worse)", "size": 14}
    return [mark], [note]


def _table(which: str, x: Sequence[float], share: Sequence[float]) -> Table:
    return Table(
        columns=(wording.label(CDFS[which]), _("Share at most")),
        rows=tuple(
            style.text_cells(str(style.number(x[i], "x_s")), style.percent(share[i]))
            for i in style.thinned(x)
        ),
    )
