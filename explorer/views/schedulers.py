"""A scenario under every scheduler, on one page.

`explorer/schedulers.html`: `scenario`, `panel`, `following` (runs under way), `missing` (whether some have not been
run), `can_change`.
"""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from explorer import schedulers
from explorer.access import scenario_for, viewer_of
from explorer.charts import schedulers as charts
from explorer.charts import translated
from explorer.schedulers import Variant
from explorer.templatetags.trimtab import status_label
from explorer.views.common import limited
from explorer.wording import term


@require_safe
def compared(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What each scheduler does with the scenario, as far as it has been run."""
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, pk)
    variants = schedulers.variants(scenario)
    context = {
        "scenario": scenario,
        "panel": charts.panel([_row(variant, scenario.document) for variant in variants]),
        "following": [one.run for one in variants if one.run is not None and not one.run.is_ended],
        "missing": any(one.is_missing for one in variants),
        "can_change": viewer.owns(scenario),
    }
    return render(request, "explorer/schedulers.html", context)


@require_POST
@limited("start", per_minute=60)
def run(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Queue what has not been run, and show the page that follows it."""
    scenario = scenario_for(viewer_of(request), pk, change=True)
    for message in schedulers.run_missing(scenario):
        messages.error(request, translated(message))
    return redirect("schedulers", scenario.pk)


def _row(variant: Variant, document: object) -> charts.Row:
    return charts.Row(
        name=term(variant.kind.replace("_", " ")),
        result=variant.run.result_document if variant.run else None,
        state=_state(variant),
        is_current=variant.document == document and not variant.refused,
        refused=tuple(translated(message) for message in variant.refused),
        dropped=tuple(translated(message) for message in variant.dropped),
    )


def _state(variant: Variant) -> str:
    if variant.refused:
        return _("cannot")
    return _("not run") if variant.run is None else status_label(variant.run.status)
