"""Plan search: the cheapest, fastest or greenest feasible configuration under limits, and what binds where none is.

Tens of thousands of candidates are evaluated in closed form (`closed.py`); `plan()` and the simulator then verify the
best and the frontier, as cells, and each row says by how much the two disagree. Closed forms are of means, an SLO is of
nearly every request, so the best under latency limits tightened to 70, 50 and 30 % are verified too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simcore.analysis.cells import evaluate, evaluate_in_processes
from simcore.analysis.search.answer import Answer, answer, cells_of
from simcore.analysis.search.closed import Found, closed_forms
from simcore.analysis.search.spec import Objective, Search
from simcore.catalog import Catalog
from simcore.plan import Traces

__all__ = ["Answer", "Found", "Objective", "Search", "answer", "cells_of", "closed_forms", "search"]


def search(
    document: Mapping[str, Any],
    wanted: Search,
    *,
    catalog: Catalog | None = None,
    traces: Traces | None = None,
    jobs: int = 1,
) -> Answer:
    """The answer to what is wanted, the front planned and simulated on `jobs` processes."""
    found = closed_forms(document, wanted, catalog=catalog, traces=traces)
    cells = cells_of(found)
    if jobs > 1 and catalog is None:
        return answer(found, list(evaluate_in_processes(document, cells, jobs=jobs, traces=traces)))
    return answer(found, list(evaluate(document, cells, catalog=catalog, traces=traces)))
