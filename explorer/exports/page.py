"""The comparison as one HTML file that needs nothing but itself: styles inlined, plots drawn, no script."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from explorer.charts import comparison_panel
from explorer.charts.style import Chart
from explorer.exports.entries import Entry, Said
from explorer.exports.svg import line_plot
from explorer.wording import translated
from simcore.plan import ENGINE_VERSION
from simcore.scenario import dump_document

STYLES: Final = ("css/tokens.css", "css/base.css", "css/workbench.css", "css/pages.css")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A chart, and its plot where it has one."""

    chart: Chart
    svg: SafeString


def comparison_page(entries: Sequence[Entry], said: Sequence[Said]) -> str:
    """`export.html`: `entries` with `yaml`; `panel`, `said`, `drawn`, `styles`, `made_at`, `engine_version`."""
    panel = comparison_panel(
        [entry.document for entry in entries],
        [entry.result for entry in entries],
        [entry.name for entry in entries],
    )
    context = {
        "entries": [{"entry": entry, "yaml": dump_document(entry.document)} for entry in entries],
        "panel": panel,
        "said": [f"{one.name}: {translated(one.message)}" for one in said],
        "drawn": [Drawn(chart=chart, svg=_drawn(chart)) for chart in panel.charts],
        "styles": _styles(),
        "made_at": timezone.now(),
        "engine_version": ENGINE_VERSION,
    }
    return render_to_string("explorer/export.html", context)


def _drawn(chart: Chart) -> SafeString:
    # `line_plot` escapes all that people wrote.
    return mark_safe(line_plot(chart.body, summary=chart.summary)) if chart.draw == "plot" else SafeString()


def _styles() -> SafeString:
    """The site's own style sheets, which are ours to trust."""
    found = [finders.find(name) for name in STYLES]
    return mark_safe("\n".join(Path(path).read_text(encoding="utf-8") for path in found if path))
