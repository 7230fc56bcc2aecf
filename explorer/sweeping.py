"""What workers do for a sweep: evaluate a chunk's cells, and what looks after chunks whose worker is gone.

A message names a chunk and the attempt it is for, so any number of workers on any number of machines may take messages,
and one delivered twice does nothing. Chunks wait in a queue of their own, which workers read in turn with that of the
runs: an edit waits for a chunk at most (about 100,000 requests), not for a sweep. Not a Celery chord: its counter lives
in a result backend, which the embedded transport lacks, and would count a redelivered chunk twice; the counts here
stand in the rows that hold the results.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from explorer.access import own_calibrations, viewer_owning
from explorer.events import Heartbeat
from explorer.models import CachedCell, Status, Sweep, SweepChunk
from explorer.models.fields import plain
from explorer.models.run import UNFINISHED, WAITING
from explorer.models.sweep import CellDict
from explorer.tasks import BROKEN, TOO_LONG, read_upload, refuse_too_many_requests, sentence
from simcore.analysis.cells import Cell, CellResult, Metrics, evaluate
from simcore.analysis.studies import InRounds, Study, parse_study
from simcore.catalog import Catalog, default_catalog
from simcore.errors import TrimtabError
from simcore.scenario import Scenario

logger = logging.getLogger(__name__)

REQUESTS_PER_CHUNK = 100_000
CELLS_PER_CHUNK = 25
FLUSH_EVERY_S = 0.25
LOOK_EVERY_S = 0.5  # whether to go on, within a long cell
LOST_TWICE = gettext_noop(
    "two workers stopped while they evaluated this cell's chunk; it may need more memory than they have"
)
TOO_MANY_CELLS = gettext_noop("the study asks for more than {allowed:,} cells; narrow its ranges")


class _StoppedError(Exception):
    """The sweep has ended, or another attempt holds the chunk."""


@shared_task(name="explorer.evaluate_chunk")
def evaluate_chunk(chunk_id: int, attempt: int) -> None:
    """Claim the attempt and carry it through."""
    chunk = SweepChunk.objects.filter(pk=chunk_id).first()
    if chunk is None or not chunk.claim(attempt):
        return
    try:
        with Heartbeat(chunk.beat):
            _work(chunk)
    except _StoppedError:
        return
    except TrimtabError as error:
        chunk.sweep.fail([message.as_dict() for message in error.messages])
    except SoftTimeLimitExceeded:
        chunk.give_up([sentence("run.too_long", TOO_LONG, allowed=settings.RUN_TIME_LIMIT_S)])
    except Exception:
        logger.exception("chunk %s of sweep %s broke", chunk.index, chunk.sweep_id)
        chunk.give_up([sentence("run.broken", BROKEN)])
    advance(chunk.sweep)


@shared_task(name="explorer.cut_sweep")
def cut_sweep(sweep_id: str) -> None:
    """Find the cells of a study where that takes seconds; told twice, one of both is kept."""
    sweep = Sweep.objects.filter(pk=sweep_id, status__in=UNFINISHED).first()
    if sweep is None or sweep.is_cut:
        return
    try:
        cells = parse_study(sweep.spec).cells(sweep.document)
        enqueue(sweep.go_on(in_chunks(sweep.document, cells)))
        advance(sweep)
    except TrimtabError as error:
        sweep.fail([message.as_dict() for message in error.messages])
    except SoftTimeLimitExceeded:
        sweep.fail([sentence("run.too_long", TOO_LONG, allowed=settings.RUN_TIME_LIMIT_S)])
    except Exception:
        logger.exception("sweep %s could not be cut", sweep.pk)
        sweep.fail([sentence("run.broken", BROKEN)])


def _work(chunk: SweepChunk) -> None:
    sweep = chunk.sweep
    study, viewer = parse_study(sweep.spec), viewer_owning(sweep)
    cells = _Cells(study.depth)
    waiting: list[CellDict] = []
    flushed_at_s = 0.0  # the first cell is told at once
    for result in evaluate(
        sweep.document,
        [Cell(index=cell["index"], overrides=cell["overrides"]) for cell in chunk.cells[chunk.done_count :]],
        catalog=_catalog(sweep),
        traces=partial(read_upload, viewer),
        depth=study.depth,
        keep=study.keeps,
        known=cells,
        check=refuse_too_many_requests,
        on_event=_Listener(chunk),
    ):
        waiting.append(_as_dict(result))
        if time.monotonic() - flushed_at_s >= FLUSH_EVERY_S:
            _flush(chunk, waiting)
            waiting, flushed_at_s = [], time.monotonic()
    if waiting:
        _flush(chunk, waiting)
    cells.keep()


def _flush(chunk: SweepChunk, waiting: Sequence[CellDict]) -> None:
    if not chunk.append(waiting):
        raise _StoppedError


def _as_dict(result: CellResult) -> CellDict:
    cell: CellDict = plain(
        {
            "index": result.index,
            "metrics": result.metrics,
            "errors": result.errors,
            "digest": result.digest,
            "warnings": result.warnings,
        }
    )
    return cell


def _catalog(sweep: Sweep) -> Catalog:
    """The catalog with all calibrations of the sweep's owner: an axis may go over them."""
    own = {one.slug: one.calibration() for one in own_calibrations(viewer_owning(sweep))}
    return replace(default_catalog(), own_calibrations=own)


class _Listener:
    """Hears the events of a cell's run, to notice that the sweep was cancelled."""

    def __init__(self, chunk: SweepChunk) -> None:
        self._chunk = chunk
        self._looked_at_s = time.monotonic()

    def __call__(self, kind: str, payload: Mapping[str, Any]) -> None:
        if time.monotonic() - self._looked_at_s < LOOK_EVERY_S:
            return
        self._looked_at_s = time.monotonic()
        if not self._chunk.beat():
            raise _StoppedError


class _Cells:
    """What is known by digest, from everyone's sweeps; new metrics are stored at the end of a chunk."""

    def __init__(self, depth: str) -> None:
        self._depth = depth
        self._new: dict[str, Metrics] = {}

    def get(self, digest: str) -> Metrics | None:
        known = CachedCell.objects.filter(key=f"{self._depth}:{digest}").first()
        return known.metrics if known else self._new.get(digest)

    def __setitem__(self, digest: str, metrics: Metrics) -> None:
        self._new[digest] = metrics

    def keep(self) -> None:
        rows = [
            CachedCell(key=f"{self._depth}:{digest}", metrics=plain(metrics))
            for digest, metrics in self._new.items()
        ]
        CachedCell.objects.bulk_create(rows, ignore_conflicts=True)


def advance(sweep: Sweep) -> None:
    """When all cells are done: the next round, or the end."""
    sweep.refresh_from_db()
    if sweep.is_ended or not sweep.is_cut or sweep.done_count != sweep.cell_count:
        return
    study = parse_study(sweep.spec)
    more = _next_cells(study, sweep)
    if not more:
        sweep.finish(plain(study.summary(sweep.document, cell_results(sweep))))
    elif sweep.cell_count + len(more) > settings.MAX_CELLS_PER_SWEEP:
        sweep.fail([sentence("quota.cells", TOO_MANY_CELLS, allowed=settings.MAX_CELLS_PER_SWEEP)])
    else:
        enqueue(sweep.go_on(in_chunks(sweep.document, more)))


def _next_cells(study: Study, sweep: Sweep) -> list[Cell]:
    if not isinstance(study, InRounds):
        return []
    return study.next_cells(cell_results(sweep))


def cell_results(sweep: Sweep) -> list[CellResult]:
    """What the cells of a sweep came to, as the core has it: what a study's summary and next round are made of."""
    return [
        CellResult(
            index=cell["index"],
            metrics=cell["metrics"],
            errors=tuple(cell["errors"]),
            digest=cell["digest"],
            warnings=tuple(cell["warnings"]),
        )
        for cell in sweep.results()
    ]


def in_chunks(document: Mapping[str, Any], cells: Sequence[Cell]) -> list[list[CellDict]]:
    """Cells as chunks of about REQUESTS_PER_CHUNK requests."""
    scenario = Scenario.parse(document)
    requests = scenario.workload.request_count * scenario.run.replications
    size = max(1, min(CELLS_PER_CHUNK, REQUESTS_PER_CHUNK // requests))
    plain_cells = [{"index": cell.index, "overrides": dict(cell.overrides)} for cell in cells]
    return [plain_cells[begin : begin + size] for begin in range(0, len(plain_cells), size)]


def enqueue(chunks: Sequence[SweepChunk]) -> None:
    """Tell workers once the transaction is through. Where the broker is away, the reaper tells them later."""
    for chunk in chunks:
        send = partial(evaluate_chunk.delay, chunk.pk, chunk.attempts)
        transaction.on_commit(send, robust=True)


def enqueue_cutting(sweep: Sweep) -> None:
    """The same for a sweep whose cells workers are to find."""
    transaction.on_commit(partial(cut_sweep.delay, str(sweep.pk)), robust=True)


def reap_sweeps() -> int:
    """Look for lost chunks and for sweeps that nobody moves; returns how many were moved."""
    now = timezone.now()
    stale = now - timedelta(seconds=settings.RUN_STALE_AFTER_S)
    silent = SweepChunk.objects.filter(status=Status.RUNNING, heartbeat_at__lt=stale)
    handled = sum(_lost(chunk) for chunk in silent.filter(sweep__status__in=UNFINISHED))
    for sweep in Sweep.objects.filter(status__in=UNFINISHED):
        alive = sweep.chunks.filter(status=Status.RUNNING, heartbeat_at__gte=stale)
        if not alive.exists():
            handled += _tell_again(sweep)
            advance(sweep)
    return handled


def _lost(chunk: SweepChunk) -> bool:
    if chunk.losses:
        return chunk.give_up([sentence("sweep.lost", LOST_TWICE)], seen=chunk.heartbeat_at)
    lost = chunk.lose(seen=chunk.heartbeat_at)
    if lost:
        chunk.refresh_from_db()
        enqueue([chunk])
    return lost


def _tell_again(sweep: Sweep) -> int:
    """Chunks that have waited for long, of a sweep at which nobody works: their messages may be gone."""
    wait_s = settings.RUN_UNCLAIMED_AFTER_S
    long_ago = timezone.now() - timedelta(seconds=wait_s)
    if (
        not sweep.is_cut
        and sweep.created_at < long_ago
        and cache.add(f"cut.{sweep.pk}", True, timeout=wait_s)
    ):
        enqueue_cutting(sweep)
        return 1
    waiting = sweep.chunks.filter(status__in=WAITING, enqueued_at__lt=long_ago)
    chunks = list(waiting)
    waiting.update(enqueued_at=timezone.now())
    enqueue(chunks)
    return len(chunks)
