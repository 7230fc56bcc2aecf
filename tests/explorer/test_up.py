"""`manage.py up` as a person starts it: it serves, mends itself, refuses clearly, leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, Site, running_site

# One after another: on PostgreSQL and Redis these sites share a database and a queue.
pytestmark = pytest.mark.xdist_group("site")
MEND_S = 60.0  # a worker that finds a new version of the engine compiles it first


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    with running_site(tmp_path / "var") as site:
        site.wait_until_it_answers()
        yield site


def processes_of(site: Site) -> dict[int, str]:
    """Process id to command, for the supervisor's children and all that they have started."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listing.stdout.splitlines()]
    commands = {int(pid): command for pid, _, command in rows}
    family = {site.process.pid}
    while True:
        grown = family | {int(pid) for pid, parent, _ in rows if int(parent) in family}
        if grown == family:
            return {pid: commands[pid] for pid in family - {site.process.pid}}
        family = grown


def parent_of(site: Site, word: str) -> int:
    """The oldest process whose command holds the word."""
    return min(pid for pid, command in processes_of(site).items() if word in command)


def pool_of(site: Site) -> int:
    """How many processes the worker has, its parent included."""
    return sum("celery" in command for command in processes_of(site).values())


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has waited for does not."""
    listing = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listing.stdout.strip()[:1] not in {"", "Z"}


def wait_for(condition: Callable[[], bool], *, seconds: float = MEND_S) -> bool:
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        if condition():
            return True
        time.sleep(0.1)
    return False


def up(**variables: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to refuse."""
    inherited = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    return subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=ROOT,
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_prints_the_address_once_the_page_answers_and_stops_without_a_trace(own_site: Site) -> None:
    assert wait_for(lambda: f"Trimtab is at {own_site.url}" in own_site.log)
    assert wait_for(lambda: pool_of(own_site) >= 3)  # a parent and two that simulate
    family = processes_of(own_site)
    assert any("uvicorn" in command for command in family.values())
    own_site.process.send_signal(signal.SIGINT)
    assert own_site.process.wait(10) == 0
    assert not [command for pid, command in family.items() if alive(pid)]
    assert not (own_site.var_dir / "up.groups").exists()


@pytest.mark.parametrize("word", ["celery", "uvicorn"])
def test_what_is_killed_returns_and_its_orphans_do_not_stay(own_site: Site, word: str) -> None:
    before = {pid for pid, command in processes_of(own_site).items() if word in command}
    killed = parent_of(own_site, word)
    os.kill(killed, signal.SIGKILL)
    assert wait_for(lambda: not any(alive(pid) for pid in before))
    assert wait_for(
        lambda: any(word in command for pid, command in processes_of(own_site).items() if pid not in before)
    )
    own_site.wait_until_it_answers(seconds=MEND_S)
    assert "stopped (signal 9); starting it again" in own_site.log


def test_a_start_after_a_killed_supervisor_ends_what_that_one_left(tmp_path: Path) -> None:
    with running_site(tmp_path) as first:
        first.wait_until_it_answers()
        left = processes_of(first)
        first.process.kill()
        first.process.wait()
        assert any(alive(pid) for pid in left)
    with running_site(tmp_path) as second:
        second.wait_until_it_answers()
        assert not [command for pid, command in left.items() if alive(pid)]


def test_a_second_start_on_the_same_data_says_who_is_running(own_site: Site) -> None:
    refused = up(VAR_DIR=str(own_site.var_dir), PORT="1")
    assert refused.returncode != 0
    assert f"already runs on this data: {own_site.url}, process {own_site.process.pid}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_busy_port_is_named_with_a_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = up(VAR_DIR=str(tmp_path), PORT=str(port))
    assert refused.returncode != 0
    assert f"Cannot listen on 127.0.0.1:{port}" in refused.stderr
    assert f"PORT={port % 65535 + 1} make run" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("PORT", "http", "not a whole number"),
        ("PORT", "70000", "use 1 to 65535"),
        ("DEBUG", "maybe", "use 1 or 0"),
        ("DATABASE_URL", "mysql://host/name", "use postgres://user:password@host:5432/database"),
        ("REDIS_URL", "localhost:6379", "use redis://host:6379/0"),
        ("CSRF_TRUSTED_ORIGINS", "example.org", "write https://example.org"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path, name: str, value: str, allowed: str) -> None:
    refused = up(VAR_DIR=str(tmp_path), **{name: value})
    assert refused.returncode != 0
    last_line = refused.stderr.strip().splitlines()[-1]
    assert name in last_line
    assert allowed in last_line
