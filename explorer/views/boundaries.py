"""Where a scenario ends: grown, with a second kind of chip, with more traffic between domains, beside another job.

`explorer/boundaries.html`: `scenario`, `panel`, `chips` (slug and name), `other_chip`, `others` (own scenarios that
could stand beside), `beside` (the chosen one's key, or ""), `staged` (whether taxes by stage were asked for).
"""

from functools import partial
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from explorer import actions
from explorer.access import (
    Viewer,
    listed_scenarios,
    scenario_for,
    uuid_or_404,
    viewer_of,
    viewer_owning,
)
from explorer.charts import boundaries as charts
from explorer.charts import stages as stage_charts
from explorer.charts.style import Chart, Note, Panel
from explorer.models import SavedScenario
from explorer.tasks import plan_document
from explorer.views.common import limited, refuse
from explorer.wording import capitalised, translated
from simcore.analysis.boundaries import boundaries, first_break, next_chip
from simcore.analysis.colocated import colocated, message_of
from simcore.analysis.crossing import crossing
from simcore.analysis.stages import message_of as leading
from simcore.analysis.stages import stages
from simcore.catalog import default_catalog
from simcore.errors import InputError, TrimtabError
from simcore.plan import Plan

SHOWN = 100


@require_safe
@limited("ranking", per_minute=60, method="GET")
def ends(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What breaks first, all of it planned while the page is asked for."""
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, pk)
    try:
        outcome = actions.plan_for(viewer_owning(scenario), scenario.document)
        if outcome.plan is None:
            raise InputError(*outcome.infeasible)
        grown, headline, other_chip = _grown(scenario, outcome.plan, request.GET.get("chip", ""))
    except InputError as error:
        refuse(request, error)
        return redirect("workbench", pk)
    chosen = request.GET.get("beside", "")
    beside, notes = _beside(viewer, outcome.plan, chosen)
    share = crossing(outcome.plan)
    staged = "stages" in request.GET
    context = {
        "scenario": scenario,
        "panel": Panel(
            tab="boundaries",
            headline=headline,
            notes=notes,
            charts=(
                grown,
                *([charts.crossing(share.as_dict())] if share else []),
                *beside,
                *(_staged(scenario, outcome.plan, other_chip) if staged else []),
            ),
        ),
        "chips": [(chip.slug, chip.name) for chip in default_catalog().chips.values()],
        "other_chip": other_chip,
        "others": listed_scenarios(viewer).exclude(pk=pk)[:SHOWN],
        "beside": chosen,
        "staged": staged,
    }
    return render(request, "explorer/boundaries.html", context)


def _grown(scenario: SavedScenario, planned: Plan, other_chip: str) -> tuple[Chart, str, str]:
    """The chart, where growth ends in one sentence, and the chip that was tried."""
    catalog = default_catalog()
    replan = partial(plan_document, viewer=viewer_owning(scenario))
    found = boundaries(planned, catalog, replan, other_chip=other_chip)
    chip = other_chip or next_chip(catalog, catalog.chip(planned.scenario.hardware.chip)).slug
    return charts.growth([one.as_dict() for one in found]), capitalised(translated(first_break(found))), chip


def _staged(scenario: SavedScenario, planned: Plan, other_chip: str) -> list[Chart]:
    """The taxes of every stage; nothing where nothing has a price."""
    replan = partial(plan_document, viewer=viewer_owning(scenario))
    found = stages(planned, default_catalog(), replan, other_chip=other_chip)
    return [stage_charts.stages([one.as_dict() for one in found], leading(found).as_dict())] if found else []


def _beside(viewer: Viewer, planned: Plan, chosen: str) -> tuple[tuple[Chart, ...], tuple[Note, ...]]:
    """The scenario beside another that the viewer may read; a stranger's is not found."""
    if not chosen:
        return (), ()
    other = scenario_for(viewer, uuid_or_404(chosen))
    try:
        found = colocated(planned, plan_document(other.document, viewer_owning(other)), default_catalog())
    except TrimtabError as error:
        return (), tuple(Note(text=capitalised(translated(one)), kind="warn") for one in error.messages)
    return (charts.neighbours([one.as_dict() for one in found], message_of(found).as_dict()),), ()
