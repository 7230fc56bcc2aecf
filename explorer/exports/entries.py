"""What is compared: a scenario and the run that speaks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from explorer.models import Run, SavedScenario
from simcore.analysis.compare import Comparison, compare
from simcore.errors import InputError
from simcore.scenario import Scenario


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
