"""What every test may ask for: the shared folder, a running site, and Chromium on it.

A running site is `manage.py up` as a person starts it, on a free port and a data directory of its own; tests
that drive it use no ORM. Whatever was started is ended as a process group, also when the test run is
terminated.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from pytest_django import DjangoDbBlocker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
CHROMIUM_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_S = 60.0


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of facts and data beside the checkout; TRIMTAB_SHARED names another place."""
    folder = Path(os.environ.get("TRIMTAB_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the shared folder of facts and data, which is not at {folder}")
    return folder


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """On PostgreSQL, end the sessions that threads of the tests have left, or the test database cannot go."""
    yield
    from django.db import connection

    if connection.vendor == "postgresql":
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A running `manage.py up`."""

    url: str
    port: int
    var_dir: Path
    process: subprocess.Popen[bytes]
    environment: dict[str, str] = field(repr=False)

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return (self.var_dir / "up.log").read_text()

    def wait_until_it_answers(self, *, seconds: float = START_S) -> None:
        """Until the home page comes with status 200."""
        deadline_s = time.monotonic() + seconds
        while time.monotonic() < deadline_s and self.process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(self.url, timeout=5) as answer:
                if answer.status == 200:
                    return
            time.sleep(0.05)
        raise AssertionError(f"no page at {self.url} after {seconds:g} s; its output:\n{self.log}")


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running_site(var_dir: Path, **variables: str) -> Iterator[Site]:
    """A site of one's own, to kill: on PostgreSQL and Redis it shares a database and a queue, so one at a time.

    pytest-xdist's groups do not see to that: with pytest 9.2 it no longer keeps a group in one process.
    """
    if not os.environ.get("REDIS_URL"):
        with started_site(var_dir, **variables) as site:
            yield site
        return
    with (Path(tempfile.gettempdir()) / "trimtab-tests-site.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        with started_site(var_dir, **variables) as site:
            yield site


@contextmanager
def started_site(var_dir: Path, **variables: str) -> Iterator[Site]:
    """Start `manage.py up` and end it, whatever happens in between."""
    port = free_port()
    inherited = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    environment = {**inherited, "VAR_DIR": str(var_dir), "PORT": str(port), **variables}
    var_dir.mkdir(parents=True, exist_ok=True)
    with (var_dir / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Site(
            url=f"http://127.0.0.1:{port}/",
            port=port,
            var_dir=var_dir,
            process=process,
            environment=environment,
        )
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One site for all tests that only use it; who kills its parts starts their own with `running_site`."""
    with suppress(ValueError):  # not in the main thread: then nobody sends this process signals
        signal.signal(signal.SIGTERM, _leave)
    with started_site(tmp_path_factory.mktemp("site")) as started:
        started.wait_until_it_answers()
        yield started


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share the site run in one xdist worker, so that there is one site."""
    for item in items:
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("site"))


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of this machine's Chromium; CHROMIUM names another."""
    names = (os.environ["CHROMIUM"],) if os.environ.get("CHROMIUM") else CHROMIUM_NAMES
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"browser tests need Chromium: none of {', '.join(names)} is installed")
    return found


@pytest.fixture(scope="module")
def browser(chromium: str) -> "Iterator[Browser]":
    """Playwright's loop lives in this thread until it is closed, so modules with async tests stay clear of
    it.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def page(browser: "Browser", site: Site) -> "Iterator[Page]":
    """A person who has never been here, at a laptop; any error in the page's scripts fails the test."""
    context = browser.new_context(base_url=site.url, viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert not errors, errors
