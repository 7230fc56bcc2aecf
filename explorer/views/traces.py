"""Uploaded traces: reading a file, what it is like, and running on it. A trace is seen by who uploaded it alone.

`explorer/upload.html`: `traces` (own uploads), `errors` (list of Message), `formats`. `explorer/trace.html`: `trace`
(TraceUpload), `panel` (its figures and pictures), `scenarios` (own, to run it in), `chosen` (the id of one, or "").
"""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from explorer import actions
from explorer.access import own_traces, scenario_for, trace_for, uuid_or_404, viewer_of
from explorer.charts import trace as charts
from explorer.charts import translated
from explorer.models import SavedScenario, TraceUpload
from explorer.views.common import limited, refuse
from simcore.errors import InputError, Message, TrimtabError

FORMATS = ("mooncake", "azure", "burstgpt", "csv")
COLUMNS = ("timestamp_s", "input_tokens", "output_tokens")
SHOWN = 200
OFFERED = 50


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
    if not request.POST.get("scenario"):
        return redirect("trace", upload.sha256)
    address = request.build_absolute_uri(reverse("trace", args=[upload.sha256]))
    said = _("%(count)d requests read; what they are like: %(address)s")
    messages.success(request, said % {"count": upload.row_count, "address": address})
    return _use(request, upload)


def _upload_page(request: HttpRequest, *, errors: tuple[Message, ...] = ()) -> HttpResponse:
    context = {"traces": own_traces(viewer_of(request))[:SHOWN], "errors": errors, "formats": FORMATS}
    return render(request, "explorer/upload.html", context, status=422 if errors else 200)


@require_safe
def trace(request: HttpRequest, sha256: str) -> HttpResponse:
    """What an upload is like, and where to run it."""
    viewer = viewer_of(request)
    upload = trace_for(viewer, sha256)
    context = {
        "trace": upload,
        "panel": charts.panel(upload.described),
        "scenarios": SavedScenario.objects.filter(viewer.owned)[:OFFERED],
        "chosen": request.GET.get("scenario", ""),
    }
    return render(request, "explorer/trace.html", context)


@require_POST
@limited("start", per_minute=60)
def use(request: HttpRequest, sha256: str) -> HttpResponse:
    """Make it the workload of a scenario, or of a new one."""
    viewer = viewer_of(request)
    upload = trace_for(viewer, sha256)
    if request.POST.get("scenario"):
        return _use(request, upload)
    try:
        scenario = actions.create_on_trace(viewer, upload)
    except InputError as error:
        refuse(request, error)
        return redirect("trace", upload.sha256)
    return redirect("workbench", scenario.pk, "serving")


def _use(request: HttpRequest, upload: TraceUpload) -> HttpResponse:
    """The trace becomes the workload of the scenario that the form names."""
    viewer = viewer_of(request)
    scenario = scenario_for(viewer, uuid_or_404(request.POST["scenario"]), change=True)
    for message in actions.use_trace(viewer, scenario, upload).errors.values():
        messages.error(request, translated(message))
    return redirect("workbench", scenario.pk, "serving")
