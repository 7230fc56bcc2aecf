"""`trimtab bench cluster`: a million requests over 64 replicas that a router reads, with every metric on.

The work of each replica is that of `bench serving` (Llama-3.1-8B in bf16 on one H100, 512 → 128 tokens, 8 requests
per second, 128 seats, a budget of 512 tokens), and `least_outstanding` looks at all of them for each request. The
yardstick serves the same requests, dealt out in turn, in 64 bare loops one after the other: no events between
replicas and no routing. The two take turns; the best of two of each counts.
"""

from __future__ import annotations

from typing import Final

from simcore.bench.serving import bare_run, beside_the_bare_loop, engine_run, scenario
from simcore.plan import plan

REPLICAS: Final = 64
REQUESTS: Final = 1_000_000
ROUNDS: Final = 2
_WARM_REQUESTS: Final = 10_000


def run_cluster() -> dict[str, float]:
    """Rates, seconds, memory and the ratio to the bare loops."""
    small = plan(scenario(_WARM_REQUESTS, replicas=REPLICAS, router="least_outstanding"))
    engine_run(small)
    bare_run(small)
    planned = plan(scenario(REQUESTS, replicas=REPLICAS, router="least_outstanding"))
    return {"replicas": REPLICAS} | beside_the_bare_loop(planned, request_count=REQUESTS, rounds=ROUNDS)
