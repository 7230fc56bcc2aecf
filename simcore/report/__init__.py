"""Reports: a comparison or a result as text that can be handed on."""

from simcore.report.comparison import render

__all__ = ["render"]
