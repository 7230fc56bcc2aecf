"""From the log to those who listen: log first, doorbell second.

Runs and sweeps store events and send `logged`; here the doorbell is rung once the transaction is through. One
thread with one event loop per process does the ringing (`async_to_sync(group_send)` would open a connection
per message), and nobody waits for it: a doorbell that is not heard costs a listener two seconds, never an
event. `RunLog` is what a simulation talks to: it stores the first slice of a series at once, batches the rest to 16
a second, joins slices of the same series, and sees at each flush whether it should go on.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from channels.layers import get_channel_layer
from django.db import close_old_connections, connection, transaction
from django.dispatch import receiver

from explorer.models import Run
from explorer.models.fields import plain
from explorer.models.log import LogEvent, logged

logger = logging.getLogger(__name__)

FLUSH_EVERY_S = 0.06
BEAT_EVERY_S = 1.0
MAX_RUNG_EVENTS = 50  # of more, listeners read the log


class RunStoppedError(Exception):
    """The run was cancelled, or another attempt holds it: stop simulating."""

    def __init__(self, *, cancelled: bool) -> None:
        super().__init__("cancelled" if cancelled else "taken over")
        self.cancelled = cancelled


def group_of_run(pk: UUID | str) -> str:
    """The channel-layer group of those who follow a run."""
    return f"run.{pk}"


def group_of_sweep(pk: UUID | str) -> str:
    """The channel-layer group of those who follow a sweep."""
    return f"sweep.{pk}"


@receiver(logged, dispatch_uid="ring")
def ring(sender: type[LogEvent], events: Sequence[LogEvent], **kwargs: Any) -> None:
    """Tell the followers of a log, once the events are committed."""
    group = events[0].group if events else ""
    carried = [event.as_dict() for event in events] if len(events) <= MAX_RUNG_EVENTS else []
    if events:
        message = {"type": "log.events", "last_seq": events[-1].seq, "events": carried}
        transaction.on_commit(partial(publish, group, message))


def access_changed(run_ids: Sequence[UUID]) -> None:
    """Tell the followers of these runs to check again whether they may."""
    for pk in run_ids:
        transaction.on_commit(partial(publish, group_of_run(pk), {"type": "log.access"}))


class _Publisher:
    """A thread with an event loop, in the process that made it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="publisher", daemon=True).start()

    def send(self, group: str, message: dict[str, Any]) -> None:
        asyncio.run_coroutine_threadsafe(_send(group, message), self._loop)


_publisher: _Publisher | None = None
_making = threading.Lock()


def publish(group: str, message: dict[str, Any]) -> None:
    """Send to a group, without waiting and without failing."""
    global _publisher
    with _making:
        if _publisher is None or _publisher.pid != os.getpid():
            _publisher = _Publisher()
    _publisher.send(group, message)


async def _send(group: str, message: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(group, message)
    except Exception:
        logger.warning("could not announce to %s; its followers will read the log", group, exc_info=True)


def _after_fork() -> None:
    """A thread of the parent may have held the lock at the moment of the fork."""
    global _making
    _making = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Heartbeat:
    """While entered, calls `beat` every second: a compile or a long stage may say nothing for seconds."""

    def __init__(self, beat: Callable[[], object]) -> None:
        self._beat = beat
        self._done = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._beats, name="heartbeat", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()

    def _beats(self) -> None:
        while not self._done.wait(BEAT_EVERY_S):
            try:
                close_old_connections()
                self._beat()
            except Exception:
                logger.warning("a heartbeat failed", exc_info=True)
        connection.close()


class RunLog(Heartbeat):
    """Called with `(kind, payload)` by the simulation; also the heartbeat of the attempt while it is
    entered.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run.beat)
        self._run = run
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        self._flushed_at_s = 0.0
        self._told: set[Any] = set()  # series of which something is stored
        self._progress_fraction = 0.0

    def __call__(self, kind: str, payload: dict[str, Any]) -> None:
        """Store an event, now or with the next flush. Raises RunStoppedError when the run should end here."""
        payload = plain(payload)
        self._progress_fraction = max(self._progress_fraction, payload.get("progress_fraction") or 0.0)
        last = self._waiting[-1] if self._waiting else None
        if last and kind == "series" == last[0].removeprefix("run.") and _joins(last[1], payload):
            self._waiting[-1] = (last[0], _joined(last[1], payload))
        else:
            self._waiting.append((f"run.{kind}", payload))
        is_first = kind == "series" and payload.get("name") not in self._told
        if kind != "series" or is_first or time.monotonic() - self._flushed_at_s >= FLUSH_EVERY_S:
            self._told.add(payload.get("name"))
            self.flush()

    def flush(self) -> None:
        """Store what waits, and hear whether to go on."""
        waiting, self._waiting = self._waiting, []
        self._flushed_at_s = time.monotonic()
        if not self._run.append(waiting, progress_fraction=self._progress_fraction):
            raise RunStoppedError(cancelled=False)
        if self._run.cancel_requested:
            raise RunStoppedError(cancelled=True)


def _joins(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Slices of one series, with the same columns, are one longer slice."""
    return (
        before.get("name") == after.get("name")
        and isinstance(before.get("columns"), dict)
        and isinstance(after.get("columns"), dict)
        and before["columns"].keys() == after["columns"].keys()
    )


def _joined(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    columns = {name: [*values, *after["columns"][name]] for name, values in before["columns"].items()}
    return {**after, "columns": columns}
