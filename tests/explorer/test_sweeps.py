"""A sweep's life: every cell once, whoever evaluates it, however often a message comes, and whoever dies meanwhile."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from explorer import actions, sweeping, sweeps
from explorer.access import Viewer
from explorer.models import CachedCell, SavedScenario, Sweep, SweepChunk
from explorer.sweeping import evaluate_chunk, reap_sweeps
from simcore.analysis import grid
from simcore.analysis.cells import Cell, evaluate
from simcore.errors import InputError
from tests.explorer.conftest import SERVING

pytestmark = pytest.mark.django_db

METRICS = ["serving.output_token_per_s", "serving.ttft_s.p95"]
RATES = {"path": "workload.arrivals.request_per_s", "values": [2, 4, 8, 16]}
SPEC: dict[str, Any] = {
    "kind": "grid",
    "axes": [RATES, {"path": "serving.kv.block_size", "values": [16, 32]}],
    "metrics": METRICS,
}


@pytest.fixture
def serving(alice: User) -> SavedScenario:
    return actions.create_scenario(Viewer(user=alice), SERVING)


@pytest.fixture
def start(serving: SavedScenario, monkeypatch: pytest.MonkeyPatch, alice: User) -> Callable[..., Sweep]:
    """A sweep in chunks of three cells."""
    monkeypatch.setattr(sweeping, "CELLS_PER_CHUNK", 3)
    return lambda spec=SPEC: sweeps.start_sweep(Viewer(user=alice), serving, spec)


def work(sweep: Sweep) -> None:
    for chunk in sweep.chunks.all():
        evaluate_chunk(chunk.pk, chunk.attempts)
    sweep.refresh_from_db()


def indices(sweep: Sweep) -> list[int]:
    return [cell["index"] for cell in sweep.results()]


def kinds(sweep: Sweep) -> list[str]:
    return list(sweep.events.order_by("seq").values_list("kind", flat=True))


def test_every_cell_is_what_the_core_says_of_it(start: Callable[..., Sweep]) -> None:
    sweep = start()
    assert sweep.cell_count == 8
    assert [chunk.cell_count for chunk in sweep.chunks.all()] == [3, 3, 2]
    work(sweep)
    assert (sweep.status, sweep.done_count, sweep.failed_count) == ("finished", 8, 0)
    cells = grid.Grid.model_validate(SPEC).cells(SERVING)
    expected = list(evaluate(SERVING, cells, keep=lambda name: name in METRICS))
    assert [(cell["index"], cell["metrics"], cell["digest"]) for cell in sweep.results()] == [
        (one.index, one.metrics, one.digest) for one in expected
    ]
    assert kinds(sweep)[0] == "sweep.queued"
    assert kinds(sweep)[-1] == "sweep.finished"
    assert list(sweep.events.order_by("seq").values_list("seq", flat=True)) == list(
        range(1, sweep.last_seq + 1)
    )


def test_a_message_that_comes_twice_changes_nothing(start: Callable[..., Sweep]) -> None:
    sweep = start()
    chunk = sweep.chunks.get(index=0)
    for _ in range(3):
        evaluate_chunk(chunk.pk, 0)
    sweep.refresh_from_db()
    assert indices(sweep) == [0, 1, 2]
    assert sweep.done_count == 3


def test_a_cell_that_does_not_fit_is_an_answer(start: Callable[..., Sweep]) -> None:
    sweep = start({**SPEC, "axes": [{"path": "model.name", "values": ["llama-3.1-405b", "llama-3.1-8b"]}]})
    work(sweep)
    first, second = sweep.results()
    assert first["errors"]
    assert not first["metrics"]
    assert second["metrics"].keys() == set(METRICS)
    assert (sweep.status, sweep.done_count, sweep.failed_count) == ("finished", 2, 1)


def _die_after(chunk: SweepChunk, count: int) -> None:
    """A worker took the chunk, stored some cells, and was not heard of again."""
    assert chunk.claim(chunk.attempts)
    cells = [Cell(**cell) for cell in chunk.cells[chunk.done_count :][:count]]
    found = evaluate(chunk.sweep.document, cells, keep=lambda name: name in METRICS)
    assert chunk.append([sweeping._as_dict(one) for one in found])
    SweepChunk.objects.filter(pk=chunk.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))


def test_a_lost_chunk_goes_on_where_it_was_and_counts_once(start: Callable[..., Sweep]) -> None:
    sweep = start()
    chunk = sweep.chunks.get(index=0)
    _die_after(chunk, 1)
    assert reap_sweeps() == 1
    again = sweep.chunks.get(index=0)
    assert (again.status, again.losses, again.done_count) == ("lost", 1, 1)
    work(sweep)
    assert indices(sweep) == list(range(8))
    assert (sweep.status, sweep.done_count) == ("finished", 8)


def test_the_first_worker_that_comes_back_stores_nothing_more(start: Callable[..., Sweep]) -> None:
    sweep = start()
    revenant = sweep.chunks.get(index=0)
    _die_after(revenant, 1)
    reap_sweeps()
    work(sweep)
    late = {"index": 1, "metrics": {}, "errors": [], "digest": "", "warnings": []}
    assert not revenant.append([late])
    assert not revenant.beat()
    assert indices(sweep) == list(range(8))


def test_a_second_loss_fails_the_cells_that_are_left_and_the_sweep_ends(start: Callable[..., Sweep]) -> None:
    sweep = start()
    for _ in range(2):
        _die_after(sweep.chunks.get(index=0), 1)
        assert reap_sweeps() == 1
    work(sweep)
    assert (sweep.status, sweep.done_count, sweep.failed_count) == ("finished", 8, 1)
    assert [bool(cell["errors"]) for cell in sweep.results()] == [False, False, True, *[False] * 5]
    assert sweep.results()[2]["errors"][0]["code"] == "sweep.lost"


def test_cancelling_ends_the_sweep_at_once_and_what_comes_later_is_not_stored(
    start: Callable[..., Sweep],
) -> None:
    sweep = start()
    chunk = sweep.chunks.get(index=0)
    chunk.claim(0)
    assert sweep.cancel()
    assert not sweep.cancel()
    assert not chunk.append([{"index": 0, "metrics": {}, "errors": [], "digest": "", "warnings": []}])
    work(sweep)
    assert (sweep.status, sweep.done_count, indices(sweep)) == ("cancelled", 0, [])
    assert kinds(sweep)[-1] == "sweep.cancelled"


def test_a_long_cell_stops_when_its_sweep_is_cancelled(
    start: Callable[..., Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "LOOK_EVERY_S", 0.0)
    sweep = start()
    chunk = sweep.chunks.get(index=0)
    chunk.claim(0)
    sweep.cancel()
    with pytest.raises(sweeping._StoppedError):
        sweeping._Listener(chunk)("series", {})


def test_messages_that_were_lost_are_sent_again(
    start: Callable[..., Sweep], monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sweep = start()
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(evaluate_chunk, "delay", lambda chunk, attempt: told.append((chunk, attempt)))
    with django_capture_on_commit_callbacks(execute=True):
        assert reap_sweeps() == 0
    sweep.chunks.update(enqueued_at=timezone.now() - timedelta(hours=1))
    with django_capture_on_commit_callbacks(execute=True):
        assert reap_sweeps() == 3
    assert [attempt for _, attempt in told] == [0, 0, 0]


def test_a_sweep_whose_last_worker_died_before_the_end_ends(start: Callable[..., Sweep]) -> None:
    sweep = start({**SPEC, "axes": [{"path": "serving.kv.block_size", "values": [16]}]})
    _die_after(sweep.chunks.get(), 1)
    sweep.refresh_from_db()
    assert sweep.status == "running"
    reap_sweeps()
    sweep.refresh_from_db()
    assert sweep.status == "finished"


def test_a_cell_that_anyone_has_computed_is_not_computed_again(
    start: Callable[..., Sweep], bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start()
    work(first)
    assert CachedCell.objects.count() == 8
    monkeypatch.setattr("simcore.analysis.cells.simulate", None)
    theirs = actions.create_scenario(Viewer(user=bob), {**SERVING, "name": "Bob's, of another name"})
    second = sweeps.start_sweep(Viewer(user=bob), theirs, SPEC)
    work(second)
    assert [cell["metrics"] for cell in second.results()] == [cell["metrics"] for cell in first.results()]


def test_what_breaks_in_a_cell_fails_its_chunk_alone(
    start: Callable[..., Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = start()
    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "evaluate", lambda *args, **kwargs: 1 / 0)
        evaluate_chunk(sweep.chunks.get(index=0).pk, 0)
    work(sweep)
    assert (sweep.status, sweep.done_count, sweep.failed_count) == ("finished", 8, 3)


@pytest.mark.parametrize(
    ("limit", "allowed", "code"),
    [
        ("MAX_CELLS_PER_SWEEP", 7, "quota.cells"),
        ("MAX_REQUESTS_PER_SWEEP", 3199, "quota.sweep_requests"),
        ("MAX_ACTIVE_SWEEPS_PER_OWNER", 1, "quota.sweeps"),
    ],
)
def test_a_site_has_limits(
    limit: str, allowed: int, code: str, start: Callable[..., Sweep], settings: Any
) -> None:
    start()
    setattr(settings, limit, allowed)
    with pytest.raises(InputError) as refused:
        start()
    assert refused.value.message.code == code


def test_a_worker_refuses_a_cell_with_too_many_requests(start: Callable[..., Sweep], settings: Any) -> None:
    settings.MAX_REQUESTS_PER_RUN = 500
    sweep = start({**SPEC, "axes": [{"path": "workload.request_count", "values": [400, 600]}]})
    work(sweep)
    assert [bool(cell["errors"]) for cell in sweep.results()] == [False, True]


def test_old_sweeps_make_room(start: Callable[..., Sweep], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "KEPT_SWEEPS", 1)
    made = []
    for _ in range(3):
        made.append(start())
        made[-1].cancel()
    start()
    assert set(Sweep.objects.filter(status="cancelled")) == {made[-1]}
