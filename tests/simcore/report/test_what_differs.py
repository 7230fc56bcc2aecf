"""A comparison says how much differs, and that a change without effect is one."""

from __future__ import annotations

from typing import Any

from simcore.analysis.compare import compare
from simcore.report import render
from simcore.scenario import Scenario

METRICS = {"fabric.switch_count": 12.0}


def markdown(change: dict[str, Any], metrics: dict[str, float]) -> str:
    scenarios = [Scenario.parse({"name": "a"}), Scenario.parse({"name": "b"} | change)]
    return render(compare(scenarios, [METRICS, metrics]), "md")


def test_a_change_without_effect_is_called_one() -> None:
    text = markdown({"reliability": {"spares": 3}}, METRICS)
    assert "1 input differs" in text
    assert "No result differs: what was changed has no effect here." in text


def test_a_change_with_effect_is_not() -> None:
    text = markdown({"run": {"seed": 3}, "reliability": {"spares": 3}}, {"fabric.switch_count": 13.0})
    assert "2 inputs differ" in text
    assert "No result differs" not in text


def test_equal_scenarios_have_nothing_to_explain() -> None:
    assert "No result differs" not in markdown({}, METRICS)
