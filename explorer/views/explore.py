"""The Explore page of a scenario: what to vary, the sweeps that were asked for, and what came of one of them.

`explorer/explore.html`: `scenario`, `can_change`, `axes` (rows of the form), `paths` (what may be varied, with labels),
`metrics` (id, label, whether chosen), `sweeps` (own ones of this scenario,
newest first), `sweep` (the one shown, or None) and with it what `_sweep.html` needs: `panel`, `metric`,
`shown_metrics`, `reasons`. `_sweep.html` alone is what the page asks for again while cells come. The socket is
`/ws/sweeps/<sweep.pk>/?after=<sweep.last_seq>`.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.http import require_POST, require_safe

from explorer import wording
from explorer.access import own_sweeps, scenario_for, sweep_for, uuid_or_404, viewer_of
from explorer.actions import create_scenario, latest_run
from explorer.charts import search as search_chart
from explorer.charts import sweeps as charts
from explorer.charts import translated
from explorer.forms.axes import axis_spec, paths_of
from explorer.forms.search import search_choices, search_spec
from explorer.models import SavedScenario, Sweep
from explorer.sweeping import cell_results
from explorer.sweeps import start_sweep
from explorer.views.common import limited, refuse
from simcore.analysis.grid import Grid
from simcore.analysis.search.study import PlanSearch
from simcore.analysis.studies import parse_study
from simcore.errors import Message, TrimtabError
from simcore.scenario import apply_overrides

AXES: Final = 4
METRICS: Final = (
    "serving.output_token_per_s_per_chip",
    "serving.tpot_s.mean",
    "serving.ttft_s.p95",
    "serving.output_token_per_s",
    "serving.slo_goodput_request_per_s",
    "serving.slo_attainment_fraction",
    "cost.usd_per_million_output_tokens",
    "training.token_per_s",
    "training.step_s",
    "training.mfu_fraction",
    "cost.usd_per_million_tokens",
    "cost.capex_usd",
    "cost.power_w",
    "fabric.switch_count",
    "fabric.transceiver_count",
    "reliability.goodput_fraction",
)
CHOSEN: Final = 5


@require_safe
def explore(request: HttpRequest, pk: UUID) -> HttpResponse:
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, pk)
    sweeps = list(own_sweeps(viewer).filter(scenario=scenario)[:20])
    shown = _chosen(sweeps, request.GET.get("sweep", ""))
    run = latest_run(scenario.current)
    known = (run.result_document or {}).get("metrics", {}) if run else {}
    names = [name for name in METRICS if name in known] or list(METRICS[:6])
    context = {
        "scenario": scenario,
        "can_change": viewer.owns(scenario),
        "axes": _axis_rows(shown),
        "paths": paths_of(scenario.document),
        "metrics": [(name, wording.label(name), place < CHOSEN) for place, name in enumerate(names)],
        "sweeps": sweeps,
        "most_cells": settings.MAX_CELLS_PER_SWEEP,
        "search": search_choices(scenario.document) if _serves(scenario.document) else None,
        **(sweep_context(shown, request.GET.get("metric", "")) if shown else {"sweep": None}),
    }
    return render(request, "explorer/explore.html", context)


@require_safe
def sweep_part(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One sweep as far as it has come."""
    sweep = sweep_for(viewer_of(request), pk)
    return render(request, "explorer/_sweep.html", sweep_context(sweep, request.GET.get("metric", "")))


@require_POST
@limited("start", per_minute=60)
def start(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Ask for a grid; what is wrong with it is said on the page."""
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, pk, change=True)
    try:
        sweep = start_sweep(viewer, scenario, _asked(scenario, request.POST))
    except TrimtabError as error:
        refuse(request, error)
        return redirect("explore", scenario.pk)
    return redirect(f"/s/{scenario.pk}/explore/?sweep={sweep.pk}#sweep")


def _asked(scenario: SavedScenario, data: QueryDict) -> dict[str, Any]:
    """A grid, or a plan search where its form was sent."""
    return search_spec(data) if data.get("kind") == "search" else _spec(scenario, data)


@require_POST
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    sweep = sweep_for(viewer_of(request), pk)
    sweep.cancel()
    return redirect(f"/s/{sweep.scenario_id}/explore/?sweep={sweep.pk}#sweep")


@require_POST
def discard(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Delete a sweep with its results; one under way ends."""
    sweep = sweep_for(viewer_of(request), pk)
    sweep.cancel()
    sweep.delete()
    return redirect("explore", sweep.scenario_id)


@require_POST
@limited("start", per_minute=60)
def use(request: HttpRequest, pk: UUID) -> HttpResponse:
    """A cell as a scenario of its own, compared with what was swept."""
    viewer = viewer_of(request)
    sweep = sweep_for(viewer, pk)
    text = request.POST.get("index", "")
    is_index = text.isascii() and text.isdigit() and len(text) < 8
    overrides = sweep.overrides().get(int(text)) if is_index else None
    if overrides is None:
        raise Http404
    try:
        edited, _warnings = apply_overrides(sweep.document, overrides)
        made = create_scenario(viewer, edited, baseline=sweep.document, forked_from=sweep.scenario)
    except TrimtabError as error:
        refuse(request, error)
        return redirect(f"/s/{sweep.scenario_id}/explore/?sweep={sweep.pk}#sweep")
    return redirect("workbench", made.pk)


@require_safe
def cells_file(request: HttpRequest, pk: str, suffix: str) -> HttpResponse:
    """Every cell that is done, as CSV or JSON."""
    sweep = sweep_for(viewer_of(request), uuid_or_404(pk))
    overrides = sweep.overrides()
    name = f"{slugify(sweep.scenario.name) or 'sweep'}-cells.{suffix}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    rows = [{**cell, "overrides": overrides[cell["index"]]} for cell in sweep.results()]
    if suffix == "json":
        document = {"kind": sweep.kind, "spec": sweep.spec, "scenario": sweep.document, "cells": rows}
        return JsonResponse(document, headers=headers)
    return HttpResponse("".join(_csv(rows)), content_type="text/csv; charset=utf-8", headers=headers)


def _csv(rows: list[dict[str, Any]]) -> Iterator[str]:
    paths = list(dict.fromkeys(path for row in rows for path in row["overrides"]))
    names = list(dict.fromkeys(name for row in rows for name in row["metrics"]))
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["index", *paths, *names, "error"])
    for row in rows:
        error = "; ".join(translated(Message(**_message(one))) for one in row["errors"])
        values = [
            *(row["overrides"].get(path, "") for path in paths),
            *(row["metrics"].get(n, "") for n in names),
        ]
        writer.writerow([row["index"], *map(_plain_cell, values), _plain_cell(error)])
    yield buffer.getvalue()


def _message(error: dict[str, Any]) -> dict[str, Any]:
    return {key: error[key] for key in ("code", "template", "params", "path")}


def _plain_cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is marked as text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t" else value


def sweep_context(sweep: Sweep, metric: str) -> dict[str, Any]:
    """What `_sweep.html` shows."""
    study = parse_study(sweep.spec)
    if isinstance(study, PlanSearch):
        return _search_context(sweep, study)
    if not isinstance(study, Grid):
        return {"sweep": sweep, "panel": None, "metric": "", "shown_metrics": []}
    results = cell_results(sweep)
    names = list(study.metrics)
    chosen = metric if metric in names else names[0]
    panel = charts.panel(study, results, metric=chosen, cell_count=sweep.cell_count, over=sweep.is_ended)
    shown = [(name, wording.label(name)) for name in names]
    reasons = [translated(Message(**_message(one))) for one in sweep.messages]
    return {"sweep": sweep, "panel": panel, "metric": chosen, "shown_metrics": shown, "reasons": reasons}


def _serves(document: Mapping[str, Any]) -> bool:
    return bool(document.get("workload", {}).get("kind", "serving") == "serving")


def _search_context(sweep: Sweep, study: PlanSearch) -> dict[str, Any]:
    """The same of a plan search."""
    panel = search_chart.panel(sweep.tables, objective=study.objective) if sweep.tables else None
    reasons = [translated(Message(**_message(one))) for one in sweep.messages]
    return {"sweep": sweep, "panel": panel, "metric": "", "shown_metrics": [], "reasons": reasons}


def _chosen(sweeps: list[Sweep], wanted: str) -> Sweep | None:
    """The sweep that the address names, else the newest."""
    if wanted:
        pk = uuid_or_404(wanted)
        found = next((sweep for sweep in sweeps if sweep.pk == pk), None)
        if found is None:
            raise Http404
        return found
    return sweeps[0] if sweeps else None


def _axis_rows(sweep: Sweep | None) -> list[tuple[str, str]]:
    """What was typed for the sweep that is shown, and empty rows."""
    spec = sweep.spec if sweep and sweep.kind == "grid" else {"axes": []}
    rows = [(axis["path"], ", ".join(map(str, axis["values"]))) for axis in spec["axes"]]
    return (rows + [("", "")] * AXES)[: max(AXES, len(rows))]


def _spec(scenario: SavedScenario, form: QueryDict) -> dict[str, Any]:
    typed = zip(form.getlist("path"), form.getlist("values"), strict=False)
    axes = [axis_spec(scenario.document, path.strip(), values) for path, values in typed if path.strip()]
    metrics = [name for name in form.getlist("metric") if name in METRICS] or list(METRICS[:CHOSEN])
    return {"kind": "grid", "axes": axes, "metrics": metrics}
