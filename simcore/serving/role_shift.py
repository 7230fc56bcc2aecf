"""A lane of one role takes the place of a lane of the other that is down, where prefill and decode have lanes alike.

`n_P` lanes that prefill `r_P` requests/s each and `n_D` that decode `r_D` each carry `min(n_P r_P, n_D r_D)` together.
Where a place is empty and this least grows by it, a unit of lanes of the other role is lent: the one with least to do
is sent nothing more, finishes what it has, and takes the empty place, so that its own is empty. Whoever is repaired
takes the place that is empty then, whichever it is: lanes are alike, so nobody has to drain again to go back. Where
the one that was lent fails, the place that it took is empty again.

Limits: a controller looks every `LOOK_S` whether the lender has finished (an assumption); to change roles takes no time
beyond that, as both hold the same weights; what the lender had cached is lost; nobody stands in for lanes that are
slowed or drained.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

LOOK_S: Final = 0.1
_AT_WORK: Final = ("running", "waiting", "queued", "coming", "landed", "parked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """What a unit of lanes, that stop together, carries in either role."""

    prefill_request_per_s: float
    decode_request_per_s: float
    lanes_per_unit: int


@dataclass(slots=True)
class _Loan:
    place: int  # unit that is down
    lender: int
    has_moved: bool = False


class RoleShift:
    """Who stands in for whom in an engine. Units are numbered as their lanes are, prefill first."""

    def __init__(self, spec: Shift, lanes: Any, setups: Any) -> None:
        self._spec, self._lanes = spec, lanes
        self._prefill_units = int(setups[0].lane_count) // spec.lanes_per_unit
        self._unit_count = len(lanes) // spec.lanes_per_unit
        self._loans: list[_Loan] = []
        self.next_s = math.inf

    @property
    def filled(self) -> set[int]:
        """Lanes that are down, were there not others in their place."""
        return self._lanes_of(one.place for one in self._loans if one.has_moved)

    @property
    def lent(self) -> set[int]:
        """Lanes that are sent nothing, since they are to take another's place."""
        return self._lanes_of(one.lender for one in self._loans)

    @property
    def emptied(self) -> set[int]:
        """Of those, lanes that have."""
        return self._lanes_of(one.lender for one in self._loans if one.has_moved)

    def at(self, now_s: float, *, lost: set[int], hurt: set[int]) -> set[int]:
        """Lend and give back, as lanes are `lost` or in any outage; returns the lanes that may be otherwise now."""
        size = self._spec.lanes_per_unit
        places, unfit = {lane // size for lane in lost}, {lane // size for lane in hurt}
        before = list(self._loans)
        self._loans = [one for one in before if one.place in places and one.lender not in places]
        for one in self._loans:
            one.has_moved = one.has_moved or (self._work(one.lender) == 0 and self._has_stopped(one.place))
        while (loan := self._next(places, unfit)) is not None:
            self._loans.append(loan)
        self.next_s = math.inf if all(one.has_moved for one in self._loans) else now_s + LOOK_S
        return self._lanes_of(unit for one in (*before, *self._loans) for unit in (one.place, one.lender))

    def _next(self, places: set[int], unfit: set[int]) -> _Loan | None:
        """The next loan by which the two pools carry more together."""
        filled, lent = {one.place for one in self._loans}, {one.lender for one in self._loans}
        up = [unit for unit in range(self._unit_count) if unit not in (places - filled) | lent]
        prefills = sum(map(self._does_prefill, up))
        decodes = len(up) - prefills
        for place in sorted(places - filled):
            step = 1 if self._does_prefill(place) else -1
            if self._carried(prefills + step, decodes - step) <= self._carried(prefills, decodes):
                continue
            lenders = [
                unit
                for unit in up
                if self._does_prefill(unit) != self._does_prefill(place) and unit not in unfit
            ]
            if lenders:
                return _Loan(place, min(lenders, key=lambda unit: (self._work(unit), unit)))
        return None

    def _does_prefill(self, unit: int) -> bool:
        return unit < self._prefill_units

    def _carried(self, prefills: int, decodes: int) -> float:
        return min(prefills * self._spec.prefill_request_per_s, decodes * self._spec.decode_request_per_s)

    def _work(self, unit: int) -> int:
        """Requests that a unit has to see to, and tokens whose KV has not left it; 0: it is free."""
        mine = sorted(self._lanes_of([unit]))
        return sum(int(self._lanes[name][mine].sum()) for name in _AT_WORK)

    def _has_stopped(self, unit: int) -> bool:
        """Whether the last steps of a unit that is down have ended."""
        return bool((self._lanes["order"][sorted(self._lanes_of([unit]))] < 0).all())

    def _lanes_of(self, units: Iterable[int]) -> set[int]:
        size = self._spec.lanes_per_unit
        return {lane for unit in units for lane in range(unit * size, (unit + 1) * size)}
