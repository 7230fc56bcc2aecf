"""What results mean: doublings, findings, comparison."""

from simcore.analysis.bottleneck import Findings, analyse

__all__ = ["Findings", "analyse"]
