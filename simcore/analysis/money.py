"""Where a year's money goes, when owning pays, what moves the price of a token, and what power is drawn idle and full.

Tables of the cost page, all closed forms of the cost model at the utilisation `u` that the result had:
- `tco`: each line of the bill over the years of its use, then energy, floor and operations; unpriced lines have no sum;
- `break_even`: cost of a million tokens (else of a used chip-hour) over the utilisation, own, rented, at an API; only
  where every line of the bill has a price;
- `cost_swings`: the price of a token with one input at a time at the low and the high end of its range. Busy chips make
  tokens in proportion, so another utilisation is another number of tokens and another bill for energy;
- `energy`: watts by part when idle, as used, and at full load, and joule per output token.
About 60 evaluations of sums: below a millisecond each. Limits: as in `cost/offers.py` and `analysis/ranges.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from simcore.analysis.findings import Findings
from simcore.analysis.ranges import InputRange, default_ranges
from simcore.cost import CostModel, full_load
from simcore.cost.energy import chip_power_term
from simcore.cost.model import no_load
from simcore.cost.offers import TokenMix
from simcore.cost.opex import HOURS_PER_YEAR, energy_usd_per_hour, floor_usd_per_hour, operations_usd_per_hour
from simcore.errors import Message
from simcore.fabric.base import sum_of
from simcore.plan import Plan
from simcore.simulate import OnEvent, Result, token_mix
from simcore.why import Term, leaf

UTILISATION: Final = "utilisation_fraction"
_STEPS: Final = 20
_ASSUMED_UTILISATION: Final = (0.3, 0.9)
_SECONDS: Final = HOURS_PER_YEAR * 3600
_PRICED: Final = {
    "serving": "cost.usd_per_million_output_tokens",
    "training": "cost.usd_per_million_tokens",
    "none": "cost.tco_usd_per_year",
}


def money(plan: Plan, result: Result, on_event: OnEvent | None = None) -> Findings:
    """The tables of the cost page; where nothing has a price, energy alone."""
    used = used_fraction(result)
    tables: dict[str, Any] = {"energy": energy_rows(plan, result, used)}
    if plan.cost.capex is not None:
        tables |= {
            "tco": tco_rows(plan.cost, _utilisation(used)),
            "cost_swings": swing_rows(plan, result, used),
        }
    if plan.cost.is_whole:
        tables["break_even"] = break_even_rows(plan.cost, token_mix(plan.serving) if plan.serving else None)
    return Findings(tables=tables)


def used_fraction(result: Result) -> float:
    """The utilisation that the result's power stands for: between idle and full load, in proportion."""
    idle, now, peak = (float(result.metrics[f"cost.{name}power_w"]) for name in ("idle_", "", "peak_"))
    return (now - idle) / (peak - idle) if peak > idle else 1.0


def _utilisation(value: float) -> Term:
    return leaf(value, UTILISATION, kind="derived", source="as the result had it")


def tco_rows(cost: CostModel, used: Term) -> list[dict[str, Any]]:
    """USD per year of each line at low, mid and high prices."""
    years = cost.economics.depreciation_years
    bought = [
        {
            "item": row.item,
            "label": row.label,
            "group": row.group,
            "priced": row.priced,
            **{
                f"{edge}_usd_per_year": amount.value / years if (amount := row.total(edge)) else None
                for edge in ("low", "mid", "high")
            },
        }
        for row in cost.bill
    ]
    return [*bought, *_running_rows(cost, used)]


def _running_rows(cost: CostModel, used: Term) -> list[dict[str, Any]]:
    running = {
        "energy": energy_usd_per_hour(cost.power(used), cost.economics),
        "floor": floor_usd_per_hour(cost.it_power(full_load()), cost.plant_usd_per_w),
        "operations": operations_usd_per_hour(cost.economics),
    }
    return [
        {
            "item": name,
            "label": name,
            "group": "running",
            "priced": True,
            **{f"{edge}_usd_per_year": term.value * HOURS_PER_YEAR for edge in ("low", "mid", "high")},
        }
        for name, term in running.items()
        if term is not None
    ]


def break_even_rows(cost: CostModel, mix: TokenMix | None) -> list[dict[str, Any]]:
    """Own, rented and bought at 5, 10 … 100 % utilisation; the last two are paid as they are used."""
    per, units = "chip_hour", float(sum(one.chip_count for one in cost.machines))
    if mix is not None:
        tokens = mix.input_token_per_s.value + mix.output_token_per_s.value
        per, units = "million_tokens", tokens * 3600 / 1e6
    owning = cost.owning
    fixed, more = owning.fixed_usd_per_hour.value, owning.used_usd_per_hour.value
    rent, api = cost.offers.rent_usd_per_hour, cost.offers.api_usd_per_hour(mix) if mix else None
    return [
        {
            "per": per,
            UTILISATION: used,
            "own_usd": (fixed / used + more) / units,
            "cloud_usd": rent.value / units if rent else None,
            "api_usd": api.value / units if api else None,
        }
        for used in (step / _STEPS for step in range(1, _STEPS + 1))
    ]


# --- what moves the price -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What is priced: the metric, and tokens per second at the utilisation that the result had (none: the year)."""

    metric: str
    token_per_s: float | None
    used_fraction: float

    def value(self, cost: CostModel, used: float) -> float:
        tco = cost.tco(_utilisation(used)).value
        if self.token_per_s is None:
            return tco
        made = self.token_per_s * used / self.used_fraction
        return tco / _SECONDS / made * 1e6


def cost_per_s(result: Result) -> float:
    return float(result.metrics["cost.tco_usd_per_year"]) / _SECONDS


def swing_rows(plan: Plan, result: Result, used: float) -> list[dict[str, Any]]:
    """One row for each input of the money, the widest swing first."""
    kind = plan.scenario.workload.kind
    if _PRICED[kind] not in result.metrics or used <= 0:
        return []
    rate = None
    if kind != "none":  # as many tokens as the price stands for
        rate = cost_per_s(result) / float(result.metrics[_PRICED[kind]]) * 1e6
    priced = Priced(metric=_PRICED[kind], token_per_s=rate, used_fraction=used)
    ranges = [one for one in default_ranges(plan) if one.path.startswith("economics.")]
    rows = [_swing(priced, plan.cost, one) for one in (*ranges, *_utilisation_range(used))]
    return sorted(rows, key=lambda row: -abs(row["at_high"] - row["at_low"]))


def _swing(priced: Priced, cost: CostModel, one: InputRange) -> dict[str, Any]:
    base = priced.used_fraction

    def at(value: float) -> float:
        if one.path == UTILISATION:
            return priced.value(cost, value)
        return priced.value(repriced(cost, one.path, value, one.base), base)

    return one.as_dict() | {
        "metric": priced.metric,
        "base_value": priced.value(cost, base),
        "at_low": at(one.low),
        "at_high": at(one.high),
    }


def repriced(cost: CostModel, path: str, value: float, base: float) -> CostModel:
    """The same cluster with one input of the money changed."""
    name = path.removeprefix("economics.")
    groups = {"price_ratio": "compute", "network_price_ratio": "network"}
    if name in groups:
        bill = tuple(
            replace(row, price=row.price.scaled(value / base))
            if row.price and row.group == groups[name]
            else row
            for row in cost.bill
        )
        return replace(cost, bill=bill)
    return replace(cost, economics=cost.economics.model_copy(update={name: value}))


def _utilisation_range(used: float) -> Sequence[InputRange]:
    low, high = min(_ASSUMED_UTILISATION[0], used * 0.8), max(_ASSUMED_UTILISATION[1], min(1.0, used * 1.2))
    basis = Message(
        code="range.utilisation",
        template="{low:.0%} to {high:.0%} of the time, an assumption",
        params={"low": low, "high": high},
    )
    return (
        InputRange(path=UTILISATION, low=low, base=used, high=high, basis=basis, confidence="assumption"),
    )


# --- energy -------------------------------------------------------------------------------------------------


def energy_rows(plan: Plan, result: Result, used: float) -> list[dict[str, Any]]:
    """Idle, as used, and at full load: watts by part and joule per output token."""
    metrics: Mapping[str, Any] = result.metrics
    joule = {
        "idle": None,
        "typical": metrics.get("cost.joule_per_token"),
        "peak": metrics.get("cost.saturated_joule_per_token"),
    }
    states = {"idle": no_load(), "typical": _utilisation(used), "peak": full_load()}
    return [_energy_row(plan.cost, state, at, joule[state]) for state, at in states.items()]


def _energy_row(cost: CostModel, state: str, used: Term, joule: float | None) -> dict[str, Any]:
    it, whole = cost.it_power(used).value, cost.power(used).value
    return {
        "state": state,
        UTILISATION: used.value,
        "chips_w": sum_of([chip_power_term(one, used) for one in cost.machines]).value,
        "hosts_w": cost.hosts_power.value,
        "network_w": cost.network_power.value,
        "facility_w": whole - it,
        "power_w": whole,
        "joule_per_token": joule,
    }
