"""What stands around every request: headers, and the size of bodies."""

from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from explorer.middleware import BodyLimit, Receive, Scope, Send


@pytest.mark.django_db
def test_scripts_may_come_from_this_site_alone_and_nobody_may_frame_it(client: Client) -> None:
    answer = client.get("/no/such/page/")
    assert answer.status_code == 404
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "http" not in policy
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"


async def reads_all(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that reads its body, as Django's handler does."""
    length = 0
    more = True
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(length).encode()})


async def post(chunks: list[bytes], headers: list[tuple[bytes, bytes]]) -> tuple[int, str]:
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    communicator = ApplicationCommunicator(BodyLimit(reads_all, maximum_bytes=1_000_000), scope)
    for index, chunk in enumerate(chunks):
        more = index < len(chunks) - 1
        await communicator.send_input({"type": "http.request", "body": chunk, "more_body": more})
    start = await communicator.receive_output(1)
    body = await communicator.receive_output(1)
    return start["status"], body["body"].decode()


async def test_a_body_within_the_limit_arrives_whole() -> None:
    assert await post([b"x" * 500_000, b"x" * 500_000], []) == (200, "1000000")


async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read() -> None:
    status, text = await post([], [(b"content-length", b"5000000000")])
    assert status == 413
    assert "larger than 1 MB" in text
    assert "MAX_TRACE_BYTES" in text


async def test_a_body_that_does_not_say_its_size_is_counted() -> None:
    status, _ = await post([b"x" * 600_000, b"x" * 600_000], [])
    assert status == 413


def test_the_largest_upload_has_room_for_the_largest_trace() -> None:
    assert settings.MAX_UPLOAD_BYTES > settings.MAX_TRACE_BYTES
