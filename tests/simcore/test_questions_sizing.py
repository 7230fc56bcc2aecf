"""How many, how large, which: N018, N019, N077, N079, N081, N082 (N155 is in the validation table)."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.analysis.search import Search, closed_forms
from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import simulate

GIB = 2**30
Overrides = dict[str, Any]


def planned(overrides: Overrides) -> dict[str, Any]:
    return dict(plan(_scenario(overrides)).metrics)


def simulated(overrides: Overrides) -> dict[str, Any]:
    return dict(simulate(plan(_scenario(overrides))).metrics)


def _scenario(overrides: Overrides) -> Scenario:
    document, _ = apply_overrides({"name": "sizing"}, overrides)
    return Scenario.parse(document)


def constant_lengths(input_tokens: int, output_tokens: int) -> Overrides:
    return {
        "workload.lengths": {"kind": "constant", "input_tokens": input_tokens, "output_tokens": output_tokens}
    }


def test_n018_a_request_of_8k_tokens_takes_one_gib() -> None:
    """A page says 11.47 GB per request of a 7B model. With 8 KV heads it is 1 GiB, so one card of 24 GB holds 16."""
    got = planned(
        {
            "hardware.chip": "nvidia-rtx-4090",
            "hardware.chip_count": 1,
            "model.name": "mistral-7b",
            "serving.weights_dtype": "int4",
            "serving.max_model_len": 8192,
        }
    )
    assert got["model.kv_bytes_per_token"] * 8192 == GIB
    assert got["memory.kv_token_capacity"] // 8192 == 16


def test_n019_users_on_one_card_of_80_gb() -> None:
    """Doubleword: 64 GB of KV are 492k tokens, at most 49 users of 8k in and 2k out. Its upper bound keeps nothing
    back; with 10 % of the card left free and what activations take it is 43."""
    got = planned(
        {
            "hardware.chip": "nvidia-a100-80gb-sxm",
            "hardware.chip_count": 1,
            "model.name": "llama-3.1-8b",
            "serving.max_model_len": 10_240,
        }
    )
    upper = 64e9 / got["model.kv_bytes_per_token"]
    assert upper == pytest.approx(492_000, rel=0.01)
    assert got["memory.kv_token_capacity"] // 10_240 == 43
    assert got["memory.kv_token_capacity"] < upper


def test_n077_a_sweep_over_both_chips_has_a_frontier_and_h200_serves_more() -> None:
    """VMware: gpt-oss-120b on H100 or H200, found by a multi-objective sweep. 4.8 against 3.35 TB/s are 1.43 times
    the bytes; at 20 ms per token the best H200 design makes 1.2 to 1.43 times the tokens of the best H100 one."""
    document = {
        "name": "coding assistant",
        "model": {"name": "gpt-oss-120b"},
        "workload": {
            "arrivals": {"kind": "poisson", "request_per_s": 4},
            "lengths": {"kind": "constant", "input_tokens": 4096, "output_tokens": 512},
            "slo": {"ttft_s": 2, "tpot_s": 0.02},
        },
    }
    wanted = Search(
        objective="output_token_per_s_per_chip",
        chips=("nvidia-h100-sxm", "nvidia-h200-sxm"),
        max_chips=8,
        rate="free",
        schedulers=("chunked_prefill",),
        max_num_batched_tokens=("auto",),
    )
    found = closed_forms(document, wanted)
    assert len(found.frontier) > 10
    best = [
        found.candidates.figures["output_token_per_s_per_chip"][place]
        for place in found.by_chip.values()
        if place is not None
    ]
    assert 1.2 < best[1] / best[0] < 1.43


def test_n079_arithmetic_of_flops_alone_leaves_out_a_factor() -> None:
    """1,000 token/s of 100 users. By 2 operations per parameter a server of eight chips of 312 TFLOP/s (an Ascend 910B
    has 320; the catalog has no Ascend) makes 17,700 token/s. Simulated, prompts and reads of weights and KV among it,
    100 users at once get 1,035: one server, with hardly any room."""
    got = simulated(
        {
            "hardware.chip": "nvidia-a100-80gb-sxm",
            "hardware.chip_count": 8,
            "model.name": "llama-3.1-70b",
            "serving.parallelism.tp": 8,
            "workload.arrivals": {"kind": "closed_loop", "concurrency": 100},
            "workload.request_count": 300,
        }
    )
    by_flops = 8 * 312e12 / (2 * got["model.parameter_count"])
    assert by_flops == pytest.approx(17_700, rel=0.01)
    assert got["serving.output_token_per_s"] == pytest.approx(1_035, rel=0.05)


def test_n081_queueing_needs_more_than_the_bound() -> None:
    """Llama-3-70B in BF16: 140 GB of weights, 320 KiB per token. One replica's capacity is above the 8 requests per
    second, so the bound says one; half of the requests then miss the SLO, and two replicas keep it."""
    kept = []
    for replicas in (1, 2):
        got = simulated(
            {
                "hardware.chip_count": 4 * replicas,
                "model.name": "llama-3.1-70b",
                "serving.parallelism.tp": 4,
                "serving.replica_count": replicas,
                "workload.arrivals": {"kind": "poisson", "request_per_s": 8},
                "workload.slo.ttft_s": 0.5,
                "workload.request_count": 800,
            }
        )
        assert got["model.weight_bytes"] == pytest.approx(140e9, rel=0.01)
        assert got["model.kv_bytes_per_token"] == 320 * 1024
        assert got["serving.offered_load_ratio"] < 1
        kept.append(got["serving.slo_attainment_fraction"])
    assert kept[0] < 0.6
    assert kept[1] > 0.99


def test_n082_an_apparently_idle_fleet_misses_its_p99() -> None:
    """Few long prompts among short ones: at less than a third of its capacity, P99 of TTFT is over ten times the
    median, and a limit of a second that the median keeps with ease is broken."""
    got = simulated(
        {
            "hardware.chip_count": 4,
            "model.name": "llama-3.1-70b",
            "serving.parallelism.tp": 4,
            "workload.arrivals": {"kind": "poisson", "request_per_s": 2},
            "workload.lengths": {
                "kind": "lognormal",
                "input_mean_tokens": 2000,
                "input_cv": 3,
                "output_mean_tokens": 100,
            },
            "workload.request_count": 800,
        }
    )
    assert got["serving.offered_load_ratio"] < 1 / 3
    assert got["serving.ttft_s.p50"] < 0.3
    assert got["serving.ttft_s.p99"] > max(1.0, 10 * got["serving.ttft_s.p50"])
