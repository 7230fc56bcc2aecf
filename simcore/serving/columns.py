"""The rows of requests as columns: one pass over records that are long, so that each is fetched once."""

from __future__ import annotations

from typing import Any

import numpy as np

from simcore.compiled import compiled


@compiled
def columns(rows: Any) -> Any:
    """`scheduled_s`, `first_token_s`, `finish_s`, `preemptions`, `replica` and `status` of each request."""
    count = rows.size
    scheduled_s, first_token_s, finish_s = np.empty(count), np.empty(count), np.empty(count)
    preemptions, replica = np.empty(count, np.int32), np.empty(count, np.int32)
    status = np.empty(count, np.int32)
    for place in range(count):
        row = rows[place]
        scheduled_s[place] = row.scheduled_s
        first_token_s[place] = row.first_token_s
        finish_s[place] = row.finish_s
        preemptions[place] = row.preemptions
        replica[place] = row.replica
        status[place] = row.status
    return scheduled_s, first_token_s, finish_s, preemptions, replica, status
