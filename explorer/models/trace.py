"""Uploaded request traces: three numbers a row, and the hashes of its prompt's blocks where the file has them.

A trace is named by the hash of its file. The columns are kept in the database, so that any worker on any
machine can read them; the file itself, and all else that it may have held, is not kept.
"""

import io
from typing import Any

import numpy as np
from django.db import models

from explorer.models.fields import JsonText, plain
from explorer.models.owned import Owned, once_per_person
from simcore.errors import Message
from simcore.workload.summary import curves, summarise
from simcore.workload.traces import TraceTable

COLUMNS = ("timestamp_s", "input_tokens", "output_tokens")
CHAIN_COLUMNS = ("block_offsets", "block_hashes")
MESSAGE_KEYS = ("code", "template", "params", "path")


class TraceUpload(Owned):
    """One person's upload. The same file uploaded by two people is two rows: each sees their own."""

    sha256 = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    format = models.CharField(max_length=20)
    row_count = models.PositiveIntegerField()
    skipped = JsonText(default=list)  # the first rows that were left out, and why
    summary = JsonText(
        default=dict
    )  # as `describe` makes it; empty for what was uploaded before there was one
    packed = models.BinaryField()

    class Meta:
        ordering = ("-created_at",)
        constraints = once_per_person("trace", "sha256")

    def __str__(self) -> str:
        return self.name

    @property
    def described(self) -> dict[str, Any]:
        """What the trace is like, in figures and as curves."""
        return self.summary or describe(self.table())

    def table(self) -> TraceTable:
        """The trace as the plan takes it."""
        with np.load(io.BytesIO(bytes(self.packed)), allow_pickle=False) as stored:
            columns = {name: stored[name] for name in COLUMNS}
            columns |= {name: stored[name].astype(np.int64) for name in CHAIN_COLUMNS if name in stored}
        left_out = self.skipped if self.summary else []  # older uploads do not know on which lines
        return TraceTable(
            **columns,
            content_sha256=self.sha256,
            skipped_rows=tuple(Message(**{key: row[key] for key in MESSAGE_KEYS}) for row in left_out),
            skipped_count=self.summary["figures"]["skipped_count"] if left_out else 0,
        )


def describe(table: TraceTable) -> dict[str, Any]:
    """`figures` of the summary and `series` to draw, as JSON has them."""
    return {"figures": plain(summarise(table).as_dict()), "series": plain(curves(table))}


def pack(table: TraceTable) -> bytes:
    """The columns, compressed; hashes as small numbers, since only whether two are equal counts."""
    columns = {name: getattr(table, name) for name in COLUMNS}
    if table.block_chains is not None:
        offsets, hashes = table.block_chains
        names = np.unique(hashes, return_inverse=True)[1].ravel().astype(np.int32)
        columns |= dict(zip(CHAIN_COLUMNS, (offsets, names), strict=True))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **columns)
    return buffer.getvalue()
