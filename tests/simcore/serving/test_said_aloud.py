"""What a run says aloud: requests that no replica can hold, and prefill work that was thrown away."""

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


def test_thrashing_is_said_aloud() -> None:
    """1,024 seats over a cache that holds a few dozen long prompts: much of the prefill is done again."""
    run = simulate(
        plan(
            Scenario.parse(
                {
                    "name": "too many seats",
                    "hardware": {"chip_count": 1},
                    "workload": {
                        "request_count": 600,
                        "arrivals": {"kind": "poisson", "request_per_s": 1000},
                        "lengths": {
                            "kind": "lognormal",
                            "input_mean_tokens": 8000,
                            "input_cv": 1,
                            "output_mean_tokens": 200,
                            "output_cv": 1,
                        },
                    },
                }
            )
        )
    )
    assert any(warning.code == "serving.preempted" for warning in run.warnings)
