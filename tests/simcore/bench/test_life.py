"""The benchmark of a cluster's life reports its seconds beside its target."""

import pytest

from simcore.bench import as_text, run


def test_the_benchmark_reports_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.bench.life.DAYS", 5)
    measured = run("life")
    assert measured["days"] == 5
    assert 0 < measured["goodput_fraction"] < 1
    for name in ("seconds", "target_seconds", "events_per_s", "failure_count", "peak_rss_bytes"):
        assert measured[name] > 0
    assert "events_per_s" in as_text("life", measured)
