"""Making a report from results: what of them is kept, which layer earned the effect, and which inputs move it.

Attribution runs what lies between two scenarios, up to six more; where that would take long it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from simcore.analysis.layer_words import sentences
from simcore.analysis.layers import Planner, attribution
from simcore.analysis.sensitivity import top_sensitivities
from simcore.catalog import Catalog
from simcore.errors import TrimtabError
from simcore.plan import Traces
from simcore.report.deciding import DECIDING, kind_of_work
from simcore.report.frozen import Column, column
from simcore.scenario import Scenario

SENSITIVITIES: Final = 5
ATTRIBUTED_REQUESTS: Final = 20_000
_BY_INPUTS: Final[Mapping[str, str]] = {  # the closed form that the sensitivities are of
    "serving": "cost.usd_per_million_output_tokens",
    "training": "training.step_s",
    "none": "cost.tco_usd_per_year",
}
Document = Mapping[str, Any]


def made_column(document: Document, result: Document, why: Mapping[str, Document]) -> Column:
    """A scenario with its Result document and its traces, of which those of the deciding metrics are kept."""
    kind = str(document.get("workload", {}).get("kind") or "serving")
    return column(document, result, why, DECIDING.get(kind, ()))


def attribution_of(
    columns: Sequence[Column], choice: int | None, *, planner: Planner | None = None
) -> tuple[dict[str, Any], ...]:
    """Which layer earned what on the way from the baseline, as messages; none for unlike work or very long runs."""
    before, after = columns[0], columns[choice or -1]
    known = {column.digest: column.metrics for column in columns}
    scenarios = [Scenario.parse(column.document) for column in (before, after)]
    if kind_of_work(before) != kind_of_work(after) or any(map(_is_long, scenarios)):
        return ()
    found = attribution(scenarios[0], scenarios[1], planner=planner, recall=known.get)
    return tuple(message.as_dict() for message in sentences(found)) if found.changed else ()


def _is_long(scenario: Scenario) -> bool:
    return scenario.workload.kind == "serving" and scenario.workload.request_count > ATTRIBUTED_REQUESTS


def sensitivities_of(
    columns: Sequence[Column],
    choice: int | None,
    *,
    catalog: Catalog | None = None,
    traces: Traces | None = None,
) -> tuple[dict[str, Any], ...]:
    """The inputs that move the chosen scenario's result most; none where it has no such closed form."""
    chosen = columns[-1 if choice is None else choice]
    metric = _BY_INPUTS.get(kind_of_work(chosen))
    if metric is None:
        return ()
    try:
        found = top_sensitivities(chosen.document, metric, SENSITIVITIES, catalog=catalog, traces=traces)
    except TrimtabError:  # a metric that this plan does not have
        return ()
    return tuple(found)
