"""A scenario in several ways on one page: under every scheduler, or every split into prefill and decode.

`explorer/beside.html`: `scenario`, `varied` (what is varied), `panel`, `following` (runs under way), `missing`
(whether some have not been run), `can_change`.
"""

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from explorer import beside, schedulers, splits
from explorer.access import scenario_for, viewer_of
from explorer.beside import Variant, Way
from explorer.charts import schedulers as scheduler_charts
from explorer.charts import splits as split_charts
from explorer.charts import translated
from explorer.charts.beside import Row
from explorer.charts.style import Panel
from explorer.models import SavedScenario
from explorer.templatetags.trimtab import status_label
from explorer.views.common import limited
from explorer.wording import term

WAYS: Final[dict[str, Callable[[SavedScenario], list[Way]]]] = {
    "schedulers": schedulers.ways,
    "splits": splits.ways,
}
PANELS: Final[dict[str, Callable[[Sequence[Row]], Panel]]] = {
    "schedulers": scheduler_charts.panel,
    "splits": split_charts.panel,
}


@require_safe
def compared(request: HttpRequest, pk: UUID, varied: str) -> HttpResponse:
    """What becomes of the scenario in each way, as far as it has been run."""
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, pk)
    variants = beside.variants(scenario, WAYS[varied](scenario))
    context = {
        "scenario": scenario,
        "varied": varied,
        "panel": PANELS[varied]([_row(variant, scenario.document) for variant in variants]),
        "following": [one.run for one in variants if one.run is not None and not one.run.is_ended],
        "missing": any(one.is_missing for one in variants),
        "can_change": viewer.owns(scenario),
    }
    return render(request, "explorer/beside.html", context)


@require_POST
@limited("start", per_minute=60)
def run(request: HttpRequest, pk: UUID, varied: str) -> HttpResponse:
    """Queue what has not been run, and show the page that follows it."""
    scenario = scenario_for(viewer_of(request), pk, change=True)
    for message in beside.run_missing(scenario, WAYS[varied](scenario)):
        messages.error(request, translated(message))
    return redirect("beside", scenario.pk, varied)


def _row(variant: Variant, document: object) -> Row:
    plan = variant.outcome.plan if variant.outcome else None
    return Row(
        name=term(variant.name.replace("_", " ")),
        result=variant.run.result_document if variant.run else None,
        state=_state(variant),
        planned={"metrics": plan.metrics} if plan else None,
        is_current=variant.document == document and not variant.refused,
        refused=tuple(translated(message) for message in variant.refused),
        dropped=tuple(translated(message) for message in variant.dropped),
    )


def _state(variant: Variant) -> str:
    if variant.refused:
        return _("cannot")
    return _("not run") if variant.run is None else status_label(variant.run.status)
