"""The sockets of runs and sweeps: join, replay what was missed, forward what comes.

The consumer joins the group first and reads the log after, so nothing can fall between. It sends each `seq`
once and in order: one that it has sent is dropped, one that leaves a gap makes it read the log. A poll
every two seconds makes up for doorbells that were never heard. Who may follow is asked at connect, when
sharing changes, and with each poll. After the last event of a log the server closes with code 1000; when
access ends, with 4404.
"""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db.models import QuerySet

from explorer.access import own_sweeps, readable_runs, viewer_in
from explorer.events import group_of_run, group_of_sweep
from explorer.models import Run, RunEvent, Sweep, SweepEvent
from explorer.models.log import LogEvent
from explorer.models.run import ENDED

POLL_S = 2.0
REPLAY_ROWS = 200
LAST_KINDS = ("finished", "failed", "cancelled")
GONE = 4404


class LogConsumer(AsyncWebsocketConsumer):
    """`…/<id>/?after=<seq>`: JSON events `{seq, kind, at, payload}`."""

    def group_of(self, pk: str) -> str:
        raise NotImplementedError

    def may_follow(self) -> bool:
        raise NotImplementedError

    def is_over(self) -> bool:
        raise NotImplementedError

    def events(self) -> QuerySet[Any]:
        """The log, whole."""
        raise NotImplementedError

    async def connect(self) -> None:
        self.pk = str(self.scope["url_route"]["kwargs"]["pk"])
        self.last_seq = _after(self.scope["query_string"])
        self.turn = asyncio.Lock()
        self.poll: asyncio.Task[None] | None = None
        if not await self._may_follow():
            await self.close(code=GONE)
            return
        await self.channel_layer.group_add(self.group_of(self.pk), self.channel_name)
        await self.accept()
        self.poll = asyncio.create_task(self._poll())
        await self._replay()

    async def disconnect(self, code: int) -> None:
        if self.poll is not None:
            self.poll.cancel()
            await self.channel_layer.group_discard(self.group_of(self.pk), self.channel_name)

    async def log_events(self, message: dict[str, Any]) -> None:
        """New events, from the channel layer."""
        async with self.turn:
            for event in message["events"]:
                if event["seq"] == self.last_seq + 1:
                    await self._forward(event)
        over = any(event["kind"].partition(".")[2] in LAST_KINDS for event in message["events"])
        if over or message["last_seq"] > self.last_seq:
            await self._replay()

    async def log_access(self, message: dict[str, Any]) -> None:
        """Sharing has changed."""
        if not await self._may_follow():
            await self.close(code=GONE)

    async def _replay(self) -> None:
        over = await self._is_over()  # asked first: what has ended says nothing more, so then all is told
        async with self.turn:
            while events := await self._events_after(self.last_seq):
                for event in events:
                    await self._forward(event)
        if over:
            await self.close(code=1000)

    async def _forward(self, event: dict[str, Any]) -> None:
        self.last_seq = event["seq"]
        await self.send(text_data=json.dumps(event, separators=(",", ":")))

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            await self.log_access({})
            await self._replay()

    @database_sync_to_async
    def _may_follow(self) -> bool:
        return self.may_follow()

    @database_sync_to_async
    def _is_over(self) -> bool:
        return self.is_over()

    @database_sync_to_async
    def _events_after(self, seq: int) -> list[dict[str, Any]]:
        rows: QuerySet[LogEvent] = self.events().filter(seq__gt=seq).order_by("seq")
        return [event.as_dict() for event in rows[:REPLAY_ROWS]]


class RunConsumer(LogConsumer):
    """`/ws/runs/<id>/?after=<seq>`, for whoever may read the run's scenario."""

    def group_of(self, pk: str) -> str:
        return group_of_run(pk)

    def may_follow(self) -> bool:
        return readable_runs(viewer_in(self.scope)).filter(pk=self.pk).exists()

    def is_over(self) -> bool:
        return Run.objects.filter(pk=self.pk, status__in=ENDED).exists()

    def events(self) -> QuerySet[RunEvent]:
        return RunEvent.objects.filter(run_id=self.pk)


class SweepConsumer(LogConsumer):
    """`/ws/sweeps/<id>/?after=<seq>`, for whose sweep it is."""

    def group_of(self, pk: str) -> str:
        return group_of_sweep(pk)

    def may_follow(self) -> bool:
        return own_sweeps(viewer_in(self.scope)).filter(pk=self.pk).exists()

    def is_over(self) -> bool:
        return Sweep.objects.filter(pk=self.pk, status__in=ENDED).exists()

    def events(self) -> QuerySet[SweepEvent]:
        return SweepEvent.objects.filter(sweep_id=self.pk)


def _after(query: bytes) -> int:
    """The `seq` that the page has seen; anything that is not a number is 0."""
    text = parse_qs(query.decode("ascii", "replace")).get("after", ["0"])[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
