"""The KV blocks over simulated time on the Memory page."""

from typing import Any

import numpy as np
import pytest

from explorer.charts import kv_map
from tests.explorer import documents
from tests.simcore.serving.tables import engine, poisson_requests
from tests.simcore.serving.test_prefix import caching, conversations


def result(**columns: list[float]) -> dict[str, Any]:
    found = documents.serving()
    shares = {
        "time_s": [0.0, 1.0],
        "held_fraction": [0.1, 0.5],
        "used_fraction": [0.1, 0.6],
        "cached_fraction": [0.0, 0.0],
    }
    return found | {"series": found["series"] | {"kv_map": shares | columns}}


def test_blocks_are_held_empty_cached_or_free_and_the_shares_sum_to_one() -> None:
    chart = kv_map.kv_map(result(cached_fraction=[0.0, 0.2]))
    assert chart is not None
    heights = np.array([trace["y"] for trace in chart.body["data"] if trace["type"] == "scatter"])
    np.testing.assert_allclose(heights.sum(axis=0), 1.0)
    assert "prefixes that nobody uses 20" in chart.title


def test_the_title_says_how_much_is_taken_and_empty() -> None:
    chart = kv_map.kv_map(result())
    assert chart is not None
    assert "fill up to 50" in chart.title
    assert "keep up to 10" in chart.title


def test_replicas_are_rows_where_there_are_several() -> None:
    alone = kv_map.kv_map(result(**{"both.0": [0.1, 0.6]}))
    several = kv_map.kv_map(result(**{"prefill.0": [0.1, 0.6], "decode.0": [0.2, 0.3]}))
    assert alone is not None
    assert several is not None
    assert [trace["type"] for trace in alone.body["data"]].count("heatmap") == 0
    rows = next(trace for trace in several.body["data"] if trace["type"] == "heatmap")
    assert rows["y"] == ["prefill 1", "decode 1"]


def test_without_a_simulation_there_is_no_map() -> None:
    assert kv_map.kv_map(None) is None


@pytest.mark.parametrize("kind", ["chunked_prefill", "disaggregated"])
def test_the_engine_hands_out_a_map_that_agrees_with_its_other_series(kind: str) -> None:
    run = engine(poisson_requests(200, rate=200.0), kind=kind, block_count=200, replica_count=3)
    for piece in run.slices():
        shares, used = piece.kv_map, piece.columns["kv_usage_fraction"]
        np.testing.assert_allclose(shares["used_fraction"], used)
        assert (shares["held_fraction"] <= shares["used_fraction"] + 1e-12).all()
        lanes = [values for name, values in shares.items() if "." in name]
        assert len(lanes) == (6 if kind == "disaggregated" else 3)
        np.testing.assert_allclose(np.mean(lanes, axis=0), used, atol=1e-12)


def test_a_prefix_that_nobody_uses_is_cached_and_not_in_use() -> None:
    run = caching(conversations(200, rate=30.0, seed=4, kinds=3), replica_count=1)
    pieces = list(run.slices())
    cached = np.concatenate([piece.kv_map["cached_fraction"] for piece in pieces])
    used = np.concatenate([piece.kv_map["used_fraction"] for piece in pieces])
    assert cached.max() > 0
    assert (cached + used <= 1 + 1e-12).all()
