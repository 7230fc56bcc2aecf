"""A search as a study: its cells are the designs that closed forms chose, its summary what verifying them came to.

Closed forms of one search take seconds, and the cells and the summary of a study are asked for one after the other, so
the last few are remembered by what was asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from simcore.analysis.cells import Cell, CellResult, Depth
from simcore.analysis.search.answer import answer, cells_of
from simcore.analysis.search.closed import Found, closed_forms
from simcore.analysis.search.spec import Search
from simcore.errors import InfeasibleError


class PlanSearch(Search):
    """The search, in the shape of every other study."""

    @property
    def depth(self) -> Depth:
        """Closed forms chose the cells; simulating them verifies the choice."""
        return "simulated"

    def cells(self, document: Mapping[str, Any]) -> list[Cell]:
        """The best and the frontier, as overrides. Raises InfeasibleError where there is nothing to simulate."""
        found = self.found(document)
        cells = cells_of(found)
        if not cells and self.verified:
            raise InfeasibleError(*answer(found, ()).messages)
        return cells

    def keeps(self, metric: str) -> bool:
        """Every metric: a verified row is a whole scenario."""
        return True

    def summary(
        self, document: Mapping[str, Any], results: Sequence[CellResult]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The tables of the answer; `search` is one row with what is said of all."""
        found = answer(self.found(document), results).as_dict()
        whole = {name: value for name, value in found.items() if not isinstance(value, list)}
        return {
            "search": [whole],
            "rows": found["rows"],
            "by_chip": found["by_chip"],
            "relaxations": found["relaxations"],
            "messages": found["messages"],
        }

    def found(self, document: Mapping[str, Any]) -> Found:
        """What closed forms say, remembered."""
        return _remembered(json.dumps(document, sort_keys=True), self)


@lru_cache(maxsize=4)
def _remembered(document: str, search: Search) -> Found:
    return closed_forms(json.loads(document), search)
