"""Real serving runs replayed: running and waiting requests over time, measured beside replayed."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Chart, Panel
from simcore.validation.serving_curves import ReplayCurves, replay_curves


def panel() -> Panel:
    """One chart for each run."""
    charts = tuple(_chart(at, run) for at, run in enumerate(replay_curves()))
    return Panel(
        tab="replay", headline=_("Real vLLM runs, replayed with the same arrivals and lengths"), charts=charts
    )


def _chart(at: int, run: ReplayCurves) -> Chart:
    words = {
        "run": run.run,
        "tpot": style.percent(run.replayed_tpot_s[0] / run.measured_tpot_s[0] - 1, signed=True),
        "ttft": style.percent(run.replayed_ttft_s[0] / run.measured_ttft_s[0] - 1, signed=True),
    }
    title = _("%(run)s: mean TPOT %(tpot)s, mean TTFT %(ttft)s of what was measured") % words
    lines = [
        line
        for kind, color, names in (
            ("running", "var(--accent)", (_("running, measured"), _("running, replayed"))),
            ("waiting", "var(--ink-3)", (_("waiting, measured"), _("waiting, replayed"))),
        )
        for line in _pair(run, kind, color, names)
    ]
    figure = style.figure(
        lines,
        x=style.axis(title=_("Seconds since the first request")),
        y=style.axis(title=_("Requests")),
        showlegend=True,
        legend={"orientation": "h", "y": 1.16, "x": 0},
    )
    return Chart(
        slug=f"replay-{at}",
        title=title,
        axis=_("Running and waiting requests over time"),
        summary=title,
        source=_(
            "LLMServingSim's recorded vLLM runs (MIT), 300 requests each; KV blocks as vLLM reported them"
        ),
        draw="plot",
        body=figure,
        wide=True,
    )


def _pair(run: ReplayCurves, kind: str, color: str, names: tuple[str, str]) -> list[dict[str, Any]]:
    """Measured dotted, replayed solid."""
    measured, replayed = (getattr(run, f"{who}_{kind}_count") for who in ("measured", "replayed"))
    return [
        style.line(run.time_s, measured, name=names[0], color=color, line={"dash": "dot"}),
        style.line(run.time_s, replayed, name=names[1], color=color),
    ]
