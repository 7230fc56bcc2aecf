"""Every input of the scenario has an effect, or the plan says that it has none."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.analysis import analyse
from simcore.plan import Plan, plan
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import simulate

SMALL = {
    "workload.request_count": 200,
    "workload.arrivals.request_per_s": 60,
    "hardware.chip_count": 16,
    "serving.parallelism.tp": 2,
    "topology.kind": "rail_optimized",
    "topology.radix": 64,
}


def planned(overrides: dict[str, Any]) -> Plan:
    document, _ = apply_overrides({"name": "test"}, SMALL | overrides)
    return plan(Scenario.parse(document))


def analysed(found: Plan) -> dict[str, Any]:
    result = simulate(found)
    return dict(result.with_findings(analyse(found, result)).metrics)


BASELINE = analysed(planned({}))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("workload.slo.ttft_s", 0.01),
        ("workload.slo.tpot_s", 0.001),
        ("workload.slo.attainment_fraction", 0.5),
        ("workload.arrivals.request_per_s", 30),
        ("workload.lengths.input_cv", 0.1),
        ("workload.sessions.turns_mean", 4),
        ("workload.sessions.turns_law", "constant"),
        ("workload.sessions.think_time_mean_s", 3),
        ("workload.sessions.think_time_cv", 0),
        ("workload.sessions.shared_system_prompt_tokens", 500),
        ("serving.engine", "SGLang 0.5"),
        ("serving.max_model_len", 512),
        ("serving.num_gpu_blocks_override", 3000),
        ("serving.kv_cache_memory_bytes", "10 GB"),
        ("serving.replica_count", 3),
        ("serving.parallelism.pp", 2),
        ("serving.parallelism.dp", 2),
        ("serving.parallelism.expert_imbalance_ratio", 1.5),
        ("serving.scheduler.kind", "continuous"),
        ("serving.scheduler.max_num_seqs", 2),
        ("serving.scheduler.max_num_batched_tokens", 256),
        ("serving.scheduler.long_prefill_token_threshold", 64),
        ("serving.scheduler.prediction_cv", 0.5),
        ("serving.kv.block_size", 64),
        ("serving.kv.dtype", "fp8"),
        ("serving.kv.gpu_memory_utilization", 0.7),
        ("serving.weights_dtype", "fp8"),
        ("serving.attention.kind", "naive"),
        ("reliability.host_availability_fraction", 0.9),
        ("reliability.slice_chips", 8),
        ("reliability.failures", "llama-3"),
        ("reliability.spares", 2),
        ("reliability.failures_per_thousand_node_days_ratio", 3.0),
        ("reliability.mttr_s", 3600),
        ("reliability.bring_up_s", 60),
        ("reliability.jobs", [{"chips": 64}]),
        ("reliability.checkpoint_interval_s", 100.0),
        ("reliability.checkpoint_write_s", 10),
        ("reliability.restart_s", 10),
        ("economics.price_book", "h100-sheet-2024-08"),
        ("economics.price_ratio", 1.2),
        ("economics.network_price_ratio", 1.2),
        ("economics.electricity_usd_per_kwh", 0.5),
        ("economics.pue", 2),
        ("economics.depreciation_years", 2),
        ("economics.labour_usd_per_hour", 1000),
        ("economics.minutes_per_suspect", 1000),
        ("economics.connection_load_threshold_fraction", 0.0),
        ("economics.software_usd_per_chip_year", 1000),
        ("economics.alternatives", [{"name": "x", "probability_fraction": 0.5, "cost_usd": 1e6}]),
        ("topology.kind", "rail_only"),
        ("topology.radix", 32),
        ("topology.tiers", 2),
        ("topology.oversubscription_ratio", 4),
        ("topology.hb_domain_size", 4),
        ("topology.transceiver_convention", "twin_port"),
        ("topology.price_book", "deepseek-isca-2025"),
        ("hardware.chip_overrides.hbm_bytes_per_s", "x2"),
        ("hardware.chip_overrides.bf16_flop_per_s", "x2"),
        ("hardware.chip_overrides.scaleup_bytes_per_s", "x2"),
        ("hardware.chip_overrides.hbm_visible_bytes", "x2"),
        ("hardware.chip_overrides.tdp_w", "x2"),
        ("run.seed", 2),
    ],
)
def test_an_edit_changes_a_result_or_is_named_as_one_without_effect(path: str, value: Any) -> None:
    edited = planned({path: value})
    named = {warning.path for warning in edited.warnings if warning.code == "input.no_effect"}
    assert (analysed(edited) != BASELINE) == (path not in named)


def test_defaults_are_never_named() -> None:
    assert "input.no_effect" not in {warning.code for warning in planned({}).warnings}


def test_expert_parallelism_says_that_it_changes_nothing() -> None:
    experts = planned(
        {"model.name": "mixtral-8x7b", "serving.parallelism.tp": 4, "serving.parallelism.ep": 4}
    )
    assert "serving.parallelism.ep" in {warning.path for warning in experts.warnings}


CLASSES = [{"name": "free", "share_fraction": 0.5}, {"name": "paid", "share_fraction": 0.5, "weight": 3}]


@pytest.mark.parametrize(
    ("queue", "classes", "named"),
    [
        ("fair", CLASSES, set()),
        ("fair", [], {"serving.scheduler.queue"}),
        ("fcfs", CLASSES, {"workload.classes"}),
        ("fcfs", [], set()),
    ],
)
def test_weights_and_a_fair_line_need_each_other(queue: str, classes: list, named: set) -> None:
    warnings = planned({"serving.scheduler.queue": queue, "workload.classes": classes}).warnings
    assert {warning.path for warning in warnings if warning.code == "input.no_effect"} == named
