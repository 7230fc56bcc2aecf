"""The library: scenarios, the catalog's entries, and one's own traces and calibrations by name.

`explorer/library.html`: `scenarios` (own and public, newest first, each with `.latest_status`), `traces` and `matrices`
(own uploads), `calibrations` (own fits), `catalog` ({kind: list of entries}), `kinds`. `explorer/entry.html`: `kind`,
`slug`, `entry` (a catalog dataclass), `rows` (list of {name, value, source}).
"""

from dataclasses import fields
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from explorer import actions, exports
from explorer.access import (
    listed_scenarios,
    own_calibrations,
    own_matrices,
    own_traces,
    scenario_for,
    viewer_of,
)
from explorer.models import Run
from explorer.views.common import limited, refuse
from simcore.catalog import default_catalog
from simcore.errors import InputError

KINDS = (
    "chips",
    "servers",
    "scaleup_domains",
    "switches",
    "optics",
    "optical_switches",
    "models",
    "price_books",
)
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
        "matrices": own_matrices(viewer)[:SHOWN],
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


@require_safe
def scenario_yaml(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The document as it was typed."""
    scenario = scenario_for(viewer_of(request), pk)
    headers = {"Content-Disposition": f'attachment; filename="{slugify(scenario.name) or "scenario"}.yaml"'}
    text = exports.scenario_yaml(scenario.document)
    return HttpResponse(text, content_type="application/yaml; charset=utf-8", headers=headers)
