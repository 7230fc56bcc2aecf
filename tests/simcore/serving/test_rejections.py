"""Requests that a replica can never hold are turned away at once, and the run says so."""

from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate


def test_rejected_requests_are_said_aloud() -> None:
    tiny = simulate(
        plan(
            Scenario.parse(
                {
                    "name": "too small a card",
                    "hardware": {"chip": "nvidia-t4", "chip_count": 1},
                    "model": {"name": "llama-2-7b"},
                    "workload": {
                        "request_count": 50,
                        "lengths": {"kind": "constant", "input_tokens": 1000, "output_tokens": 10},
                    },
                }
            )
        )
    )
    assert tiny.metrics["serving.rejected_count"] == 50
    said = next(warning for warning in tiny.warnings if warning.code == "serving.rejected")
    assert said.text.startswith("50 of 50 requests were rejected")
