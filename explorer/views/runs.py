"""A run's results: a tab of the workbench, why a number is what it is, and the Result document.

`explorer/_panel.html`: `run`, `can_change`, `is_baseline`, `result`, `baseline_result`, `strip`, `panel`, `tab`,
`tabs`: the part of the workbench that changes while a run streams.
`explorer/why.html`, for htmx `explorer/_why.html`: `run`, `metric` (id), `value`,
`tree` (`simcore.why.as_dict`, or None where no formula was kept), `band` (or None), `lines` (the tree flattened:
list of {depth, node}). A number with a calibrated, assumed or catalog leaf says so at that leaf.
"""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from explorer.access import run_for, viewer_of
from explorer.actions import latest_run
from explorer.charts import TABS, panel, strip
from explorer.models import Run
from explorer.views.common import is_htmx


@require_safe
def run_panel(request: HttpRequest, pk: UUID, tab: str) -> HttpResponse:
    """One tab of a run, finished or under way."""
    if tab not in TABS:
        raise Http404
    viewer = viewer_of(request)
    run = run_for(viewer, pk)
    can_change = viewer.owns(run.revision.scenario)
    return render(request, "explorer/_panel.html", {**panel_context(run, tab), "can_change": can_change})


def panel_context(run: Run, tab: str) -> dict[str, Any]:
    baseline = run.revision.scenario.baseline
    before = latest_run(baseline) if baseline is not None and baseline.pk != run.revision_id else None
    result, baseline_result = run.shown, before.shown if before else None
    name = baseline.name if baseline is not None and before is not None else ""
    return {
        "run": run,
        "scenario": run.revision.scenario,
        "is_baseline": baseline is not None and baseline.pk == run.revision_id,
        "result": result,
        "baseline_result": baseline_result,
        "strip": strip(result, baseline_result, baseline_name=name),
        "panel": panel(tab, result, baseline=baseline_result),
        "tab": tab,
        "tabs": TABS,
    }


@require_safe
def why(request: HttpRequest, pk: UUID, metric: str) -> HttpResponse:
    """The expression that made a number, with values, units and sources."""
    run = run_for(viewer_of(request), pk)
    result = run.result_document
    if result is None or metric not in result["metrics"]:
        raise Http404
    tree = run.result.why.get(metric) if run.result else None
    context = {
        "run": run,
        "metric": metric,
        "value": result["metrics"][metric],
        "band": result.get("bands", {}).get(metric),
        "tree": tree,
        "lines": list(_lines(tree)) if tree else [],
    }
    return render(request, "explorer/_why.html" if is_htmx(request) else "explorer/why.html", context)


def _lines(node: dict[str, Any], depth: int = 0) -> list[dict[str, Any]]:
    below = [line for arg in node.get("args", []) for line in _lines(arg, depth + 1)]
    return [{"depth": depth, "node": node}, *below]


@require_safe
def result_json(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The whole Result document, as a file."""
    run = run_for(viewer_of(request), pk)
    if run.result_document is None:
        raise Http404
    name = slugify(run.revision.scenario.name) or "result"
    headers = {"Content-Disposition": f'attachment; filename="{name}.json"'}
    return JsonResponse(run.result_document, headers=headers)
