"""What others ask for the same: chips rented by the hour, tokens bought from an API; and when owning is cheaper.

An owner pays `F` per hour whatever runs (write-off, floor, operations, the energy of idle gear) and `E` more, in
proportion, up to full use. Who rents or buys pays `A` per hour of full use, and nothing for the rest. Owning is
cheaper above the **break-even utilisation** `u = F / (A − E)`; where that is more than 1, or `A ≤ E`, it never is.
For an API `A` is what the tokens of an hour at the capacity would cost there.
Limits: rent is on demand and by the second, without storage and traffic; the API serves the same model about as well;
tokens and energy are proportional to the utilisation; cached input has no price of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simcore.catalog.types import PriceBook
from simcore.cost.energy import Machines
from simcore.cost.prices import price_leaf
from simcore.cost.spec import EconomicsSpec
from simcore.why import Term, constant, leaf, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Owning:
    """What owning costs by the hour: whatever runs, and on top of that at full use."""

    fixed_usd_per_hour: Term
    used_usd_per_hour: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMix:
    """Tokens in and out per second of a serving cluster at its capacity."""

    input_token_per_s: Term
    output_token_per_s: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Rent of all chips, and the prices of an API's tokens; None where nothing is known."""

    rent_usd_per_hour: Term | None = None
    input_usd_per_million_tokens: Term | None = None
    output_usd_per_million_tokens: Term | None = None

    def api_usd_per_hour(self, mix: TokenMix) -> Term | None:
        """What the API would ask for the tokens of an hour."""
        each_in, each_out = self.input_usd_per_million_tokens, self.output_usd_per_million_tokens
        if each_in is None or each_out is None:
            return None
        a_second = mix.input_token_per_s * each_in + mix.output_token_per_s * each_out
        hours = constant(3600, "seconds per hour") / constant(1e6, "a million")
        return (a_second * hours).named("api_usd_per_hour")


NO_OFFERS: Final = Offers()


def offers_of(book: PriceBook, economics: EconomicsSpec, machines: Sequence[Machines], model: str) -> Offers:
    """From the scenario where it says so, else from the book; a book without a price leaves it out."""
    return Offers(
        rent_usd_per_hour=_rent(book, economics, machines),
        input_usd_per_million_tokens=_api(book, economics.api_input_usd_per_million_tokens, "input", model),
        output_usd_per_million_tokens=_api(
            book, economics.api_output_usd_per_million_tokens, "output", model
        ),
    )


def break_even_term(owning: Owning, offer_usd_per_hour: Term) -> Term | None:
    """`F / (A − E)`; None where owning is never cheaper."""
    saved = offer_usd_per_hour - owning.used_usd_per_hour
    if saved.value <= 0 or owning.fixed_usd_per_hour.value > saved.value:
        return None
    return (owning.fixed_usd_per_hour / saved).named("break_even_fraction")


def _rent(book: PriceBook, economics: EconomicsSpec, machines: Sequence[Machines]) -> Term | None:
    rents = []
    for one in machines:
        each = price_leaf(book, f"cloud:{one.chip.slug}", "cloud_usd_per_hour", dimension="usd_per_hour")
        if economics.cloud_usd_per_hour is not None:
            each = leaf(
                economics.cloud_usd_per_hour, "cloud_usd_per_hour", path="economics.cloud_usd_per_hour"
            )
        if each is None:
            return None
        rents.append(one.chips * each)
    return total(*rents).named("rent_usd_per_hour")


def _api(book: PriceBook, given: float | None, side: str, model: str) -> Term | None:
    name = f"api_{side}_usd_per_million_tokens"
    if given is not None:
        return leaf(given, name, path=f"economics.{name}")
    return price_leaf(book, f"api_{side}:{model}", name, dimension="usd_per_million_tokens")
