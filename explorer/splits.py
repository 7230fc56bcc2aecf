"""A scenario whose prefill and decode are apart, under every split of its chips into replicas of both.

With chips for `c_p` in a prefill replica and `c_d` in a decode replica, split `p` has `p` of the former and as many
of the latter as the remaining chips hold. The scenario as it stands is one of the ways, idle chips and all.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from explorer import actions
from explorer.access import viewer_owning
from explorer.beside import Way
from explorer.forms.schema import at
from explorer.models import SavedScenario
from simcore.errors import InputError
from simcore.plan.types import ServingPlan
from simcore.scenario import apply_overrides

SECTION: Final = "serving.scheduler"
COUNTS: Final = (f"{SECTION}.prefill.replica_count", f"{SECTION}.decode.replica_count")
MOST: Final = 12  # splits that are run
Split = tuple[int, int]  # replicas that prefill, and that decode


def ways(scenario: SavedScenario) -> list[Way]:
    """Each split; none where prefill and decode are not apart."""
    if at(scenario.document, f"{SECTION}.kind") != "disaggregated":
        return []
    present = _planned(scenario, {})
    dealt = present or _planned(scenario, dict.fromkeys(COUNTS, "auto"))
    now = _split(present) if present else None
    splits = spread(all_splits(dealt), now) if dealt else []
    found = [_way(split, is_present=split == now) for split in splits]
    return found if present else [Way(name=_asked(scenario), typed={}), *found]


def all_splits(serving: ServingPlan) -> list[Split]:
    """Every number of prefill replicas that leaves chips for a decode replica; none where each has its own pool."""
    (inputs, before), (other, after) = serving.sides
    if inputs.chips != other.chips:
        return []
    owned = inputs.owned_chip_count
    prefill, decode = before.parallelism.replica_chip_count, after.parallelism.replica_chip_count
    return [
        (count, (owned - count * prefill) // decode) for count in range(1, (owned - decode) // prefill + 1)
    ]


def spread(splits: Sequence[Split], now: Split | None, most: int = MOST) -> list[Split]:
    """At most so many of them, evenly spread and the present one included."""
    found = sorted({*splits, *([now] if now else [])})
    if len(found) <= most:
        return found
    kept = [found[round(index * (len(found) - 1) / (most - 1))] for index in range(most)]
    if now and now not in kept:
        nearest = min(range(most), key=lambda index: abs(kept[index][0] - now[0]))
        kept[nearest] = now
    return kept


def _planned(scenario: SavedScenario, typed: Mapping[str, str]) -> ServingPlan | None:
    try:
        document, _dropped = apply_overrides(scenario.document, typed)
        plan = actions.plan_for(viewer_owning(scenario), document).plan
    except InputError:
        return None
    return plan.serving if plan else None


def _split(serving: ServingPlan) -> Split:
    prefill, decode = (pool.replica_count for _inputs, pool in serving.sides)
    return prefill, decode


def _way(split: Split, *, is_present: bool) -> Way:
    typed = {path: str(count) for path, count in zip(COUNTS, split, strict=True)}
    return Way(name=f"{split[0]}:{split[1]}", typed={} if is_present else typed)


def _asked(scenario: SavedScenario) -> str:
    return ":".join(str(at(scenario.document, path) or "auto") for path in COUNTS)
