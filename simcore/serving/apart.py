"""What prefill and decode apart say beside everybody's metrics: the way of the KV, and which pool stood idle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simcore.serving.distributions import Ordered
from simcore.serving.latencies import statistics
from simcore.serving.records import Totals, Transfers


def apart_metrics(transfers: Transfers, pool_totals: Sequence[Totals]) -> dict[str, float]:
    """Waits for room in the decode pool, times on the link, and shares of busy time; times of what has landed."""
    landed = ~np.isnan(transfers.landed_s)
    waited_s = (transfers.pulled_s - transfers.prefilled_s)[landed]
    sent_s = (transfers.landed_s - transfers.pulled_s)[landed]
    prefill, decode = (
        totals.busy_s / (totals.replica_count * totals.makespan_s) if totals.makespan_s > 0 else 0.0
        for totals in pool_totals
    )
    return {
        **statistics("serving.kv_wait_s", Ordered.of(waited_s)),
        **statistics("serving.kv_transfer_s", Ordered.of(sent_s)),
        "serving.prefill_busy_fraction": prefill,
        "serving.decode_busy_fraction": decode,
    }
