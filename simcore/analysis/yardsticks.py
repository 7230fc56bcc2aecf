"""What a scenario is worth: work that counts, for each dollar that it costs.

    serving    requests within the SLO × (1 − share of time lost to failures) × year / TCO per year
    training   tokens per second × goodput of checkpoints and failures        × year / TCO per year
    none       working share of chip time × chips × year                       / TCO per year

A cluster without work is judged by its life where one is simulated, else by the goodput of its slices. Where a price
is missing on any side, a chip stands for its dollars, so that a gap in a price book is never read as a saving. A run
in which no request met its promise counts one, so that ratios stay finite and say "at least".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from simcore.errors import Message
from simcore.why import Term, constant, leaf, maximum

Metrics: TypeAlias = Mapping[str, float | str]
_GOODPUTS: Final = ("reliability.life.goodput_fraction", "reliability.slice_goodput_fraction.mean")
_FAILURES: Final = "analysis.waiting.failure_fraction"
_YEAR_S: Final = 8760 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """Which work counts (`kind`, and for a cluster without work which goodput), and whether prices are known."""

    kind: str
    per_usd: bool
    goodput: str = ""

    @property
    def slug(self) -> str:
        name = {"serving": "requests_within_slo", "training": "trained_tokens"}.get(self.kind, "chip_time")
        return f"{name}_per_{'usd' if self.per_usd else 'chip'}"

    @property
    def said(self) -> Message:
        """In words that follow "2.3 times the"."""
        return _SAID[self.slug]

    def worth(self, done: Done) -> Term:
        """Work that counts in a year, per USD of that year, or per chip where prices are missing."""
        work = self._work(done) * constant(_YEAR_S, "seconds per year")
        if self.per_usd:
            return (work / done.leaf("cost.tco_usd_per_year")).named(self.slug, "")
        return (work / constant(done.chip_count, "chip_count")).named(self.slug, "")

    def _work(self, done: Done) -> Term:
        """Requests, tokens or chip seconds that count, in each second."""
        if self.kind == "serving":
            up = constant(1.0) - done.leaf(_FAILURES)
            return maximum(done.leaf("serving.slo_goodput_request_per_s"), done.one_request()) * up
        if self.kind == "training":
            return done.leaf("training.token_per_s") * done.leaf("reliability.goodput_fraction", absent=1.0)
        return constant(done.chip_count, "chip_count") * done.leaf(self.goodput, absent=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a scenario came to: its metrics, under the digest of its plan, on so many chips."""

    metrics: Metrics
    digest: str
    chip_count: int

    def leaf(self, metric: str, *, absent: float = 0.0) -> Term:
        return leaf(
            float(self.metrics.get(metric, absent)),
            metric,
            kind="simulated",
            source=f"result {self.digest[:12]}",
        )

    def one_request(self) -> Term:
        """The least that a run can tell from nothing: one request in all its time."""
        return constant(1.0, "1 request") / self.leaf("serving.makespan_s", absent=1.0)


def yardstick(kind: str, done: Sequence[Done]) -> Yardstick:
    """The one that can judge all of these results alike."""
    per_usd = all(
        float(one.metrics.get("cost.priced_fraction", 0.0)) == 1.0
        and float(one.metrics.get("cost.tco_usd_per_year", 0.0)) > 0.0
        for one in done
    )
    known = [name for name in _GOODPUTS if all(name in one.metrics for one in done)]
    return Yardstick(kind=kind, per_usd=per_usd, goodput=known[0] if known and kind == "none" else "")


_SAID: Final = {
    message.code.removeprefix("worth."): message
    for message in (
        Message(code="worth.requests_within_slo_per_usd", template="requests within the SLO per USD"),
        Message(code="worth.requests_within_slo_per_chip", template="requests within the SLO per chip"),
        Message(code="worth.trained_tokens_per_usd", template="trained tokens per USD"),
        Message(code="worth.trained_tokens_per_chip", template="trained tokens per chip"),
        Message(code="worth.chip_time_per_usd", template="working chip time per USD"),
        Message(code="worth.chip_time_per_chip", template="working chip time per chip"),
    )
}
