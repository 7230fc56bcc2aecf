"""How sure the simulated means are: over replications, and in the steady state of a single run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table

SHOWN: Final = (
    "serving.ttft_s.mean",
    "serving.ttft_s.p95",
    "serving.tpot_s.mean",
    "serving.tpot_s.p95",
    "serving.e2e_s.mean",
    "serving.request_per_s",
    "serving.slo_attainment_fraction",
    "serving.slo_goodput_request_per_s",
)

Row = Mapping[str, Any]


def replications(result: Result | None) -> Chart | None:
    """Means over the seeds that were run, each with its 95 % interval."""
    by_name = {str(row["metric"]): row for row in style.rows(result, "replications")}
    listed = [by_name[name] for name in SHOWN if name in by_name]
    if not listed:
        return None
    count = int(listed[0]["count"])
    return Chart(
        slug="replications",
        title=_("Means of %(count)s replications") % {"count": count},
        axis=_("Mean over independent seeds, with its 95 % interval by Student's t"),
        summary=_("Simulated means with their 95 % intervals."),
        source=_("Simulated"),
        draw="table",
        table=Table(
            columns=(_("Result"), _("mean"), _("from"), _("to")),
            rows=tuple(
                (
                    Cell(text=wording.label(str(row["metric"])), muted=True),
                    *(_cell(row[end], str(row["metric"])) for end in ("mean", "low", "high")),
                )
                for row in listed
            ),
        ),
        wide=True,
    )


def steady_state(result: Result | None) -> Chart | None:
    """Warm-up, and means without it, of the run that was simulated first."""
    listed = style.rows(result, "steady_state")
    if not listed:
        return None
    settled = [row for row in listed if row["is_steady"]]
    return Chart(
        slug="steady-state",
        title=_steady_title(listed, settled),
        axis=_("Warm-up cut by MSER-5; mean of the rest with its 95 % interval over 20 batch means"),
        summary=_("Means in steady state with their 95 % intervals."),
        source=_("Simulated"),
        draw="table",
        table=Table(
            columns=(_("Time"), _("Warm-up"), _("mean"), _("from"), _("to")),
            rows=tuple(_steady_row(row) for row in listed),
        ),
        wide=True,
    )


def _steady_title(listed: Any, settled: list[Row]) -> str:
    if len(settled) < len(listed):
        names = [wording.label(str(row["metric"])) for row in listed if not row["is_steady"]]
        return _("Does not settle within the run: %(names)s") % {"names": ", ".join(names)}
    longest = max(float(row["warmup_s"]) for row in settled)
    return _("Settled after %(warmup)s") % {"warmup": style.number(longest, "warmup_s")}


def _steady_row(row: Row) -> tuple[Cell, ...]:
    name = str(row["metric"])
    head = Cell(text=wording.label(name), muted=True)
    if not row["is_steady"]:
        return (head, *(Cell(text="–", muted=True) for _column in range(4)))
    return (head, *(_cell(row[key], key) for key in ("warmup_s", "mean_s", "low_s", "high_s")))


def _cell(value: float, name: str) -> Cell:
    number = style.number(value, name)
    return Cell(text=number.text, unit=number.unit)
