"""Traffic matrices: reading a file, what it says, the topologies for it; and those for a scenario's own traffic.

`explorer/matrices.html`: `matrices` (own uploads), `errors` (list of Message), `servers`, `server` (chosen).
`explorer/matrix.html`: `matrix` (TrafficMatrix), `panel`, `ranking` (panels), `servers`.
`explorer/topologies.html`: `scenario`, `panel`, `candidates` (those that can be, with `is_current`), `can_change`.
"""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from explorer import actions
from explorer.access import matrix_for, own_matrices, scenario_for, viewer_of
from explorer.charts import matrix as charts
from explorer.charts import ranking as ranking_charts
from explorer.charts.style import Panel
from explorer.matrices import ranked
from explorer.views.common import limited, refuse
from simcore.analysis.matrix_study import servers_with_chips
from simcore.catalog import default_catalog
from simcore.errors import InputError, Message, TrimtabError

SHOWN = 200
DEFAULT_SERVER = "dgx-h100"


@require_http_methods(["GET", "POST"])
@limited("upload", per_minute=20)
def matrices(request: HttpRequest) -> HttpResponse:
    """Upload a measured matrix; it is studied at once."""
    return _upload(request) if request.method == "POST" else _page(request)


def _upload(request: HttpRequest) -> HttpResponse:
    file = request.FILES.get("file")
    if file is None or file.file is None:
        message = Message(code="matrix.missing", template="no file was chosen; choose a matrix", path="file")
        return _page(request, errors=(message,))
    try:
        saved = actions.upload_matrix(
            viewer_of(request, make_sandbox=True),
            file.file,
            name=file.name or "matrix",
            size_bytes=file.size or 0,
            server=request.POST.get("server", DEFAULT_SERVER),
        )
    except TrimtabError as error:
        return _page(request, errors=error.messages)
    return redirect("matrix", saved.sha256)


def _page(request: HttpRequest, *, errors: tuple[Message, ...] = ()) -> HttpResponse:
    context = {
        "matrices": own_matrices(viewer_of(request))[:SHOWN],
        "errors": errors,
        "servers": _servers(),
        "server": request.POST.get("server", DEFAULT_SERVER),
    }
    return render(request, "explorer/matrices.html", context, status=422 if errors else 200)


def _servers() -> list[tuple[str, str]]:
    catalog = default_catalog()
    return [(slug, catalog.servers[slug].name) for slug in servers_with_chips(catalog)]


@require_safe
def matrix(request: HttpRequest, sha256: str) -> HttpResponse:
    """What an upload says, and the topologies for it."""
    saved = matrix_for(viewer_of(request), sha256)
    context = {
        "matrix": saved,
        "panel": charts.panel(saved.study),
        "ranking": charts.ranking_panel(saved.study["ranking"]),
        "servers": _servers(),
    }
    return render(request, "explorer/matrix.html", context)


@require_POST
@limited("upload", per_minute=20)
def study(request: HttpRequest, sha256: str) -> HttpResponse:
    """The same matrix on chips of other servers."""
    saved = matrix_for(viewer_of(request), sha256)
    try:
        actions.study_matrix(saved, server=request.POST.get("server", ""))
    except InputError as error:
        refuse(request, error)
    return redirect("matrix", sha256)


@require_POST
def discard(request: HttpRequest, sha256: str) -> HttpResponse:
    actions.discard_matrix(matrix_for(viewer_of(request), sha256))
    return redirect("matrices")


@require_safe
@limited("ranking", per_minute=60, method="GET")
def topologies(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Every topology for the scenario's own traffic."""
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, pk)
    try:
        plan, found = ranked(scenario)
    except InputError as error:
        refuse(request, error)
        return redirect("workbench", pk, "fabric")
    rows = [candidate.as_dict() for candidate in found]
    nothing = _(
        "Nothing but monitoring moves between the chips of this scenario: no topology is better for it"
    )
    context = {
        "scenario": scenario,
        "panel": Panel(
            tab="topologies",
            headline=ranking_charts.headline(rows) if rows else nothing,
            notes=ranking_charts.notes(rows),
            charts=ranking_charts.charts(rows),
        ),
        "candidates": [
            {
                "kind": row["topology"]["kind"],
                "name": ranking_charts.kind_name(row["topology"]["kind"]),
                "is_current": plan is not None and plan.fabric.kind == row["topology"]["kind"],
            }
            for row in rows
            if not row["refused"]
        ],
        "can_change": viewer.owns(scenario),
    }
    return render(request, "explorer/topologies.html", context)
