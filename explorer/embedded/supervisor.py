"""Keeps a handful of processes running: the terminal face of `manage.py up`.

Each child leads a process group of its own, so Ctrl-C reaches the supervisor alone, and whatever a child has
forked ends with it: a killed worker's pool does not live on beside the new worker. A child that dies is
started again after a delay that grows while it keeps dying. The groups are noted in a file, so that a start
after a killed supervisor first ends what that one left behind; a lock keeps out a second supervisor.
"""

import contextlib
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
STEADY_AFTER_S = 20.0
GRACE_S = 1.5
LOOK_EVERY_S = 0.1
START_TRIES = 3
# macOS ends a forked process that touches Objective-C, as its own libraries do, unless told that this is meant.
CHILD_ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES"}


class SupervisorError(Exception):
    """A start that cannot succeed; the message says what to do."""


@dataclass(slots=True, kw_only=True)
class Child:
    """One command, and the process that runs it now."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[str] | None = None
    started_s: float = 0.0
    start_at_s: float = 0.0
    deaths: int = 0

    def start(self) -> None:
        """Run the command in a new process group, its lines prefixed with the child's name."""
        self.started_s = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **CHILD_ENVIRONMENT},
            start_new_session=True,
        )
        threading.Thread(target=self._print_lines, args=(self.process,), daemon=True).start()

    def _print_lines(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            say(line.rstrip("\n"), name=self.name)

    def died(self) -> int | None:
        """The exit status, where the process has ended."""
        return self.process.poll() if self.process else None

    def bury(self) -> None:
        """End the dead parent's group, and set the time of the next start."""
        assert self.process is not None
        kill_group(self.process.pid, signal.SIGKILL)
        status = self.process.returncode
        self.process = None
        steady = time.monotonic() - self.started_s > STEADY_AFTER_S
        self.deaths = 1 if steady else self.deaths + 1
        delay_s = BACKOFF_S[min(self.deaths, len(BACKOFF_S)) - 1]
        self.start_at_s = time.monotonic() + delay_s
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        say(f"{self.name} stopped ({how}); starting it again in {delay_s:g} s")


@dataclass(slots=True, kw_only=True)
class Supervisor:
    """Runs `children` until told to stop.

    `home_page` asks for the page and returns its status, or None while nothing answers; `tick` runs every
    `tick_every_s` seconds.
    """

    children: Sequence[Child]
    groups_file: Path
    home_page: Callable[[], int | None]
    address: str
    tick: Callable[[], None]
    tick_every_s: float
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Start, watch, stop. Returns after SIGINT, SIGTERM or SIGHUP with no process left."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        end_left_behind(self.groups_file)
        status: int | None = None
        ticked_s = time.monotonic()
        try:
            while not self.stopping.is_set():
                self._start_and_bury(answering=status is not None)
                if status != http.HTTPStatus.OK:
                    status = self._look(status)
                if time.monotonic() - ticked_s >= self.tick_every_s:
                    self.tick()
                    ticked_s = time.monotonic()
                self.stopping.wait(LOOK_EVERY_S)
        finally:
            self._end_all()

    def _look(self, before: int | None) -> int | None:
        """Ask for the home page: a port that accepts connections is not yet a site."""
        status = self.home_page()
        if status == http.HTTPStatus.OK:
            say(f"Trimtab is at {self.address} (Ctrl-C stops it)")
        elif status is not None:
            if status != before:
                say(f"the home page answers with status {status}; waiting for 200")
            self.stopping.wait(1.0)
        return status

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping.set()

    def _start_and_bury(self, *, answering: bool) -> None:
        changed = False
        for child in self.children:
            if child.died() is not None:
                child.bury()
                if not answering and child.deaths >= START_TRIES:
                    raise SupervisorError(f"{child.name} does not start; its own lines above say why")
            if child.process is None and time.monotonic() >= child.start_at_s:
                child.start()
                changed = True
        if changed:
            running = [child.process.pid for child in self.children if child.process]
            self.groups_file.write_text(json.dumps(running))

    def _end_all(self) -> None:
        """TERM the parents, give them a moment, then KILL each whole group."""
        processes = [child.process for child in self.children if child.process]
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        deadline_s = time.monotonic() + GRACE_S
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline_s - time.monotonic()))
        for process in processes:
            kill_group(process.pid, signal.SIGKILL)
            process.wait()
        self.groups_file.unlink(missing_ok=True)


def say(text: str, *, name: str = "up") -> None:
    """One line on the terminal, under the name of who says it."""
    print(f"{name:<6} | {text}", flush=True)


def kill_group(group: int, number: int) -> None:
    """Signal a process group, where it still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def end_left_behind(groups_file: Path) -> None:
    """Kill the groups that a killed supervisor left, where their commands are still ours."""
    try:
        groups = json.loads(groups_file.read_text())
    except (FileNotFoundError, ValueError):
        return
    listing = subprocess.run(
        ["ps", "-A", "-o", "pgid=", "-o", "args="], capture_output=True, text=True, check=False
    )
    for line in listing.stdout.splitlines():
        group, _, command = line.strip().partition(" ")
        if int(group) in groups and "explorer" in command:
            say(f"ending process group {group}, left by an earlier start")
            kill_group(int(group), signal.SIGKILL)
            groups.remove(int(group))
    groups_file.unlink(missing_ok=True)


@contextlib.contextmanager
def only_one(lock_file: Path, *, address: str) -> Iterator[None]:
    """Hold the lock of this data directory, or say who holds it."""
    with lock_file.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise SupervisorError(
                f"Trimtab already runs on this data: {file.read().strip() or 'just starting'}. "
                "Stop that one, or give this one a VAR_DIR of its own."
            ) from None
        file.truncate(0)
        file.write(f"{address}, process {os.getpid()}")
        file.flush()
        yield


def require_free_port(host: str, port: int) -> None:
    """Fail now, with a way out, rather than in the web server's log."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SupervisorError(
                f"Cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}. "
                f"Stop the other program, or choose another port: PORT={port % 65535 + 1} make run"
            ) from None


def status_of(host: str, port: int, *, headers: dict[str, str]) -> int | None:
    """The status of the home page, or None where nothing answers."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/", headers=headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module with the interpreter of this process."""
    return (sys.executable, "-m", module, *arguments)
