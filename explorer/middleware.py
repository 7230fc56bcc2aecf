"""What stands around every request: the content security policy, and the size above which a body is not
read at all.

The size is checked in ASGI, before Django: Django's handler writes a whole body to disk before any view runs.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class ContentSecurityPolicy(MiddlewareMixin):
    """Adds `settings.CONTENT_SECURITY_POLICY`, except where a view has set a stricter one of its own."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Runs on every answer, error pages included."""
        response.headers.setdefault("Content-Security-Policy", settings.CONTENT_SECURITY_POLICY)
        return response


class BodyTooLargeError(Exception):
    """More bytes arrived than the site takes."""


class BodyLimit:
    """ASGI wrapper: 413 with a sentence where a body is larger than `maximum_bytes`, said or counted."""

    def __init__(self, application: Application, *, maximum_bytes: int) -> None:
        self._application = application
        self._maximum_bytes = maximum_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass sockets through; check HTTP."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if said.isdigit() and int(said) > self._maximum_bytes:
            await self._refuse(send)
            return
        try:
            await self._application(scope, self._counted(receive), send)
        except BodyTooLargeError:
            await self._refuse(send)

    def _counted(self, receive: Receive) -> Receive:
        received_bytes = 0

        async def counted() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > self._maximum_bytes:
                raise BodyTooLargeError
            return message

        return counted

    async def _refuse(self, send: Send) -> None:
        text = (
            f"This upload is larger than {self._maximum_bytes / 1e6:.0f} MB, the most that this site takes. "
            "Cut the file (a trace keeps its shape with fewer rows), or ask whoever runs the site to raise "
            "MAX_TRACE_BYTES. Nothing was saved or lost."
        )
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})
