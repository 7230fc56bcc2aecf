"""A frozen link, readable by whoever has it: a scenario as it was, or a report (`views/reports.py`).

`explorer/shared.html`: `link` (ShareLink), `live` (false: revoked or expired, and nothing else is given), `result`,
`document`, `baseline_result`, `strip`, `panels` (one Panel per tab that has charts), `can_revoke`, `yaml` (inputs).
"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from explorer import exports
from explorer.access import viewer_of
from explorer.charts import TABS, panel, strip
from explorer.models import ShareLink
from explorer.views.reports import frozen


@require_safe
@never_cache
def shared(request: HttpRequest, token: str) -> HttpResponse:
    link = ShareLink.objects.filter(token=token).first()
    if link is None:
        return frozen(request, token)
    if not link.is_live:
        return render(request, "explorer/shared.html", {"link": link, "live": False}, status=410)
    result, baseline = link.result, link.baseline_result
    name = str((link.baseline_document or {}).get("name", ""))
    panels = [panel(tab, result, baseline=baseline) for tab in TABS]
    context = {
        "link": link,
        "live": True,
        "result": result,
        "document": link.document,
        "baseline_result": baseline,
        "strip": strip(result, baseline, baseline_name=name),
        "panels": [one for one in panels if one.charts],
        "can_revoke": viewer_of(request).owns(link),
        "yaml": exports.scenario_yaml(link.document),
    }
    return render(request, "explorer/shared.html", context)
