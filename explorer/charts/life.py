"""A cluster's life on the Reliability page: what chips did over time, where their time went, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import LEGEND, Bar, Cell, Chart, Result, Table

KPIS: Final = (
    "reliability.life.goodput_fraction",
    "reliability.life.utilisation_fraction",
    "reliability.life.interruption_count",
    "reliability.life.mtti_s",
    "reliability.life.stop_wait_s.mean",
    "reliability.life.wait_s.mean",
    "reliability.life.wait_s.p95",
    "reliability.life.swap_count",
    "reliability.life.reconfiguration_count",
)
_DAY_S: Final = 86_400.0
_MARKS: Final = {
    "useful": "compute", "rework": "failure", "slowdown": "scaleup", "checkpoint": "host", "restart": "overhead",
    "stranded": "queue", "queue": "queue", "idle": "queue", "repair": "failure", "maintenance": "host",
}  # fmt: skip


def causes() -> dict[str, str]:
    return {
        "useful": _("useful work"),
        "rework": _("work done again"),
        "slowdown": _("slowed by failed links"),
        "checkpoint": _("checkpoints"),
        "restart": _("restarts"),
        "stranded": _("waiting for the rest of a slice"),
        "queue": _("waiting for more units"),
        "idle": _("idle"),
        "repair": _("under repair"),
        "maintenance": _("in maintenance"),
    }


def _lanes() -> dict[str, tuple[str, str]]:
    """What chips do, from the bottom of the picture to its top."""
    return {
        "running": (_("running"), "var(--compute)"),
        "starting": (_("restarting"), "var(--hbm)"),
        "waiting": (_("healthy, waiting"), "var(--queue)"),
        "idle": (_("idle"), "var(--hair-2)"),
        "maintenance": (_("in maintenance"), "var(--host)"),
        "down": (_("under repair"), "var(--failure)"),
    }


def timeline(result: Result | None) -> Chart | None:
    """Chips by what they do over time, above the interruptions of jobs."""
    columns = style.series(result, "life")
    if not columns.get("running"):
        return None
    return Chart(
        slug="life",
        title=_timeline_title(result),
        axis=_("Chips by what they do, over days; below, interruptions of jobs in each slice of time"),
        summary=_timeline_summary(result),
        source=_source(result),
        draw="plot",
        body=_timeline_figure(columns),
        table=_timeline_table(columns),
        wide=True,
        height=340,
    )


def _source(result: Result | None) -> str:
    failures = style.metric(result, "reliability.life.failure_count") or 0
    return _("Simulated, %(count)s failures, seed %(seed)s") % {
        "count": f"{failures:,.0f}",
        "seed": (result or {}).get("seed", 1),
    }


def _timeline_title(result: Result | None) -> str:
    held = style.metric(result, "reliability.life.utilisation_fraction") or 0.0
    useful = style.metric(result, "reliability.life.goodput_fraction") or 0.0
    return _("Jobs hold %(held)s of the chips over this life, and %(useful)s is useful work") % {
        "held": style.percent(held),
        "useful": style.percent(useful),
    }


def _timeline_summary(result: Result | None) -> str:
    count = style.metric(result, "reliability.life.interruption_count") or 0
    between = style.metric(result, "reliability.life.mtti_s")
    if between is None:
        return _("No job is interrupted.")
    return _("%(count)s interruptions, one every %(time)s that a job holds its chips.") % {
        "count": f"{count:,.0f}",
        "time": style.number(between, "mtti_s"),
    }


def _timeline_figure(columns: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    days = [instant / _DAY_S for instant in columns["time_s"]]
    data = [
        style.line(
            days, columns[column], name=name, color=color, stackgroup="chips", fillcolor=color,
            line={"width": 0}, hovertemplate="%{x:,.0f} d · %{y:,.0f}<extra>%{fullData.name}</extra>",
        )
        for column, (name, color) in _lanes().items()
        if max(columns[column]) > 0
    ]  # fmt: skip
    data.append(
        {
            "type": "bar",
            "x": days,
            "y": list(columns["interruptions"]),
            "yaxis": "y2",
            "name": _("interruptions"),
            "marker": {"color": "var(--ink)"},
            "hovertemplate": "%{x:,.0f} d · %{y:,.0f}<extra>%{fullData.name}</extra>",
        }
    )
    return style.figure(
        data,
        x=style.axis(ticksuffix=" d", rangemode="tozero", showgrid=False, anchor="y2"),
        y=style.axis(rangemode="tozero", nticks=5, tickformat=",", domain=[0.22, 1]),
        yaxis2=style.axis(rangemode="tozero", nticks=2, tickformat=",d", domain=[0, 0.16]),
        bargap=0,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 48, "r": 16, "t": 56, "b": 36},
    )


def _timeline_table(columns: Mapping[str, Sequence[float]]) -> Table:
    time = columns["time_s"]
    names = [*(name for name, _color in _lanes().values()), _("failures"), _("interruptions")]
    keys = [*_lanes(), "failures", "interruptions"]
    return Table(
        columns=(_("Time"), *names),
        rows=tuple(
            style.text_cells(
                str(style.number(time[i], "time_s")), *(f"{columns[key][i]:,.0f}" for key in keys)
            )
            for i in style.thinned(time)
        ),
    )


def chip_time(result: Result | None) -> Chart | None:
    """Where the chip time of the whole life went; the bars sum to 100 %."""
    rows = style.rows(result, "life_time")
    if not rows:
        return None
    shares = {str(row["cause"]): float(row["fraction"]) for row in rows}
    largest = max((name for name in shares if name != "useful"), key=lambda name: shares[name], default="")
    title = _("Every chip works all the time")
    if largest:
        title = _("%(share)s of chip time is lost; the largest part is %(cause)s, %(most)s") % {
            "share": style.percent(1 - shares.get("useful", 0.0)),
            "cause": causes()[largest],
            "most": style.percent(shares[largest]),
        }
    told = ", ".join(f"{causes()[name]} {style.percent(share)}" for name, share in shares.items())
    return Chart(
        slug="life-time",
        title=title,
        axis=_("Share of owned chip time; the bars sum to 100 %"),
        summary=_("Chip time by cause: %(parts)s.") % {"parts": told},
        source=_source(result),
        draw="bars",
        body=tuple(_bars(shares)),
        table=Table(
            columns=(_("Cause"), _("Share")),
            rows=tuple(
                (Cell(text=causes()[name], key=_MARKS[name]), Cell(text=style.percent(share, digits=2)))
                for name, share in shares.items()
            ),
            total=style.text_cells(_("Sum"), style.percent(sum(shares.values()), digits=0)),
        ),
    )


def _bars(shares: Mapping[str, float]) -> list[Bar]:
    widest = max(shares.values())
    return [
        Bar(
            label=causes()[name],
            resource=_MARKS[name],
            text=style.percent(share),
            left=44.0,
            width=max(0.4, share / widest * 44.0),
            hatched=_MARKS[name] in style.HATCHED,
        )
        for name, share in sorted(shares.items(), key=lambda pair: -pair[1])
    ]


def events(result: Result | None) -> Chart | None:
    """The first things that happened."""
    columns = style.series(result, "life_events")
    times = columns.get("time_s")
    if not times:
        return None
    shown = range(min(len(times), 12))
    return Chart(
        slug="life-events",
        title=_("What happened first"),
        axis=_("The first %(count)s events of the life") % {"count": len(shown)},
        summary=_("Failures, repairs, stops and starts in their order."),
        source=_source(result),
        draw="table",
        table=Table(
            columns=(_("Time"), _("Event"), _("Part"), _("Unit"), _("Job")),
            rows=tuple(
                style.text_cells(
                    str(style.number(times[i], "time_s")),
                    _event_words()[str(columns["event"][i])],
                    _part_words().get(str(columns["part"][i]), ""),
                    *(
                        "" if columns[key][i] < 0 else f"{int(columns[key][i]) + 1:,}"
                        for key in ("unit", "job")
                    ),
                )
                for i in shown
            ),
            words=3,
        ),
    )


def _event_words() -> dict[str, str]:
    return {
        "failure": _("fails"),
        "repaired": _("repaired"),
        "interrupted": _("job stops"),
        "swapped": _("another unit takes its place"),
        "waits": _("job waits for units"),
        "started": _("job starts"),
        "finished": _("job ends"),
        "maintenance": _("maintenance begins"),
    }


def _part_words() -> dict[str, str]:
    return {
        "server": _("server"),
        "chip": _("chip"),
        "link": _("link"),
        "switch": _("switch"),
        "ocs": _("optical switch"),
    }
