"""What results mean: doublings, findings, comparison."""

from simcore.analysis.analyse import analyse
from simcore.analysis.findings import Findings

__all__ = ["Findings", "analyse"]
