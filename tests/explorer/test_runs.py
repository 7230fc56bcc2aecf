"""A run's life: it is simulated once, ends truthfully, and survives what happens to workers and messages."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from explorer import actions, tasks
from explorer.access import Viewer
from explorer.events import RunLog, RunStoppedError
from explorer.management.commands.reap import reap_once
from explorer.models import CachedResult, Run, RunEvent, SavedScenario, Status
from explorer.tasks import prune, reap, run_simulation
from simcore.errors import InfeasibleError
from tests.explorer.conftest import DOCUMENT, kinds, run_of

pytestmark = pytest.mark.django_db


def test_it_goes_from_queued_through_running_to_finished(scenario: SavedScenario, work: Any) -> None:
    run = run_of(scenario)
    assert (run.status, kinds(run)) == ("queued", ["run.queued"])
    work(run)
    assert run.status == "finished"
    assert run.progress_fraction == 1.0
    assert kinds(run)[:2] == ["run.queued", "run.started"]
    assert kinds(run)[-1] == "run.finished"
    assert "run.stage" in kinds(run)


def test_its_seq_has_no_gap(finished: Run) -> None:
    seqs = list(finished.events.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, finished.last_seq + 1))


def test_its_result_says_digest_and_metrics(finished: Run) -> None:
    assert finished.result_document is not None
    assert finished.result_document["digest"] == finished.digest
    assert finished.result_document["metrics"]["fabric.switch_count"] > 0
    assert finished.result_document["scenario"] == DOCUMENT


def test_it_is_sent_to_a_worker_once_the_row_is_there(
    alice: User, queue: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        scenario = actions.create_scenario(Viewer(user=alice), DOCUMENT)
        assert queue == []
    assert queue == [(str(run_of(scenario).pk), 0)]


def test_it_does_nothing_when_its_message_comes_twice(finished: Run) -> None:
    events = finished.last_seq
    run_simulation(str(finished.pk), 0)
    finished.refresh_from_db()
    assert (finished.attempts, finished.last_seq, finished.status) == (1, events, "finished")


def test_a_second_message_does_not_take_over_a_running_run(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    assert run.claim(0)
    run_simulation(str(run.pk), 0)
    run.refresh_from_db()
    assert (run.attempts, run.status) == (1, "running")


@pytest.mark.django_db(transaction=True)
def test_of_two_workers_at_once_one_gets_it(scenario: SavedScenario) -> None:
    run = run_of(scenario)

    def claim(_: int) -> bool:
        try:
            return Run.objects.get(pk=run.pk).claim(0)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(claim, range(4))) == 1
    assert kinds(run) == ["run.queued", "run.started"]


def test_it_fails_with_the_messages_of_the_core(
    scenario: SavedScenario, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise InfeasibleError.at("serving", "memory.does_not_fit", "weights take {got} GB", got=140)

    monkeypatch.setattr(tasks, "simulate", refuse)
    run = work(run_of(scenario))
    assert run.status == "failed"
    assert run.messages[0]["message"] == "weights take 140 GB"
    assert kinds(run)[-1] == "run.failed"


@pytest.mark.parametrize(
    ("error", "code"), [(SoftTimeLimitExceeded(), "run.too_long"), (ZeroDivisionError(), "run.broken")]
)
def test_it_fails_with_a_sentence_where_the_core_cannot_say_one(
    scenario: SavedScenario, work: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    def breaks(*args: Any, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr(tasks, "simulate", breaks)
    run = work(run_of(scenario))
    assert (run.status, run.messages[0]["code"]) == ("failed", code)


def test_an_infeasible_scenario_is_an_answer_at_once(
    alice: User, monkeypatch: pytest.MonkeyPatch, queue: list[Any]
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise InfeasibleError.at("serving.parallelism.tp", "memory.does_not_fit", "does not fit")

    monkeypatch.setattr(tasks, "plan", refuse)
    scenario = actions.create_scenario(Viewer(user=alice), DOCUMENT)
    assert run_of(scenario).status == "failed"
    assert run_of(scenario).messages[0]["path"] == "serving.parallelism.tp"
    assert queue == []


# --- the same twice -------------------------------------------------------------------------------------------


def test_the_same_scenario_of_another_person_is_not_simulated_again(
    finished: Run, bob: User, django_capture_on_commit_callbacks: Any, queue: list[Any]
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        other = actions.create_scenario(Viewer(user=bob), {**DOCUMENT, "name": "Bob's"})
    run = run_of(other)
    assert run.status == "finished"
    assert queue == []
    assert CachedResult.objects.count() == 1


def test_a_name_does_not_travel_with_a_cached_result(finished: Run, bob: User) -> None:
    other = actions.create_scenario(Viewer(user=bob), {**DOCUMENT, "name": "Bob's"})
    assert "Two leaves" not in str(run_of(other).result_document)


def test_an_edit_of_nothing_makes_no_new_run(finished: Run, alice: User) -> None:
    scenario = finished.revision.scenario
    assert actions.edit(Viewer(user=alice), scenario, {}).run == finished
    assert scenario.revisions.count() == 1


# --- cancel, supersede ----------------------------------------------------------------------------------------


def test_a_newer_edit_cancels_the_run_that_it_made_stale(scenario: SavedScenario, alice: User) -> None:
    stale = run_of(scenario)
    outcome = actions.edit(Viewer(user=alice), scenario, {"hardware.chip_count": "128"})
    stale.refresh_from_db()
    assert (stale.status, stale.superseded_by) == ("cancelled", outcome.run)
    assert kinds(stale)[-1] == "run.cancelled"


def test_a_newer_edit_does_not_cancel_the_run_of_the_baseline(scenario: SavedScenario, alice: User) -> None:
    baseline = run_of(scenario)
    actions.pin(Viewer(user=alice), scenario)
    actions.edit(Viewer(user=alice), scenario, {"hardware.chip_count": "128"})
    baseline.refresh_from_db()
    assert baseline.status == "queued"


def test_a_running_run_stops_at_its_next_flush(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    run.claim(0)
    assert actions.cancel_runs(scenario) == 1
    with pytest.raises(RunStoppedError) as stopped:
        RunLog(run).flush()
    assert stopped.value.cancelled


def test_a_run_cancelled_while_it_simulates_ends_cancelled(
    scenario: SavedScenario, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancelled_meanwhile(plan: Any, *, on_event: Callable[[str, dict[str, Any]], None]) -> None:
        actions.cancel_runs(scenario)
        on_event("stage", {"stage": "serving"})
        raise AssertionError("it went on")

    monkeypatch.setattr(tasks, "simulate", cancelled_meanwhile)
    run = work(run_of(scenario))
    assert run.status == "cancelled"
    assert kinds(run)[-1] == "run.cancelled"


def test_a_cancelled_run_is_not_started_by_its_message(scenario: SavedScenario, work: Any) -> None:
    actions.cancel_runs(scenario)
    assert work(run_of(scenario)).status == "cancelled"


# --- what the reaper does -------------------------------------------------------------------------------------


def age(run: Run, *, seconds: float) -> None:
    """Make its last sign of life so old."""
    then = timezone.now() - timedelta(seconds=seconds)
    Run.objects.filter(pk=run.pk).update(enqueued_at=then, heartbeat_at=then if run.attempts else None)


def test_the_reaper_leaves_alone_what_lives(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    assert reap() == 0
    run.claim(0)
    assert reap() == 0


def test_a_run_whose_worker_died_is_tried_once_more(
    scenario: SavedScenario, work: Any, queue: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    run = run_of(scenario)
    run.claim(0)
    age(run, seconds=100)
    with django_capture_on_commit_callbacks(execute=True):
        assert reap() == 1
    run.refresh_from_db()
    assert (run.status, kinds(run)[-1]) == ("lost", "run.reset")
    assert queue == [(str(run.pk), 1)]
    assert work(run).status == "finished"
    assert run.attempts == 2


def test_a_run_whose_worker_died_twice_has_failed(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    for attempt in (0, 1):
        assert run.claim(attempt)
        age(run, seconds=100)
        reap()
        run.refresh_from_db()
    assert (run.status, run.messages[0]["code"]) == ("failed", "run.lost")
    assert kinds(run)[-1] == "run.failed"


def test_a_worker_that_comes_back_from_the_dead_stops(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    run.claim(0)
    age(run, seconds=100)
    reap()
    with pytest.raises(RunStoppedError) as stopped:
        RunLog(run)("stage", {"stage": "serving"})
    assert not stopped.value.cancelled


def test_a_lost_message_is_sent_again_and_then_given_up(
    scenario: SavedScenario, queue: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    run = run_of(scenario)
    age(run, seconds=1000)
    with django_capture_on_commit_callbacks(execute=True):
        reap()
    assert queue == [(str(run.pk), 0)]
    age(run, seconds=1000)
    reap()
    run.refresh_from_db()
    assert (run.status, run.messages[0]["code"]) == ("failed", "run.lost")


def test_a_run_that_waits_behind_others_is_not_given_up(
    scenario: SavedScenario, alice: User, queue: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    waits = run_of(scenario)
    busy = run_of(actions.create_scenario(Viewer(user=alice), {**DOCUMENT, "run": {"seed": 7}}))
    busy.claim(0)
    for _ in range(3):
        age(waits, seconds=1000)
        with django_capture_on_commit_callbacks(execute=True):
            reap()
    waits.refresh_from_db()
    assert (waits.status, waits.losses, len(queue)) == ("queued", 0, 3)


def test_a_lost_run_that_was_to_be_cancelled_is_cancelled(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    run.claim(0)
    run.cancel()
    age(run, seconds=100)
    reap()
    run.refresh_from_db()
    assert run.status == Status.CANCELLED


@pytest.mark.django_db(transaction=True)
def test_the_supervisor_reaps(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    run.claim(0)
    age(run, seconds=100)
    reap_once()
    run.refresh_from_db()
    assert run.status == Status.LOST


def test_what_nobody_will_ask_for_is_pruned(finished: Run, alice: User, work: Any) -> None:
    viewer, scenario = Viewer(user=alice), finished.revision.scenario
    stale = actions.edit(viewer, scenario, {"hardware.chip_count": "128"}).run
    actions.edit(viewer, scenario, {"hardware.chip_count": "256"})
    sandboxed = actions.create_scenario(Viewer(sandbox="charlies-key"), {**DOCUMENT, "run": {"seed": 5}})
    prune()
    assert Run.objects.count() == 4
    long_ago = timezone.now() - timedelta(days=100)
    Run.objects.exclude(ended_at=None).update(ended_at=long_ago)
    SavedScenario.objects.filter(pk=sandboxed.pk).update(updated_at=long_ago)
    prune()
    assert stale is not None
    assert not Run.objects.filter(pk=stale.pk).exists()
    assert not SavedScenario.objects.filter(pk=sandboxed.pk).exists()
    finished.refresh_from_db()
    assert finished.result_document is not None
    assert not finished.events.exists()


# --- the log --------------------------------------------------------------------------------------------------


def series(start: int, *, progress: float) -> dict[str, Any]:
    columns = {"time_s": [float(start), start + 0.5], "running": [1, 2]}
    return {"name": "serving", "columns": columns, "progress_fraction": progress}


def test_slices_of_a_series_are_joined_between_flushes(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    run.claim(0)
    log = RunLog(run)
    log("stage", {"stage": "fabric"})
    for index in range(10):
        log("series", series(index, progress=index / 10))
    log.flush()
    joined = run.events.filter(kind="run.series")
    times = [time for event in joined.order_by("seq") for time in event.payload["columns"]["time_s"]]
    assert times == [index / 2 for index in range(20)]
    assert joined.count() < 10
    run.refresh_from_db()
    assert run.progress_fraction == 0.9


def test_the_first_slice_of_a_series_waits_for_no_other(scenario: SavedScenario) -> None:
    """It comes right after a stage was stored, so by the clock alone it would lie for a sixteenth of a second."""
    run = run_of(scenario)
    run.claim(0)
    log = RunLog(run)
    log("stage", {"stage": "closed_forms"})
    log("series", series(0, progress=0.1))
    assert kinds(run)[-2:] == ["run.stage", "run.series"]
    log("series", series(1, progress=0.2))
    assert run.events.filter(kind="run.series").count() == 1


def test_what_has_streamed_reads_like_a_result(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    assert run.shown is None
    run.claim(0)
    log = RunLog(run)
    log("stage", {"stage": "fabric", "metrics": {"fabric.tiers": 2}, "tables": {"bill": []}, "warnings": []})
    log("series", series(0, progress=0.1))
    log("series", series(1, progress=0.2))
    log("finding", {"code": "x"})
    shown = run.shown
    assert shown is not None
    assert shown["metrics"] == {"fabric.tiers": 2}
    assert shown["series"]["serving"]["time_s"] == [0.0, 0.5, 1.0, 1.5]
    assert shown["tables"]["findings"] == [{"code": "x"}]


def test_what_an_earlier_attempt_said_is_not_shown(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    run.claim(0)
    RunLog(run)("stage", {"metrics": {"fabric.tiers": 2}})
    age(run, seconds=100)
    reap()
    run.refresh_from_db()
    run.claim(1)
    assert run.shown is None


def test_a_number_that_is_not_finite_is_stored_as_null(scenario: SavedScenario) -> None:
    run = run_of(scenario)
    run.claim(0)
    RunLog(run)("stage", {"metrics": {"a": float("nan"), "b": float("inf"), "c": 1.0}})
    assert RunEvent.objects.get(run=run, kind="run.stage").payload["metrics"] == {
        "a": None,
        "b": None,
        "c": 1.0,
    }
