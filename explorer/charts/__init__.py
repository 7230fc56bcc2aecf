"""Charts: pure functions from Result documents to what a page draws. They read no database and no clock."""

from explorer.charts.panels import TABS, comparison_panel, panel, strip
from explorer.wording import translated

__all__ = ["TABS", "comparison_panel", "panel", "strip", "translated"]
