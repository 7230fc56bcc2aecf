"""A log of events, numbered without gaps within what it tells of: stored first, announced after.

Whoever changes a run or a sweep raises its `last_seq` in the same conditional UPDATE, and stores the events in the same
transaction: the row's lock keeps two writers from taking one number. `logged` is sent after the events are stored;
`explorer.events` rings the doorbell.
"""

from collections.abc import Sequence
from typing import Any

from django.db import models
from django.dispatch import Signal
from django.utils import timezone

from explorer.models.fields import JsonText

logged = Signal()  # sender=the class of the events, events=list[LogEvent]

Entry = tuple[str, dict[str, Any]]  # (kind, payload)


class LogEvent(models.Model):
    """One line of a log. It is stored before anyone hears of it."""

    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    payload = JsonText(default=dict)
    at = models.DateTimeField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"

    @property
    def group(self) -> str:
        """The channel-layer group of those who follow this log."""
        raise NotImplementedError

    def as_dict(self) -> dict[str, Any]:
        """What goes over the socket: `{seq, kind, at, payload}`."""
        return {"seq": self.seq, "kind": self.kind, "at": self.at.isoformat(), "payload": self.payload}


def store(model: type[LogEvent], entries: Sequence[Entry], *, last_seq: int, **of: Any) -> None:
    """The entries as the last lines of a log whose `last_seq` counts them already; within a transaction."""
    first, now = last_seq - len(entries) + 1, timezone.now()
    events = [
        model(**of, seq=first + index, kind=kind, payload=payload, at=now)
        for index, (kind, payload) in enumerate(entries)
    ]
    model._default_manager.bulk_create(events)
    logged.send(sender=model, events=events)
