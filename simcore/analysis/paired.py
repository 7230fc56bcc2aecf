"""Paired comparison: what a change does to the same requests, and whether that is more than chance.

Two scenarios with one seed and one workload share the arrival and the lengths of each request (common random
numbers), so a request is compared with itself: d = after − before, over those that both finished. Neighbours queue
together, so the differences are parted by arrival into equal batches whose means are nearly independent (Conway
1963); the mean has a 95 % interval by Student's t over them. A difference whose interval holds 0 is within noise.

Limits: requests pair by their place in the workload, so nothing is said where their count or a length in tokens
differs; a run that never settles has wide batches and so a wide interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simcore.errors import Message
from simcore.serving.intervals import BATCHES, LEVEL_FRACTION, batch_means
from simcore.serving.latencies import TimeName
from simcore.serving.records import Floats, Records
from simcore.serving.state import FINISHED
from simcore.units import printed_text

TIMES: Final[tuple[TimeName, ...]] = ("ttft_s", "tpot_s", "e2e_s")
_PER_BATCH: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean change of one time of the same requests, with its interval, in seconds."""

    name: TimeName
    mean_s: float
    low_s: float
    high_s: float
    pair_count: int

    @property
    def is_significant(self) -> bool:
        return not self.low_s <= 0.0 <= self.high_s

    def as_dict(self) -> dict[str, Any]:
        return {
            "metric": f"serving.{self.name}",
            "mean_s": self.mean_s,
            "low_s": self.low_s,
            "high_s": self.high_s,
            "count": self.pair_count,
            "level_fraction": LEVEL_FRACTION,
            "is_significant": self.is_significant,
        }

    @property
    def message(self) -> Message:
        params = {
            "name": self.name.removesuffix("_s").upper(),
            "mean": _signed(self.mean_s),
            "low": _signed(self.low_s),
            "high": _signed(self.high_s),
            "count": f"{self.pair_count:,}",
        }
        if self.is_significant:
            return Message(
                code="paired.differs",
                template="{name} of the same {count} requests changes by {mean} in the mean (95 %: {low} to {high})",
                params=params,
            )
        return Message(
            code="paired.noise",
            template="{name} of the same {count} requests: the difference of {mean} is within noise (95 %: {low} to "
            "{high})",
            params=params,
        )


def paired(before: Records, after: Records) -> tuple[Difference, ...]:
    """The differences that can be told; none where the two did not serve the same requests, or too few."""
    if not _are_the_same(before, after):
        return ()
    found = [_difference(name, before, after) for name in TIMES]
    return tuple(one for one in found if one is not None)


def _are_the_same(before: Records, after: Records) -> bool:
    return (
        len(before.arrival_s) == len(after.arrival_s)
        and bool((before.input_tokens == after.input_tokens).all())
        and bool((before.output_tokens == after.output_tokens).all())
    )


def _difference(name: TimeName, before: Records, after: Records) -> Difference | None:
    both = (before.status == FINISHED) & (after.status == FINISHED)
    if name == "tpot_s":
        both &= before.output_tokens > 1
    changes = _times(name, after.where(both)) - _times(name, before.where(both))
    if len(changes) < BATCHES * _PER_BATCH:
        return None
    in_turn = changes[np.argsort(before.arrival_s[both], kind="stable")]
    mean = batch_means(in_turn)
    return Difference(name=name, mean_s=mean.mean, low_s=mean.low, high_s=mean.high, pair_count=len(changes))


def _times(name: TimeName, records: Records) -> Floats:
    if name == "tpot_s":
        return (records.finish_s - records.first_token_s) / (records.output_tokens - 1)
    times: Floats = getattr(records, name)
    return times


def _signed(value_s: float) -> str:
    sign = "+" if value_s > 0 else "−" if value_s < 0 else ""
    return sign + printed_text(abs(value_s), "s", digits=3)


def told(differences: Sequence[Difference]) -> tuple[Message, ...]:
    """A sentence for each."""
    return tuple(one.message for one in differences)
