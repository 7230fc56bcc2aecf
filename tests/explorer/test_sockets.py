"""The socket of a run: who may listen, and that nobody misses an event or hears one twice."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from explorer import actions, consumers
from explorer.access import Viewer
from explorer.asgi import application
from explorer.events import RunLog, group_of_run
from explorer.models import Run, SavedScenario
from tests.explorer.conftest import DOCUMENT, run_of, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_S = 10.0


@asynccontextmanager
async def listening(
    client: Client, run: Run, *, after: int | str = 0, origin: str = "http://localhost"
) -> AsyncIterator[WebsocketCommunicator]:
    """The socket of a run."""
    async with listening_at(client, f"/ws/runs/{run.pk}/?after={after}", origin=origin) as socket:
        yield socket


@asynccontextmanager
async def listening_at(
    client: Client, path: str, *, origin: str = "http://localhost"
) -> AsyncIterator[WebsocketCommunicator]:
    """A socket with the cookies of a browser; `connected` and `close_code` say what became of it."""
    cookie = client.cookies.get(settings.SESSION_COOKIE_NAME)
    headers = [(b"origin", origin.encode()), (b"host", b"localhost")]
    if cookie is not None:
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie.value}".encode()))
    socket = WebsocketCommunicator(application, path, headers=headers)
    socket.connected, socket.close_code = await socket.connect(timeout=PATIENCE_S)
    try:
        yield socket
    finally:
        await socket.disconnect(timeout=PATIENCE_S)
        await database_sync_to_async(
            lambda: connection.close()
        )()  # waits for what the consumer was still asking


async def hear(socket: WebsocketCommunicator, count: int) -> list[dict[str, Any]]:
    return [await socket.receive_json_from(timeout=PATIENCE_S) for _ in range(count)]


async def closing(socket: WebsocketCommunicator) -> int:
    """The code with which the server closes."""
    message = await socket.receive_output(timeout=PATIENCE_S)
    assert message["type"] == "websocket.close", message
    return int(message["code"])


@pytest.fixture
def quiet_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the safety net, so that a test sees the doorbell alone."""
    monkeypatch.setattr(consumers, "POLL_S", 1000.0)


@pytest.fixture
def running(scenario: SavedScenario) -> Run:
    run = run_of(scenario)
    run.claim(0)
    return run


async def test_the_owner_hears_the_whole_life_of_a_run(
    scenario: SavedScenario, as_alice: Client, work: Callable[[Run], Run], quiet_poll: None
) -> None:
    run = await database_sync_to_async(run_of)(scenario)
    async with listening(as_alice, run) as socket:
        assert (await hear(socket, 1))[0]["kind"] == "run.queued"
        await database_sync_to_async(work)(run)
        heard = await hear(socket, run.last_seq - 1)
        assert [event["seq"] for event in heard] == list(range(2, run.last_seq + 1))
        assert heard[0]["kind"] == "run.started"
        assert heard[-1]["kind"] == "run.finished"
        assert heard[-1].keys() == {"seq", "kind", "at", "payload"}
        assert await closing(socket) == 1000


@pytest.mark.parametrize("who", ["bob", "charlie", "nobody"])
async def test_a_stranger_hears_nothing(
    who: str, scenario: SavedScenario, as_bob: Client, as_charlie: Client, as_nobody: Client
) -> None:
    run = await database_sync_to_async(run_of)(scenario)
    client = {"bob": as_bob, "charlie": as_charlie, "nobody": as_nobody}[who]
    async with listening(client, run) as socket:
        assert not socket.connected


async def test_a_run_that_does_not_exist_looks_the_same(scenario: SavedScenario, as_bob: Client) -> None:
    foreign = await database_sync_to_async(run_of)(scenario)
    async with (
        listening(as_bob, Run(pk=uuid4())) as missing,
        listening(as_bob, foreign) as hidden,
    ):
        assert (missing.connected, missing.close_code) == (hidden.connected, hidden.close_code)


@pytest.mark.parametrize("visibility", ["link", "public"])
async def test_everyone_may_follow_what_is_shared(
    visibility: str, scenario: SavedScenario, as_bob: Client, as_nobody: Client
) -> None:
    await SavedScenario.objects.filter(pk=scenario.pk).aupdate(visibility=visibility)
    run = await database_sync_to_async(run_of)(scenario)
    for client in (as_bob, as_nobody):
        async with listening(client, run) as socket:
            assert socket.connected


async def test_charlie_follows_his_own(as_charlie: Client) -> None:
    scenario = await SavedScenario.objects.aget(name="Charlie's")
    run = await database_sync_to_async(lambda: run_of(SavedScenario.objects.get(pk=scenario.pk)))()
    async with listening(as_charlie, run) as socket:
        assert (await hear(socket, 1))[0]["kind"] == "run.queued"


async def test_a_page_of_another_site_may_not_connect(scenario: SavedScenario, as_alice: Client) -> None:
    run = await database_sync_to_async(run_of)(scenario)
    async with listening(as_alice, run, origin="https://evil.example") as socket:
        assert not socket.connected


@pytest.mark.parametrize("after", [1, 2, 3])
async def test_a_page_that_comes_back_hears_what_it_missed(
    after: int, finished: Run, as_alice: Client, quiet_poll: None
) -> None:
    async with listening(as_alice, finished, after=after) as socket:
        heard = await hear(socket, finished.last_seq - after)
        assert [event["seq"] for event in heard] == list(range(after + 1, finished.last_seq + 1))
        assert await closing(socket) == 1000


async def test_a_page_that_missed_nothing_is_told_so(finished: Run, as_alice: Client) -> None:
    async with listening(as_alice, finished, after=finished.last_seq) as socket:
        assert await closing(socket) == 1000


async def test_a_page_of_a_run_whose_log_is_pruned_is_told_so(finished: Run, as_alice: Client) -> None:
    await finished.events.all().adelete()
    async with listening(as_alice, finished, after=1) as socket:
        assert await closing(socket) == 1000


@pytest.mark.parametrize("after", ["", "-1", "x", "1e3", "٣", "9" * 40])
async def test_an_after_that_is_no_number_is_the_beginning(
    after: str, scenario: SavedScenario, as_alice: Client
) -> None:
    run = await database_sync_to_async(run_of)(scenario)
    async with listening(as_alice, run, after=after) as socket:
        assert (await hear(socket, 1))[0]["seq"] == 1


async def test_an_event_announced_twice_is_heard_once(
    running: Run, as_alice: Client, quiet_poll: None
) -> None:
    async with listening(as_alice, running, after=running.last_seq) as socket:
        await database_sync_to_async(RunLog(running))("stage", {"stage": "fabric"})
        event = (await hear(socket, 1))[0]
        layer = get_channel_layer()
        assert layer is not None
        again = {"type": "log.events", "last_seq": event["seq"], "events": [event]}
        await layer.group_send(group_of_run(running.pk), again)
        assert await socket.receive_nothing(timeout=0.3)


async def test_an_event_that_leaves_a_gap_brings_those_before_it(
    running: Run, as_alice: Client, quiet_poll: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(as_alice, running, after=running.last_seq) as socket:
        log = RunLog(running)
        with monkeypatch.context() as deaf:
            deaf.setattr("explorer.events.publish", lambda group, message: None)
            await database_sync_to_async(log)("stage", {"stage": "closed_forms"})
        await database_sync_to_async(log)("stage", {"stage": "fabric"})
        assert [event["payload"]["stage"] for event in await hear(socket, 2)] == ["closed_forms", "fabric"]


async def test_a_doorbell_that_is_never_heard_costs_a_moment(
    running: Run, as_alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "POLL_S", 0.1)
    monkeypatch.setattr("explorer.events.publish", lambda group, message: None)
    async with listening(as_alice, running, after=running.last_seq) as socket:
        await database_sync_to_async(RunLog(running))("stage", {"stage": "fabric"})
        assert (await hear(socket, 1))[0]["payload"] == {"stage": "fabric"}


async def test_many_events_at_once_come_in_order(running: Run, as_alice: Client, quiet_poll: None) -> None:
    async with listening(as_alice, running, after=running.last_seq) as socket:
        entries = [("run.finding", {"n": index}) for index in range(500)]
        await database_sync_to_async(running.append)(entries, progress_fraction=0.5)
        assert [event["payload"]["n"] for event in await hear(socket, 500)] == list(range(500))


async def test_ending_the_sharing_ends_the_listening(
    running: Run, as_bob: Client, as_alice: Client, quiet_poll: None
) -> None:
    scenario = running.revision.scenario
    await database_sync_to_async(actions.set_visibility)(scenario, "link")
    async with (
        listening(as_bob, running, after=running.last_seq) as bobs,
        listening(as_alice, running, after=running.last_seq) as alices,
    ):
        assert bobs.connected
        await database_sync_to_async(actions.set_visibility)(scenario, "private")
        assert await closing(bobs) == 4404
        assert await alices.receive_nothing(timeout=0.2)


async def test_a_deleted_scenario_ends_the_listening(
    running: Run, as_alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "POLL_S", 0.1)
    async with listening(as_alice, running, after=running.last_seq) as socket:
        await database_sync_to_async(actions.delete)(running.revision.scenario)
        assert await closing(socket) == 4404


async def test_many_listeners_hear_the_same(
    alice: User, as_alice: Client, work: Callable[[Run], Run], quiet_poll: None
) -> None:
    def begin() -> Run:
        return run_of(actions.create_scenario(Viewer(user=alice), DOCUMENT))

    run = await database_sync_to_async(begin)()

    async def listen(client: Client) -> list[int]:
        heard: list[dict[str, Any]] = []
        async with listening(client, run) as socket:
            while not heard or heard[-1]["kind"] != "run.finished":
                heard += await hear(socket, 1)
        return [event["seq"] for event in heard]

    clients = [await database_sync_to_async(signed_in)(alice) for _ in range(5)]
    listeners = [asyncio.create_task(listen(client)) for client in clients]
    await asyncio.sleep(0.1)
    await database_sync_to_async(work)(run)
    for seqs in await asyncio.gather(*listeners):
        assert seqs == list(range(1, run.last_seq + 1))
