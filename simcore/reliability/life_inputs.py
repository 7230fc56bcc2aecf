"""A cluster's life as numbers: what a scenario says of it, resolved, and runs of it under a seed.

Beside the life itself stand comparisons on the same failures: spare units on top of what the jobs need, the scope
of a restart, and fixed against re-wired places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from simcore.reliability.cluster_life import Life, cluster_life
from simcore.reliability.life_draws import (
    Jobs,
    Part,
    Windows,
    arriving_jobs,
    draw_failures,
    endless_jobs,
    maintenance_windows,
)
from simcore.reliability.life_spec import FullLife, QueueLife
from simcore.reliability.life_state import Policy

FEWEST_SPARES: Final = 8  # as far as a comparison of spares goes at least


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeInputs:
    """Everything resolved: units, parts that fail, jobs, and what is done about it."""

    unit: Literal["cube", "server"]
    unit_count: int
    chips_per_unit: int
    parts: tuple[Part, ...]
    policy: Policy
    scopes: Mapping[str, Policy]  # the same with each scope of restart
    allocations: Mapping[str, Policy]  # the same with fixed and with re-wired places, where both are possible
    rewires: bool
    spec: FullLife | QueueLife
    job_units: tuple[int, ...]  # by size
    intervals_s: tuple[float, ...]  # between checkpoints, by size

    @property
    def is_queued(self) -> bool:
        return isinstance(self.spec, QueueLife)

    @property
    def full_count(self) -> int:
        """Jobs of a cluster that is always full."""
        return (self.unit_count - self.policy.spare_count) // self.job_units[0]

    def life(self, seed: int, policy: Policy | None = None) -> Life:
        """One life under this seed, with the policy of the scenario or another."""
        return self._life(seed, self.unit_count, self.unit_count, policy or self.policy, self._jobs(seed))

    def _life(self, seed: int, unit_count: int, drawn_count: int, policy: Policy, jobs: Jobs) -> Life:
        failures = draw_failures(
            self._parts(drawn_count), unit_count=drawn_count, duration_s=policy.duration_s, seed=seed
        )
        return cluster_life(
            unit_count=unit_count,
            failures=failures.of_first(unit_count),
            windows=self._windows(unit_count),
            jobs=jobs,
            policy=policy,
        )

    def _parts(self, unit_count: int) -> list[Part]:
        """The parts of a cluster of another size."""
        ratio = unit_count / self.unit_count
        return [replace(part, count=round(part.count * ratio)) for part in self.parts]

    def _windows(self, unit_count: int) -> Windows:
        return maintenance_windows(
            period_s=self.spec.maintenance_period_s or self.policy.duration_s,
            window_s=self.spec.maintenance_window_s,
            fraction=self.spec.maintenance_fraction,
            unit_count=unit_count,
            duration_s=self.policy.duration_s,
        )

    def _jobs(self, seed: int) -> Jobs:
        spec = self.spec
        if isinstance(spec, FullLife):
            return endless_jobs(self.full_count, unit_count=self.job_units[0], interval_s=self.intervals_s[0])
        return arriving_jobs(
            interarrival_s=spec.interarrival_s,
            work_s=spec.work_s,
            work_cv=spec.work_cv,
            unit_counts=self.job_units,
            intervals_s=self.intervals_s,
            duration_s=self.policy.duration_s,
            seed=seed,
        )

    def spare_rows(self, seed: int) -> list[dict[str, Any]]:
        """The jobs of a full cluster, with units on top of what they need; the same failures throughout."""
        if self.is_queued:
            return []
        need = self.full_count * self.job_units[0]
        counts = self._spare_counts()
        lives = {
            spares: self._life(
                seed,
                need + spares,
                need + counts[-1],
                self.policy._replace(spare_count=0, is_aligned=False),
                self._jobs(seed),
            )
            for spares in counts
        }
        return [
            {
                "spare_count": spares,
                "owned_chip_count": life.unit_count * self.chips_per_unit,
                "job_time_fraction": life.goodput_fraction * life.unit_count / need,
                "goodput_fraction": life.goodput_fraction,
                "stranded_fraction": life.spent_fraction["stranded"],
                "swap_count": life.swap_count,
            }
            for spares, life in lives.items()
        ]

    def _spare_counts(self) -> list[int]:
        """None, one, and doubled until there are three times as many as are down in the mean."""
        down = sum(
            part.count * part.span * part.mttr_s / part.mtbf_s for part in self.parts if not part.slows
        )
        most = max(FEWEST_SPARES, 3 * down)
        return [0, *(2**power for power in range(math.ceil(math.log2(most)) + 1))]

    def scope_rows(self, seed: int) -> list[dict[str, Any]]:
        """The life with each scope of restart."""
        return [{"scope": name} | _row(self.life(seed, policy)) for name, policy in self.scopes.items()]

    def allocation_rows(self, seed: int) -> list[dict[str, Any]]:
        """The life with places that are wired once, and with places that are wired anew."""
        return [
            {"allocation": name} | _row(self.life(seed, policy)) for name, policy in self.allocations.items()
        ]


def _row(life: Life) -> dict[str, Any]:
    lost = ("rework", "checkpoint", "restart", "stranded", "idle", "repair")
    return {
        "goodput_fraction": life.goodput_fraction,
        "interruption_count": life.interruption_count,
        **{f"{cause}_fraction": life.spent_fraction[cause] for cause in lost},
    }


def life_metrics(life: Life, *, is_queued: bool, rewires: bool) -> dict[str, float | int]:
    """The headline numbers of one life, by metric id."""
    name = "reliability.life."
    found: dict[str, float | int] = {
        f"{name}goodput_fraction": life.goodput_fraction,
        f"{name}utilisation_fraction": life.utilisation_fraction,
        f"{name}failure_count": life.failure_count,
        f"{name}interruption_count": life.interruption_count,
        f"{name}swap_count": life.swap_count,
    }
    if life.interruption_count:
        found[f"{name}mtti_s"] = life.mtti_s
    if life.restart_count:
        found[f"{name}stop_wait_s.mean"] = life.stop_wait_s / life.restart_count
    if is_queued and len(life.wait_s):
        found[f"{name}wait_s.mean"] = float(life.wait_s.mean())
        found[f"{name}wait_s.p95"] = float(np.quantile(life.wait_s, 0.95))
    if is_queued:
        found[f"{name}finished_count"] = life.finished_count
    if rewires:
        found[f"{name}reconfiguration_count"] = life.start_count
    return found


def time_rows(lives: Sequence[Life]) -> list[dict[str, Any]]:
    """Where the chip time went, by cause, in the mean; the rows sum to 1."""
    causes = lives[0].spent_fraction
    means = {cause: float(np.mean([life.spent_fraction[cause] for life in lives])) for cause in causes}
    return [{"cause": cause, "fraction": share} for cause, share in means.items() if share > 0]


def life_series(life: Life, chips_per_unit: int) -> dict[str, Any]:
    """Chips by what they do, over time, with the failures and interruptions of each slice."""
    counted = ("time_s", "failures", "interruptions")
    return {
        name: column if name in counted else column * chips_per_unit for name, column in life.picture.items()
    }


def event_columns(inputs: LifeInputs, life: Life) -> dict[str, list[Any]]:
    """The first events, with the names of what failed; -1 where a unit or a job has nothing to do with it."""
    return {
        "time_s": [event["time_s"] for event in life.events],
        "event": [event["event"] for event in life.events],
        "part": [inputs.parts[event["part"]].name if event["part"] >= 0 else "" for event in life.events],
        "unit": [event["unit"] for event in life.events],
        "job": [event["job"] for event in life.events],
    }
