"""A training scenario from its document to metrics, findings and money."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from simcore import why
from simcore.analysis import analyse
from simcore.analysis.headline import headline
from simcore.catalog import default_catalog
from simcore.errors import InfeasibleError, InputError
from simcore.plan import Plan, plan
from simcore.plan.training import build_training, chip_time
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import simulate

BASE = {
    "name": "70B on 64",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
    "model": {"name": "llama-3.1-70b"},
    "workload": {"kind": "training"},
    "training": {
        "parallelism": {"tp": 8, "pp": 4, "dp": 2},
        "sequence_length": 8192,
        "global_batch_tokens": 1_048_576,
        "virtual_stages": 5,
        "total_tokens": 1e12,
    },
}
IDS = [
    "training.step_s",
    "training.mfu_fraction",
    "training.token_per_s",
    "training.bubble_fraction",
    "training.exposed_communication_fraction",
    "training.days",
    "cost.usd_per_training_run",
    "cost.usd_per_million_tokens",
    "memory.weight_bytes_per_chip",
    "model.parameter_count",
]


def planned(overrides: dict[str, Any] | None = None) -> Plan:
    document, _ = apply_overrides(BASE, overrides or {})
    return plan(Scenario.parse(document), default_catalog())


def test_a_training_plan_has_the_metrics_of_the_interface() -> None:
    assert planned().metrics.keys() >= set(IDS)
    assert not [name for name in planned().metrics if name.startswith("serving.")]


def test_the_bubble_is_the_schedules() -> None:
    """p = 4, v = 5, m = 64."""
    assert planned().metrics["training.bubble_fraction"] == pytest.approx(3 / (5 * 64 + 3))


def test_every_term_of_the_plan_re_evaluates_to_its_metric() -> None:
    for name, term in planned().terms.items():
        assert why.evaluate(term, {}) == pytest.approx(term.value), name


def test_leaves_of_the_step_name_the_training_section() -> None:
    paths = {leaf.path for leaf in why.leaves(planned().terms["training.step_s"])}
    assert "training.parallelism.tp" in paths
    assert not [path for path in paths if path.startswith("serving.")]


def test_a_perturbed_leaf_moves_tree_and_plan_alike() -> None:
    slower = {"hardware.chip_overrides.hbm_bytes_per_s": 3.0e12}
    tree = why.evaluate(planned().terms["training.step_s"], {"hbm_bytes_per_s": 3.0e12})
    assert tree == pytest.approx(planned(slower).metrics["training.step_s"], rel=1e-6)


def test_auto_degrees_use_all_chips_and_the_smallest_tensor_group_that_fits() -> None:
    options = {
        "training.parallelism": {"pp": 1},
        "training.virtual_stages": 1,
        "training.zero_stage": 2,
    }
    found = planned(options)
    assert found.training is not None
    degrees = found.training.inputs.parallelism
    assert degrees.tp_ranks * degrees.dp == 64
    assert found.resolved["training.parallelism.tp"] == degrees.tp_ranks
    assert found.training.memory.fits
    smaller = options | {"training.parallelism": {"tp": degrees.tp_ranks // 2, "pp": 1}}
    with pytest.raises(InfeasibleError):
        planned(smaller)


def test_what_does_not_fit_names_what_binds_and_changes() -> None:
    with pytest.raises(InfeasibleError) as caught:
        planned({"training.parallelism": {"tp": 1, "pp": 1}, "training.virtual_stages": 1})
    text = str(caught.value)
    assert "bind" in text
    assert text.count(" GiB per chip and trains") == 3


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ({"training.parallelism.dp": 16}, "training.parallelism"),
        ({"training.global_batch_tokens": 1_000_000}, "training.global_batch_tokens"),
        ({"training.parallelism.tp": 6}, "training.parallelism.tp"),
    ],
)
def test_a_cut_that_cannot_be_is_refused_at_its_path(overrides: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(overrides)
    assert caught.value.message.path == path


def test_time_goes_somewhere_and_all_of_it() -> None:
    found = planned({"hardware.chip_count": 128})
    assert found.training is not None
    assert sum(chip_time(found.training).values()) == pytest.approx(1.0)
    rows = found.tables["where_time_goes"]
    assert sum(row["fraction"] for row in rows) == pytest.approx(1.0)
    inside = sum(row["s_per_iteration"] for row in rows if row["s_per_iteration"])
    assert inside == pytest.approx(found.metrics["training.step_s"])


def test_busy_and_waiting_shares_sum_to_one() -> None:
    metrics = planned().metrics
    waits = [value for name, value in metrics.items() if name.startswith("analysis.waiting.")]
    assert metrics["analysis.busy_fraction"] + sum(waits) == pytest.approx(1.0)


def test_idle_chips_are_named_and_wait() -> None:
    found = planned({"hardware.chip_count": 128})
    assert "training.idle_chips" in {warning.code for warning in found.warnings}
    assert found.metrics["analysis.waiting.queue_fraction"] > 0.4


@pytest.mark.parametrize(
    ("overrides", "code"),
    [
        ({"training.global_batch_tokens": 8192 * 4, "training.virtual_stages": 1}, "training.short_pipeline"),
        ({"training.global_batch_tokens": 8192 * 12}, "training.interleaving"),
        ({"hardware.chip": "nvidia-a100-80gb-sxm", "training.dtype": "fp8"}, "training.no_such_units"),
        (
            {"training.parallelism": {"tp": 16, "pp": 4, "dp": 1}},
            "training.tp_crosses_domain",
        ),
    ],
)
def test_a_poor_choice_is_said(overrides: dict[str, Any], code: str) -> None:
    assert code in {warning.code for warning in planned(overrides).warnings}


def test_the_memory_table_is_the_fullest_chips() -> None:
    rows = planned().tables["training_memory"]
    assert rows[0]["item"] == "visible"
    assert rows[-1] == {"item": "free", "bytes": pytest.approx(rows[-1]["bytes"]), "kind": "free", "note": ""}
    used = sum(row["bytes"] for row in rows if row["kind"] == "use")
    assert used == pytest.approx(planned().metrics["training.memory_bytes_per_chip"])


def test_a_run_costs_its_days_and_what_failures_take() -> None:
    result = simulate(planned())
    training = planned().training
    assert training is not None
    years = result.metrics["training.days"] / 365 / training.goodput.value
    assert result.metrics["cost.usd_per_training_run"] == pytest.approx(
        result.metrics["cost.tco_usd_per_year"] * years
    )
    per_million = result.metrics["cost.usd_per_million_tokens"]
    assert result.metrics["cost.usd_per_training_run"] == pytest.approx(per_million * 1e12 / 1e6)


def test_without_total_tokens_there_are_no_days_and_no_price_of_the_run() -> None:
    metrics = planned({"training.total_tokens": None}).metrics
    assert "training.days" not in metrics
    assert "cost.usd_per_training_run" not in metrics


def test_simulating_emits_its_stages_and_the_same_numbers_twice() -> None:
    heard: list[tuple[str, Any]] = []
    result = simulate(planned(), lambda kind, payload: heard.append((kind, payload.get("stage"))))
    assert heard == [("stage", "closed_forms"), ("stage", "fabric"), ("stage", "training")]
    assert simulate(planned()).as_dict() == result.as_dict()


@pytest.mark.parametrize("resource", ["compute", "hbm_bandwidth", "scaleup"])
def test_a_doubling_is_the_plan_of_the_doubled_figures(resource: str) -> None:
    figures = {
        "compute": ("bf16_flop_per_s", "fp8_flop_per_s"),
        "hbm_bandwidth": ("hbm_bytes_per_s",),
        "scaleup": ("scaleup_bytes_per_s", "pcie_bytes_per_s"),
    }[resource]
    again = planned({f"hardware.chip_overrides.{figure}": "x2" for figure in figures})
    found = analyse(planned(), simulate(planned())).metrics[f"analysis.doubling.{resource}.gain_ratio"]
    before = planned().metrics["training.token_per_s"]
    assert found == pytest.approx(again.metrics["training.token_per_s"] / before, rel=1e-6)


def test_doublings_never_lose_and_name_the_bottleneck() -> None:
    findings = analyse(planned(), simulate(planned()))
    gains = {name: v for name, v in findings.metrics.items() if name.endswith("gain_ratio")}
    assert all(gain >= 1 - 1e-9 for gain in gains.values())
    assert {row["resource"] for row in findings.tables["doublings"]} == {
        "compute",
        "hbm_bandwidth",
        "hbm_capacity",
        "scaleup",
        "scaleout",
        "latency",
    }
    for row in findings.tables["doublings"]:
        assert row["gain_ratio"] <= row["limit_ratio"] * (1 + 1e-9)
        assert 0 < row["used_fraction"] <= 1
        if row["resource"] != "hbm_capacity":
            assert row["used_fraction"] * row["saturating_token_per_s"] == pytest.approx(
                planned().metrics["training.token_per_s"]
            )
    assert findings.metrics["analysis.bottleneck"] == "compute"
    assert "step is" in findings.messages[0].text


def test_more_network_brings_no_less() -> None:
    training = planned().training
    assert training is not None
    faster = build_training(training, training.inputs.chip, scaleout_factor=4.0)
    assert faster.token_per_s.value >= training.step.token_per_s.value
    same = build_training(training, replace(training.inputs.chip))
    assert same.step_s.value == training.step.step_s.value


def test_a_comparison_says_what_a_change_did_to_the_run() -> None:
    documents = []
    for found in (planned(), planned({"training.recompute": "full"})):
        result = simulate(found)
        documents.append(result.with_findings(analyse(found, result)).as_dict())
    assert "training" in headline(*documents)[0].text
    assert "slower" in headline(*documents)[0].text


def test_the_digest_covers_the_training_section() -> None:
    assert planned().digest != planned({"training.zero_stage": 2}).digest


def test_a_section_of_other_work_is_named_as_without_effect() -> None:
    found = planned({"serving.kv.block_size": 32})
    assert "serving" in {warning.path for warning in found.warnings if warning.code == "input.no_effect"}
    assert "training" not in {warning.path for warning in found.warnings}


def _timed(scenario: Scenario, catalog: Any) -> float:
    start = time.perf_counter()
    plan(scenario, catalog)
    return time.perf_counter() - start
