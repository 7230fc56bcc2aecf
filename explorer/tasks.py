"""What workers do: simulate a run; and what looks after them: the reaper.

A task message says which attempt it is for. `Run.claim` lets one worker have that attempt, so a message that is
delivered twice, or late, does nothing. A simulation's own errors are deterministic: the run fails with their
messages and is not tried again. A run without a sign of life, or that nobody has claimed, is lost: it is queued
once more, and a second loss is a failure that says so.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_init
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from explorer.access import Viewer, own_calibrations, own_traces, viewer_owning
from explorer.events import RunLog, RunStoppedError
from explorer.models import (
    CachedCell,
    CachedResult,
    Run,
    RunEvent,
    SavedCalibration,
    SavedReport,
    SavedScenario,
    ShareLink,
    TraceUpload,
    TrafficMatrix,
)
from explorer.models.fields import plain
from explorer.models.run import WAITING, Status
from simcore.analysis import analyse
from simcore.catalog import Catalog, default_catalog
from simcore.catalog.calibrations import is_file
from simcore.errors import InputError, Message, TrimtabError
from simcore.fabric.warm import warm as warm_fabric
from simcore.plan import Plan, plan
from simcore.reliability.warm import warm as warm_reliability
from simcore.scenario import Scenario
from simcore.serving.warm import warm
from simcore.simulate import simulate
from simcore.why import as_dict
from simcore.workload.arrivals import Trace
from simcore.workload.traces import TraceTable, cut

logger = logging.getLogger(__name__)

PRUNE_EVERY_S = 3600
TOO_LONG = "the simulation took longer than {allowed} s; ask for fewer requests or a smaller cluster"
BROKEN = "the simulation stopped on a fault of ours, which has been logged; change an input, or report it"
LOST_TWICE = "two workers stopped while they simulated this; it may need more memory than they have"
NOBODY = "no worker has taken this run; start one, then run it again"


@worker_init.connect
def get_ready(**kwargs: Any) -> None:
    """Load catalog and machine code before the pool forks: its processes share them, and the first run is quick."""
    default_catalog()
    warm()
    warm_fabric()
    warm_reliability()


@shared_task(name="explorer.run_simulation")
def run_simulation(run_id: str, attempt: int) -> None:
    """Claim the attempt and carry it through."""
    run = Run.objects.select_related("revision__scenario__owner").filter(pk=run_id).first()
    if run is None or not run.claim(attempt):
        return
    try:
        with RunLog(run) as log:
            carry_out(run, log)
    except RunStoppedError as stopped:
        if stopped.cancelled:
            run.stop()
    except TrimtabError as error:
        run.fail([message.as_dict() for message in error.messages], attempt=run.attempts)
    except SoftTimeLimitExceeded:
        run.fail(
            [sentence("run.too_long", TOO_LONG, allowed=settings.RUN_TIME_LIMIT_S)], attempt=run.attempts
        )
    except Exception:
        logger.exception("run %s broke", run.pk)
        run.fail([sentence("run.broken", BROKEN)], attempt=run.attempts)


def carry_out(run: Run, log: RunLog) -> None:
    """Plan, simulate, analyse, and keep the result under the digest."""
    began_s = time.monotonic()
    document, why = compute(run, log)
    log.flush()
    result = CachedResult.keep(document["digest"], document, why)
    run.finish(result, seconds=round(time.monotonic() - began_s, 4))


def compute(run: Run, log: RunLog) -> tuple[dict[str, Any], dict[str, Any]]:
    """The Result document, and the expression tree of each of its metrics."""
    plan = plan_document(run.revision.document, viewer_owning(run.revision.scenario))
    result = simulate(plan, on_event=log)
    result = result.with_findings(analyse(plan, result, on_event=log))
    return plain(result.as_dict()), {metric: as_dict(term) for metric, term in result.why.items()}


def plan_document(document: Mapping[str, Any], viewer: Viewer) -> Plan:
    """The plan of a document, with what its owner may read and within this site's limits."""
    scenario = Scenario.parse(document)
    refuse_too_many_requests(scenario)
    catalog = catalog_with(viewer, scenario.hardware.calibration)
    return plan(scenario, catalog, traces=partial(read_upload, viewer))


def refuse_too_many_requests(scenario: Scenario) -> None:
    """What this site simulates at a time."""
    request_count = scenario.workload.request_count * scenario.run.replications
    if request_count > settings.MAX_REQUESTS_PER_RUN:
        raise InputError.at(
            "workload.request_count", "limit.requests", "got {got:,}; this site simulates up to {allowed:,} "
            "requests at a time, replications included", got=request_count, allowed=settings.MAX_REQUESTS_PER_RUN,
        )  # fmt: skip


def closed_forms(run: Run, planned: Plan | None = None) -> dict[str, Any] | None:
    """What the plan alone knows of a run that has said nothing yet, in the form of a Result document."""
    document = run.revision.document
    try:
        planned = planned or plan_document(document, viewer_owning(run.revision.scenario))
    except TrimtabError:
        return None
    known = {"metrics": planned.metrics, "tables": planned.tables, "series": {}, "bands": {}}
    warnings = [warning.as_dict() for warning in planned.warnings]
    return {**plain(known), "warnings": warnings, "scenario": document, "partial": True}


def catalog_with(viewer: Viewer, calibration: str) -> Catalog:
    """The catalog, with the calibration that a scenario names in it if it is one of the viewer's own."""
    catalog = default_catalog()
    if calibration == "auto" or calibration in catalog.calibrations:
        return catalog
    if is_file(calibration):
        raise InputError.at(
            "hardware.calibration", "calibration.path", "files are read on the command line only; fit your rows on "
            "the page Calibrate, keep the fit, and choose it here",
        )  # fmt: skip
    own = own_calibrations(viewer).filter(slug=calibration).first()
    if own is None:
        raise InputError.at(
            "hardware.calibration", "calibration.unknown", "none of your calibrations is {got!r}; choose one of "
            "yours, or auto for the chip's own", got=calibration[:80],
        )  # fmt: skip
    return replace(catalog, own_calibrations={calibration: own.calibration()})


def read_upload(viewer: Viewer, arrivals: Trace) -> TraceTable:
    """The trace that a scenario names, if it is an upload of the viewer's."""
    if arrivals.path:
        raise InputError.at(
            "workload.arrivals.path", "trace.path", "files are read on the command line only; upload the trace and "
            "choose it here",
        )  # fmt: skip
    upload = own_traces(viewer).filter(sha256=arrivals.trace).first()
    if upload is None:
        raise InputError.at(
            "workload.arrivals.trace", "trace.unknown", "none of your uploads is {got!r}; upload the trace, then "
            "choose it here", got=str(arrivals.trace)[:16],
        )  # fmt: skip
    table = cut(upload.table(), time_scale=arrivals.time_scale, limit=arrivals.limit, window=arrivals.window)
    if len(table.timestamp_s) > settings.MAX_REQUESTS_PER_RUN:
        raise InputError.at(
            "workload.arrivals.limit", "limit.requests", "the trace has {got:,} rows; this site simulates up to "
            "{allowed:,} requests at a time, so set limit", got=len(table.timestamp_s),
            allowed=settings.MAX_REQUESTS_PER_RUN,
        )  # fmt: skip
    return table


def enqueue(run: Run) -> None:
    """Tell a worker once the transaction is through. Where the broker is away, the reaper tells it later."""
    transaction.on_commit(partial(run_simulation.delay, str(run.pk), run.attempts), robust=True)


def sentence(code: str, template: str, **params: Any) -> dict[str, Any]:
    """A message of the explorer's own, in the form of the core's."""
    return Message(code=code, template=template, params=params).as_dict()


def reap() -> int:
    """Look for lost runs, queue them again or fail them; returns how many. Any number of reapers may look.

    Now and then it also prunes.
    """
    if cache.add("explorer.pruned", True, timeout=PRUNE_EVERY_S):
        prune()
    now = timezone.now()
    stale = now - timedelta(seconds=settings.RUN_STALE_AFTER_S)
    unclaimed = now - timedelta(seconds=settings.RUN_UNCLAIMED_AFTER_S)
    running = Run.objects.filter(status=Status.RUNNING)
    silent = list(running.filter(heartbeat_at__lt=stale))
    waiting = list(Run.objects.filter(status__in=WAITING, enqueued_at__lt=unclaimed))
    working = running.filter(heartbeat_at__gte=stale).exists()
    handled = sum(_lost(run, LOST_TWICE) for run in silent)
    # While others work, a run that waits has a queue before it, not a lost message: tell the queue again, in case.
    return handled + sum(_tell_again(run) if working else _lost(run, NOBODY) for run in waiting)


@transaction.atomic
def _lost(run: Run, reason: str) -> bool:
    seen = run.heartbeat_at if run.status == Status.RUNNING else None
    if run.cancel_requested:
        return run.stop()
    if run.losses:
        return run.fail([sentence("run.lost", reason)], attempt=run.attempts, seen=seen)
    lost = run.lose(seen=seen)
    if lost:
        enqueue(run)
    return lost


def prune() -> None:
    """Delete what nobody will ask for: the work of stale runs, logs told to the end, results without a run,
    and the sandboxes of sessions that have ended.
    """
    now = timezone.now()
    a_day_ago, a_week_ago = now - timedelta(days=1), now - timedelta(days=7)
    Run.objects.filter(status=Status.CANCELLED, ended_at__lt=a_day_ago).delete()
    RunEvent.objects.filter(run__ended_at__lt=a_day_ago).delete()
    CachedResult.objects.filter(runs=None, created_at__lt=a_week_ago).delete()
    CachedCell.objects.filter(created_at__lt=a_week_ago).delete()
    session_end = now - timedelta(seconds=settings.SESSION_COOKIE_AGE)
    SavedScenario.objects.filter(owner=None, updated_at__lt=session_end).delete()
    for uploads in (TraceUpload.objects, TrafficMatrix.objects, SavedCalibration.objects):
        uploads.filter(owner=None, created_at__lt=session_end).delete()
    for kept in (ShareLink.objects, SavedReport.objects):
        kept.filter(owner=None, created_at__lt=session_end).delete()
    SessionStore.clear_expired()


def _tell_again(run: Run) -> bool:
    same = Run.objects.filter(pk=run.pk, status__in=WAITING, enqueued_at=run.enqueued_at)
    told = same.update(enqueued_at=timezone.now()) == 1
    if told:
        enqueue(run)
    return told
