"""The workbench: one scenario, its results, its baseline.

`explorer/workbench.html`, and for htmx its inside alone, `explorer/_workbench.html`. Both are given:
`scenario` (SavedScenario), `revision` (its current one), `document` (as typed), `outline` (the form, from
`explorer.forms`), `draft` ({path: {typed, message}} of refused values), `errors` ({path: Message} of this edit),
`run` (Run or None), `result` (Result document or what has streamed so far, or None), `baseline` (Revision or None),
`baseline_result`, `strip`, `panel`, `tab`, `tabs`, `can_change`, `can_undo`, `can_redo`, `is_baseline` (the current
state is the baseline), `traces` (own uploads), `named` (revisions with a
label), `links` (own live shares), `visibilities`.
The socket of the run is `/ws/runs/<run.pk>/?after=<run.last_seq>`.
"""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from explorer.access import Viewer, own_calibrations, own_traces, scenario_for, viewer_of
from explorer.actions import Edit, latest_run
from explorer.charts import TABS, panel, strip
from explorer.forms import outline
from explorer.models import SavedScenario, Visibility
from explorer.tasks import closed_forms
from explorer.views.common import is_htmx


@require_safe
def workbench(request: HttpRequest, pk: UUID, tab: str = "overview") -> HttpResponse:
    viewer = viewer_of(request)
    return render_workbench(request, viewer, scenario_for(viewer, pk), tab=tab)


def render_workbench(
    request: HttpRequest, viewer: Viewer, scenario: SavedScenario, *, tab: str, edit: Edit | None = None
) -> HttpResponse:
    """The page, or its inside for htmx, whose answers are swapped in only with status 200."""
    htmx = is_htmx(request)
    template = "explorer/_workbench.html" if htmx else "explorer/workbench.html"
    refused = edit is not None and bool(edit.errors)
    context = workbench_context(viewer, scenario, tab=tab, edit=edit)
    return render(request, template, context, status=422 if refused and not htmx else 200)


def workbench_context(
    viewer: Viewer, scenario: SavedScenario, *, tab: str, edit: Edit | None = None
) -> dict[str, Any]:
    revision, can_change = scenario.current, viewer.owns(scenario)
    draft, errors = scenario.draft if can_change else {}, dict(edit.errors) if edit else {}
    traces = list(own_traces(viewer))
    return {
        "scenario": scenario,
        "document": scenario.document,
        "outline": outline(
            scenario.document,
            baseline=scenario.baseline.document if scenario.baseline else None,
            draft=draft,
            errors=errors,
            traces=[(trace.sha256, trace.name) for trace in traces],
            calibrations=list(own_calibrations(viewer).values_list("slug", "name")),
        ),
        "draft": draft,
        "errors": errors,
        "can_change": can_change,
        "can_undo": can_change and revision is not None and revision.parent_id is not None,
        "can_redo": can_change and revision is not None and revision.children.exists(),
        "traces": traces,
        "named": scenario.revisions.exclude(label="") if can_change else (),
        "links": scenario.shares.filter(viewer.owned, revoked_at=None).order_by("-created_at"),
        "visibilities": Visibility.choices,
        "tabs": TABS,
        **results_context(scenario, tab=tab, edit=edit),
    }


def results_context(scenario: SavedScenario, *, tab: str, edit: Edit | None = None) -> dict[str, Any]:
    """What the centre of the page shows."""
    run, baseline = latest_run(scenario.current), scenario.baseline
    is_baseline = scenario.baseline_id == scenario.current_id
    before = latest_run(baseline) if baseline is not None and not is_baseline else None
    result, baseline_result = (one.shown if one else None for one in (run, before))
    if result is None and run is not None and not run.is_ended:
        # A person who has just come need not wait for a worker; who has just edited has the plan.
        result = closed_forms(run, edit.plan if edit and edit.run == run else None)
    name = baseline.name if baseline is not None and before is not None else ""
    return {
        "revision": scenario.current,
        "run": run,
        "result": result,
        "baseline": baseline,
        "baseline_run": before,
        "baseline_result": baseline_result,
        "is_baseline": is_baseline,
        "tab": tab,
        "strip": strip(result, baseline_result, baseline_name=name),
        "panel": panel(tab, result, baseline=baseline_result),
    }
