"""A Channels layer over one SQLite file: groups that reach every process of the embedded default.

Membership stays in the process, as in Channels' in-memory layer; what is sent to a group goes as a row into
`bus`, and every process that holds members reads the rows that are new to it every 20 ms. A process without
members reads nothing. `send` reaches channels of its own process only: Trimtab addresses groups. Delivery
is a doorbell, at most once: a consumer that joins late or misses a row finds the events in the run's log.
"""

import asyncio
import time
import weakref
from typing import Any

import msgpack
from channels.layers import InMemoryChannelLayer

from explorer.embedded.database import Database, database

POLL_S = 0.02
KEPT_S = 30.0
SWEEP_S = 10.0
SCHEMA = """
CREATE TABLE IF NOT EXISTS bus (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at_s REAL NOT NULL, target TEXT NOT NULL, body BLOB NOT NULL
);
"""


class SqliteChannelLayer(InMemoryChannelLayer):
    """`CHANNEL_LAYERS = {"default": {"BACKEND": …, "CONFIG": {"path": …}}}`."""

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(**options)
        self._path = path
        self._pollers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[None]] = (
            weakref.WeakKeyDictionary()
        )
        self._swept_at_s = 0.0

    @property
    def _bus(self) -> Database:
        return database(self._path, SCHEMA)

    async def group_add(self, group: str, channel: str) -> None:
        """Join; the first member of an event loop starts its reader, from the row that is newest now."""
        await super().group_add(group, channel)
        loop = asyncio.get_running_loop()
        poller = self._pollers.get(loop)
        if poller is None or poller.done():
            newest = self._bus.rows("SELECT coalesce(max(id), 0) FROM bus")[0][0]
            self._pollers[loop] = loop.create_task(self._follow(int(str(newest))))

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Append to the bus; members in this process hear of it the same way as all others."""
        self.require_valid_group_name(group)
        now_s = time.time()
        self._bus.rows(
            "INSERT INTO bus (at_s, target, body) VALUES (?, ?, ?)", (now_s, group, msgpack.packb(message))
        )
        if now_s - self._swept_at_s > SWEEP_S:
            self._swept_at_s = now_s
            self._bus.rows("DELETE FROM bus WHERE at_s < ?", (now_s - KEPT_S,))

    async def flush(self) -> None:
        """Drop members, waiting messages and the bus."""
        await super().flush()
        self._bus.rows("DELETE FROM bus")

    async def close(self) -> None:
        """Stop this event loop's reader."""
        poller = self._pollers.pop(asyncio.get_running_loop(), None)
        if poller is not None:
            poller.cancel()

    async def _follow(self, last: int) -> None:
        while self.groups:
            for row, target, body in self._bus.rows(
                "SELECT id, target, body FROM bus WHERE id > ? ORDER BY id", (last,)
            ):
                last = int(str(row))
                if target in self.groups:
                    await super().group_send(str(target), msgpack.unpackb(body))
            await asyncio.sleep(POLL_S)
