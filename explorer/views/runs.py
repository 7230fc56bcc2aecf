"""A run's results: a tab of the workbench, why a number is what it is, and the Result document.

`explorer/_panel.html`: `run`, `can_change`, `is_baseline`, `result`, `baseline_result`, `strip`, `panel`, `tab`,
`tabs`: the part of the workbench that changes while a run streams.
`explorer/why.html`, for htmx `explorer/_why.html`: `run`, `metric` (id), `value`,
`tree` (`simcore.why.as_dict`, or None where no formula was kept), `band` (or None), `address` (what the number's Why
is called, with @ and the part), `operator` (its row of the operators' table, or None). A number with a calibrated,
assumed or catalog leaf says so at that leaf.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from explorer.access import run_for, uuid_or_404, viewer_of
from explorer.actions import latest_run
from explorer.charts import TABS, panel, strip
from explorer.charts.style import is_extrapolated
from explorer.models import Run
from explorer.records import CONTENT_TYPES, has_records, records_of
from explorer.views.common import is_htmx, limited, refuse
from simcore.errors import TrimtabError
from simcore.report.training_trace import iteration_trace
from simcore.why import as_latex, as_text, from_dict


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
        "baseline_run": before,
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
    """The expression that made a number, with values, units and sources.

    `compute.decode_step_s@qkv_s` is the part of that expression with the name after the @. A number that stands in a
    table alone has a derivation and is no metric. `?format=text`, `latex`
    or `json` is the derivation as a file.
    """
    run = run_for(viewer_of(request), pk)
    metric, _at, part = metric.partition("@")
    result = run.result_document
    tree = run.result.why.get(metric) if run.result else None
    if result is None or (tree is None and metric not in result["metrics"]):
        raise Http404
    numbers = result["metrics"]
    if part:
        tree = _part(tree, part)
    if tree and (form := request.GET.get("format")) in FORMATS:
        return _file(tree, form, name=part or metric)
    context = {
        "run": run,
        "address": f"{metric}@{part}" if part else metric,
        "operator": _operator(result, metric, part),
        "metric": part or metric,
        "part_of": metric if part else "",
        "value": tree["value"] if tree and (part or metric not in numbers) else numbers[metric],
        "band": None if part else result.get("bands", {}).get(metric),
        "extrapolated": is_extrapolated(result),
        "tree": tree,
    }
    return render(request, "explorer/_why.html" if is_htmx(request) else "explorer/why.html", context)


def _part(tree: dict[str, Any] | None, name: str) -> dict[str, Any]:
    """The nodes of that name; several (layers of several kinds) are shown as their sum."""
    found = list(_named(tree, name)) if tree else []
    if not found:
        raise Http404
    if len(found) == 1:
        return found[0]
    whole = {"op": "+", "formula": " + ".join(name for _node in found), "dimension": found[0]["dimension"]}
    return {**whole, "name": name, "value": sum(node["value"] for node in found), "args": found}


def _named(node: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    if node.get("name") == name:
        yield node
    else:
        for arg in node.get("args", ()):
            yield from _named(arg, name)


def _operator(result: dict[str, Any], metric: str, part: str) -> dict[str, Any] | None:
    """The row of the operators' table whose time this is."""
    rows = result.get("tables", {}).get("operators", ())
    return next(
        (row for row in rows if (f"compute.{row['phase']}_step_s", row["term"]) == (metric, part)), None
    )


def _file(tree: dict[str, Any], form: str, *, name: str) -> HttpResponse:
    suffix, content_type, write = FORMATS[form]
    headers = {
        "Content-Disposition": f'attachment; filename="why-{slugify(name.replace(".", "-"))}.{suffix}"'
    }
    return HttpResponse(write(tree), content_type=content_type, headers=headers)


FORMATS: Final[dict[str, tuple[str, str, Callable[[dict[str, Any]], str]]]] = {
    "text": ("txt", "text/plain; charset=utf-8", lambda tree: as_text(from_dict(tree)) + "\n"),
    "latex": ("tex", "text/x-tex; charset=utf-8", lambda tree: as_latex(from_dict(tree)) + "\n"),
    "json": ("json", "application/json", lambda tree: json.dumps(tree, indent=2, ensure_ascii=False)),
}


@require_safe
def trace_json(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One iteration, for chrome://tracing or Perfetto."""
    run = run_for(viewer_of(request), pk)
    name = run.revision.scenario.name
    trace = iteration_trace((run.result_document or {}).get("tables", {}), name=name)
    if trace is None:
        raise Http404
    headers = {"Content-Disposition": f'attachment; filename="{slugify(name) or "iteration"}-trace.json"'}
    return JsonResponse(trace, headers=headers)


@require_safe
@limited("records", per_minute=12, method="GET")
def records(request: HttpRequest, pk: str, suffix: str) -> HttpResponse:
    """Every request of a finished run, as CSV or Parquet."""
    run = run_for(viewer_of(request), uuid_or_404(pk))
    if not has_records(run, suffix):
        raise Http404
    scenario = run.revision.scenario
    try:
        content = records_of(run, suffix)
    except TrimtabError as error:
        refuse(request, error)
        return redirect("workbench", scenario.pk, "serving")
    name = f"{slugify(scenario.name) or 'run'}-requests.{suffix}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type=CONTENT_TYPES[suffix], headers=headers)


@require_safe
def result_json(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The whole Result document, as a file."""
    run = run_for(viewer_of(request), pk)
    if run.result_document is None:
        raise Http404
    name = slugify(run.revision.scenario.name) or "result"
    headers = {"Content-Disposition": f'attachment; filename="{name}.json"'}
    return JsonResponse(run.result_document, headers=headers)
