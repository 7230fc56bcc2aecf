"""A sweep: a study of one scenario, cut into chunks of cells, and the log of what each cell came to.

    sweep: queued ──▶ running ──▶ finished | failed | cancelled
    chunk: queued ──▶ running ──▶ finished        lost ──▶ running again, once; then its cells fail and it is finished

The log is where results are kept: a chunk's attempt stores cells by one transaction that raises the chunk's
`done_count`, the sweep's counts and the log together, and only while the attempt is the chunk's. A chunk's cells are
evaluated in order, so whoever takes it up after a loss begins at `done_count`: nothing is computed, stored or counted
twice, and nothing is left out, however often a message comes. A study in rounds adds chunks when all its cells
are done; `round` lets one caller do so.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import models, transaction
from django.db.models import F
from django.utils import timezone

from explorer.models.fields import CompressedJson, JsonText
from explorer.models.log import Entry, LogEvent, store
from explorer.models.owned import Owned
from explorer.models.run import ENDED, UNFINISHED, WAITING, Status
from explorer.models.scenario import SavedScenario

CellDict = dict[
    str, Any
]  # {index, overrides} of a cell to do; {index, metrics, errors, digest, warnings} of one that is done


class Sweep(Owned):
    """One study of a scenario as it was when the study was asked for."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    scenario = models.ForeignKey(SavedScenario, on_delete=models.CASCADE, related_name="sweeps")
    document = JsonText()
    kind = models.CharField(max_length=20)
    spec = JsonText()
    engine_version = models.CharField(max_length=40)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.QUEUED)
    round = models.PositiveIntegerField(default=0)
    cell_count = models.PositiveIntegerField(default=0)
    done_count = models.PositiveIntegerField(default=0)
    failed_count = models.PositiveIntegerField(default=0)
    last_seq = models.PositiveIntegerField(default=0)
    messages = JsonText(default=list)
    tables = CompressedJson(null=True)  # what the results of a finished study amount to
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        indexes = (models.Index(fields=("status",), name="sweep_by_status"),)

    def __str__(self) -> str:
        return f"{self.id} ({self.kind}, {self.status})"

    @property
    def is_ended(self) -> bool:
        return self.status in ENDED

    @property
    def is_cut(self) -> bool:
        """Whether its first cells are known; where finding them takes seconds, workers do."""
        return self.round > 0 or self.cell_count > 0

    @property
    def progress_fraction(self) -> float:
        return self.done_count / self.cell_count if self.cell_count else 0.0

    def results(self) -> list[CellDict]:
        """Every cell that is done, by index."""
        told = self.events.filter(kind="sweep.cells").values_list("payload", flat=True)
        return sorted((cell for payload in told for cell in payload["cells"]), key=lambda cell: cell["index"])

    def overrides(self) -> dict[int, dict[str, Any]]:
        """What is set in each cell, of all rounds so far."""
        cells = (cell for chunk in self.chunks.all() for cell in chunk.cells)
        return {cell["index"]: cell["overrides"] for cell in cells}

    # --- transitions: each returns whether it happened -----------------------------------------------------

    def begin(self, chunks: Sequence[Sequence[CellDict]]) -> "list[SweepChunk]":
        """The first cells, and the first event."""
        return self._add(chunks, [("sweep.queued", {"cell_count": sum(map(len, chunks))})])

    @transaction.atomic
    def go_on(self, chunks: Sequence[Sequence[CellDict]]) -> "list[SweepChunk]":
        """The next round; empty where another caller has it, or the sweep has ended."""
        mine = Sweep.objects.filter(
            pk=self.pk, round=self.round, status__in=UNFINISHED, done_count=F("cell_count")
        )
        if not mine.update(round=F("round") + 1):
            return []
        return self._add(chunks, [("sweep.round", {"cell_count": sum(map(len, chunks))})])

    def finish(self, tables: Mapping[str, Any]) -> bool:
        """All cells are done, and this is what they amount to."""
        if self.done_count != self.cell_count:
            return False
        payload = {"cell_count": self.cell_count, "failed_count": self.failed_count}
        return self._change(
            [("sweep.finished", payload)], status=Status.FINISHED, tables=tables, ended_at=timezone.now()
        )

    def fail(self, messages: Sequence[dict[str, Any]]) -> bool:
        """End with an explanation."""
        return self._change(
            [("sweep.failed", {"messages": list(messages)})],
            status=Status.FAILED,
            messages=list(messages),
            ended_at=timezone.now(),
        )

    def cancel(self) -> bool:
        """End now: what attempts find from here on is not stored, and they stop when they notice."""
        return self._change([("sweep.cancelled", {})], status=Status.CANCELLED, ended_at=timezone.now())

    # --- how a transition happens --------------------------------------------------------------------------

    @transaction.atomic
    def _add(self, chunks: Sequence[Sequence[CellDict]], entries: Sequence[Entry]) -> "list[SweepChunk]":
        if not self._change(entries, cell_count=F("cell_count") + sum(map(len, chunks))):
            return []
        first = self.chunks.count()
        made = [
            SweepChunk(sweep=self, index=first + place, cells=list(cells), cell_count=len(cells))
            for place, cells in enumerate(chunks)
        ]
        return SweepChunk.objects.bulk_create(made)

    @transaction.atomic
    def _change(self, entries: Sequence[Entry], **changes: Any) -> bool:
        rows = Sweep.objects.filter(pk=self.pk, status__in=UNFINISHED)
        if not rows.update(last_seq=F("last_seq") + len(entries), **changes):
            return False
        self.refresh_from_db(fields=[*changes, "last_seq", "done_count", "cell_count", "status"])
        store(SweepEvent, entries, last_seq=self.last_seq, sweep=self)
        return True


class SweepChunk(models.Model):
    """Cells that one worker evaluates in turn."""

    sweep = models.ForeignKey(Sweep, on_delete=models.CASCADE, related_name="chunks")
    index = models.PositiveIntegerField()
    cells = CompressedJson()
    cell_count = models.PositiveIntegerField()
    done_count = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    losses = models.PositiveSmallIntegerField(default=0)
    enqueued_at = models.DateTimeField(default=timezone.now)
    heartbeat_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("sweep", "index")
        constraints = (models.UniqueConstraint(fields=("sweep", "index"), name="chunk_index"),)
        indexes = (models.Index(fields=("status", "heartbeat_at"), name="chunk_by_status"),)

    def __str__(self) -> str:
        return f"{self.index} ({self.status})"

    def claim(self, attempt: int) -> bool:
        """Take the chunk for attempt number `attempt` (0 is the first)."""
        changes = {"status": Status.RUNNING, "attempts": attempt + 1, "heartbeat_at": timezone.now()}
        rows = SweepChunk.objects.filter(pk=self.pk, status__in=WAITING, attempts=attempt)
        if not rows.filter(sweep__status__in=UNFINISHED).update(**changes):
            return False
        self.refresh_from_db()
        return True

    def beat(self) -> bool:
        """Say that the attempt is alive; false when it should stop."""
        return self._mine().filter(sweep__status__in=UNFINISHED).update(heartbeat_at=timezone.now()) == 1

    @transaction.atomic
    def append(self, results: Sequence[CellDict]) -> bool:
        """Store what the next cells came to; the last ones finish the chunk. False when the attempt should stop."""
        count, now = len(results), timezone.now()
        over = self.done_count + count == self.cell_count
        changes: dict[str, Any] = {"status": Status.FINISHED} if over else {}
        mine = self._mine().filter(done_count=self.done_count)
        if not mine.update(done_count=F("done_count") + count, heartbeat_at=now, **changes):
            return False
        failed = sum(1 for cell in results if cell["errors"])
        told = self.sweep._change(
            [("sweep.cells", {"cells": list(results)})],
            status=Status.RUNNING,
            done_count=F("done_count") + count,
            failed_count=F("failed_count") + failed,
        )
        if not told:
            transaction.set_rollback(True)
            return False
        self.done_count += count
        return True

    def lose(self, *, seen: datetime | None) -> bool:
        """Its worker is gone: wait for another. `seen` is the life sign that was too old."""
        rows = SweepChunk.objects.filter(pk=self.pk, attempts=self.attempts, losses=self.losses)
        lost = rows.filter(status=Status.RUNNING, heartbeat_at=seen).update(
            status=Status.LOST, losses=self.losses + 1, enqueued_at=timezone.now()
        )
        return lost == 1

    def give_up(self, errors: Sequence[Mapping[str, Any]], *, seen: datetime | None = None) -> bool:
        """The cells that are left fail with these sentences, so that the sweep can end."""
        if seen is not None and not self._mine().filter(heartbeat_at=seen).exists():
            return False
        left = self.cells[self.done_count :]
        return self.append(
            [
                {"index": cell["index"], "metrics": {}, "errors": list(errors), "digest": "", "warnings": []}
                for cell in left
            ]
        )

    def _mine(self) -> "models.QuerySet[SweepChunk]":
        return SweepChunk.objects.filter(pk=self.pk, attempts=self.attempts, status=Status.RUNNING)


class SweepEvent(LogEvent):
    """One line of a sweep's log."""

    sweep = models.ForeignKey(Sweep, on_delete=models.CASCADE, related_name="events")

    class Meta:
        ordering = ("sweep", "seq")
        constraints = (models.UniqueConstraint(fields=("sweep", "seq"), name="sweep_event_seq"),)

    @property
    def group(self) -> str:
        return f"sweep.{self.sweep_id}"


class CachedCell(models.Model):
    """All metrics of a plan, evaluated to a depth: computed once, whoever asks.

    The key is made of the plan's digest, thus of content alone; nobody learns from it whose the plan was.
    """

    key = models.CharField(max_length=100, primary_key=True)  # depth:digest
    metrics = CompressedJson()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.key
