"""A worker is killed in mid-run, as by a machine that loses power: the run ends truthfully, and whoever follows
it over the socket hears all of it without asking again."""

import http.cookiejar
import json
import os
import re
import signal
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.conftest import Site, running_site
from tests.explorer.test_up import pool_of, processes_of, wait_for

# One after another: on PostgreSQL and Redis these sites share a database and a queue.
pytestmark = pytest.mark.xdist_group("site")
LONG = """
name: long enough to be interrupted
hardware: {chip: nvidia-h100-sxm, chip_count: 8}
model: {name: llama-3.1-8b}
workload:
  arrivals: {kind: poisson, request_per_s: 200}
  lengths: {kind: lognormal, input_mean_tokens: 512, input_cv: 1.0, output_mean_tokens: 512, output_cv: 1.0}
  request_count: 1000000
run: {replications: 4}
"""
HEAR_S = 180.0


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    quick = {"RUN_STALE_AFTER_S": "6", "REAP_EVERY_S": "1", "WORKER_PROCESSES": "1"}
    with running_site(tmp_path, **quick, MAX_REQUESTS_PER_RUN="4000000") as started:
        started.wait_until_it_answers()
        assert wait_for(lambda: pool_of(started) >= 2)
        yield started


class Person:
    """Someone's browser, without a browser."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))

    def start(self, text: str) -> str:
        """Paste a scenario; the id of its run."""
        self._opener.open(self._site.url).close()
        token = next(cookie.value for cookie in self._cookies if cookie.name == "csrftoken")
        form = urllib.parse.urlencode({"text": text, "csrfmiddlewaretoken": token}).encode()
        with self._opener.open(f"{self._site.url}start/", form) as answer:
            found = re.search(r'data-run="([0-9a-f-]{36})"', answer.read().decode())
        assert found, "the page shows no run"
        return found[1]

    def follow(self, run: str, *, after: int = 0) -> ClientConnection:
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self._cookies)
        return connect(
            f"ws://127.0.0.1:{self._site.port}/ws/runs/{run}/?after={after}",
            origin=self._site.url.rstrip("/"),  # type: ignore[arg-type]
            additional_headers={"Cookie": cookies},
            max_size=None,
        )


def hear(socket: ClientConnection, *kinds: str) -> list[dict[str, Any]]:
    """Events up to and with the first of these kinds."""
    heard: list[dict[str, Any]] = []
    try:
        while not heard or heard[-1]["kind"] not in kinds:
            heard.append(json.loads(socket.recv(timeout=HEAR_S)))
    except (TimeoutError, ConnectionClosed) as error:
        told = [(event["kind"], str(event["payload"])[:200]) for event in heard[-10:]]
        raise AssertionError(f"none of {kinds} was heard, but {told}") from error
    return heard


def kill_worker(site: Site) -> None:
    """All of it, at once."""
    for pid, command in processes_of(site).items():
        if "celery" in command:
            os.kill(pid, signal.SIGKILL)


def test_the_run_is_taken_up_again_and_a_second_loss_fails_it_with_a_sentence(own_site: Site) -> None:
    person = Person(own_site)
    run = person.start(LONG)
    with person.follow(run) as socket:
        events = hear(socket, "run.series")
        kill_worker(own_site)
        events += hear(socket, "run.reset")
        events += hear(socket, "run.series")
        kill_worker(own_site)
        events += hear(socket, "run.failed", "run.finished", "run.reset")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    kinds = [event["kind"] for event in events]
    assert kinds.count("run.started") == 2
    assert kinds[-1] == "run.failed"
    assert "two workers stopped" in json.dumps(events[-1]["payload"])


def test_who_comes_back_hears_what_was_missed(own_site: Site) -> None:
    person = Person(own_site)
    run = person.start(LONG.replace("1000000", "20000"))
    with person.follow(run) as socket:
        last_seq = hear(socket, "run.started")[-1]["seq"]
    with person.follow(run, after=last_seq) as socket:
        rest = hear(socket, "run.finished")
    assert [event["seq"] for event in rest] == list(range(last_seq + 1, last_seq + 1 + len(rest)))
