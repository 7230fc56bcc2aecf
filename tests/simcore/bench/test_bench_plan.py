"""The benchmark of the plan reports the median of both workloads beside its target."""

import pytest

from simcore.bench import as_text
from simcore.bench.plan import run_plan


def test_the_benchmark_reports_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.bench.plan.ROUNDS", 2)
    measured = run_plan()
    for name in ("seconds", "training_seconds", "target_seconds", "peak_rss_bytes"):
        assert measured[name] > 0
    assert "training_seconds" in as_text("plan", measured)
