"""Two to five scenarios beside each other, the first being the baseline.

The address names them, `s=<id>` as it stands and `s=<id>~baseline` as its baseline is.
`explorer/compare.html`: `scenarios` (those chosen), `entries` (list of {key, name, scenario, run, result}), `panel`
(Panel of the comparison, or None while fewer than two are chosen), `comparison`
(`simcore.analysis.compare.Comparison` or None, once all have results), `query` (`s=…&s=…`, for the export links),
`choices` (more scenarios to add), `formats`, `columns` (each entry with the address that makes it the baseline),
`layers` (list of `LayersOf`), `layers_wait` (whether the page asks for them).
`explorer/_layers.html`: `layers`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from explorer import exports, reports
from explorer.access import Viewer, listed_scenarios, scenario_for, uuid_or_404, viewer_of
from explorer.actions import latest_run
from explorer.attributing import Attributed, attributed
from explorer.charts import comparison_panel
from explorer.charts.compare_layers import panel as layers_panel
from explorer.charts.style import Panel
from explorer.views.common import limited, refuse
from simcore.analysis.compare import MAX_SCENARIOS
from simcore.errors import InputError
from simcore.report.formats import CONTENT_TYPES

FORMATS = {**exports.FORMATS, **{form: CONTENT_TYPES[form] for form in ("json", "xlsx", "pdf")}}


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    viewer = viewer_of(request)
    entries = entries_of(viewer, request.GET.getlist("s"))
    chosen = [entry.scenario for entry in entries]
    ready = len(entries) > 1
    panel = comparison_panel(
        [entry.document for entry in entries],
        [entry.result for entry in entries],
        [entry.name for entry in entries],
    )
    known = _layers(viewer, entries, only_kept=True) if _are_comparable(entries) else []
    context = {
        "layers": known,
        "layers_wait": any(one.panel is None for one in known),
        "columns": _columns(entries),
        "entries": entries,
        "scenarios": list(dict.fromkeys(chosen)),
        "panel": panel if ready else None,
        "comparison": exports.comparison_of(entries) if ready else None,
        "query": urlencode([("s", entry.key) for entry in entries]),
        "choices": listed_scenarios(viewer).exclude(pk__in=[one.pk for one in chosen])[:50],
        "formats": FORMATS,
    }
    return render(request, "explorer/compare.html", context)


@require_safe
@limited("layers", per_minute=30, method="GET")
def layers(request: HttpRequest) -> HttpResponse:
    """Which layer earned the gain of each column against the baseline; runs what is missing."""
    viewer = viewer_of(request)
    entries = entries_of(viewer, request.GET.getlist("s"))
    context = {"layers": _layers(viewer, entries) if _are_comparable(entries) else []}
    return render(request, "explorer/_layers.html", context)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersOf:
    """The attribution of one column; `panel` is None where it was not done, for what `note` says."""

    name: str
    panel: Panel | None
    note: str = ""


def _layers(viewer: Viewer, entries: Sequence[exports.Entry], *, only_kept: bool = False) -> list[LayersOf]:
    return [_layers_of(attributed(viewer, entries[0], one, only_kept=only_kept)) for one in entries[1:]]


def _layers_of(done: Attributed) -> LayersOf:
    note = ""
    if done.is_too_large:
        note = _(
            "Attribution would simulate too many requests for a page; ask for fewer, or run trimtab compare"
        )
    return LayersOf(
        name=done.name,
        panel=None if done.found is None else layers_panel(done.found, done.sentences),
        note=note,
    )


def _are_comparable(entries: Sequence[exports.Entry]) -> bool:
    """Whether all do the same kind of work."""
    kinds = {str(one.document.get("workload", {}).get("kind", "serving")) for one in entries}
    return len(entries) > 1 and len(kinds) == 1


@require_safe
def export(request: HttpRequest, suffix: str) -> HttpResponse:
    """The comparison as a file."""
    if suffix not in FORMATS:
        raise Http404
    viewer = viewer_of(request)
    entries = entries_of(viewer, request.GET.getlist("s"))
    try:
        content = _content(viewer, entries, suffix)
    except InputError as error:
        refuse(request, error)
        return redirect(f"{reverse('compare')}?{request.GET.urlencode()}")
    headers = {"Content-Disposition": f'attachment; filename="trimtab-comparison.{suffix}"'}
    return HttpResponse(content, content_type=FORMATS[suffix], headers=headers)


def _columns(entries: Sequence[exports.Entry]) -> list[dict[str, Any]]:
    """Each entry, and the address of the same comparison with it first."""
    return [
        {
            "entry": one,
            "as_baseline": urlencode([("s", key) for key in (one.key, *_other_keys(entries, one))]),
        }
        for one in entries
    ]


def _other_keys(entries: Sequence[exports.Entry], chosen: exports.Entry) -> list[str]:
    return [one.key for one in entries if one.key != chosen.key]


def _content(viewer: Viewer, entries: list[exports.Entry], suffix: str) -> str | bytes:
    """Tables and pages of the comparison alone; what has sheets, pages or scenarios in it is a report of it."""
    if suffix in exports.FORMATS:
        return exports.render_comparison(entries, suffix, said=_said(viewer, entries))
    return reports.file_of(reports.of_comparison(entries), suffix)


def _said(viewer: Viewer, entries: Sequence[exports.Entry]) -> list[exports.Said]:
    """What the page has found of layers so far; a file runs nothing."""
    if not _are_comparable(entries):
        return []
    found = [attributed(viewer, entries[0], one, only_kept=True) for one in entries[1:]]
    return [exports.Said(name=one.name, message=row) for one in found for row in one.sentences]


def entries_of(viewer: Viewer, keys: list[str]) -> list[exports.Entry]:
    """The columns of the address, each once; a scenario that may not be read is a 404, as everywhere."""
    entries = [_entry(viewer, key) for key in list(dict.fromkeys(keys[:20]))[:MAX_SCENARIOS]]
    return list({entry.key: entry for entry in entries}.values())


def _entry(viewer: Viewer, key: str) -> exports.Entry:
    """`<id>` is a scenario as it stands, `<id>~baseline` the state that it is compared with."""
    scenario = scenario_for(viewer, uuid_or_404(key.removesuffix(exports.BASELINE)))
    pinned = scenario.baseline if key.endswith(exports.BASELINE) else None
    revision = pinned or scenario.current
    return exports.Entry(scenario=scenario, revision=revision, run=latest_run(revision))
