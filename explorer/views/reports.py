"""Reports: a form that freezes a comparison, the frozen page, its files, and taking it back.

`explorer/report_form.html`: `entries` (as on Compare), `wanted` (what was typed), `errors`, `query`, `ready`.
`explorer/report.html`: `report` (SavedReport), `live` (false: revoked or expired, and nothing else is given), `article`
(the memo as HTML), `formats`, `can_revoke`. `explorer/reports.html`: `reports` (own ones).
"""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from explorer import exports, reports
from explorer.access import own_reports, report_for, viewer_of
from explorer.models import SavedReport
from explorer.models.scenario import MAX_NAME
from explorer.views.common import limited, refuse
from explorer.views.compare import entries_of
from simcore.errors import InputError
from simcore.report.formats import CONTENT_TYPES

LANGUAGES = (("en", "English"), ("zh-hans", "简体中文"))


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    return render(request, "explorer/reports.html", {"reports": own_reports(viewer_of(request))})


@require_http_methods(["GET", "HEAD", "POST"])
@limited("report", per_minute=20)
def new(request: HttpRequest) -> HttpResponse:
    """The form, and what it makes. What was refused stands in the form again."""
    viewer = viewer_of(request, make_sandbox=request.method == "POST")
    entries = entries_of(viewer, request.GET.getlist("s"))
    wanted = _wanted(request, entries)
    if request.method == "POST":
        address = request.build_absolute_uri(reverse("shared", args=["TOKEN"])).replace("TOKEN", "{token}")
        try:
            report = reports.freeze(viewer, entries, wanted, address=address)
        except InputError as error:
            refuse(request, error)
        else:
            return redirect("shared", report.token)
    context = {
        "entries": entries,
        "wanted": wanted,
        "languages": LANGUAGES,
        "query": urlencode([("s", entry.key) for entry in entries]),
        "ready": len(entries) > 1 and all(entry.result for entry in entries),
    }
    return render(request, "explorer/report_form.html", context)


def _wanted(request: HttpRequest, entries: list[exports.Entry]) -> reports.Wanted:
    """What was typed; before that, what would do."""
    choice, days = request.POST.get("choice", ""), request.POST.get("days", "")
    language = request.POST.get("language") or request.LANGUAGE_CODE
    return reports.Wanted(
        title=request.POST.get("title", " / ".join(entry.name for entry in entries))[:MAX_NAME],
        question=request.POST.get("question", "").strip(),
        language=language if language in dict(LANGUAGES) else "en",
        choice=int(choice) if choice.isdigit() and int(choice) < len(entries) else None,
        days=int(days[:6]) if days.isdigit() else None,
    )


@never_cache
def frozen(request: HttpRequest, token: str) -> HttpResponse:
    """The memo, for whoever has the token."""
    report = SavedReport.objects.filter(token=token).first()
    if report is None:
        raise Http404
    if not report.is_live:
        return render(request, "explorer/report.html", {"report": report, "live": False}, status=410)
    context = {
        "report": report,
        "live": True,
        # `article` escapes all that people wrote.
        "article": mark_safe(reports.article_of(report)),
        "formats": CONTENT_TYPES,
        "can_revoke": viewer_of(request).owns(report),
    }
    return render(request, "explorer/report.html", context)


@require_safe
@never_cache
@limited("report-file", per_minute=60, method="GET")
def file(request: HttpRequest, token: str, suffix: str) -> HttpResponse:
    """The memo as a file."""
    report = SavedReport.objects.filter(token=token).first()
    if report is None or suffix not in CONTENT_TYPES:
        raise Http404
    if not report.is_live:
        return render(request, "explorer/report.html", {"report": report, "live": False}, status=410)
    try:
        content = reports.file_of(reports.content_of(report), suffix)
    except InputError as error:
        refuse(request, error)
        return redirect("shared", token)
    headers = {"Content-Disposition": f'attachment; filename="trimtab-report.{suffix}"'}
    return HttpResponse(content, content_type=CONTENT_TYPES[suffix], headers=headers)


@require_POST
def revoke(request: HttpRequest, token: str) -> HttpResponse:
    """The page behind the token then says that it was revoked."""
    reports.revoke(report_for(viewer_of(request), token))
    return redirect("reports")
