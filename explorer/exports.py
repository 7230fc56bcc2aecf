"""What leaves the site as a file: comparisons (html, csv, json, md) and scenarios (yaml)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from explorer.models import Run, SavedScenario
from simcore.analysis.compare import Comparison, compare
from simcore.errors import InputError
from simcore.report import render
from simcore.scenario import Scenario, dump_document

FORMATS: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One column of a comparison."""

    scenario: SavedScenario
    run: Run | None

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def document(self) -> dict[str, Any]:
        return self.scenario.document

    @property
    def result(self) -> dict[str, Any] | None:
        return self.run.result_document if self.run else None


def comparison_of(entries: Sequence[Entry]) -> Comparison | None:
    """Input diff and result diff against the first, once all have a result."""
    results = [entry.result for entry in entries]
    if len(entries) < 2 or any(result is None for result in results):
        return None
    try:
        scenarios = [Scenario.parse(entry.document) for entry in entries]
    except InputError:  # saved under an older schema, and not edited since
        return None
    return compare(scenarios, [result["metrics"] for result in results if result])


def render_comparison(entries: Sequence[Entry], suffix: str) -> str:
    """The comparison as text in one of FORMATS."""
    comparison = comparison_of(entries)
    if comparison is None:
        raise InputError.at(
            "",
            "export.not_ready",
            "a comparison needs two or more scenarios with a result each; wait for their runs",
        )
    return render(comparison, suffix)


def scenario_yaml(document: Mapping[str, Any]) -> str:
    """The document as it was typed, in YAML: `trimtab run` reads it, and so does Home."""
    return dump_document(document)
