"""Measured over simulated: a benchmark's result file, posted to a run, is laid over what the run says.

`explorer/measured.html`: `run`, `scenario`, `tools`, `tool` (as chosen), `errors` (Messages); after a file `panel`.
Nothing of the file is kept.
"""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from explorer.access import run_for, viewer_of
from explorer.charts import measured as chart
from explorer.charts.style import Panel, Result
from explorer.views.common import limited
from simcore.errors import InputError, Message, TrimtabError
from simcore.measurements import TOOLS, read_serving

MAX_BYTES = 2 * 2**20


@require_http_methods(["GET", "POST"])
@limited("measured", per_minute=10)
def measured(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The form, and below it what was measured beside what was simulated."""
    run = run_for(viewer_of(request), pk)
    result = run.result_document
    if result is None:
        raise Http404
    panel: Panel | None = None
    errors: tuple[Message, ...] = ()
    try:
        _refuse_what_serves_nothing(result)
        if request.method == "POST":
            panel = _panel(request, result)
    except TrimtabError as error:
        errors = error.messages
    context = {
        "run": run,
        "scenario": run.revision.scenario,
        "tools": list(TOOLS),
        "tool": request.POST.get("tool", ""),
        "panel": panel,
        "errors": errors,
    }
    refused = request.method == "POST" and errors
    return render(request, "explorer/measured.html", context, status=422 if refused else 200)


def _refuse_what_serves_nothing(result: Result) -> None:
    if "serving.request_per_s" not in result["metrics"]:
        raise InputError.at(
            "file",
            "measured.no_requests",
            "this run serves no requests, so there is nothing to lay a benchmark over",
        )


def _panel(request: HttpRequest, result: Result) -> Panel:
    file, tool = request.FILES.get("file"), request.POST.get("tool", "")
    if file is None or tool not in TOOLS:
        raise InputError.at("file", "measured.missing", "choose the tool and the file that it wrote")
    raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise InputError.at(
            "file",
            "measured.too_large",
            "the file is larger than {allowed:,} bytes; save the summary without a row per request",
            allowed=MAX_BYTES,
        )
    return chart.panel(result, read_serving(tool, raw, path=file.name or "file"))
