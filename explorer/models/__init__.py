"""The rows: scenarios with their revisions, runs with their logs, sweeps, results, shared links, uploaded traces and
traffic matrices, own calibrations."""

from explorer.models.calibration import SavedCalibration
from explorer.models.matrix import TrafficMatrix
from explorer.models.report import SavedReport
from explorer.models.result import CachedResult
from explorer.models.run import Run, RunEvent, Status
from explorer.models.scenario import Revision, SavedScenario, Visibility
from explorer.models.share import ShareLink
from explorer.models.sweep import CachedCell, Sweep, SweepChunk, SweepEvent
from explorer.models.trace import TraceUpload

__all__ = [
    "CachedCell",
    "CachedResult",
    "Revision",
    "Run",
    "RunEvent",
    "SavedCalibration",
    "SavedReport",
    "SavedScenario",
    "ShareLink",
    "Status",
    "Sweep",
    "SweepChunk",
    "SweepEvent",
    "TraceUpload",
    "TrafficMatrix",
    "Visibility",
]
