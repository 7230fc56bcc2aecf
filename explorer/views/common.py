"""What views share: who asks, how to say that something was refused, and a brake on those who ask too often."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _

from explorer.charts import translated
from simcore.errors import TrimtabError

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def is_htmx(request: HttpRequest) -> bool:
    """The page asks for a part of itself."""
    return bool(getattr(request, "htmx", False))


def refuse(request: HttpRequest, error: TrimtabError) -> None:
    """Show the messages of an error on the next page."""
    for message in error.messages:
        text = translated(message)
        messages.error(request, f"{message.path}: {text}" if message.path else text)


def limited(name: str, *, per_minute: int, method: str = "POST") -> Callable[[View[P]], View[P]]:
    """At most so many POSTs (or GETs) a minute from one address. Counted per process where there is no shared cache."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def braked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if request.method == method and _too_many(
                request, name, per_minute * settings.RATE_LIMIT_PERCENT // 100
            ):
                text = _(
                    "Too many requests from your address; wait a minute and try again. Nothing was lost."
                )
                return render(request, "explorer/error.html", {"title": text}, status=429)
            return view(request, *args, **kwargs)

        return braked

    return decorate


def _too_many(request: HttpRequest, name: str, allowed: int) -> bool:
    key = f"limit:{name}:{request.META.get('REMOTE_ADDR', '')}"
    cache.add(key, 0, timeout=60)
    try:
        return cache.incr(key) > allowed
    except ValueError:  # it ran out between the two lines
        return False
