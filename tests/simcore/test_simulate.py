"""What a run says beside its numbers."""

from __future__ import annotations

from typing import Any

from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import Result, simulate


def simulated(overrides: dict[str, Any]) -> Result:
    document, _ = apply_overrides({"name": "test", "workload": {"request_count": 50}}, overrides)
    return simulate(plan(Scenario.parse(document)))


def test_rejected_requests_are_said_aloud() -> None:
    tiny = simulated(
        {"hardware.chip": "nvidia-t4", "hardware.chip_count": 1, "model.name": "llama-2-7b"}
        | {"workload.lengths": {"kind": "constant", "input_tokens": 1000, "output_tokens": 10}}
    )
    rejected = next(warning for warning in tiny.warnings if warning.code == "serving.rejected")
    assert tiny.metrics["serving.rejected_count"] == 50
    assert rejected.text.startswith("50 of 50 requests were rejected")


def test_shares_of_chip_time_sum_to_one_also_across_servers() -> None:
    across = simulated({"hardware.chip_count": 16, "serving.parallelism.tp": 16})
    assert abs(sum(row["fraction"] for row in across.tables["where_time_goes"]) - 1) < 1e-9
