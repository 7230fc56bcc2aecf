"""A candidate as a person reads it: its inputs as overrides, ready for `--set`, and a row with its figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simcore.analysis.search.candidates import Candidates
from simcore.analysis.search.choices import Limits, measured
from simcore.analysis.search.lanes import Lane
from simcore.analysis.search.spec import Search
from simcore.scenario import Scenario

SHOWN = (
    "usd_per_million_tokens",
    "usd_per_million_output_tokens",
    "ttft_s",
    "tpot_s",
    "output_token_per_s_per_chip",
    "joule_per_token",
    "tco_usd_per_year",
)


def overrides(found: Candidates, place: int, scenario: Scenario, search: Search) -> dict[str, Any]:
    """What makes the scenario this candidate."""
    lane, pair = found.lane(place), found.apart(place)
    said = _hardware(lane, scenario, int(found.columns.chip_count[place]))
    said |= {"serving.weights_dtype": lane.weights_dtype, "serving.kv.dtype": lane.kv_dtype}
    said = {path: value for path, value in said.items() if not path.endswith("dtype") or value != "auto"}
    if scenario.serving.autoscaling is not None:
        said["serving.autoscaling"] = None
    if pair is None:
        said |= _together(lane, int(found.columns.replicas[place]))
    else:
        said["serving.scheduler.kind"] = "disaggregated"
        counts = {"prefill": found.columns.prefill_replicas[place], "decode": found.columns.replicas[place]}
        for role, own in (("prefill", pair.prefill), ("decode", pair.decode)):
            said[f"serving.scheduler.{role}"] = {
                "parallelism": own.cut.model_dump(exclude_defaults=True),
                "replica_count": int(counts[role]),
                **_knobs(own),
            }
    if search.rate == "free":
        rate = float(f"{found.columns.offered_request_per_s[place]:.6g}")
        said["workload.arrivals"] = {"kind": "poisson", "request_per_s": rate}
    for name in ("ttft_s", "tpot_s"):
        if (limit := getattr(search, name)) is not None:
            said[f"workload.slo.{name}"] = limit
    return said


def _hardware(lane: Lane, scenario: Scenario, chip_count: int) -> dict[str, Any]:
    own = scenario.hardware
    said: dict[str, Any] = {"hardware.chip": lane.site.chip, "hardware.chip_count": chip_count}
    if own.pools:
        said["hardware.pools"] = []
    if lane.site.chip != own.chip:
        if own.chip_overrides:
            said["hardware.chip_overrides"] = {}
        if own.server != "auto":
            said["hardware.server"] = "auto"
        if own.calibration != "auto":
            said["hardware.calibration"] = "auto"
    topology = lane.site.scenario.topology
    if topology != scenario.topology:
        said["topology"] = None if topology is None else {"kind": topology.kind}
    return said


def _together(lane: Lane, replica_count: int) -> dict[str, Any]:
    knobs = {f"serving.scheduler.{name}": value for name, value in _knobs(lane).items()}
    return {
        "serving.parallelism.tp": lane.cut.tp,
        "serving.parallelism.pp": lane.cut.pp,
        "serving.parallelism.dp": lane.cut.dp,
        "serving.parallelism.ep": lane.cut.ep,
        "serving.replica_count": replica_count,
        "serving.scheduler.kind": lane.batching,
        **knobs,
    }


def _knobs(lane: Lane) -> dict[str, Any]:
    return {"max_num_seqs": lane.max_num_seqs, "max_num_batched_tokens": lane.max_num_batched_tokens}


def row(found: Candidates, place: int, limits: Limits) -> dict[str, Any]:
    """The candidate's design and closed-form figures; what is not a number is None."""
    lane, pair, columns = found.lane(place), found.apart(place), found.columns
    figures = {name: _number(found.figures[name][place]) for name in SHOWN}
    tpot_s = figures["tpot_s"]
    return {
        "chip": lane.site.chip,
        "chip_name": lane.site.hardware.chip.name,
        "chip_count": int(columns.chip_count[place]),
        "fabric": lane.site.hardware.topology.kind,
        "scheduler": lane.batching if pair is None else "disaggregated",
        "cut": cut_text(lane) if pair is None else f"{cut_text(pair.prefill)} → {cut_text(lane)}",
        "replicas": int(columns.replicas[place]),
        "prefill_replicas": int(columns.prefill_replicas[place]),
        "weights_dtype": lane.weights_dtype,
        "kv_dtype": lane.kv_dtype,
        "max_num_seqs": lane.scheduler.max_num_seqs,
        "max_num_batched_tokens": lane.scheduler.max_num_batched_tokens,
        "request_per_s": float(columns.offered_request_per_s[place]),
        "load_ratio": float(columns.load_ratio[place]),
        **figures,
        "output_token_per_s_per_user": 1.0 / tpot_s if tpot_s else None,
        "breaks": [
            name for name, limit in limits.items() if measured(found, name)[place] > limit * (1 + 1e-9)
        ],
    }


def cut_text(lane: Lane) -> str:
    """`TP8`, `TP4 PP2`, `TP1 DP8 EP8`."""
    cut = lane.cut
    said: Mapping[str, int] = {"PP": cut.pp, "DP": cut.dp, "EP": cut.ep}
    return " ".join([f"TP{cut.tp}", *(f"{name}{degree}" for name, degree in said.items() if degree > 1)])


def _number(value: float) -> float | None:
    found = float(value)
    return found if abs(found) < float("inf") else None
