"""Prefill and decode apart, from the scenario to the result."""

import pytest

from simcore.errors import InfeasibleError, InputError
from simcore.plan import plan
from simcore.report.engine_command import vllm_command
from simcore.scenario import Scenario
from simcore.simulate import simulate


def scenario(
    *, chip_count: int = 16, request_per_s: float = 8.0, requests: int = 1500, tp: int | str = 4, **scheduler
):
    return Scenario.parse(
        {
            "name": "apart",
            "hardware": {"chip": "nvidia-h100-sxm", "chip_count": chip_count},
            "model": {"name": "llama-3.1-70b"},
            "workload": {
                "arrivals": {"kind": "poisson", "request_per_s": request_per_s},
                "lengths": {
                    "kind": "lognormal",
                    "input_mean_tokens": 3000,
                    "input_cv": 1.0,
                    "output_mean_tokens": 300,
                    "output_cv": 1.0,
                },
                "request_count": requests,
            },
            "serving": {
                "weights_dtype": "fp8",
                "parallelism": {"tp": tp},
                "scheduler": {"kind": "disaggregated"} | scheduler,
            },
        }
    )


def test_chips_are_dealt_out_so_that_the_lesser_pool_carries_most() -> None:
    planned = plan(scenario()).serving
    chosen = planned.capacity.value
    for prefill in (1, 2, 3):
        other = plan(
            scenario(prefill={"replica_count": prefill}, decode={"replica_count": 4 - prefill})
        ).serving
        assert other.capacity.value <= chosen
    assert planned.chip_count == 16
    assert planned.idle_chip_count == 0


def test_what_is_dealt_out_is_said() -> None:
    found = plan(scenario(prefill={"replica_count": 2}, decode={"parallelism": {"tp": 8}}))
    assert found.resolved["serving.scheduler.prefill.replica_count"] == 2
    assert found.resolved["serving.scheduler.decode.replica_count"] == 1
    assert found.resolved["serving.scheduler.prefill.parallelism.tp"] == 4
    assert found.resolved["serving.scheduler.decode.parallelism.tp"] == 8


def test_capacity_is_the_least_of_the_pools_and_the_link() -> None:
    terms = plan(scenario()).terms
    least = min(
        terms[f"serving.{name}_capacity_request_per_s"].value for name in ("prefill", "decode", "kv_link")
    )
    assert terms["serving.capacity_request_per_s"].value == pytest.approx(least)
    slow = plan(scenario(kv_link_bytes_per_s="100 MB/s")).terms
    assert slow["serving.capacity_request_per_s"].value == pytest.approx(
        slow["serving.kv_link_capacity_request_per_s"].value
    )
    assert slow["serving.capacity_request_per_s"].value < 0.2 * least


def test_the_transfer_is_the_kv_of_a_prompt_over_the_link_of_its_chips() -> None:
    """Llama 3.1 70B: 327,680 B a token in bf16, a quarter of it on each of four chips at 50 GB/s."""
    found = plan(scenario(kv_link_bytes_per_s="50 GB/s", kv_link_latency_s=0.0))
    tokens = found.serving.inputs.requests.input_tokens.mean()
    expected = tokens * 327_680 / 4 / 50e9
    assert found.terms["serving.kv_transfer_alone_s"].value == pytest.approx(expected, rel=0.01)


def test_the_simulation_meets_the_queueing_estimate_at_half_load() -> None:
    found = simulate(plan(scenario(requests=4000))).metrics
    assert 0.4 < found["serving.offered_load_ratio"] < 0.6
    assert found["serving.ttft_s.mean"] == pytest.approx(found["serving.estimate.ttft_s"], rel=0.35)
    assert found["serving.tpot_s.mean"] == pytest.approx(found["serving.estimate.tpot_s"], rel=0.05)


def test_a_slow_link_shows_in_the_time_to_the_first_token_and_nowhere_later() -> None:
    fast, slow = (
        simulate(plan(scenario(kv_link_bytes_per_s=rate))).metrics for rate in ("100 GB/s", "2 GB/s")
    )
    transfer_s = slow["serving.kv_transfer_s.mean"] - fast["serving.kv_transfer_s.mean"]
    assert transfer_s > 0.1
    assert slow["serving.ttft_s.mean"] - fast["serving.ttft_s.mean"] == pytest.approx(transfer_s, rel=0.1)
    assert slow["serving.tpot_s.mean"] == pytest.approx(fast["serving.tpot_s.mean"], rel=0.05)


def test_an_endless_link_is_a_missing_one() -> None:
    """And layers that are sent as they are computed then make no difference."""
    runs = [
        simulate(plan(scenario(kv_link_bytes_per_s=1e15, kv_link_latency_s=0.0, layerwise=layerwise))).metrics
        for layerwise in (False, True)
    ]
    assert runs[0]["serving.kv_transfer_s.mean"] < 1e-5
    assert runs[0]["serving.ttft_s.mean"] == pytest.approx(runs[1]["serving.ttft_s.mean"], rel=1e-3)


def test_layers_sent_as_they_are_computed_hide_most_of_a_transfer() -> None:
    whole, layered = (
        simulate(plan(scenario(kv_link_bytes_per_s="10 GB/s", layerwise=layerwise))).metrics
        for layerwise in (False, True)
    )
    assert layered["serving.kv_transfer_s.mean"] < 0.5 * whole["serving.kv_transfer_s.mean"]
    assert layered["serving.ttft_s.mean"] < whole["serving.ttft_s.mean"]


def test_chip_time_is_shared_out_over_both_pools() -> None:
    result = simulate(plan(scenario()))
    assert sum(row["fraction"] for row in result.tables["where_time_goes"]) == pytest.approx(1.0)
    prefill, decode = (result.metrics[f"serving.{role}_busy_fraction"] for role in ("prefill", "decode"))
    counts = [result.metrics[f"serving.{role}_replica_count"] for role in ("prefill", "decode")]
    idle = 1 - (prefill * counts[0] + decode * counts[1]) / sum(counts)
    up = 1 - result.metrics.get("analysis.waiting.failure_fraction", 0.0)
    assert result.metrics["analysis.waiting.queue_fraction"] == pytest.approx(idle * up, abs=1e-6)


def test_too_few_chips_for_one_of_each_is_an_answer() -> None:
    with pytest.raises(InfeasibleError, match="own 8, or lower a replica count or tp") as caught:
        plan(scenario(chip_count=7))
    assert caught.value.message.path == "hardware.chip_count"


def test_kv_moves_in_pages() -> None:
    document = scenario().model_dump(mode="json")
    document["serving"]["kv"]["allocator"] = "contiguous_max"
    with pytest.raises(InputError, match="use paged") as caught:
        plan(Scenario.parse(document))
    assert caught.value.message.path == "serving.kv.allocator"


def test_a_scaleup_link_needs_one_domain() -> None:
    assert plan(scenario(chip_count=8, kv_link="scaleup")).terms["serving.kv_transfer_alone_s"].value < 5e-3
    with pytest.raises(InputError, match="use scaleout") as caught:
        plan(scenario(kv_link="scaleup"))
    assert caught.value.message.path == "serving.scheduler.kv_link"


def test_an_error_of_a_pool_stands_at_the_pools_own_field() -> None:
    with pytest.raises(InputError, match="does not divide") as caught:
        plan(scenario(decode={"parallelism": {"tp": 3}}))
    assert caught.value.message.path == "serving.scheduler.decode.parallelism.tp"


def test_the_command_is_a_pair_of_servers_that_move_kv() -> None:
    text = vllm_command(plan(scenario(decode={"parallelism": {"tp": 8}, "max_num_seqs": 64})))
    prefill, decode = text.split("# decode")
    assert "# prefill" in prefill
    assert "--tensor-parallel-size 4" in prefill
    assert "--tensor-parallel-size 8" in decode
    assert "--max-num-seqs 64" in decode
    assert text.count("--kv-transfer-config") == 2
    assert "proxy" in text


def test_a_replica_count_that_the_pools_do_not_read_is_said() -> None:
    document = scenario().model_dump(mode="json")
    document["serving"]["replica_count"] = 3
    codes = {warning.path for warning in plan(Scenario.parse(document)).warnings}
    assert "serving.replica_count" in codes
