"""What other tools measured, as rows in our own words: serving benchmarks and nccl-tests."""

from __future__ import annotations

from simcore.measurements.collectives import read_nccl_tests
from simcore.measurements.rows import CollectiveMeasurement, Latency, ServingMeasurement, as_csv
from simcore.measurements.serving import TOOLS, read_serving

__all__ = [
    "TOOLS",
    "CollectiveMeasurement",
    "Latency",
    "ServingMeasurement",
    "as_csv",
    "read_nccl_tests",
    "read_serving",
]
