"""One SQLite connection per process and file, shared by its threads under a lock.

A connection must not cross a fork, so connections are kept by process id, and a child leaves its parent's
alone. Both files of this package hold messages in flight, nothing a person made: `synchronous=OFF` is right
for them (a power cut may lose a doorbell or a task, and the reaper and the run's event log are there for
exactly that).
"""

import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

BUSY_TIMEOUT_S = 20.0

_guard = threading.Lock()
_databases: dict[tuple[int, str], "Database"] = {}


class Database:
    """A connection in autocommit mode: each statement is its own transaction."""

    def __init__(self, path: Path, schema: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.executescript(schema)

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Run one statement and return its rows."""
        with self._lock:
            return self._connection.execute(statement, parameters).fetchall()


def database(path: str | Path, schema: str) -> Database:
    """This process's connection to the file at `path`, opened on first use."""
    key = (os.getpid(), str(path))
    with _guard:
        if key not in _databases:
            _databases[key] = Database(Path(path), schema)
        return _databases[key]


def _forget_locks_of_parent() -> None:
    """A thread of the parent may have held the guard at the moment of the fork."""
    global _guard
    _guard = threading.Lock()


os.register_at_fork(after_in_child=_forget_locks_of_parent)
