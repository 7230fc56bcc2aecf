"""A scenario under every scheduler: one table, and the distributions of TTFT and ITL over each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import beside, compare, style
from explorer.charts.beside import Row
from explorer.charts.latency_cdf import CDFS
from explorer.charts.style import Chart, Panel, Result

COLUMNS: Final = (
    "serving.ttft_s.p50",
    "serving.ttft_s.p99",
    "serving.tpot_s.p50",
    "serving.itl_s.p99",
    "serving.slo_goodput_request_per_s",
    "serving.output_token_per_s",
    "serving.preemption_count",
)
GOODPUT: Final = "serving.slo_goodput_request_per_s"
TAIL: Final = "serving.ttft_s.p99"
ALIKE: Final = 0.005


def panel(rows: Sequence[Row]) -> Panel:
    """What each scheduler does with the same requests."""
    done = [row for row in rows if row.result is not None]
    results, names = [row.result for row in done], [row.name for row in done]
    curves = (_curves(which, results, names) for which in ("ttft", "itl"))
    return Panel(
        tab="schedulers",
        headline=_headline(rows, done),
        notes=tuple(beside.notes(rows)),
        charts=tuple(chart for chart in (_table(rows), *curves) if chart is not None),
    )


def _curves(which: str, results: Sequence[Result | None], names: Sequence[str]) -> Chart | None:
    chart = compare.overlaid_cdf(which, results, names)
    title = _("%(name)s under each scheduler") % {"name": wording.label(CDFS[which])}
    return None if chart is None else replace(chart, title=title)


def _headline(rows: Sequence[Row], done: Sequence[Row]) -> str:
    waited_for = [row for row in rows if row.result is None and not row.refused]
    if not rows:
        return _("This scenario serves no requests")
    if waited_for or not done:
        return _("%(done)s of %(count)s schedulers have run") % {"done": len(done), "count": len(rows)}
    if len(done) == 1:
        return _("Only %(name)s can run this scenario") % {"name": done[0].name}
    ranked = sorted(done, key=lambda row: style.metric(row.result, GOODPUT) or 0.0, reverse=True)
    best, least = ranked[0], ranked[-1]
    most, fewest = (style.metric(row.result, GOODPUT) or 0.0 for row in (best, least))
    if most - fewest > ALIKE * most:
        return _("%(best)s serves most within the objectives: %(most)s, and %(least)s least: %(fewest)s") % {
            "best": wording.capitalised(best.name),
            "most": style.number(most, GOODPUT),
            "least": least.name,
            "fewest": style.number(fewest, GOODPUT),
        }
    quickest = min(done, key=lambda row: style.metric(row.result, TAIL) or float("inf"))
    return _("All serve as much within the objectives; %(name)s has the shortest TTFT p99: %(tail)s") % {
        "name": quickest.name,
        "tail": style.number(style.metric(quickest.result, TAIL) or 0.0, TAIL),
    }


def _table(rows: Sequence[Row]) -> Chart | None:
    if not rows:
        return None
    return Chart(
        slug="schedulers",
        title=_("The same requests under each scheduler"),
        axis=_("Change against the scheduler that the scenario has now; all else is as it stands there"),
        summary=_("Times, goodput, throughput and preemptions of each scheduler."),
        source=_("Simulated"),
        draw="table",
        table=beside.table(rows, COLUMNS, head=_("Scheduler")),
        wide=True,
    )
