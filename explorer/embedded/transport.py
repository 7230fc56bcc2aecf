"""A kombu transport over one SQLite file: the broker of the embedded default.

A message is a row; taking it is `DELETE … RETURNING` of the oldest row, one statement and therefore atomic
among processes, preceded by a read so that an idle worker takes no write lock. Each message is delivered
once and, per producer, in order. What a killed worker had taken is gone, as it would be for an hour on
Redis: the reaper enqueues such a run again. No fan-out, hence no remote control and no gossip; nothing may
depend on them.
"""

import json
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, virtual

from explorer.embedded.database import Database, database

SCHEME = "embedded"
SCHEMA = """
CREATE TABLE IF NOT EXISTS message (
  id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS message_by_queue ON message (queue, id);
"""
OLDEST = "SELECT id FROM message WHERE queue = ? ORDER BY id LIMIT 1"


class Channel(virtual.Channel):
    """The storage half of kombu's virtual channel, over the `message` table."""

    supports_fanout = False

    @property
    def _messages(self) -> Database:
        client = self.connection.client
        assert client is not None
        return database((client.transport_options or {})["path"], SCHEMA)

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        self._messages.rows("INSERT INTO message (queue, body) VALUES (?, ?)", (queue, json.dumps(message)))

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        messages = self._messages
        if not messages.rows(OLDEST, (queue,)):
            raise Empty
        taken = messages.rows(f"DELETE FROM message WHERE id = ({OLDEST}) RETURNING body", (queue,))
        if not taken:
            raise Empty
        message: dict[str, Any] = json.loads(str(taken[0][0]))
        return message

    def _size(self, queue: str) -> int:
        return int(str(self._messages.rows("SELECT count(*) FROM message WHERE queue = ?", (queue,))[0][0]))

    def _purge(self, queue: str) -> int:
        return len(self._messages.rows("DELETE FROM message WHERE queue = ? RETURNING id", (queue,)))


class Transport(virtual.Transport):
    """Chosen by `broker_url = "embedded://"`; the file is `broker_transport_options["path"]`."""

    Channel = Channel
    polling_interval = 0.03
    default_port = 0
    driver_type = "sqlite"
    driver_name = "trimtab"


def register() -> None:
    """Make the scheme known to kombu."""
    TRANSPORT_ALIASES[SCHEME] = f"{Transport.__module__}:{Transport.__qualname__}"
