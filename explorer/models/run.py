"""A run's life, and its log.

    queued ──▶ running ──▶ finished | failed | cancelled
       │        │   ▲
       └▶ lost ◀┘   │      no sign of life; a second loss is failed
            └───────┘

Each transition is one method: a conditional UPDATE that only one caller can win, and the events that tell
of it, in one transaction. An attempt carries its number, and a message for attempt *n* claims only a run
that has been tried *n* times: a message delivered twice, or a worker that comes back from the dead, finds
nothing to change.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import models, transaction
from django.db.models import F
from django.utils import timezone

from explorer.models.fields import JsonText
from explorer.models.log import Entry, LogEvent, store
from explorer.models.result import CachedResult
from explorer.models.scenario import Revision


class Status(models.TextChoices):
    """Where a run is; what each may become stands at the top of this module."""

    QUEUED = "queued"
    RUNNING = "running"
    LOST = "lost"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


WAITING = (Status.QUEUED, Status.LOST)
UNFINISHED = (Status.QUEUED, Status.LOST, Status.RUNNING)
ENDED = (Status.FINISHED, Status.FAILED, Status.CANCELLED)


class Run(models.Model):
    """One simulation of one revision."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="runs")
    digest = models.CharField(max_length=80, db_index=True)
    seed = models.BigIntegerField(default=0)
    engine_version = models.CharField(max_length=40)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    losses = models.PositiveSmallIntegerField(default=0)
    last_seq = models.PositiveIntegerField(default=0)
    progress_fraction = models.FloatField(default=0.0)
    cancel_requested = models.BooleanField(default=False)
    superseded_by = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="supersedes"
    )
    messages = JsonText(default=list)  # why it failed: [{code, path, message, template, params}]
    result = models.ForeignKey(
        CachedResult, on_delete=models.PROTECT, null=True, blank=True, related_name="runs"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    enqueued_at = models.DateTimeField(default=timezone.now)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        indexes = (models.Index(fields=("status", "heartbeat_at"), name="run_by_status"),)

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"

    @property
    def is_ended(self) -> bool:
        return self.status in ENDED

    @property
    def result_document(self) -> dict[str, Any] | None:
        """The Result document, with this run's own scenario in it."""
        if self.result is None:
            return None
        return {**self.result.document, "scenario": self.revision.document}

    @property
    def shown(self) -> dict[str, Any] | None:
        """The Result document, or what an unfinished run has said so far in the same form."""
        return self.result_document or so_far(self)

    # --- transitions: each returns whether it happened -----------------------------------------------------

    def announce_queued(self) -> bool:
        """The first event of a run."""
        return self._change(UNFINISHED, [("run.queued", {"digest": self.digest})])

    def claim(self, attempt: int) -> bool:
        """Take the run for attempt number `attempt` (0 is the first)."""
        now = timezone.now()
        return self._change(
            WAITING,
            [("run.started", {"attempt": attempt + 1})],
            attempt=attempt,
            status=Status.RUNNING,
            attempts=attempt + 1,
            started_at=now,
            heartbeat_at=now,
            progress_fraction=0.0,
        )

    def beat(self) -> bool:
        """Say that the attempt is alive; false when the run is no longer this attempt's."""
        mine = Run.objects.filter(pk=self.pk, attempts=self.attempts, status=Status.RUNNING)
        return mine.update(heartbeat_at=timezone.now()) == 1

    def append(self, entries: Sequence[Entry], *, progress_fraction: float) -> bool:
        """Store what the simulation said."""
        now = timezone.now()
        return self._change(
            (Status.RUNNING,),
            entries,
            attempt=self.attempts,
            heartbeat_at=now,
            progress_fraction=progress_fraction,
        )

    def finish(self, result: CachedResult, *, seconds: float) -> bool:
        """End with a result."""
        return self._change(
            (Status.RUNNING,),
            [("run.finished", {"digest": result.digest, "seconds": seconds})],
            attempt=self.attempts,
            status=Status.FINISHED,
            result=result,
            digest=result.digest,
            progress_fraction=1.0,
            ended_at=timezone.now(),
        )

    def reuse(self, result: CachedResult) -> bool:
        """Finish at once with a result that exists."""
        return self._change(
            WAITING,
            [("run.finished", {"digest": self.digest, "seconds": 0.0, "cached": True})],
            status=Status.FINISHED,
            result=result,
            progress_fraction=1.0,
            ended_at=timezone.now(),
        )

    def fail(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        attempt: int | None = None,
        seen: datetime | None = None,
    ) -> bool:
        """End with an explanation, unless another attempt holds the run or it has since shown life."""
        return self._change(
            UNFINISHED,
            [("run.failed", {"messages": list(messages)})],
            attempt=attempt,
            seen=seen,
            status=Status.FAILED,
            messages=list(messages),
            ended_at=timezone.now(),
        )

    def cancel(self, *, superseded_by: "Run | None" = None) -> bool:
        """Cancel a run that waits; ask a running one to stop at its next flush."""
        payload = {"superseded_by": str(superseded_by.pk)} if superseded_by else {}
        if self._change(
            WAITING,
            [("run.cancelled", payload)],
            status=Status.CANCELLED,
            superseded_by=superseded_by,
            ended_at=timezone.now(),
        ):
            return True
        running = Run.objects.filter(pk=self.pk, status=Status.RUNNING)
        return running.update(cancel_requested=True, superseded_by=superseded_by) == 1

    def stop(self) -> bool:
        """The attempt saw the request to cancel, and obeys."""
        payload = {"superseded_by": str(self.superseded_by_id)} if self.superseded_by_id else {}
        return self._change(
            (Status.RUNNING,),
            [("run.cancelled", payload)],
            attempt=self.attempts,
            status=Status.CANCELLED,
            ended_at=timezone.now(),
        )

    def lose(self, *, seen: datetime | None) -> bool:
        """Its worker or message is gone: wait for another. `seen` is the life sign that was too old."""
        now = timezone.now()
        return self._change(
            UNFINISHED,
            [("run.reset", {"reason": "lost", "attempt": self.attempts})],
            attempt=self.attempts,
            losses_before=self.losses,
            seen=seen,
            status=Status.LOST,
            losses=self.losses + 1,
            enqueued_at=now,
            progress_fraction=0.0,
        )

    # --- how a transition happens --------------------------------------------------------------------------

    @transaction.atomic
    def _change(
        self,
        allowed: Sequence[str],
        entries: Sequence[Entry],
        *,
        attempt: int | None = None,
        losses_before: int | None = None,
        seen: datetime | None = None,
        **changes: Any,
    ) -> bool:
        rows = Run.objects.filter(pk=self.pk, status__in=allowed)
        if attempt is not None:
            rows = rows.filter(attempts=attempt)
        if losses_before is not None:
            rows = rows.filter(losses=losses_before)
        if seen is not None:
            rows = rows.filter(heartbeat_at=seen)
        if not rows.update(last_seq=F("last_seq") + len(entries), **changes):
            return False
        self.refresh_from_db(fields=[*changes, "last_seq", "cancel_requested", "superseded_by"])
        store(RunEvent, entries, last_seq=self.last_seq, run=self)
        return True


class RunEvent(LogEvent):
    """One line of a run's log."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")

    class Meta:
        ordering = ("run", "seq")
        constraints = (models.UniqueConstraint(fields=("run", "seq"), name="event_seq"),)

    @property
    def group(self) -> str:
        return f"run.{self.run_id}"


def so_far(run: Run) -> dict[str, Any] | None:
    """What the log of the present attempt adds up to, as a Result document; None before anything is known."""
    last_reset = (
        run.events.filter(kind="run.reset").order_by("-seq").values_list("seq", flat=True).first() or 0
    )
    said = run.events.filter(seq__gt=last_reset, kind__in=("run.stage", "run.series", "run.finding"))
    document: dict[str, Any] = {"metrics": {}, "tables": {}, "series": {}, "warnings": [], "bands": {}}
    heard = False
    for kind, payload in said.order_by("seq").values_list("kind", "payload"):
        heard = True
        if kind == "run.stage":
            document["metrics"] |= payload.get("metrics", {})
            document["tables"] |= payload.get("tables", {})
            document["warnings"] += payload.get("warnings", [])
        elif kind == "run.series":
            columns = document["series"].setdefault(payload["name"], {})
            for name, values in payload["columns"].items():
                columns.setdefault(name, []).extend(values)
        else:
            document["tables"].setdefault("findings", []).append(payload)
    return {**document, "scenario": run.revision.document, "partial": True} if heard else None
