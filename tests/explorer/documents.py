"""Result documents for tests of charts and pages: one that serves, one of a fabric alone, and a baseline of each."""

from itertools import pairwise
from typing import Any


def serving(*, hbm_s: float = 0.004, tokens: float = 410.0, ttft_p95: float = 2.1) -> dict[str, Any]:
    """Four resources, two doublings, three distributions, a short series."""
    parts = {"hbm": hbm_s, "scaleup": 0.002, "compute": 0.003, "overhead": 0.001}
    total = sum(parts.values())
    rows = [
        {"resource": name, "fraction": s / total * 0.9, "s_per_iteration": s} for name, s in parts.items()
    ]
    times = [0.1, 0.2, 0.5, 1.0, 2.0, 4.0]
    shares = [0.0, 0.2, 0.5, 0.8, 0.95, 1.0]
    return {
        "schema_version": 1,
        "engine_version": "test",
        "digest": f"serving-{hbm_s}",
        "seed": 1,
        "scenario": {
            "name": "serves",
            "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 8},
            "workload": {"slo": {"ttft_s": 2.0, "tpot_s": 0.05}},
        },
        "metrics": {
            "serving.tpot_s.mean": total,
            "serving.tpot_s.p50": total,
            "serving.output_token_per_s_per_chip": tokens,
            "serving.ttft_s.mean": ttft_p95 / 3,
            "serving.ttft_s.p50": ttft_p95 / 4,
            "serving.ttft_s.p95": ttft_p95,
            "serving.ttft_s.p99": ttft_p95 * 2,
            "serving.slo_attainment_fraction": 0.94,
            "serving.completed_count": 1000,
            "serving.offered_load_ratio": 0.8,
            "serving.regime": "stable",
            "serving.kv_usage_fraction.max": 0.21,
            "compute.decode_step_s": 0.0106,
            "memory.kv_token_capacity": 1_378_240,
            "memory.max_concurrency_at_max_len": 10.5,
            "cost.power_w": 9680.0,
            "cost.usd_per_million_output_tokens": 0.805,
            "cost.priced_fraction": 0.75,
            "analysis.bottleneck": "compute",
        },
        "bands": {},
        "warnings": [
            {
                "code": "fabric.none_needed",
                "path": "topology",
                "message": "8 chips share one server",
                "template": "{chip_count} chips share one server",
                "params": {"chip_count": 8},
            }
        ],
        "series": {
            "serving": {
                "time_s": [0.0, 1.0, 2.0, 3.0],
                "running": [0, 32, 64, 64],
                "waiting": [64, 30, 0, 2],
                "kv_usage_fraction": [0.0, 0.1, 0.2, 0.21],
                "batch_tokens": [0, 2048, 64, 64],
            },
            "ttft_cdf": {"ttft_s": times, "fraction": shares},
            "tpot_cdf": {"tpot_s": [0.01, 0.02, 0.03], "fraction": [0.0, 0.5, 1.0]},
            "itl_cdf": {"itl_s": [0.01, 0.02, 0.05, 0.2], "fraction": [0.0, 0.9, 0.99, 1.0]},
            "e2e_cdf": {"e2e_s": [10.0, 20.0, 30.0], "fraction": [0.0, 0.5, 1.0]},
        },
        "tables": {
            "where_time_goes": [*rows, {"resource": "queue", "fraction": 0.1, "s_per_iteration": 0.0}],
            "doublings": [
                {"resource": "hbm_bandwidth", "gain_ratio": 1.1, "tpot_ratio": 0.8, "next_bottleneck": "compute"},
                {"resource": "compute", "gain_ratio": 1.16, "tpot_ratio": 1.0, "next_bottleneck": "scaleup"},
            ],
            "operators": [*_operators("decode", "hbm", 1.0), *_operators("prefill", "compute", 4.0)],
            "roofs": [
                {"kind": "compute", "dtype": "bf16", "per_s": 989e12},
                {"kind": "hbm", "dtype": "", "per_s": 3.35e12},
            ],
            "memory_waterfall": [
                {"item": "visible", "bytes": 85e9, "kind": "total", "note": ""},
                {"item": "utilization_cut", "bytes": 8.5e9, "kind": "loss", "note": ""},
                {"item": "weights", "bytes": 17.6e9, "kind": "use", "note": ""},
                {"item": "kv", "bytes": 58.9e9, "kind": "free", "note": ""},
            ],
            "bill": [
                {
                    "item": "chip", "label": "chips", "count": 8, "unit_usd": 28e3, "total_usd": 224e3,
                    "low_usd": 200e3, "high_usd": 240e3, "power_w": 4760, "priced": True, "source": "a book",
                    "group": "compute",
                },
                {
                    "item": "nic", "label": "nics", "count": 8, "power_w": 0, "priced": False, "source": "",
                    "group": "compute",
                },
            ],
        },
    }  # fmt: skip


def _operators(phase: str, bound: str, scale: float) -> list[dict[str, Any]]:
    """Rows of one phase of an iteration of two layers; 1 ms × scale in all."""
    flop, moved = (2e9, 1e9) if bound == "hbm" else (3.2e11, 1e9)
    lines = [
        ("launch", "launch_s", "host", True, "host", 0.05),
        ("qkv", "qkv_s", "compute", True, bound, 0.15),
        ("attention", f"{phase}_attention_s", "compute", True, bound, 0.1),
        ("attention_output", "attention_output_s", "compute", True, bound, 0.1),
        ("mlp_up", "mlp_up_s", "compute", True, bound, 0.3),
        ("all_reduce", "communication_s", "collective", True, "scaleup", 0.2),
        ("host", "overhead_s", "host", False, "host", 0.1),
    ]
    return [
        {
            "phase": phase, "operator": name, "term": term, "lane": lane, "per_layer": per_layer,
            "count": 2.0 if per_layer else 1.0, "s": share * scale * 1e-3, "bound": waits,
            "dtype": "bf16" if lane == "compute" else "",
            "flop": flop if lane == "compute" else 0.0, "bytes": moved if lane == "compute" else 0.0,
            "intensity_flop_per_byte": flop / moved if lane == "compute" else None,
            "attained_flop_per_s": flop / (share * scale * 1e-3) if lane == "compute" else None,
        }
        for name, term, lane, per_layer, waits, share in lines
    ]  # fmt: skip


def fabric(*, rail_only: bool = False, islands: int = 1) -> dict[str, Any]:
    """32,768 chips behind a three-tier Clos, or behind rail switches."""
    tiers = [("rail", 256)] if rail_only else [("leaf", 512), ("spine", 512), ("core", 256)]
    nodes = [
        {"id": "chip", "label": "chips", "kind": "chip", "count": 32768, "tier": 0},
        {"id": "server", "label": "domains", "kind": "server", "count": 128, "tier": 0},
        *({"id": n, "label": n, "kind": n, "count": c, "tier": i} for i, (n, c) in enumerate(tiers, start=1)),
    ]
    names = ["chip", *(name for name, _count in tiers)]
    edges = [
        {"source": lower, "target": upper, "link_count": 32768, "medium": "optical"}
        for lower, upper in pairwise(names)
    ]
    edges.append({"source": "chip", "target": "server", "link_count": 32768, "medium": "scaleup"})
    switches = sum(count for _name, count in tiers)
    island = {
        "chip_count": 32768, "hb_domain_size": 8, "radix": 128, "limit": 1024, "island_count": islands,
        "island_size": 1024, "nearest": 256,
    }  # fmt: skip
    warning = {
        "code": "fabric.islands",
        "path": "topology.tiers",
        "message": "islands",
        "template": "",
        "params": island,
    }
    return {
        "schema_version": 1,
        "engine_version": "test",
        "digest": f"fabric-{rail_only}-{islands}",
        "seed": 1,
        "scenario": {
            "name": "joins",
            "hardware": {"chip_count": 32768},
            "topology": {"kind": "rail_only" if rail_only else "clos", "radix": 128},
            "workload": {"kind": "none"},
        },
        "metrics": {
            "fabric.switch_count": switches,
            "fabric.link_count": 32768 * len(tiers),
            "fabric.transceiver_count": 65536 * len(tiers),
            "fabric.island_count": islands,
            "fabric.tiers": len(tiers),
            "fabric.diameter_hops": 2 * len(tiers),
            "reliability.slice_goodput_fraction.mean": 0.751,
            "reliability.static_goodput_fraction.mean": 0.277,
        },
        "bands": {},
        "warnings": [warning] if islands > 1 else [],
        "series": {
            "slice_goodput": {
                "slice_chips": [64, 256, 1024],
                "ocs_mean": [0.97, 0.95, 0.75],
                "ocs_q97": [0.96, 0.93, 0.75],
                "static_mean": [0.96, 0.80, 0.28],
                "static_q97": [0.95, 0.75, 0.25],
            }
        },
        "tables": {
            "quotient_graph": {"nodes": nodes, "edges": edges},
            "transceivers": [
                {"convention": "both_ends", "count": 65536 * len(tiers)},
                {"convention": "copper_first_hop", "count": 65536 * (len(tiers) - 1)},
                {"convention": "twin_port", "count": 49152 * len(tiers)},
            ],
            "hop_histogram": [{"hops": 1, "fraction": 0.01}, {"hops": 2 * len(tiers), "fraction": 0.99}],
            "collectives": [
                {
                    "operation": "all_reduce",
                    "ranks": 8,
                    "payload_bytes": 1e9,
                    "s": 0.004,
                    "bus_bytes_per_s": 4e11,
                }
            ],
        },
    }
