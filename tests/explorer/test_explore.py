"""The Explore page: what may be varied, what a sweep shows as it fills, and what becomes of a cell."""

import csv
import io
import json
import re
from typing import Any
from uuid import UUID

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions, sweeps
from explorer.access import Viewer
from explorer.charts import sweeps as charts
from explorer.forms.axes import axis_spec, paths_of
from explorer.models import SavedScenario, Sweep
from explorer.sweeping import evaluate_chunk
from simcore.analysis.cells import CellResult
from simcore.analysis.grid import Axis, Grid
from simcore.errors import InputError
from tests.explorer.conftest import SERVING

pytestmark = pytest.mark.django_db

METRICS = ["serving.output_token_per_s_per_chip", "serving.tpot_s.mean"]
RATE = "workload.arrivals.request_per_s"


@pytest.fixture
def serving(alice: User) -> SavedScenario:
    return actions.create_scenario(Viewer(user=alice), SERVING)


def form(*axes: tuple[str, str]) -> dict[str, Any]:
    return {"path": [path for path, _ in axes], "values": [values for _, values in axes], "metric": METRICS}


def started(client: Client, scenario: SavedScenario, *axes: tuple[str, str]) -> Sweep:
    answer = client.post(f"/s/{scenario.pk}/explore/start/", form(*axes))
    assert answer.status_code == 302
    assert "sweep=" in answer["Location"], answer["Location"]
    return Sweep.objects.get(pk=re.search(r"sweep=([0-9a-f-]+)", answer["Location"])[1])  # type: ignore[index]


def work(sweep: Sweep) -> None:
    for chunk in sweep.chunks.all():
        evaluate_chunk(chunk.pk, chunk.attempts)
    sweep.refresh_from_db()


def body(client: Client, scenario: SavedScenario, query: str = "") -> str:
    answer = client.get(f"/s/{scenario.pk}/explore/{query}")
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_two_axes_fill_a_heat_map_and_a_cell_that_cannot_be_says_why(
    serving: SavedScenario, as_alice: Client
) -> None:
    sweep = started(as_alice, serving, (RATE, "2..8:2"), ("serving.parallelism.tp", "1, 16"))
    page = body(as_alice, serving)
    assert page.count('class="waits"') == 4
    assert "0</b> / 4" in page
    work(sweep)
    page = body(as_alice, serving)
    assert page.count('name="index"') == 2
    assert len(re.findall(r'<td class="cannot', page)) == 2
    assert "(cells: 2)" in page
    assert "finished" in page


def test_one_axis_is_a_line_and_three_are_parallel(serving: SavedScenario, as_alice: Client) -> None:
    line = started(as_alice, serving, (RATE, "2, 4"))
    work(line)
    assert '"type": "scatter"' in body(as_alice, serving, f"?sweep={line.pk}")
    many = started(as_alice, serving, (RATE, "2,4"), ("serving.kv.block_size", "16,32"), ("run.seed", "1,2"))
    work(many)
    page = body(as_alice, serving)
    assert "over 3 axes" in page
    assert 'id="chart-sweep-frontier"' in page


def test_a_cell_becomes_a_scenario_beside_what_was_swept(serving: SavedScenario, as_alice: Client) -> None:
    sweep = started(as_alice, serving, (RATE, "2, 4"))
    work(sweep)
    answer = as_alice.post(f"/sweeps/{sweep.pk}/use/", {"index": "1"})
    made = SavedScenario.objects.get(pk=answer["Location"].split("/")[2])
    assert made.document["workload"]["arrivals"]["request_per_s"] == 4
    assert made.baseline is not None
    assert made.baseline.document == serving.document
    assert made.forked_from == serving


@pytest.mark.parametrize("index", ["", "2", "-1", "x", "٣", "9" * 30])
def test_a_cell_that_is_none_becomes_nothing(index: str, serving: SavedScenario, as_alice: Client) -> None:
    sweep = started(as_alice, serving, (RATE, "2, 4"))
    assert as_alice.post(f"/sweeps/{sweep.pk}/use/", {"index": index}).status_code == 404


def test_the_files_have_every_cell(serving: SavedScenario, as_alice: Client) -> None:
    sweep = started(as_alice, serving, (RATE, "2, fast"))
    work(sweep)
    rows = list(csv.DictReader(io.StringIO(as_alice.get(f"/sweeps/{sweep.pk}/cells.csv").content.decode())))
    assert [row[RATE] for row in rows] == ["2", "fast"]
    assert float(rows[0]["serving.tpot_s.mean"]) > 0
    assert rows[1]["error"]
    told = json.loads(as_alice.get(f"/sweeps/{sweep.pk}/cells.json").content)
    assert [cell["overrides"] for cell in told["cells"]] == [{RATE: "2"}, {RATE: "fast"}]
    assert told["spec"]["kind"] == "grid"


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ((), "axes"),
        (((RATE, "0..9:3log"),), "a range is lo..hi:n"),
        (((RATE, "1,2"), (RATE, "3")), "twice"),
        (((RATE, "1..2:200"), ("run.seed", "1..200:200")), "cells"),
    ],
)
def test_what_cannot_be_swept_is_said_on_the_page(
    axes: tuple[tuple[str, str], ...], said: str, serving: SavedScenario, as_alice: Client
) -> None:
    answer = as_alice.post(f"/s/{serving.pk}/explore/start/", form(*axes), follow=True)
    assert said in answer.content.decode()
    assert not Sweep.objects.exists()


def test_cancel_and_delete(serving: SavedScenario, as_alice: Client) -> None:
    sweep = started(as_alice, serving, (RATE, "2, 4"))
    as_alice.post(f"/sweeps/{sweep.pk}/cancel/")
    sweep.refresh_from_db()
    assert sweep.status == "cancelled"
    as_alice.post(f"/sweeps/{sweep.pk}/delete/")
    assert not Sweep.objects.exists()


@pytest.mark.parametrize("visibility", ["private", "public"])
def test_a_sweep_is_its_owners_alone(
    visibility: str, serving: SavedScenario, as_alice: Client, as_bob: Client, as_nobody: Client
) -> None:
    sweep = started(as_alice, serving, (RATE, "2, 4"))
    work(sweep)
    actions.set_visibility(serving, visibility)
    for stranger in (as_bob, as_nobody):
        for path in ("", "cells.csv", "cells.json"):
            assert stranger.get(f"/sweeps/{sweep.pk}/{path}").status_code == 404
        for verb in ("cancel", "delete", "use"):
            assert stranger.post(f"/sweeps/{sweep.pk}/{verb}/", {"index": "0"}).status_code == 404
        assert stranger.post(f"/s/{serving.pk}/explore/start/", form((RATE, "2"))).status_code == 404
        assert stranger.get(f"/s/{serving.pk}/explore/?sweep={sweep.pk}").status_code == 404
        page = stranger.get(f"/s/{serving.pk}/explore/")
        assert page.status_code == (404 if visibility == "private" else 200)
        assert str(sweep.pk) not in page.content.decode()
    assert Sweep.objects.get().status == "finished"


@pytest.mark.parametrize("query", ["?sweep=1", f"?sweep={UUID(int=7)}"])
def test_a_sweep_that_does_not_exist_is_404(query: str, serving: SavedScenario, as_alice: Client) -> None:
    assert as_alice.get(f"/s/{serving.pk}/explore/{query}").status_code == 404


def test_paths_follow_the_form_and_values_left_out_are_proposed() -> None:
    paths = {one.path: one for one in paths_of(SERVING)}
    assert paths[RATE].now == "8"
    assert "training.parallelism.tp" not in paths
    assert axis_spec(SERVING, "serving.kv.enable_prefix_caching", "")["values"] == [True, False]
    assert axis_spec(SERVING, RATE, " ")["values"] == ["x0.5", "x1", "x2"]
    assert axis_spec(SERVING, RATE, "1,2")["values"] == ["1", "2"]
    with pytest.raises(InputError):
        axis_spec(SERVING, "serving.scheduler.max_num_seqs", "")


def test_the_strong_end_of_a_heat_map_is_the_better_one() -> None:
    grid = Grid(
        axes=(Axis(path="run.seed", values=(1,)), Axis(path=RATE, values=(2, 4, 8))),
        metrics=("serving.ttft_s.p95",),
    )
    results = [
        CellResult(index=place, metrics={"serving.ttft_s.p95": value})
        for place, value in enumerate([0.1, 0.2, 0.9])
    ]
    shown = charts.panel(grid, results, metric="serving.ttft_s.p95", cell_count=3, over=True)
    squares = shown.charts[0].body.rows[0].squares
    assert [square.step for square in squares] == [5, 5, 1]
    assert [square.is_best for square in squares] == [True, False, False]
    assert "0.1" in shown.headline or "100" in shown.headline


def test_a_sweep_of_another_kind_is_followed_too(
    serving: SavedScenario, alice: User, as_alice: Client
) -> None:
    spec = {"kind": "grid", "axes": [{"path": RATE, "values": [2]}], "metrics": METRICS}
    sweep = sweeps.start_sweep(Viewer(user=alice), serving, spec)
    assert f'data-sweep="{sweep.pk}"' in body(as_alice, serving)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("who", ["alice", "bob", "nobody"])
async def test_the_socket_of_a_sweep_tells_its_owner_every_cell(
    who: str, serving: SavedScenario, as_alice: Client, as_bob: Client, as_nobody: Client
) -> None:
    from tests.explorer.test_sockets import closing, hear, listening_at

    sweep = await database_sync_to_async(started)(as_alice, serving, (RATE, "2, 4, 8"))
    client = {"alice": as_alice, "bob": as_bob, "nobody": as_nobody}[who]
    async with listening_at(client, f"/ws/sweeps/{sweep.pk}/?after=0") as socket:
        assert socket.connected == (who == "alice")
        if who != "alice":
            return
        await database_sync_to_async(work)(sweep)
        heard = await hear(socket, sweep.last_seq)
        assert [event["seq"] for event in heard] == list(range(1, sweep.last_seq + 1))
        cells = [cell for event in heard for cell in event["payload"].get("cells", ())]
        assert sorted(cell["index"] for cell in cells) == [0, 1, 2]
        assert heard[-1]["kind"] == "sweep.finished"
        assert await closing(socket) == 1000
