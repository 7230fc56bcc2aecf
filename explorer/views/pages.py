"""Pages about the product, and the sign of life for whoever runs it.

`explorer/help.html`: `terms` (the glossary). `explorer/methods.html`: `rows` (every published number: expected, got,
error), `panel` (real runs replayed) and `terms`.
"""

from django.core.exceptions import RequestDataTooBig
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from explorer.charts import replay
from simcore import glossary


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What Django itself refuses to read; nothing was changed by it."""
    if isinstance(exception, RequestDataTooBig):
        return render(request, "413.html", status=413)
    title = _("This request could not be read. Nothing was changed; go back and try again.")
    return render(request, "explorer/error.html", {"title": title}, status=400)


@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    return render(request, "explorer/help.html", {"terms": list(glossary.ENTRIES.values())})


@require_safe
def methods(request: HttpRequest) -> HttpResponse:
    context = {"terms": list(glossary.ENTRIES.values()), "panel": replay.panel()}
    return render(request, "explorer/methods.html", context)


@require_safe
def aiconfigurator(request: HttpRequest) -> HttpResponse:
    """The plan search beside a public one, on two tasks."""
    return render(request, "docs/aiconfigurator.html")


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """200 where the database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return JsonResponse({"status": "ok"})
