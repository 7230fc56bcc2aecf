"""Two to five scenarios beside each other, the first being the baseline.

The address names them, `s=<id>` as it stands and `s=<id>~baseline` as its baseline is.
`explorer/compare.html`: `scenarios` (those chosen), `entries` (list of {key, name, scenario, run, result}), `panel`
(Panel of the comparison, or None while fewer than two are chosen), `comparison`
(`simcore.analysis.compare.Comparison` or None, once all have results), `query` (`s=…&s=…`, for the export links),
`choices` (more scenarios to add), `formats`.
"""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from explorer import exports
from explorer.access import Viewer, listed_scenarios, scenario_for, uuid_or_404, viewer_of
from explorer.actions import latest_run
from explorer.charts import comparison_panel
from explorer.views.common import refuse
from simcore.analysis.compare import MAX_SCENARIOS
from simcore.errors import InputError


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    viewer = viewer_of(request)
    entries = _entries(viewer, request.GET.getlist("s"))
    chosen = [entry.scenario for entry in entries]
    ready = len(entries) > 1
    panel = comparison_panel(
        [entry.document for entry in entries],
        [entry.result for entry in entries],
        [entry.name for entry in entries],
    )
    context = {
        "entries": entries,
        "scenarios": list(dict.fromkeys(chosen)),
        "panel": panel if ready else None,
        "comparison": exports.comparison_of(entries) if ready else None,
        "query": urlencode([("s", entry.key) for entry in entries]),
        "choices": listed_scenarios(viewer).exclude(pk__in=[one.pk for one in chosen])[:50],
        "formats": exports.FORMATS,
    }
    return render(request, "explorer/compare.html", context)


@require_safe
def export(request: HttpRequest, suffix: str) -> HttpResponse:
    """The comparison as a file."""
    if suffix not in exports.FORMATS:
        raise Http404
    entries = _entries(viewer_of(request), request.GET.getlist("s"))
    try:
        text = exports.render_comparison(entries, suffix)
    except InputError as error:
        refuse(request, error)
        return redirect(f"{reverse('compare')}?{request.GET.urlencode()}")
    headers = {"Content-Disposition": f'attachment; filename="trimtab-comparison.{suffix}"'}
    return HttpResponse(text, content_type=exports.FORMATS[suffix], headers=headers)


def _entries(viewer: Viewer, keys: list[str]) -> list[exports.Entry]:
    """The columns of the address, each once; a scenario that may not be read is a 404, as everywhere."""
    entries = [_entry(viewer, key) for key in list(dict.fromkeys(keys[:20]))[:MAX_SCENARIOS]]
    return list({entry.key: entry for entry in entries}.values())


def _entry(viewer: Viewer, key: str) -> exports.Entry:
    """`<id>` is a scenario as it stands, `<id>~baseline` the state that it is compared with."""
    scenario = scenario_for(viewer, uuid_or_404(key.removesuffix(exports.BASELINE)))
    pinned = scenario.baseline if key.endswith(exports.BASELINE) else None
    revision = pinned or scenario.current
    return exports.Entry(scenario=scenario, revision=revision, run=latest_run(revision))
