"""`trimtab bench disagg`: 200,000 requests through 24 replicas that prefill and 40 that decode, with every metric on.

The work is that of `bench cluster`, 64 chips at 8 requests per second each, with KV sent over the scale-out link. The
yardstick serves the same requests together, dealt out in turn over 64 bare loops: no hand-over, no link, no routing.
The two take turns; the best of three of each counts.
"""

from __future__ import annotations

from typing import Final

from simcore.bench.serving import bare_run, beside_the_bare_loop, engine_run, scenario
from simcore.plan import Plan, plan
from simcore.scenario import Scenario

PREFILL_REPLICAS: Final = 24
DECODE_REPLICAS: Final = 40
REQUESTS: Final = 200_000
ROUNDS: Final = 3
_WARM_REQUESTS: Final = 10_000


def run_disagg() -> dict[str, float]:
    """Rates, seconds, memory and the ratio to the bare loops."""
    engine_run(_apart(_WARM_REQUESTS))
    bare_run(_together(_WARM_REQUESTS))
    found = beside_the_bare_loop(
        _apart(REQUESTS), request_count=REQUESTS, rounds=ROUNDS, bare=_together(REQUESTS)
    )
    return {"prefill_replicas": PREFILL_REPLICAS, "decode_replicas": DECODE_REPLICAS} | found


def _together(request_count: int) -> Plan:
    return plan(scenario(request_count, replicas=PREFILL_REPLICAS + DECODE_REPLICAS))


def _apart(request_count: int) -> Plan:
    document = scenario(request_count, replicas=PREFILL_REPLICAS + DECODE_REPLICAS).model_dump(mode="json")
    batching = {"max_num_seqs": 128, "max_num_batched_tokens": 512}
    document["serving"]["replica_count"] = "auto"
    document["serving"]["scheduler"] = {
        "kind": "disaggregated",
        "prefill": {"replica_count": PREFILL_REPLICAS} | batching,
        "decode": {"replica_count": DECODE_REPLICAS} | batching,
    }
    return plan(Scenario.parse(document))
