"""Trimtab's simulation core: what an AI cluster does, what binds it, and what happens if one thing changes.

    from simcore import Scenario, plan, simulate, analyse
    planned = plan(Scenario.parse({"name": "x"}))
    result = simulate(planned)

Pure Python: no web framework, no task queue, no clock, no file beyond its own data.
"""

from simcore import errors
from simcore.analysis import Findings, analyse
from simcore.analysis.compare import compare
from simcore.analysis.search import search
from simcore.catalog import Catalog
from simcore.plan import Plan, plan
from simcore.scenario import Scenario
from simcore.simulate import Result, simulate

__all__ = [
    "Catalog",
    "Findings",
    "Plan",
    "Result",
    "Scenario",
    "analyse",
    "compare",
    "errors",
    "plan",
    "search",
    "simulate",
]
