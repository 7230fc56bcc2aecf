"""A fabric's graph: one part of it opened, and all of it as a file; of a run, or of a frozen link.

`explorer/graph.html`, and for htmx its inside alone, `explorer/_expansion.html`: `chart` (the picture), `trail`
([(address, words)], from the layer down), `here` (the words of what is opened), `run` or `link` (whose graph it is).
"""

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from explorer.access import run_for, uuid_or_404, viewer_of
from explorer.charts import expansion
from explorer.fabrics import fabric_in, graph_text
from explorer.models import ShareLink
from explorer.views.common import is_htmx, limited, refuse
from simcore.errors import TrimtabError
from simcore.fabric.expansion import expanded


@require_safe
@limited("graph", per_minute=120, method="GET")
def of_run(request: HttpRequest, pk: str, node: str) -> HttpResponse:
    """A part of the fabric of a run that the viewer may read."""
    run = run_for(viewer_of(request), uuid_or_404(pk))
    return _part(request, run.revision.document, node, {"run": run})


@require_safe
@never_cache
@limited("graph", per_minute=120, method="GET")
def of_link(request: HttpRequest, token: str, node: str) -> HttpResponse:
    """A part of the fabric of a frozen link."""
    link = _live(token)
    return _part(request, link.document, node, {"link": link})


@require_safe
@limited("graph", per_minute=120, method="GET")
def file_of_run(request: HttpRequest, pk: str, suffix: str) -> HttpResponse:
    run = run_for(viewer_of(request), uuid_or_404(pk))
    return _file(request, run.revision.document, suffix, name=run.revision.scenario.name)


@require_safe
@never_cache
@limited("graph", per_minute=120, method="GET")
def file_of_link(request: HttpRequest, token: str, suffix: str) -> HttpResponse:
    link = _live(token)
    return _file(request, link.document, suffix, name=link.name)


def _live(token: str) -> ShareLink:
    """A link that still shows something; a revoked one leads nowhere."""
    link = ShareLink.objects.filter(token=token).first()
    if link is None or not link.is_live:
        raise Http404
    return link


def _part(
    request: HttpRequest, document: Mapping[str, Any], node: str, whose: Mapping[str, Any]
) -> HttpResponse:
    try:
        graph = expanded(fabric_in(document), node)
    except TrimtabError:
        raise Http404 from None
    context = {
        **whose,
        "chart": expansion.picture(graph),
        "trail": [(address, expansion.crumb(address)) for address in graph.graph["trail"]],
        "here": expansion.crumb(graph.graph["node"]),
    }
    return render(request, "explorer/_expansion.html" if is_htmx(request) else "explorer/graph.html", context)


def _file(request: HttpRequest, document: Mapping[str, Any], suffix: str, *, name: str) -> HttpResponse:
    """GraphML or DOT; `?full=1` is every chip and switch."""
    try:
        text = graph_text(document, suffix, full=request.GET.get("full") == "1")
    except TrimtabError as error:
        refuse(request, error)
        return render(request, "explorer/error.html", {"title": error.messages[0].text}, status=422)
    types = {"graphml": "application/graphml+xml", "dot": "text/vnd.graphviz; charset=utf-8"}
    headers = {"Content-Disposition": f'attachment; filename="{slugify(name) or "fabric"}.{suffix}"'}
    return HttpResponse(text, content_type=types[suffix], headers=headers)
