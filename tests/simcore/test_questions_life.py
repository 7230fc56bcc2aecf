"""Questions of operators on failures and restarts, answered by a cluster's life: N119, N120, N121."""

import numpy as np
import pytest

from simcore.reliability.cluster_life import Life, cluster_life
from simcore.reliability.life_draws import Failures, endless_jobs, maintenance_windows
from simcore.reliability.life_state import Policy

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def day(
    *,
    servers: int,
    job: int,
    failed: list[int],
    swap_s: float = 60.0,
    is_aligned: bool = False,
    repair_s: float = DAY_S,
) -> Life:
    """One job; these servers fail together after an hour."""
    count = len(failed)
    failures = Failures(
        time_s=np.full(count, HOUR_S),
        part=np.arange(count),
        kind=np.zeros(count, np.int64),
        first=np.array(failed),
        span=np.ones(count, np.int64),
        slows=np.zeros(count, np.bool_),
        repair_s=np.full(count, repair_s),
        part_count=count,
    )
    return cluster_life(
        unit_count=servers,
        failures=failures,
        windows=maintenance_windows(
            period_s=DAY_S, window_s=1.0, fraction=1.0, unit_count=servers, duration_s=DAY_S
        ),
        jobs=endless_jobs(1, unit_count=job, interval_s=DAY_S),
        policy=Policy(
            duration_s=DAY_S,
            write_s=60.0,
            start_s=600.0,
            swap_s=swap_s,
            slowdown_ratio=1.0,
            spare_count=0,
            crew_count=0,
            is_aligned=is_aligned,
            keeps_state=False,
        ),
    )


def test_n119_two_of_500_nodes_fail_and_498_stay() -> None:
    """Kueue issue 14244: hot swap takes two others; without it all 500 give their place up and wait."""
    swapped = day(servers=504, job=500, failed=[3, 4])
    assert swapped.swap_count == 2
    assert swapped.stop_wait_s == 0.0
    assert swapped.picture["running"][-1] == 500
    evicted = day(servers=504, job=500, failed=[3, 4], is_aligned=True)
    assert evicted.swap_count == 0
    assert evicted.picture["running"][-1] == 0


def test_n120_restarting_the_failed_child_alone_shortens_the_stop() -> None:
    """JobSet issue 1129: recreate-all takes longer to come back, by just the difference of the two restarts."""
    everything, child = (day(servers=505, job=500, failed=[3], swap_s=swap_s) for swap_s in (660.0, 120.0))
    lost = [life.spent_fraction["restart"] * life.unit_count / 500 * DAY_S for life in (everything, child)]
    assert lost[0] - lost[1] == pytest.approx(540.0)


@pytest.mark.parametrize(("spares", "share"), [(0, 1 / 24), (1, 1.0)])
def test_n121_one_node_more_than_the_job_needs_is_a_day_of_work(spares: int, share: float) -> None:
    """Flux issue 4417: ask for N + 1. Without the spare the job stands still until the repair, after the day."""
    life = day(servers=100 + spares, job=100, failed=[7], repair_s=2 * DAY_S)
    assert life.job_s / DAY_S == pytest.approx(share)
