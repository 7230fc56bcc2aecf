"""A cluster's life keeps its accounts, meets the closed forms, and is the same for the same seed."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.reliability import SliceSystem, slice_goodput, waste_fraction, young_interval_s
from simcore.reliability.checkpointing import efficiency_fraction, exact_interval_s
from simcore.reliability.cluster_life import Life, cluster_life
from simcore.reliability.life_draws import (
    Jobs,
    Part,
    arriving_jobs,
    draw_failures,
    endless_jobs,
    maintenance_windows,
)
from simcore.reliability.life_state import Policy

DAY_S = 86_400.0
YEAR_S = 365 * DAY_S
AT_ONCE = Policy(
    duration_s=YEAR_S,
    write_s=1e-6,
    start_s=0.0,
    swap_s=0.0,
    slowdown_ratio=1.0,
    spare_count=0,
    crew_count=0,
    is_aligned=False,
    keeps_state=False,
)
HOST = Part(name="server", count=1024, mtbf_s=150 * DAY_S, mttr_s=0.75 * DAY_S)


def lived(
    seed: int,
    *parts: Part,
    jobs: Jobs,
    units: int = 64,
    policy: Policy = AT_ONCE,
    maintenance: tuple[float, float, float] = (2 * YEAR_S, 1.0, 1.0),
) -> Life:
    period_s, window_s, fraction = maintenance
    return cluster_life(
        unit_count=units,
        failures=draw_failures(parts, unit_count=units, duration_s=policy.duration_s, seed=seed),
        windows=maintenance_windows(
            period_s=period_s,
            window_s=window_s,
            fraction=fraction,
            unit_count=units,
            duration_s=policy.duration_s,
        ),
        jobs=jobs,
        policy=policy,
    )


def full(count: int, units: int, interval_s: float = 3600.0) -> Jobs:
    return endless_jobs(count, unit_count=units, interval_s=interval_s)


def mean_and_error(values: list[float]) -> tuple[float, float]:
    found = np.array(values)
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found)))


def agrees(values: list[float], expected: float) -> bool:
    """Within four standard errors, and a thousandth of itself."""
    mean, error = mean_and_error(values)
    return abs(mean - expected) <= 4 * error + 1e-3 * abs(expected)


# ---- closed forms


def test_a_part_is_up_mtbf_over_mtbf_and_mttr() -> None:
    lives = [lived(seed, replace(HOST, count=64), jobs=full(0, 1)) for seed in range(30)]
    down = HOST.mttr_s / (HOST.mtbf_s + HOST.mttr_s)
    assert agrees([life.spent_fraction["repair"] for life in lives], down)


@pytest.mark.parametrize("is_aligned", [False, True])
def test_jobs_that_restart_at_once_hold_the_slice_goodput(is_aligned: bool) -> None:
    system = SliceSystem(host_availability_fraction=HOST.mtbf_s / (HOST.mtbf_s + HOST.mttr_s))
    expected = slice_goodput(system, 1024)
    policy = AT_ONCE._replace(is_aligned=is_aligned)
    held = [lived(seed, HOST, jobs=full(4, 16), policy=policy).utilisation_fraction for seed in range(30)]
    assert agrees(held, expected.static_mean_fraction if is_aligned else expected.ocs_mean_fraction)


def test_one_job_has_the_efficiency_of_exponential_failures() -> None:
    write_s, restart_s, mtbf_s = 120.0, 600.0, 7200.0
    interval_s = exact_interval_s(write_s, mtbf_s)
    policy = AT_ONCE._replace(write_s=write_s, start_s=restart_s, swap_s=restart_s)
    part = Part(name="server", count=1, mtbf_s=mtbf_s, mttr_s=0.0)
    lives = [lived(seed, part, jobs=full(1, 1, interval_s), units=1, policy=policy) for seed in range(10)]
    expected = efficiency_fraction(interval_s, write_s, mtbf_s, restart_s)
    assert agrees([life.goodput_fraction for life in lives], expected)


def test_the_exact_interval_is_the_best_one() -> None:
    best = efficiency_fraction(exact_interval_s(300, 3600), 300, 3600)
    others = [efficiency_fraction(share * exact_interval_s(300, 3600), 300, 3600) for share in (0.95, 1.05)]
    assert best > max(others)


@given(write_s=st.floats(0.1, 5.0), mtbf_s=st.floats(50_000.0, 1e6))
def test_young_is_the_limit_of_short_writes(write_s: float, mtbf_s: float) -> None:
    interval_s = young_interval_s(write_s, mtbf_s)
    assert exact_interval_s(write_s, mtbf_s) == pytest.approx(interval_s, rel=0.01)
    lost = 1 - efficiency_fraction(interval_s, write_s, mtbf_s)
    assert lost == pytest.approx(waste_fraction(interval_s, write_s, mtbf_s), rel=0.02)


def test_repair_in_no_time_loses_nothing_to_repair() -> None:
    life = lived(1, replace(HOST, mttr_s=0.0), jobs=full(4, 16))
    assert life.interruption_count > 0
    assert life.spent_fraction["repair"] == life.spent_fraction["stranded"] == 0.0
    assert life.utilisation_fraction == pytest.approx(1.0)


def test_more_spares_than_ever_fail_leave_no_job_waiting() -> None:
    life = lived(1, replace(HOST, count=128), units=128, jobs=full(1, 64))
    assert life.swap_count > 0
    assert life.spent_fraction["stranded"] == 0.0


def test_maintenance_takes_its_share() -> None:
    life = lived(1, jobs=full(1, 64), maintenance=(100 * DAY_S, 2 * DAY_S, 0.25))
    assert life.spent_fraction["maintenance"] == pytest.approx(3 * 2 / 365)
    assert life.interruption_count == 0
    assert life.planned_stop_count == 3 * 4


def test_a_stop_that_was_announced_loses_no_work() -> None:
    life = lived(1, jobs=full(1, 64, 100 * DAY_S), maintenance=(50 * DAY_S, DAY_S, 1.0))
    assert life.spent_fraction["rework"] == 0.0
    assert life.spent_fraction["useful"] > 0.9


def test_a_degraded_link_slows_its_job_by_the_stated_ratio() -> None:
    policy = AT_ONCE._replace(duration_s=10 * DAY_S, slowdown_ratio=1.25)
    link = Part(name="link", count=64, mtbf_s=1000.0, mttr_s=1e12, slows=True)
    life = lived(1, link, jobs=full(1, 64), policy=policy)
    assert life.goodput_fraction == pytest.approx(1 / 1.25, rel=1e-4)
    assert life.interruption_count == 0


def test_a_job_ends_when_its_work_and_its_checkpoints_are_done() -> None:
    jobs = Jobs(
        arrival_s=np.array([5.0]),
        work_s=np.array([250.0]),
        unit_count=np.array([3]),
        interval_s=np.array([100.0]),
    )
    life = lived(
        1, jobs=jobs, units=4, policy=AT_ONCE._replace(duration_s=3600.0, write_s=10.0, start_s=40.0)
    )
    assert life.finished_count == 1
    assert life.job_s == pytest.approx(40 + 250 + 2 * 10)  # nothing is saved at the end


def test_spares_are_kept_from_new_jobs() -> None:
    jobs = arriving_jobs(
        interarrival_s=3600.0,
        work_s=1e9,
        work_cv=0.0,
        unit_counts=(1,),
        intervals_s=(3600.0,),
        duration_s=YEAR_S,
        seed=1,
    )
    life = lived(1, jobs=jobs, units=10, policy=AT_ONCE._replace(spare_count=3))
    assert life.start_count == 7


def test_what_waits_for_a_crew_stays_down() -> None:
    slow = replace(HOST, count=64, mttr_s=20 * DAY_S, repair_cv=0.0)
    many, one = (
        lived(1, slow, jobs=full(4, 16), policy=AT_ONCE._replace(crew_count=crews)) for crews in (0, 1)
    )
    assert one.spent_fraction["repair"] > 1.5 * many.spent_fraction["repair"]
    assert one.failure_count < many.failure_count  # what is out does not fail again


# ---- laws


def hard_life(draw: Any) -> Life:
    """All of it at once, with odds that differ."""
    units = draw(st.integers(2, 24))
    sizes = tuple(draw(st.lists(st.integers(1, units), min_size=1, max_size=3)))
    seed = draw(st.integers(0, 2**32))
    policy = Policy(
        duration_s=30 * DAY_S,
        write_s=draw(st.floats(1.0, 600.0)),
        start_s=draw(st.sampled_from([0.0, 900.0])),
        swap_s=draw(st.sampled_from([0.0, 300.0])),
        slowdown_ratio=draw(st.floats(1.0, 3.0)),
        spare_count=draw(st.integers(0, 2)),
        crew_count=draw(st.integers(0, 2)),
        is_aligned=draw(st.booleans()),
        keeps_state=draw(st.booleans()),
    )
    parts = (
        Part(name="server", count=units * 2, mtbf_s=10 * DAY_S, mttr_s=draw(st.sampled_from([0.0, DAY_S]))),
        Part(name="link", count=units * 3, mtbf_s=20 * DAY_S, mttr_s=DAY_S, slows=True),
        Part(name="switch", count=2, mtbf_s=15 * DAY_S, mttr_s=3600.0, span=(units + 1) // 2),
    )
    jobs = arriving_jobs(
        interarrival_s=DAY_S / 2,
        work_s=DAY_S,
        work_cv=draw(st.floats(0.0, 2.0)),
        unit_counts=sizes,
        intervals_s=[draw(st.floats(600.0, 20_000.0))] * len(sizes),
        duration_s=policy.duration_s,
        seed=seed,
    )
    endless = full(draw(st.integers(0, units // sizes[0])), sizes[0])
    return lived(
        seed,
        *parts,
        units=units,
        policy=policy,
        jobs=draw(st.sampled_from([jobs, endless])),
        maintenance=(10 * DAY_S, 3600.0, 0.3),
    )


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_every_second_of_every_unit_has_one_cause(data: st.DataObject) -> None:
    life = hard_life(data.draw)
    assert sum(life.spent_fraction.values()) == pytest.approx(1.0, abs=1e-9)
    assert min(life.spent_fraction.values()) >= -1e-12


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_the_picture_adds_up_to_all_units_and_to_the_account(data: st.DataObject) -> None:
    life = hard_life(data.draw)
    states = ("running", "starting", "waiting", "idle", "down", "maintenance")
    assert sum(life.picture[name] for name in states) == pytest.approx(life.unit_count)
    spent = life.spent_fraction
    for name, causes in {
        "running": ("useful", "rework", "slowdown", "checkpoint"),
        "starting": ("restart",),
        "waiting": ("stranded", "queue"),
        "down": ("repair",),
    }.items():
        mean = life.picture[name].mean() / life.unit_count
        assert mean == pytest.approx(sum(spent[cause] for cause in causes), abs=1e-9)
    assert life.picture["failures"].sum() == life.failure_count
    assert life.picture["interruptions"].sum() == life.interruption_count


def test_the_same_seed_gives_the_same_life_in_every_process() -> None:
    script = (
        "from tests.simcore.reliability.test_cluster_life import HOST, full, lived;"
        "print(lived(7, HOST, jobs=full(4, 16)).spent_fraction)"
    )
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert said.strip() == str(lived(7, HOST, jobs=full(4, 16)).spent_fraction)


def test_another_seed_gives_another_life() -> None:
    first, second = (lived(seed, HOST, jobs=full(4, 16)) for seed in (1, 2))
    assert first.goodput_fraction != second.goodput_fraction


def test_more_spares_bring_more_work() -> None:
    def work(spares: int) -> float:
        policy = AT_ONCE._replace(write_s=60.0, start_s=600.0, swap_s=600.0)
        lives = [
            lived(
                seed,
                replace(HOST, count=(16 + spares) * 16),
                units=16 + spares,
                jobs=full(1, 16),
                policy=policy,
            )
            for seed in range(10)
        ]
        return float(np.mean([life.goodput_fraction * life.unit_count for life in lives]))

    done = [work(spares) for spares in (0, 1, 2, 4, 8)]
    assert done == sorted(done)


def test_a_smaller_cluster_meets_the_failures_of_its_own_units() -> None:
    drawn = draw_failures([HOST], unit_count=64, duration_s=YEAR_S, seed=3)
    fewer = drawn.of_first(40)
    assert 0 < len(fewer.time_s) < len(drawn.time_s)
    assert fewer.first.max() < 40
    assert (fewer.first + fewer.span).max() <= 40


def test_plain_python_lives_the_same_life() -> None:
    script = (
        "import sys; sys.modules['numba'] = None\n"
        "from tests.simcore.reliability.test_cluster_life import HOST, full, lived\n"
        "print(lived(7, HOST, jobs=full(4, 16)).spent_fraction)"
    )
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert said.strip() == str(lived(7, HOST, jobs=full(4, 16)).spent_fraction)
