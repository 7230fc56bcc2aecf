"""Serving by class of requests: what was promised to each class, what of it was met, and its times."""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table

MARKS: Final = ("mean", "p50", "p90", "p95", "p99")
_TIMES: Final = ("ttft_s", "tpot_s", "e2e_s")


def attainment(result: Result | None, baseline: Result | None = None) -> Chart | None:
    """One row per class: its requests, its objectives, the share that met them and how many a second."""
    rows = style.rows(result, "classes")
    if not rows:
        return None
    before = {row["class"]: row for row in style.rows(baseline, "classes")}
    columns = (
        _("Class"), _("Finished"), _("Rejected"), _("SLO TTFT"), _("SLO TPOT"),
        wording.label("serving.slo_attainment_fraction"), wording.label("serving.slo_goodput_request_per_s"),
    )  # fmt: skip
    body = tuple(
        (
            Cell(text=str(row["class"]), muted=True),
            Cell(text=f"{row['completed_count']:,}"),
            Cell(text=f"{row['rejected_count']:,}"),
            _cell(row, "slo_ttft_s"),
            _cell(row, "slo_tpot_s"),
            _cell(row, "slo_attainment_fraction", before.get(row["class"])),
            _cell(row, "slo_goodput_request_per_s", before.get(row["class"])),
        )
        for row in rows
    )
    return Chart(
        slug="classes",
        title=_title(rows),
        axis=_("Finished requests by class, each held to its class's SLO"),
        summary=_("Share of each class of requests that met its SLO."),
        source=_("Simulated"),
        draw="table",
        table=Table(columns=columns, rows=body),
        wide=True,
    )


def times(result: Result | None, baseline: Result | None = None) -> Chart | None:
    """The usual percentiles of each class."""
    rows = style.rows(result, "classes")
    if not rows:
        return None
    before = {row["class"]: row for row in style.rows(baseline, "classes")}
    body = tuple(
        (
            Cell(text=str(row["class"]), muted=True),
            Cell(text=wording.label(f"serving.{time}"), muted=True),
            *(_cell(row, f"{time}.{mark}", before.get(row["class"])) for mark in MARKS),
        )
        for row in rows
        for time in _TIMES
        if f"{time}.mean" in row
    )
    if not body:
        return None
    return Chart(
        slug="class-times",
        title=_("Times of a request, by class"),
        axis=_("Over the finished requests of a class; change since the baseline beside each"),
        summary=_("Mean and percentiles of the times of a request, by class."),
        source=_("Simulated"),
        draw="table",
        table=Table(columns=(_("Class"), _("Time"), _("mean"), *MARKS[1:]), rows=body, words=2),
        wide=True,
    )


def _title(rows: Any) -> str:
    shares = {str(row["class"]): row.get("slo_attainment_fraction") for row in rows}
    known = {name: share for name, share in shares.items() if share is not None}
    if not known:
        return _("No class finished a request")
    worst = min(known, key=lambda name: known[name])
    return _("%(name)s meets its SLO least often: %(share)s of its requests") % {
        "name": worst,
        "share": style.percent(known[worst]),
    }


def _cell(row: Any, name: str, before: Any = None) -> Cell:
    value = row.get(name)
    if value is None:
        return Cell(text="–", muted=True)
    number = style.number(value, name)
    was = before.get(name) if before else None
    return Cell(text=number.text, unit=number.unit, delta=style.delta(value, was, f"serving.{name}"))
