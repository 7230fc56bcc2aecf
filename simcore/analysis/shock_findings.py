"""What a shock test says, of requests or of a training job: each set of abilities, and what each ability bought.

What an ability bought is its Shapley value of the lost share (`reliability/recovery.py`), so what they bought adds up
to what all of them save. Abilities that the scenario turns off are not tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from simcore import glossary
from simcore.errors import Message
from simcore.reliability import Abilities, Recovery, shapley

Ability = Literal["physical", "data", "task"]
ABILITIES: Final[tuple[Ability, ...]] = ("physical", "data", "task")
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One set of abilities, and what it came to."""

    abilities: frozenset[str]
    outcome: Recovery
    goodput_per_s: Floats  # of each slice of time


def subsets(able: Abilities) -> Iterator[frozenset[str]]:
    """All subsets of the abilities that are turned on, from none to all."""
    names = [name for name in ABILITIES if getattr(able, name)]
    for size in range(len(names) + 1):
        for some in combinations(names, size):
            yield frozenset(some)


def with_only(able: Abilities, some: frozenset[str]) -> Abilities:
    """The abilities, of which some are on."""
    return able.model_copy(update={name: name in some for name in ABILITIES})


def bought_by(tried: Sequence[Tried]) -> dict[Ability, float]:
    """How much less is lost by each ability; `tried` goes from none to all."""
    lost = {one.abilities: one.outcome.lost_fraction for one in tried}
    names = [name for name in ABILITIES if name in tried[-1].abilities]
    bought: dict[Ability, float] = shapley(names, lambda some: lost[frozenset()] - lost[some])
    return bought


def metrics_of(outcome: Recovery) -> dict[str, float]:
    return {
        "reliability.shock.dip_fraction": outcome.dip_fraction,
        "reliability.shock.recovery_s": outcome.recovery_s,
        "reliability.shock.lost_goodput_fraction": outcome.lost_fraction,
    }


def tables_of(tried: Sequence[Tried], bought: Mapping[Ability, float]) -> dict[str, Any]:
    """Every set with what it loses, and every ability with what it bought."""
    return {
        "shock_abilities": [
            {name: name in one.abilities for name in ABILITIES}
            | {
                "dip_fraction": one.outcome.dip_fraction,
                "recovery_s": one.outcome.recovery_s,
                "lost_goodput_fraction": one.outcome.lost_fraction,
            }
            for one in tried
        ],
        "shock_bought": [{"ability": name, "lost_goodput_fraction": share} for name, share in bought.items()],
    }


def series_of(tried: Sequence[Tried], middle_s: Floats, steady_per_s: Floats) -> dict[str, dict[str, Any]]:
    """Goodput over slices of time: undisturbed, and with each set of abilities."""
    found = {"time_s": middle_s.tolist(), "steady": steady_per_s.tolist()}
    for one in tried:
        name = "+".join(name for name in ABILITIES if name in one.abilities)
        found[name or "none"] = one.goodput_per_s.tolist()
    return {"shock_goodput": found}


def ability_message(
    with_all: Recovery, with_none: Recovery, bought: Mapping[Ability, float]
) -> Iterator[Message]:
    """Which ability bought most, where any did."""
    saved = with_none.lost_fraction - with_all.lost_fraction
    if not bought or saved <= 0:
        return
    best: Ability = max(bought, key=lambda name: bought[name])
    yield Message(
        code="finding.shock_ability",
        template="of what the shocks would cost without any ability, {saved} is saved; {ability} buys most, {most}",
        params={
            "saved": f"{saved / with_none.lost_fraction:.0%}",
            "ability": glossary.label(f"reliability.abilities.{best}"),
            "most": f"{bought[best] / with_none.lost_fraction:.0%}",
        },
        path="reliability.abilities",
    )
