"""What each class of requests got, and what each request was promised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simcore.serving.latencies import Limit, Promise, TimeName, served, slo_figures, statistics
from simcore.serving.records import Records
from simcore.workload.classes import RequestClass, Slo

Row = dict[str, float | int | str]
_TIMES: Final[tuple[TimeName, ...]] = ("ttft_s", "tpot_s", "e2e_s")


def promised_times(
    classes: Sequence[RequestClass], common: Slo, class_of: NDArray[np.int64] | None
) -> tuple[Limit, Limit]:
    """TTFT and TPOT in seconds: of all requests, or one each where they have classes."""
    if class_of is None:
        return common.ttft_s, common.tpot_s
    promised = [one.slo or common for one in classes]
    return (
        np.array([slo.ttft_s for slo in promised])[class_of],
        np.array([slo.tpot_s for slo in promised])[class_of],
    )


def class_rows(
    records: Records,
    *,
    classes: Sequence[RequestClass],
    common: Slo,
    class_of: NDArray[np.int64],
    front_end_s: float,
    makespan_s: float,
) -> list[Row]:
    """One row per class: its counts, the statistics of its times in seconds, and what of its own SLO it met.

    A statistic that does not apply is absent.
    """
    rows = []
    for place, one in enumerate(classes):
        slo = one.slo or common
        promise = Promise(ttft_s=slo.ttft_s, tpot_s=slo.tpot_s, front_end_s=front_end_s)
        got = served(records, promise, only=class_of == place)
        row: Row = {
            "class": one.name,
            "completed_count": got.finished_count,
            "rejected_count": got.rejected_count,
            "slo_ttft_s": slo.ttft_s,
            "slo_tpot_s": slo.tpot_s,
        }
        row |= slo_figures(got, makespan_s)
        for time in _TIMES:
            row |= statistics(time, got.distributions[time])
        rows.append(row)
    return rows
