"""Running cost, total cost of ownership, and cost per token.

`opex per hour = facility kW × USD/kWh + floor + operations`, floor = IT watts × plant price per watt, written off over
15 years where the book prices it. `TCO per year = capex / depreciation + 8,760 × opex`. Cost per million tokens = TCO
per hour over million tokens per hour. Staff and contracts are one yearly sum that the owner gives
(`economics.operations_usd_per_year`, 0 at first). Limits: no cost of capital, no residual value, no taxes; software
per chip counts in the friction alone.
"""

from __future__ import annotations

from simcore.cost.spec import EconomicsSpec
from simcore.why import Term, constant, leaf

HOURS_PER_YEAR = 8_760
PLANT_YEARS = 15


def energy_usd_per_hour(power: Term, economics: EconomicsSpec) -> Term:
    price = leaf(
        economics.electricity_usd_per_kwh, "electricity_usd_per_kwh", path="economics.electricity_usd_per_kwh"
    )
    return (power / constant(1000, "W per kW") * price).named("energy_usd_per_hour")


def floor_usd_per_hour(it_power: Term, plant_usd_per_w: Term | None) -> Term | None:
    """Building and cooling plant, by watt of IT load."""
    if plant_usd_per_w is None:
        return None
    years = leaf(PLANT_YEARS, "plant_years", kind="assumption", source="usual life of electrical plant")
    hours = constant(HOURS_PER_YEAR, "hours per year")
    return (it_power * plant_usd_per_w / (years * hours)).named("floor_usd_per_hour")


def operations_usd_per_hour(economics: EconomicsSpec) -> Term | None:
    """Staff and contracts; None where the owner gives none."""
    if not economics.operations_usd_per_year:
        return None
    yearly = leaf(
        economics.operations_usd_per_year, "operations_usd_per_year", path="economics.operations_usd_per_year"
    )
    return (yearly / constant(HOURS_PER_YEAR, "hours per year")).named("operations_usd_per_hour")


def tco_usd_per_year(capex: Term | None, opex: Term, economics: EconomicsSpec) -> Term:
    running = opex * constant(HOURS_PER_YEAR, "hours per year")
    if capex is None:
        return running.named("tco_usd_per_year")
    years = leaf(economics.depreciation_years, "depreciation_years", path="economics.depreciation_years")
    return (capex / years + running).named("tco_usd_per_year")


def usd_per_million_tokens(tco: Term, token_per_s: Term, name: str = "usd_per_million_tokens") -> Term:
    """TCO per second over tokens per second, for a million tokens."""
    per_second = tco / constant(HOURS_PER_YEAR * 3600, "seconds per year")
    return (per_second / token_per_s * constant(1e6, "a million")).named(name)


def usd_per_training_run(tco: Term, token_per_s: Term, total_tokens: Term) -> Term:
    """TCO per second over the seconds that all tokens take."""
    per_second = tco / constant(HOURS_PER_YEAR * 3600, "seconds per year")
    return (per_second * (total_tokens / token_per_s)).named("usd_per_training_run", "usd")
