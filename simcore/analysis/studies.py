"""The registry of studies: what they have in common, and the union of their kinds.

A study is a frozen specification. `cells` says what is to be evaluated, `summary` what the results amount to; one
that goes in rounds has `next_cells` too, which looks at all results so far and says what to evaluate next, nothing
when it is done. A new kind is one module with a specification and one name in `AnyStudy`: the command line, the web's
sweeps and their chunks follow from that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Protocol, runtime_checkable

from pydantic import Field, TypeAdapter, ValidationError

from simcore.analysis.cells import Cell, CellResult, Depth
from simcore.analysis.goal_seek import GoalSeek
from simcore.analysis.grid import Grid
from simcore.analysis.monte_carlo import MonteCarlo
from simcore.analysis.search.study import PlanSearch
from simcore.analysis.tornado import Tornado
from simcore.spec import as_input_error


class Study(Protocol):
    """What every kind of study can say of itself."""

    @property
    def kind(self) -> str: ...
    @property
    def depth(self) -> Depth: ...
    def cells(self, document: Mapping[str, Any]) -> list[Cell]: ...
    def keeps(self, metric: str) -> bool: ...
    def summary(
        self, document: Mapping[str, Any], results: Sequence[CellResult]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]: ...


@runtime_checkable
class InRounds(Protocol):
    """A study whose next cells depend on what the last came to."""

    def next_cells(self, results: Sequence[CellResult]) -> list[Cell]: ...


AnyStudy = Annotated[Grid | Tornado | MonteCarlo | GoalSeek | PlanSearch, Field(discriminator="kind")]
_ADAPTER: TypeAdapter[Study] = TypeAdapter(AnyStudy)


SLOW_TO_CUT: Final = frozenset(
    {"search"}
)  # kinds whose `cells` take seconds: not while somebody waits for a page


def parse_study(spec: Mapping[str, Any]) -> Study:
    """A specification as a study. Raises InputError with one message per problem."""
    try:
        return _ADAPTER.validate_python(dict(spec))
    except ValidationError as error:
        raise as_input_error(error, document=spec) from None
