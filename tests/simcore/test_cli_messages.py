"""The command line answers a wrong question with the nearest right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.cli import main


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text("name: small\nworkload: {request_count: 20}\n")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "ttft"], "closest: serving.ttft_s.p99"),
        (["explain", "serving.regime"], "serving.regime is the word 'stable', which has no tree"),
        (["run", "--set", "model.name=Qwen/Qwen9"], "give its config.json as model.config"),
        (["run", "--set", "hardware.chip=nvidia-h20"], "take a near one and set hardware.chip_overrides"),
        (["run", "--set", "hardware.chip_overrides.hbm_bytes_per_s=1600"], "check the unit"),
    ],
)
def test_a_wrong_question_is_answered_with_the_next_step(
    scenario: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    command, *rest = arguments
    assert main([command, scenario, *rest]) == 2
    assert message in capsys.readouterr().err


def test_a_comparison_passes_the_warnings_on(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("name: other\nworkload: {request_count: 20}\nreliability: {spares: 3}\n")
    assert main(["compare", scenario, str(other)]) == 0
    said = capsys.readouterr()
    assert "warning: other: reliability.spares: has no effect" in said.err
    assert "No result differs" in said.out
