"""The benchmark of static slices reports its seconds beside its target."""

import pytest

from simcore.bench import as_text, run


def test_the_benchmark_reports_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.bench.slices.DRAWS", 200)
    measured = run("slices")
    assert measured["placements"] == 200
    assert 0 < measured["mean_goodput_fraction"] < 1
    for name in ("seconds", "placements_per_s", "target_seconds", "peak_rss_bytes"):
        assert measured[name] > 0
    assert "placements_per_s" in as_text("slices", measured)
