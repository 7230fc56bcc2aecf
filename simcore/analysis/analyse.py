"""`analyse(plan, result)`: every piece of the analysis in turn, the quick and most asked for first.

A piece is a function of the plan, its simulated result and a listener, which tells its sentences as they come and
returns `Findings` (empty where it has nothing to say of such a plan). A new piece is one module and one name here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simcore.analysis.bottleneck import budget
from simcore.analysis.findings import Findings, together
from simcore.analysis.friction import dragged
from simcore.analysis.money import money
from simcore.analysis.shocks import shocked
from simcore.analysis.taxes import taxed
from simcore.analysis.tradeoff import tradeoff
from simcore.analysis.utilisation import lost
from simcore.plan import Plan
from simcore.simulate import OnEvent, Result

Piece = Callable[[Plan, Result, OnEvent | None], Findings]
PIECES: Final[tuple[Piece, ...]] = (budget, lost, taxed, dragged, money, tradeoff, shocked)


def analyse(plan: Plan, result: Result, on_event: OnEvent | None = None) -> Findings:
    """What the result means; each sentence is announced as it is found."""
    return together([piece(plan, result, on_event) for piece in PIECES])
