"""What each class of requests got, and what each request was promised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simcore.serving.latencies import Latencies, Limit, slo_figures, statistics
from simcore.serving.ordering import sorted_values
from simcore.serving.records import Records
from simcore.serving.state import REJECTED
from simcore.workload.classes import RequestClass, Slo

Row = dict[str, float | int | str]


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
        own, slo = records.where(class_of == place), one.slo or common
        times = Latencies.of(own, front_end_s)
        row: Row = {
            "class": one.name,
            "completed_count": len(times.ttft_s),
            "rejected_count": int(np.count_nonzero(own.status == REJECTED)),
            "slo_ttft_s": slo.ttft_s,
            "slo_tpot_s": slo.tpot_s,
        }
        row |= slo_figures(own, times, slo_ttft_s=slo.ttft_s, slo_tpot_s=slo.tpot_s, makespan_s=makespan_s)
        for time in ("ttft_s", "tpot_s", "e2e_s"):
            row |= statistics(time, sorted_values(getattr(times, time)))
        rows.append(row)
    return rows
