"""The cost model of one planned cluster: bill, capex, power, opex, TCO, cost per token.

Everything that depends on how busy the chips are takes a utilisation term, so the plan can ask for the
full-load figure and the simulation for the measured one with the same expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simcore.catalog.types import Chip, Optic, OpticalSwitch, PriceBook, Server, Switch
from simcore.cost.bill import BillRow, bill_of_materials
from simcore.cost.by_tier import NetworkPrices, TierLine, tier_lines
from simcore.cost.capex import capex_term, priced_fraction_term
from simcore.cost.energy import (
    TRANSCEIVER_POWER_W,
    Machines,
    chip_power_term,
    host_power_term,
    network_power_term,
    network_power_terms,
)
from simcore.cost.offers import NO_OFFERS, Offers, Owning, TokenMix, break_even_term, offers_of
from simcore.cost.opex import (
    HOURS_PER_YEAR,
    energy_usd_per_hour,
    floor_usd_per_hour,
    operations_usd_per_hour,
    tco_usd_per_year,
    usd_per_million_tokens,
    usd_per_training_run,
)
from simcore.cost.prices import price_leaf
from simcore.cost.resources import cluster_prices
from simcore.cost.spec import EconomicsSpec
from simcore.errors import Message
from simcore.fabric import Fabric
from simcore.fabric.base import sum_of
from simcore.why import Term, constant, leaf, total


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Prices and power of the whole cluster, before it is known how busy it is."""

    economics: EconomicsSpec
    machines: tuple[Machines, ...]
    bill: tuple[BillRow, ...]
    hosts_power: Term
    network_power: Term
    plant_usd_per_w: Term | None
    network_lines: tuple[TierLine, ...]  # by tier and medium, under each convention
    twice_usd_per_year: Mapping[str, Term]  # of each resource that has a price, on every chip
    offers: Offers = NO_OFFERS  # what others ask for the same

    @property
    def capex(self) -> Term | None:
        return capex_term(self.bill)

    def capex_band(self) -> tuple[float, float] | None:
        """Low and high of the priced lines."""
        low, high = capex_term(self.bill, "low"), capex_term(self.bill, "high")
        return (low.value, high.value) if low and high else None

    @property
    def network_bill(self) -> tuple[BillRow, ...]:
        return tuple(row for row in self.bill if row.group == "network")

    @property
    def fabric_capex(self) -> Term | None:
        found = capex_term(self.network_bill)
        return found.named("fabric_capex_usd") if found else None

    @property
    def compute_capex(self) -> Term | None:
        found = capex_term([row for row in self.bill if row.group == "compute"])
        return found.named("compute_capex_usd") if found else None

    def it_power(self, utilisation: Term) -> Term:
        return total(self._chips_power(utilisation), self.hosts_power, self.network_power).named("it_power_w")

    def _chips_power(self, utilisation: Term) -> Term:
        return sum_of([chip_power_term(one, utilisation) for one in self.machines]).named("chips_w")

    def power(self, utilisation: Term) -> Term:
        pue = leaf(self.economics.pue, "pue", path="economics.pue")
        return (self.it_power(utilisation) * pue).named("power_w")

    def opex(self, utilisation: Term) -> Term:
        energy = energy_usd_per_hour(self.power(utilisation), self.economics)
        floor = floor_usd_per_hour(self.it_power(full_load()), self.plant_usd_per_w)
        more = [one for one in (floor, operations_usd_per_hour(self.economics)) if one is not None]
        return sum_of([energy, *more]).named("opex_usd_per_hour")

    def tco(self, utilisation: Term) -> Term:
        return tco_usd_per_year(self.capex, self.opex(utilisation), self.economics)

    def compute_tco(self, utilisation: Term) -> Term:
        """Chips, servers, their energy and floor; no network: the base of the waiting tax."""
        pue = leaf(self.economics.pue, "pue", path="economics.pue")
        watts = self._chips_power(utilisation) + self.hosts_power
        energy = energy_usd_per_hour(watts * pue, self.economics)
        full = self._chips_power(full_load()) + self.hosts_power
        floor = floor_usd_per_hour(full, self.plant_usd_per_w)
        running = energy if floor is None else energy + floor
        return tco_usd_per_year(self.compute_capex, running, self.economics).named("compute_tco_usd_per_year")

    def terms(self, utilisation: Term | None = None) -> dict[str, Term]:
        """Metrics by id, at full load where no utilisation is given; an unpriced amount is absent."""
        used = utilisation or full_load()
        found = {
            "cost.opex_usd_per_hour": self.opex(used),
            "cost.power_w": self.power(used),
            "cost.idle_power_w": self.power(no_load()).named("idle_power_w"),
            "cost.peak_power_w": self.power(full_load()).named("peak_power_w"),
            "cost.priced_fraction": priced_fraction_term(self.bill),
            "fabric.fabric_power_w": self.network_power,
        }
        if self.capex is not None:
            found |= {"cost.capex_usd": self.capex, "cost.tco_usd_per_year": self.tco(used)}
            found |= self._rent_terms(used)
        if self.fabric_capex is not None:
            found["fabric.fabric_capex_usd"] = self.fabric_capex
        return found

    @property
    def chips(self) -> Term:
        return sum_of([one.chips for one in self.machines]).named("all_chips_count")

    @property
    def is_whole(self) -> bool:
        """Every line of the bill has a price: only then may what others ask stand beside it."""
        return all(row.priced for row in self.bill)

    @property
    def owning(self) -> Owning:
        """What owning costs by the hour, idle and for being used."""
        idle = self.tco(no_load()) / constant(HOURS_PER_YEAR, "hours per year")
        used = self.opex(full_load()) - self.opex(no_load())
        return Owning(
            fixed_usd_per_hour=idle.named("fixed_usd_per_hour"),
            used_usd_per_hour=used.named("used_usd_per_hour"),
        )

    def _rent_terms(self, utilisation: Term) -> dict[str, Term]:
        """A chip-hour of one's own beside a rented one, and from which utilisation on owning is cheaper."""
        chips = self.chips
        hours = constant(HOURS_PER_YEAR, "hours per year")
        found = {
            "cost.chip_usd_per_hour": (self.tco(utilisation) / (chips * hours)).named("chip_usd_per_hour")
        }
        rent = self.offers.rent_usd_per_hour
        if rent is not None:
            found["cost.cloud_chip_usd_per_hour"] = (rent / chips).named("cloud_chip_usd_per_hour")
            met = break_even_term(self.owning, rent) if self.is_whole else None
            if met is not None:
                found["cost.cloud_break_even_fraction"] = met.named("cloud_break_even_fraction")
        return found

    def serving_terms(self, mix: TokenMix, *, good_token_per_s: Term, utilisation: Term) -> dict[str, Term]:
        """What tokens cost where all capacity is used, where the promise is kept, and at an API."""
        if self.capex is None or mix.output_token_per_s.value <= 0:
            return {}
        key, full = "usd_per_million_output_tokens", self.tco(full_load())
        saturated = usd_per_million_tokens(full, mix.output_token_per_s, f"saturated_{key}")
        joule = self.power(full_load()) / mix.output_token_per_s
        found = {
            f"cost.saturated_{key}": saturated,
            "cost.saturated_joule_per_token": joule.named("saturated_joule_per_token"),
        }
        if good_token_per_s.value > 0:
            good = usd_per_million_tokens(self.tco(utilisation), good_token_per_s, f"good_{key}")
            found |= {
                f"cost.good_{key}": good,
                "cost.slo_premium_ratio": (good / saturated).named("slo_premium_ratio"),
            }
        return found | self._api_terms(mix)

    def _api_terms(self, mix: TokenMix) -> dict[str, Term]:
        hourly = self.offers.api_usd_per_hour(mix)
        if hourly is None:
            return {}
        both = mix.input_token_per_s + mix.output_token_per_s
        blended = hourly / constant(3600, "seconds per hour") / both * constant(1e6, "a million")
        found = {"cost.api_usd_per_million_tokens": blended.named("api_usd_per_million_tokens")}
        met = break_even_term(self.owning, hourly) if self.is_whole else None
        return (
            found
            if met is None
            else found | {"cost.api_break_even_fraction": met.named("api_break_even_fraction")}
        )

    def token_terms(
        self, *, input_token_per_s: Term, output_token_per_s: Term, utilisation: Term
    ) -> dict[str, Term]:
        """Cost and energy per token at a throughput; absent where no token is made or nothing is priced."""
        if output_token_per_s.value <= 0:
            return {}
        joule = (self.power(utilisation) / output_token_per_s).named("joule_per_token")
        found = {"cost.joule_per_token": joule}
        if self.capex is not None:
            tco = self.tco(utilisation)
            both = input_token_per_s + output_token_per_s
            name = "usd_per_million_output_tokens"
            found["cost.usd_per_million_output_tokens"] = usd_per_million_tokens(
                tco, output_token_per_s, name
            )
            found["cost.usd_per_million_tokens"] = usd_per_million_tokens(tco, both)
        return found

    def split_terms(
        self,
        *,
        prefill_share: Term,
        input_token_per_s: Term,
        output_token_per_s: Term,
        utilisation: Term,
    ) -> dict[str, Term]:
        """Cost per million input and output tokens, split by the chip-seconds of prefill and decode."""
        if self.capex is None or min(input_token_per_s.value, output_token_per_s.value) <= 0:
            return {}
        tco = self.tco(utilisation)
        prefill, decode = tco * prefill_share, tco * (1 - prefill_share)
        key = "cost.usd_per_million_tokens"
        return {
            f"{key}.input": usd_per_million_tokens(prefill, input_token_per_s),
            f"{key}.output": usd_per_million_tokens(decode, output_token_per_s),
        }

    def training_terms(
        self, *, token_per_s: Term, total_tokens: Term | None, goodput: Term, utilisation: Term
    ) -> dict[str, Term]:
        """Cost per million tokens trained, and of the whole run where its tokens are given. Time lost to
        failures and checkpoints is paid for."""
        kept = token_per_s * goodput
        if self.capex is None or kept.value <= 0:
            return {}
        tco = self.tco(utilisation)
        found = {"cost.usd_per_million_tokens": usd_per_million_tokens(tco, kept)}
        if total_tokens is not None:
            found["cost.usd_per_training_run"] = usd_per_training_run(tco, kept, total_tokens)
        return found

    @property
    def warnings(self) -> tuple[Message, ...]:
        unpriced = dict.fromkeys(row.label.replace("_", " ") for row in self.bill if not row.priced)
        if not unpriced:
            return ()
        return (
            Message(
                code="cost.unpriced",
                template="no price for {items}: the totals are partial",
                params={"items": ", ".join(unpriced)},
                path="economics.price_book",
            ),
        )

    def bill_table(self, utilisation: Term | None = None) -> list[dict[str, Any]]:
        """The result's `bill` table; chips draw what this utilisation says."""
        used = utilisation or full_load()
        chips_w = iter([chip_power_term(one, used).value for one in self.machines])
        return [
            row.as_dict() | ({"power_w": next(chips_w)} if row.label == "chips" else {}) for row in self.bill
        ]


def full_load() -> Term:
    source = "kernels run all the time"
    return leaf(1.0, "utilisation_fraction", kind="assumption", source=source)


def no_load() -> Term:
    source = "no kernel runs"
    return leaf(0.0, "utilisation_fraction", kind="assumption", source=source)


def cost_model(
    *,
    economics: EconomicsSpec,
    chip: Chip,
    server: Server,
    chip_count: int,
    fabric: Fabric,
    book: PriceBook,
    fabric_book: PriceBook,
    switch: Switch | None = None,
    optic: Optic | None = None,
    optical_switch: OpticalSwitch | None = None,
    further: Sequence[Machines] = (),
    model: str = "",
) -> CostModel:
    """Bring catalog entries, prices and fabric together; `further` are the chips of other pools, `model` the name
    that an API may serve."""
    network = network_power_terms(fabric, switch=switch, optic=optic, optical_switch=optical_switch)
    machines = (Machines(chip=chip, server=server, chip_count=chip_count), *further)
    bill = bill_of_materials(
        machines=machines,
        fabric=fabric,
        book=book,
        fabric_book=fabric_book,
        switch=switch,
        optical_switch=optical_switch,
        power_w={label: term.value for label, term in network.items()},
    )
    return CostModel(
        economics=economics,
        machines=machines,
        offers=offers_of(book, economics, machines, model),
        bill=bill,
        hosts_power=sum_of([host_power_term(one) for one in machines]).named("hosts_w"),
        network_power=network_power_term(network),
        plant_usd_per_w=price_leaf(book, "power_w", "plant_usd_per_w", dimension=""),
        network_lines=tuple(
            tier_lines(fabric, _prices(fabric, fabric_book, network, switch, optical_switch))
        ),
        twice_usd_per_year=cluster_prices(book, machines, depreciation_years=economics.depreciation_years),
    )


def _prices(
    fabric: Fabric,
    book: PriceBook,
    network: Mapping[str, Term],
    switch: Switch | None,
    optical_switch: OpticalSwitch | None,
) -> NetworkPrices:
    """Prices, and the power of one device as the fabric's power has it."""

    def each(label: str, count: int) -> float:
        return network[label].value / count if label in network else 0.0

    return NetworkPrices(
        book=book,
        switch=switch,
        optical_switch=optical_switch,
        switch_w=each("switches", fabric.switch_count),
        module_w=each("transceivers", fabric.transceiver_count) or TRANSCEIVER_POWER_W,
        ocs_w=each("optical_switches", fabric.ocs_count),
    )


def switch_for(switches: Mapping[str, Switch], *, radix: int, port_bytes_per_s: float) -> Switch | None:
    """The catalog's switch of this radix with the slowest ports that carry the links; None: none has it."""
    able = [
        entry
        for entry in switches.values()
        if entry.radix == radix and entry.port_bytes_per_s >= port_bytes_per_s * 0.999
    ]
    return min(able, key=lambda entry: (entry.port_bytes_per_s, entry.slug), default=None)
