"""Calibrate: measured rows in, a calibration file out. Nothing is stored.

`explorer/calibrate.html`: `chips` ({slug: chip}), `chip`, `rows`, `columns` (as typed), `errors` (Messages);
after a fit `panel`, `rejected` (list of {reason, count}), `yaml`, `yaml_base64`, `file_name`.
"""

import base64
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from explorer import calibrating
from explorer.charts import calibration
from explorer.views.common import limited
from simcore.catalog import default_catalog
from simcore.errors import TrimtabError
from simcore.validation.calibration_file import calibration_text

DEFAULT_CHIP = "nvidia-h100-sxm"


@require_http_methods(["GET", "POST"])
@limited("calibrate", per_minute=10)
def calibrate(request: HttpRequest) -> HttpResponse:
    """The form, and below it what a fit of the posted rows brings."""
    wanted = request.POST.get("chip") or request.GET.get("chip") or DEFAULT_CHIP
    context: dict[str, Any] = {
        "chips": default_catalog().chips,
        "chip": wanted,
        "rows": request.POST.get("rows", ""),
        "columns": request.POST.get("columns", ""),
        "limits": {"rows": calibrating.MAX_ROWS, "steps": calibrating.MAX_STEP_ROWS},
    }
    if request.method != "POST":
        return render(request, "explorer/calibrate.html", context)
    try:
        context |= _fitted(request, chip=wanted)
    except TrimtabError as error:
        context["errors"] = error.messages
        return render(request, "explorer/calibrate.html", context, status=422)
    return render(request, "explorer/calibrate.html", context)


def _fitted(request: HttpRequest, *, chip: str) -> dict[str, Any]:
    file = request.FILES.get("file")
    raw = file.read(calibrating.MAX_BYTES + 1) if file else request.POST.get("rows", "").encode()
    outcome = calibrating.fit(
        raw,
        chip,
        columns=request.POST.get("columns", ""),
        fitted_on=timezone.now().date().isoformat(),
    )
    text = calibration_text(outcome.calibration)
    return {
        "panel": calibration.panel(outcome),
        "rejected": [
            {"reason": calibration.reason(reason), "count": count}
            for reason, count in outcome.rejected.items()
        ],
        "yaml": text,
        "yaml_base64": base64.b64encode(text.encode()).decode(),
        "file_name": f"{chip}.yaml",
    }
