"""Calibrate: measured rows in, a calibration out, which its owner may keep under a name and choose in scenarios.

`explorer/calibrate.html`: `chips` ({slug: chip}), `chip`, `rows`, `columns` (as typed), `kept` (own calibrations),
`errors` (Messages); after a fit `panel`, `rejected` (list of {reason, count}), `sealed` (the fit, for the form that
keeps it), `name`, `yaml`, `yaml_base64`, `file_name`. `explorer/calibration.html`: `kept` (one SavedCalibration),
`panel`, `rejected`, `yaml`.
"""

import base64
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from explorer import actions, calibrating
from explorer.access import calibration_for, own_calibrations, viewer_of
from explorer.charts import calibration
from explorer.models.calibration import Fit
from explorer.views.common import limited, refuse
from simcore.catalog import default_catalog
from simcore.errors import InputError, Message, TrimtabError

DEFAULT_CHIP = "nvidia-h100-sxm"
SHOWN = 200


@require_http_methods(["GET", "POST"])
@limited("calibrate", per_minute=10)
def calibrate(request: HttpRequest) -> HttpResponse:
    """The form, and below it what a fit of the posted rows brings."""
    if request.method != "POST":
        return _page(request)
    try:
        return _page(request, fitted=_fitted(request))
    except TrimtabError as error:
        return _page(request, errors=error.messages)


def _page(
    request: HttpRequest, *, fitted: dict[str, Any] | None = None, errors: tuple[Message, ...] = ()
) -> HttpResponse:
    context = {
        "chips": default_catalog().chips,
        "chip": request.POST.get("chip") or request.GET.get("chip") or DEFAULT_CHIP,
        "rows": request.POST.get("rows", ""),
        "columns": request.POST.get("columns", ""),
        "limits": {"rows": calibrating.MAX_ROWS, "steps": calibrating.MAX_STEP_ROWS},
        "kept": own_calibrations(viewer_of(request)).defer("text")[:SHOWN],
        "errors": errors,
    }
    return render(request, "explorer/calibrate.html", context | (fitted or {}), status=422 if errors else 200)


def _fitted(request: HttpRequest) -> dict[str, Any]:
    file, chip = request.FILES.get("file"), request.POST.get("chip") or DEFAULT_CHIP
    raw = file.read(calibrating.MAX_BYTES + 1) if file else request.POST.get("rows", "").encode()
    outcome = calibrating.fit(
        raw,
        chip,
        columns=request.POST.get("columns", ""),
        fitted_on=timezone.now().date().isoformat(),
    )
    user = viewer_of(request).user
    fit = calibrating.fit_of(outcome, chip, by=user.get_username() if user else "")
    return {"panel": calibration.panel(outcome), **_offered(fit)}


def _offered(fit: Fit) -> dict[str, Any]:
    """The fit as a file, and sealed in the form that keeps it."""
    return {
        "rejected": calibration.rejected(fit.report),
        "sealed": calibrating.sealed(fit),
        "name": default_catalog().chip(fit.chip).name,
        "chip": fit.chip,
        "yaml": fit.text,
        "yaml_base64": base64.b64encode(fit.text.encode()).decode(),
        "file_name": f"{fit.chip}.yaml",
    }


@require_POST
@limited("calibrate", per_minute=10)
def keep(request: HttpRequest) -> HttpResponse:
    """The fit under a name; a name that will not do is asked for again, with the fit still there."""
    fit = None
    try:
        fit = calibrating.unsealed(request.POST.get("sealed", ""))
        saved = actions.keep_calibration(
            viewer_of(request, make_sandbox=True), fit, name=request.POST.get("name", "")
        )
    except InputError as error:
        shown = {"panel": calibration.report_panel(fit.report), **_offered(fit)} if fit else None
        return _page(request, fitted=shown, errors=error.messages)
    messages.success(request, _("Kept. Any scenario of yours can now choose it."))
    return redirect("calibration", saved.slug)


@require_safe
def kept(request: HttpRequest, slug: str) -> HttpResponse:
    """One kept fit: its errors before and after, its file, and what to do with it."""
    saved = calibration_for(viewer_of(request), slug)
    context = {
        "kept": saved,
        "chip_name": default_catalog().chips[saved.chip].name
        if saved.chip in default_catalog().chips
        else saved.chip,
        "panel": calibration.report_panel(saved.report),
        "rejected": calibration.rejected(saved.report),
    }
    return render(request, "explorer/calibration.html", context)


@require_safe
def file(request: HttpRequest, slug: str) -> HttpResponse:
    """The file of a kept fit, as the command line takes it."""
    saved = calibration_for(viewer_of(request), slug)
    headers = {"Content-Disposition": f'attachment; filename="{saved.slug}.yaml"'}
    return HttpResponse(saved.text, content_type="application/yaml; charset=utf-8", headers=headers)


@require_POST
@limited("start", per_minute=60)
def use(request: HttpRequest, slug: str) -> HttpResponse:
    """A scenario with it, beside the same under the calibration that ships."""
    viewer = viewer_of(request)
    saved = calibration_for(viewer, slug)
    try:
        scenario = actions.use_calibration(viewer, saved)
    except InputError as error:
        refuse(request, error)
        return redirect("calibration", slug)
    return redirect("workbench", scenario.pk)


@require_POST
def discard(request: HttpRequest, slug: str) -> HttpResponse:
    """Results that used it stay; a scenario that names it says so at its next edit."""
    actions.discard_calibration(calibration_for(viewer_of(request), slug))
    return redirect("calibrate")
