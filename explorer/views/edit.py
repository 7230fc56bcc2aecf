"""What the owner does to a scenario. All are POST; without htmx each leads back to the workbench.

Form fields: edit: scenario paths, as typed, and `since` (optional number of the revision that a drag began at) ·
save: `label` · rename: `name` · visibility: `visibility` · share: `days` (optional) · go: `number` of a revision ·
pin: `source` (optional scenario id) or `clear=1` · all: `tab` (where to come back to).
With htmx, edit, undo, redo, go, pin and cancel answer with `explorer/_workbench.html` (see `views.workbench`).
"""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from explorer import actions
from explorer.access import Viewer, scenario_for, share_for, uuid_or_404, viewer_of
from explorer.charts import TABS, translated
from explorer.forms import changes
from explorer.models import Revision, SavedScenario
from explorer.views.common import is_htmx, limited, refuse
from explorer.views.workbench import render_workbench
from simcore.errors import InputError


@require_POST
@limited("edit", per_minute=600)
def edit(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Set paths to what was typed; the page shows the new run, or the messages at their fields."""
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, pk, change=True)
    posted = {path: str(typed) for path, typed in request.POST.items()}
    since = _revision(scenario, request.POST.get("since", ""))
    outcome = actions.edit(viewer, scenario, changes(scenario.document, posted), seen=posted, since=since)
    for warning in outcome.warnings:
        messages.warning(request, translated(warning))
    if outcome.errors or is_htmx(request):
        return render_workbench(request, viewer, scenario, tab=_tab(request), edit=outcome)
    return _back(request, scenario)


@require_POST
def undo(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _change(request, pk, actions.undo)


@require_POST
def redo(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _change(request, pk, actions.redo)


@require_POST
def go(request: HttpRequest, pk: UUID) -> HttpResponse:
    """To a named state, by its number."""
    number = request.POST.get("number", "")
    return _change(
        request,
        pk,
        lambda viewer, scenario: actions.go_to(viewer, scenario, int(number) if number.isdecimal() else 0),
    )


@require_POST
def pin(request: HttpRequest, pk: UUID) -> HttpResponse:
    def pinned(viewer: Viewer, scenario: SavedScenario) -> None:
        if request.POST.get("clear"):
            actions.unpin(scenario)
        else:
            source = request.POST.get("source", "")
            actions.pin(viewer, scenario, scenario_for(viewer, uuid_or_404(source)) if source else None)

    return _change(request, pk, pinned)


@require_POST
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _change(request, pk, lambda viewer, scenario: actions.cancel_runs(scenario))


@require_POST
def save(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _change(
        request, pk, lambda viewer, scenario: actions.save(scenario, request.POST.get("label", ""))
    )


@require_POST
def rename(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _change(
        request, pk, lambda viewer, scenario: actions.rename(viewer, scenario, request.POST.get("name", ""))
    )


@require_POST
def visibility(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _change(
        request,
        pk,
        lambda viewer, scenario: actions.set_visibility(scenario, request.POST.get("visibility", "")),
    )


@require_POST
def share(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Freeze, and say where."""

    def shared(viewer: Viewer, scenario: SavedScenario) -> None:
        days = request.POST.get("days", "")
        link = actions.share(viewer, scenario, days=int(days) if days.isdigit() else None)
        address = request.build_absolute_uri(reverse("shared", args=[link.token]))
        messages.success(
            request, _("Frozen at %(address)s; later edits do not change it.") % {"address": address}
        )

    return _change(request, pk, shared)


@require_POST
def revoke(request: HttpRequest, token: str) -> HttpResponse:
    """The page behind the link then says that it was revoked."""
    link = share_for(viewer_of(request), token)
    actions.revoke(link)
    return redirect("workbench", link.scenario_id) if link.scenario_id else redirect("shared", token)


@require_POST
@limited("start", per_minute=60)
def fork(request: HttpRequest, pk: UUID) -> HttpResponse:
    """A copy of one's own of anything that one may read."""
    scenario = scenario_for(viewer_of(request), pk)
    try:
        copy = actions.fork(viewer_of(request, make_sandbox=True), scenario)
    except InputError as error:
        refuse(request, error)
        return _back(request, scenario)
    return _back(request, copy)


@require_POST
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    actions.delete(scenario_for(viewer_of(request), pk, change=True))
    return redirect("library")


def _change(
    request: HttpRequest, pk: UUID, change: Callable[[Viewer, SavedScenario], object]
) -> HttpResponse:
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, pk, change=True)
    try:
        change(viewer, scenario)
    except InputError as error:
        refuse(request, error)
    if is_htmx(request):
        return render_workbench(request, viewer, scenario, tab=_tab(request))
    return _back(request, scenario)


def _back(request: HttpRequest, scenario: SavedScenario) -> HttpResponse:
    tab = _tab(request)
    return redirect("workbench", scenario.pk, *([] if tab == "overview" else [tab]))


def _revision(scenario: SavedScenario, number: str) -> Revision | None:
    return scenario.revisions.filter(number=int(number[:9])).first() if number.isdecimal() else None


def _tab(request: HttpRequest) -> str:
    tab = request.POST.get("tab", "overview")
    return tab if tab in TABS else "overview"
