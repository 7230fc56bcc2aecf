"""The cast, and what every web test needs.

Alice owns things. Bob is signed in and owns others. Charlie works without an account, in the sandbox of his
session. Nobody has just arrived. Tasks are not sent to a broker: `queue` records them, and a test carries one out
by `work(run)`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.cache import caches
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import Run, SavedScenario
from explorer.sweeping import evaluate_chunk
from explorer.tasks import run_simulation

DOCUMENT: dict[str, Any] = {
    "name": "Two leaves",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
    "topology": {"kind": "clos", "radix": 64},
    "workload": {"kind": "none"},
}
SERVING: dict[str, Any] = {
    "name": "Llama-3.1-8B on one H100",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 1},
    "model": {"name": "llama-3.1-8b"},
    "workload": {
        "arrivals": {"kind": "poisson", "request_per_s": "8"},
        "lengths": {"kind": "constant", "input_tokens": 512, "output_tokens": 64},
        "request_count": 400,
    },
}


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What was sent to the workers."""
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(run_simulation, "delay", lambda run_id, attempt: sent.append((run_id, attempt)))
    monkeypatch.setattr(evaluate_chunk, "delay", lambda chunk_id, attempt: None)
    # A name space of its own: on Redis, clearing the cache would flush the queue of the sites beside it.
    monkeypatch.setattr(caches["default"], "key_prefix", uuid4().hex)
    return sent


@pytest.fixture(autouse=True)
def quick_and_apart(settings: Any, tmp_path: Path) -> None:
    """Passwords are hashed cheaply; the embedded channel layer writes beside the test, not into var/."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if not settings.REDIS_URL:
        layer = "explorer.embedded.layer.SqliteChannelLayer"
        path = str(tmp_path / "bus.sqlite3")
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": layer, "CONFIG": {"path": path, "capacity": 1000}}}


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice", password="on-the-looking-glass")


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob", password="the-builder-of-racks")


@pytest.fixture
def as_alice(alice: User) -> Client:
    return signed_in(alice)


@pytest.fixture
def as_bob(bob: User) -> Client:
    return signed_in(bob)


@pytest.fixture
def as_charlie(db: None) -> Client:
    """Without an account, and with a scenario of his own."""
    client = Client()
    client.post("/start/", {"text": "name: Charlie's\nworkload: {kind: none}\n"})
    return client


@pytest.fixture
def as_nobody(db: None) -> Client:
    return Client()


@pytest.fixture
def scenario(alice: User) -> SavedScenario:
    """Alice's, private, with a queued run."""
    return actions.create_scenario(Viewer(user=alice), DOCUMENT)


@pytest.fixture
def finished(scenario: SavedScenario, work: Callable[[Run], Run]) -> Run:
    """The run of Alice's scenario, carried out."""
    return work(run_of(scenario))


@pytest.fixture
def work() -> Callable[[Run], Run]:
    """Do what a worker would do with the message of this run."""

    def carry_out(run: Run) -> Run:
        run_simulation(str(run.pk), run.attempts)
        run.refresh_from_db()
        return run

    return carry_out


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def run_of(scenario: SavedScenario) -> Run:
    """The run of the current revision."""
    run = actions.latest_run(scenario.current)
    assert run is not None
    return run


def kinds(run: Run) -> list[str]:
    """The log of a run, in order."""
    return list(run.events.order_by("seq").values_list("kind", flat=True))
