"""Charts: pure functions from Result documents to what a page draws. They read no database and no clock."""

from explorer.charts.messages import translated
from explorer.charts.panels import TABS, comparison_panel, panel, strip

__all__ = ["TABS", "comparison_panel", "panel", "strip", "translated"]
