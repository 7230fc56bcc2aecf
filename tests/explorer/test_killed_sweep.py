"""Three workers share a sweep and one is killed in the middle, as by a machine that loses power: every cell is told
once, and nothing is counted twice. Then everything is stopped and started again, and a sweep goes on."""

import json
import os
import re
import signal
import subprocess
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.conftest import Site, running_site
from tests.explorer.test_killed_worker import HEAR_S, Person, hear
from tests.explorer.test_up import pool_of, processes_of, wait_for

# One after another: on PostgreSQL and Redis these sites share a database and a queue.
pytestmark = pytest.mark.xdist_group("site")
SCENARIO = """
name: swept
hardware: {chip: nvidia-h100-sxm, chip_count: 1}
model: {name: llama-3.1-8b}
workload: {request_count: 20000}
"""
CELLS = 60
QUICK = {"RUN_STALE_AFTER_S": "6", "REAP_EVERY_S": "1", "RUN_UNCLAIMED_AFTER_S": "5"}


class Sweeper(Person):
    """Someone who asks for sweeps."""

    def sweep(self, *, cells: int) -> str:
        """Vary the seed of a scenario of one's own; the id of the sweep."""
        self._opener.open(self._site.url).close()
        with self._post("start/", {"text": SCENARIO}) as answer:
            scenario = re.search(r"/s/([0-9a-f-]{36})/", answer.url)
        assert scenario, "there is no scenario"
        axes = {"path": "run.seed", "values": f"1..{cells}:{cells}", "metric": "serving.tpot_s.mean"}
        with self._post(f"s/{scenario[1]}/explore/start/", axes) as answer:
            found = re.search(r"sweep=([0-9a-f-]{36})", answer.url)
        assert found, "the page shows no sweep"
        return found[1]

    def _post(self, path: str, fields: dict[str, str]) -> Any:
        token = next(cookie.value for cookie in self._cookies if cookie.name == "csrftoken")
        form = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token}).encode()
        return self._opener.open(f"{self._site.url}{path}", form)

    def follow_sweep(self, sweep: str, *, after: int = 0) -> ClientConnection:
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self._cookies)
        return connect(
            f"ws://127.0.0.1:{self._site.port}/ws/sweeps/{sweep}/?after={after}",
            origin=self._site.url.rstrip("/"),  # type: ignore[arg-type]
            additional_headers={"Cookie": cookies},
            max_size=None,
        )

    def at(self, site: Site) -> "Sweeper":
        """The same person on the site that was started again."""
        self._site = site
        return self


def indices(events: list[dict[str, Any]]) -> list[int]:
    return [cell["index"] for event in events for cell in event["payload"].get("cells", ())]


def kill_one_of_the_pool(site: Site) -> None:
    """One process that does the work, not the one that takes the messages."""
    pool = [pid for pid, command in processes_of(site).items() if "celery" in command]
    parents = {pid: _parent(pid) for pid in pool}
    children = [pid for pid in pool if parents[pid] in pool]
    assert len(children) == 3, f"a pool of three was asked for: {parents}"
    os.kill(children[0], signal.SIGKILL)


def _parent(pid: int) -> int:
    listing = subprocess.run(
        ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return int(listing.stdout.strip() or 0)


def hear_all(socket: ClientConnection) -> list[dict[str, Any]]:
    return hear(socket, "sweep.finished", "sweep.failed")


def test_a_killed_worker_costs_no_cell_and_none_counts_twice(tmp_path: Path) -> None:
    with running_site(tmp_path, **QUICK, WORKER_PROCESSES="3") as site:
        site.wait_until_it_answers()
        assert wait_for(lambda: pool_of(site) >= 4, seconds=HEAR_S)
        person = Sweeper(site)
        sweep = person.sweep(cells=CELLS)
        with person.follow_sweep(sweep) as socket:
            events = hear(socket, "sweep.cells")
            kill_one_of_the_pool(site)
            events += hear_all(socket)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert sorted(indices(events)) == list(range(CELLS))
    assert events[-1] | {"at": ""} == {
        "seq": len(events), "kind": "sweep.finished", "at": "", "payload": {"cell_count": CELLS, "failed_count": 0},
    }  # fmt: skip


def test_a_sweep_goes_on_when_everything_is_started_again(tmp_path: Path) -> None:
    with running_site(tmp_path, **QUICK, WORKER_PROCESSES="2") as site:
        site.wait_until_it_answers()
        assert wait_for(lambda: pool_of(site) >= 3, seconds=HEAR_S)
        person = Sweeper(site)
        sweep = person.sweep(cells=CELLS)
        with person.follow_sweep(sweep) as socket:
            events = hear(socket, "sweep.cells")
        for pid in [site.process.pid, *processes_of(site)]:
            os.kill(pid, signal.SIGKILL)
    with running_site(tmp_path, **QUICK, WORKER_PROCESSES="2") as again:
        again.wait_until_it_answers()
        with person.at(again).follow_sweep(sweep, after=events[-1]["seq"]) as socket:
            events += hear_all(socket)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert sorted(indices(events)) == list(range(CELLS))
    assert json.dumps(events[-1]["payload"]) == json.dumps({"cell_count": CELLS, "failed_count": 0})
