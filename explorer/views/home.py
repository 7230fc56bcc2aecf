"""Home, and the two ways to begin.

`explorer/home.html`: `stories` (list of Story), `recent` (up to 6 of the viewer's scenarios), `text` (what was
pasted, when it was refused), `errors` (list of Message).
"""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from explorer import actions, reports
from explorer.access import viewer_of
from explorer.charts import translated
from explorer.models import SavedScenario
from explorer.views.common import limited, refuse
from simcore.errors import InputError, Message, TrimtabError
from simcore.report.reading import is_report, scenario_documents
from simcore.scenario.stories import stories


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return _home(request)


def _home(request: HttpRequest, *, text: str = "", errors: tuple[Message, ...] = ()) -> HttpResponse:
    recent = SavedScenario.objects.filter(viewer_of(request).owned).order_by("-updated_at")[:6]
    context = {"stories": list(stories().values()), "recent": recent, "text": text, "errors": errors}
    return render(request, "explorer/home.html", context, status=422 if errors else 200)


@require_POST
@limited("start", per_minute=60)
def start(request: HttpRequest) -> HttpResponse:
    """From a model id, a config.json, a `vllm serve` line, a scenario or a report's JSON, pasted or as a file."""
    file = request.FILES.get("file")
    text = request.POST.get("text", "")
    try:
        pasted = actions.text_of(file.file, file.size or 0) if file and file.file else text
        if is_report(pasted):
            return _open_report(request, pasted)
        scenario, warnings = actions.create_from_text(viewer_of(request, make_sandbox=True), pasted)
    except TrimtabError as error:
        return _home(request, text=text, errors=error.messages)
    for warning in warnings:
        messages.warning(request, translated(warning))
    return redirect("workbench", scenario.pk)


def _open_report(request: HttpRequest, text: str) -> HttpResponse:
    """The scenarios of a report's JSON, beside each other as they were."""
    made = reports.create_from_report(viewer_of(request, make_sandbox=True), scenario_documents(text))
    return redirect(f"{reverse('compare')}?{urlencode([('s', str(one.pk)) for one in made])}")


@require_POST
@limited("start", per_minute=60)
def start_story(request: HttpRequest, slug: str) -> HttpResponse:
    """The story's variant beside its baseline, on the tab where its point is."""
    story = stories().get(slug)
    if story is None:
        raise Http404
    try:
        scenario = actions.create_from_story(viewer_of(request, make_sandbox=True), story)
    except InputError as error:
        refuse(request, error)
        return redirect("home")
    return redirect("workbench", scenario.pk, *([] if story.tab == "overview" else [story.tab]))
