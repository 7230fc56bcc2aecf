"""`trimtab bench search`: a plan search over ten kinds of chip and all legal cuts, and the verification of its front.

Llama-3.1-70B at 8 requests per second of 1,024 → 256 tokens on up to 64 chips, prefill and decode together and apart.
Closed forms run on one process; the front is planned and simulated on two.
"""

from __future__ import annotations

import time
from typing import Any, Final

from simcore.analysis.cells import evaluate_in_processes
from simcore.analysis.search import Search, answer, cells_of, closed_forms
from simcore.bench.serving import peak_rss_bytes

JOBS: Final = 2
DOCUMENT: Final[dict[str, Any]] = {
    "name": "search benchmark",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 16},
    "model": {"name": "llama-3.1-70b"},
    "workload": {"arrivals": {"kind": "poisson", "request_per_s": 8.0}, "request_count": 2_000},
}
MAX_CHIPS: Final = 64
TARGET_S: Final = 5.0


def run_search() -> dict[str, float]:
    """Candidates per second in closed form, and the seconds that verifying the front takes."""
    wanted = Search(max_chips=MAX_CHIPS)
    closed_forms(DOCUMENT, wanted.model_copy(update={"chips": wanted.chips[:1]}))  # reads the catalog
    begin = time.perf_counter()
    found = closed_forms(DOCUMENT, wanted)
    closed_s = time.perf_counter() - begin
    begin = time.perf_counter()
    told = answer(found, list(evaluate_in_processes(DOCUMENT, cells_of(found), jobs=JOBS)))
    return {
        "candidates": told.candidate_count,
        "feasible": told.feasible_count,
        "kinds_of_chip": len(wanted.chips),
        "seconds": closed_s,
        "target_seconds": TARGET_S,
        "candidates_per_s": told.candidate_count / closed_s,
        "front": len(found.frontier),
        "verified": len(found.verified),
        "verify_seconds": time.perf_counter() - begin,
        "peak_rss_bytes": peak_rss_bytes(),
    }
