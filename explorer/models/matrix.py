"""Uploaded traffic matrices: the arrays, compressed, and what was found in them.

A matrix is named by the hash of its file; the file itself is not kept. The study is made once, and again only when
another server is asked for: then the arrays are read back through the same reader as an upload.
"""

import io
from typing import Any

import numpy as np
from django.db import models

from explorer.models.fields import CompressedJson
from explorer.models.owned import Owned, once_per_person
from simcore.measurements.matrix import MeasuredMatrix, read_matrix


class TrafficMatrix(Owned):
    """One person's upload. The same file uploaded by two people is two rows: each sees their own."""

    sha256 = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    form = models.CharField(max_length=20)
    rank_count = models.PositiveIntegerField()
    server = models.CharField(max_length=80)
    study = CompressedJson()  # of `MatrixStudy`
    packed = models.BinaryField()

    class Meta:
        ordering = ("-created_at",)
        constraints = once_per_person("matrix", "sha256")

    def __str__(self) -> str:
        return self.name

    def matrix(self) -> MeasuredMatrix:
        return read_matrix(bytes(self.packed))


def pack_matrix(matrix: MeasuredMatrix) -> bytes:
    """The arrays as an archive that `read_matrix` takes."""
    arrays: dict[str, Any] = {"bytes": matrix.moved_bytes}
    if matrix.message_count is not None:
        arrays["messages"] = matrix.message_count
    if matrix.latency_sensitive_fraction is not None:
        arrays["latency_sensitive"] = matrix.latency_sensitive_fraction
    if matrix.duration_s is not None:
        arrays["duration_s"] = matrix.duration_s
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()
