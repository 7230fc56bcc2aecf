"""The library: scenarios, the catalog's entries, uploaded traces.

`explorer/library.html`: `scenarios` (own and public, newest first, each with `.latest_status`), `traces` (own uploads),
`calibrations` (own fits), `catalog` ({kind: list of entries}), `kinds`. `explorer/entry.html`: `kind`, `slug`, `entry`
(a catalog dataclass), `rows` (list of {name, value, source}). `explorer/upload.html`: `traces`, `errors` (list of
Message), `formats`.
"""

from dataclasses import fields
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from explorer import actions, exports
from explorer.access import (
    listed_scenarios,
    own_calibrations,
    own_traces,
    scenario_for,
    uuid_or_404,
    viewer_of,
)
from explorer.charts import translated
from explorer.models import Run, TraceUpload
from explorer.views.common import limited, refuse
from simcore.catalog import default_catalog
from simcore.errors import InputError, Message, TrimtabError

KINDS = ("chips", "servers", "switches", "optics", "optical_switches", "models", "price_books")
FORMATS = ("mooncake", "azure", "burstgpt", "csv")
COLUMNS = ("timestamp_s", "input_tokens", "output_tokens")
SHOWN = 200


@require_safe
def library(request: HttpRequest) -> HttpResponse:
    viewer = viewer_of(request)
    newest = Run.objects.filter(revision=OuterRef("current")).order_by("-created_at")
    scenarios = listed_scenarios(viewer).select_related("owner", "current", "forked_from")
    context = {
        "scenarios": scenarios.annotate(latest_status=Subquery(newest.values("status")[:1]))[:SHOWN],
        "owned": viewer,
        "traces": own_traces(viewer)[:SHOWN],
        "calibrations": own_calibrations(viewer).defer("text")[:SHOWN],
        "catalog": {kind: list(getattr(default_catalog(), kind).items()) for kind in KINDS},
        "kinds": KINDS,
    }
    return render(request, "explorer/library.html", context)


@require_safe
def entry(request: HttpRequest, kind: str, slug: str) -> HttpResponse:
    """One chip, server, switch, model or price book, each figure with its source."""
    entries = getattr(default_catalog(), kind) if kind in KINDS else {}
    if slug not in entries:
        raise Http404
    found = entries[slug]
    context = {"kind": kind, "slug": slug, "entry": found, "rows": _rows(found)}
    return render(request, "explorer/entry.html", context)


@require_POST
@limited("start", per_minute=60)
def clone(request: HttpRequest, slug: str) -> HttpResponse:
    """The chip's figures in a scenario, to edit."""
    if slug not in default_catalog().chips:
        raise Http404
    chip = default_catalog().chip(slug)
    name = _("%(chip)s, edited") % {"chip": chip.name}
    try:
        scenario = actions.clone_chip(viewer_of(request, make_sandbox=True), chip, name=name)
    except InputError as error:
        refuse(request, error)
        return redirect("entry", "chips", slug)
    return redirect("workbench", scenario.pk)


def _rows(found: Any) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "value": getattr(found, field.name)}
        for field in fields(found)
        if field.name not in ("figures", "sources")
    ]


@require_http_methods(["GET", "POST"])
@limited("upload", per_minute=20)
def traces(request: HttpRequest) -> HttpResponse:
    """Upload a trace; it can then be chosen in the workload of any of one's scenarios."""
    if request.method == "POST":
        return _upload(request)
    return _upload_page(request)


def _upload(request: HttpRequest) -> HttpResponse:
    file = request.FILES.get("file")
    if file is None or file.file is None:
        message = Message(code="trace.missing", template="no file was chosen; choose a trace", path="file")
        return _upload_page(request, errors=(message,))
    columns = {name: request.POST[name] for name in COLUMNS if request.POST.get(name)}
    try:
        upload = actions.upload_trace(
            viewer_of(request, make_sandbox=True),
            file.file,
            name=file.name or "trace",
            size_bytes=file.size or 0,
            trace_format=request.POST.get("format", "csv"),
            columns=columns,
        )
    except TrimtabError as error:
        return _upload_page(request, errors=error.messages)
    for skipped in upload.skipped[:3]:
        messages.warning(request, translated(skipped))
    messages.success(request, _("%(count)d requests read.") % {"count": upload.row_count})
    return _use(request, upload) if request.POST.get("scenario") else redirect("traces")


def _use(request: HttpRequest, upload: TraceUpload) -> HttpResponse:
    """Uploaded from a workbench (`scenario` in the form), the trace becomes that scenario's workload at once."""
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, uuid_or_404(request.POST["scenario"]), change=True)
    for message in actions.use_trace(viewer, scenario, upload).errors.values():
        messages.error(request, translated(message))
    return redirect("workbench", scenario.pk, "serving")


def _upload_page(request: HttpRequest, *, errors: tuple[Message, ...] = ()) -> HttpResponse:
    context = {"traces": own_traces(viewer_of(request))[:SHOWN], "errors": errors, "formats": FORMATS}
    return render(request, "explorer/upload.html", context, status=422 if errors else 200)


@require_safe
def scenario_yaml(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The document as it was typed."""
    scenario = scenario_for(viewer_of(request), pk)
    headers = {"Content-Disposition": f'attachment; filename="{slugify(scenario.name) or "scenario"}.yaml"'}
    text = exports.scenario_yaml(scenario.document)
    return HttpResponse(text, content_type="application/yaml; charset=utf-8", headers=headers)
