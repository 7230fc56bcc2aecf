"""What a scenario's figures depend on: a tornado, draws over intervals, and the value that keeps a promise.

`explorer/sensitivity.html`: `scenario`, `panel`, `asked` (a forms.sensitivity.Question), `choices`, `draws`, `errors`.
Everything is evaluated while the page is asked for, within `SECONDS`; what was not reached by then is said.
"""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from explorer import actions
from explorer.access import Viewer, scenario_for, viewer_of, viewer_owning
from explorer.charts import sensitivity as charts
from explorer.charts.style import Chart, Note, Panel
from explorer.forms.sensitivity import DRAWS, Question, choices, question, study_of
from explorer.tasks import catalog_with, read_upload
from explorer.views.common import limited, refuse
from explorer.wording import translated
from simcore.analysis.cells import CellResult, evaluate
from simcore.analysis.studies import InRounds, Study
from simcore.errors import InputError
from simcore.plan import Plan
from simcore.scenario import Scenario

SECONDS: Final = 5.0
REQUESTS: Final = 20_000  # of one point that is simulated while the page is asked for


@require_safe
@limited("sensitivity", per_minute=60, method="GET")
def sensitivity(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The page; a stranger's scenario is not found."""
    scenario = scenario_for(viewer_of(request), pk)
    owner = viewer_owning(scenario)
    try:
        outcome = actions.plan_for(owner, scenario.document)
        if outcome.plan is None:
            raise InputError(*outcome.infeasible)
    except InputError as error:
        refuse(request, error)
        return redirect("workbench", pk)
    asked = question(outcome.plan, request.GET.dict())
    errors = [message for error in asked.errors for message in error.messages]
    found: tuple[Chart, ...] = ()
    notes: tuple[Note, ...] = ()
    try:
        found, notes = _answered(asked, outcome.plan, scenario.document, owner)
    except InputError as error:
        errors += error.messages
    context = {
        "scenario": scenario,
        "panel": Panel(
            tab="sensitivity",
            headline=_("What this scenario's figures depend on"),
            notes=(*notes, *(Note(text=_said(message), kind="warn") for message in errors)),
            charts=found,
        ),
        "asked": asked,
        "choices": choices(outcome.plan, asked),
        "draws": DRAWS,
    }
    return render(request, "explorer/sensitivity.html", context, status=422 if errors and not found else 200)


def _said(message: Any) -> str:
    text = translated(message)
    return f"{message.path}: {text}" if message.path else text


def _answered(
    asked: Question, planned: Plan, document: Mapping[str, Any], owner: Viewer
) -> tuple[tuple[Chart, ...], tuple[Note, ...]]:
    study = study_of(asked, planned)
    _refuse_long_runs(study, planned.scenario)
    results, is_cut = _results(study, document, owner)
    tables = study.summary(document, results)
    if asked.kind == "goal":
        found = [charts.goal(tables, asked.path, asked.bound_metric)]
    elif asked.kind == "draws":
        found = [
            charts.distribution(tables, asked.metric),
            charts.correlations(tables["rank_correlations"], asked.metric),
        ]
    else:
        found = [charts.tornado(tables["tornado"], asked.metric)]
    notes = [Note(text=_cut_text(len(results)), kind="warn")] if is_cut else []
    shown = tuple(chart for chart in found if chart is not None)
    if not shown:
        notes.append(
            Note(text=_("No point of this study can be built; widen or move its ranges"), kind="warn")
        )
    return shown, tuple(notes)


def _cut_text(count: int) -> str:
    words = {"seconds": f"{SECONDS:.0f}", "count": count}
    return _("stopped after %(seconds)s s, with %(count)s points: ask for fewer inputs or draws") % words


def _refuse_long_runs(study: Study, scenario: Scenario) -> None:
    varied = [cell.overrides.get("workload.request_count", 0) for cell in study.cells({})]
    requests = max(scenario.workload.request_count, *varied) * scenario.run.replications
    if requests > REQUESTS and (study.depth != "closed_forms" or any(varied)):
        raise InputError.at(
            "workload.request_count",
            "sensitivity.requests",
            "got {got:,} requests; points are simulated here with up to {allowed:,}, so take fewer, a figure in closed "
            "form, or a sweep",
            got=requests,
            allowed=REQUESTS,
        )


def _results(study: Study, document: Mapping[str, Any], owner: Viewer) -> tuple[list[CellResult], bool]:
    """All rounds as far as the time goes, and whether it ended them."""
    until = time.monotonic() + SECONDS
    results: list[CellResult] = []
    cells = study.cells(document)
    while cells:
        for result in evaluate(
            document,
            cells,
            catalog=catalog_with(owner, Scenario.parse(document).hardware.calibration),
            traces=partial(read_upload, owner),
            depth=study.depth,
            keep=study.keeps,
        ):
            results.append(result)
            if time.monotonic() > until:
                return results, True
        cells = study.next_cells(results) if isinstance(study, InRounds) else []
    return results, False
