"""The benchmarks of the fabric measure all their parts and give the known answers."""

import pytest

from simcore.bench import run_fabric, run_flows


def test_the_largest_fabric_is_built_loaded_and_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.bench.fabric.ROUNDS", 1)
    measured = run_fabric()
    assert (measured["switches"], measured["transceivers"], measured["links"]) == (1280, 196_608, 262_144)
    assert measured["makespan_s"] >= measured["busiest_link_s"] > 0
    parts = ("fabric", "flows", "network", "loads", "completion")
    assert sum(measured[f"{part}_seconds"] for part in parts) == pytest.approx(measured["seconds"])


def test_random_flows_share_the_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.bench.flows.FLOWS", 20_000)
    monkeypatch.setattr("simcore.bench.flows.ROUNDS", 1)
    measured = run_flows()
    assert measured["flow_link_pairs"] > 5 * measured["flows"]
    assert 0 < measured["mean_rate_bytes_per_s"] <= 450e9
