"""Uploaded request traces: three numbers a row, named by the hash of the file that they were read from.

The columns are kept in the database, so that any worker on any machine can read them; the file itself, and
all else that it may have held, is not kept.
"""

import io

import numpy as np
from django.db import models

from explorer.models.fields import JsonText
from explorer.models.owned import Owned
from simcore.workload.traces import TraceTable

COLUMNS = ("timestamp_s", "input_tokens", "output_tokens")


class TraceUpload(Owned):
    """One person's upload. The same file uploaded by two people is two rows: each sees their own."""

    sha256 = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    format = models.CharField(max_length=20)
    row_count = models.PositiveIntegerField()
    skipped = JsonText(default=list)  # rows that were left out, and why
    packed = models.BinaryField()

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("sha256", "owner"),
                condition=models.Q(owner__isnull=False),
                name="trace_once_per_owner",
            ),
            models.UniqueConstraint(
                fields=("sha256", "sandbox"), condition=models.Q(owner=None), name="trace_once_per_sandbox"
            ),
        )

    def __str__(self) -> str:
        return self.name

    def table(self) -> TraceTable:
        """The trace as the plan takes it."""
        with np.load(io.BytesIO(bytes(self.packed)), allow_pickle=False) as stored:
            columns = {name: stored[name] for name in COLUMNS}
        return TraceTable(**columns, content_sha256=self.sha256)


def pack(table: TraceTable) -> bytes:
    """The columns, compressed."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        timestamp_s=table.timestamp_s,
        input_tokens=table.input_tokens,
        output_tokens=table.output_tokens,
    )
    return buffer.getvalue()
