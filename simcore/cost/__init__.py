"""Cost and energy: bill of materials, capital and running cost, cost per token, from dated price books."""

from __future__ import annotations

from simcore.cost.bill import BillRow, bill_of_materials
from simcore.cost.capex import bounds_of, saving_bounds, saving_fraction
from simcore.cost.energy import Machines
from simcore.cost.model import CostModel, cost_model, full_load, switch_for
from simcore.cost.resources import resource_prices
from simcore.cost.spec import Alternative, EconomicsSpec

__all__ = [
    "Alternative",
    "BillRow",
    "CostModel",
    "EconomicsSpec",
    "Machines",
    "bill_of_materials",
    "bounds_of",
    "cost_model",
    "full_load",
    "resource_prices",
    "saving_bounds",
    "saving_fraction",
    "switch_for",
]
