"""KV behind HBM on the Memory page: the tiers' times, and where bringing back beats computing again."""

from typing import Any

from explorer.charts import offload
from simcore.plan import plan
from simcore.scenario import Scenario
from tests.explorer import documents


def result(*, swap_s: float, meets: float | None) -> dict[str, Any]:
    found = documents.serving()
    tier = {
        "tier": "host_dram",
        "bytes_per_s": 64e9,
        "latency_s": 1e-5,
        "capacity_tokens": 1e6,
        "prompt_tokens": 1000.0,
        "swap_s": swap_s,
        "recompute_s": 0.02,
        "break_even_tokens": meets,
    }
    remote = {**tier, "tier": "remote", "capacity_tokens": None}
    found["tables"] = found["tables"] | {
        "kv_tiers": [tier, remote],
        "swap_or_recompute": [
            {"prompt_tokens": tokens, "bytes_per_s": rate, "swap_to_recompute_ratio": tokens / rate * 1e6}
            for tokens in (512, 2048)
            for rate in (1e9, 4e9)
        ],
    }
    return found


def test_the_title_names_the_tiers_that_win_and_the_slower_time_is_muted() -> None:
    chart = offload.tiers(result(swap_s=0.002, meets=0.0))
    assert chart is not None
    assert chart.title == "A prompt of 1,000 tokens is better brought back from: Host memory; Remote memory"
    assert chart.table is not None
    host, remote = chart.table.rows
    assert (host[3].muted, host[4].muted) == (False, True)
    assert host[5].text == "any length"
    assert (host[2].text, remote[2].text) == ("1,000,000", "no limit")


def test_what_the_simulation_moved_stands_beside_the_tiers_that_it_used() -> None:
    found = result(swap_s=0.002, meets=0.0)
    use = {"read_bytes": 2e9, "written_bytes": 3e9, "hit_fraction": None, "used_max_fraction": 0.5}
    found["tables"]["kv_tiers"][0] |= use
    chart = offload.tiers(found)
    assert chart is not None
    assert chart.table is not None
    host, remote = chart.table.rows
    assert len(chart.table.columns) == len(host) == len(remote) == 9
    assert [cell.text for cell in host[6:]] == ["3", "2", ""]
    assert remote[6].muted


def test_where_no_tier_wins_it_is_said() -> None:
    chart = offload.tiers(result(swap_s=0.2, meets=None))
    assert chart is not None
    assert chart.title == "A prompt of 1,000 tokens is better computed again than brought back"
    assert chart.table is not None
    assert chart.table.rows[0][5].text == "never"
    assert (chart.table.rows[0][3].muted, chart.table.rows[0][4].muted) == (True, False)


def test_the_map_has_a_row_per_length_and_mutes_what_is_slower_than_computing() -> None:
    chart = offload.break_even(result(swap_s=0.002, meets=0.0))
    assert chart is not None
    assert chart.table is not None
    assert len(chart.table.columns) == 3
    assert [[cell.text for cell in row] for row in chart.table.rows] == [
        ["512", "0.51", "0.13"],
        ["2,048", "2.05", "0.51"],
    ]
    assert [[cell.muted for cell in row[1:]] for row in chart.table.rows] == [[False, False], [True, False]]


def test_every_number_of_a_plan_s_tables_opens_its_derivation() -> None:
    planned = plan(Scenario.parse({"name": "test", "workload": {"request_count": 50}}))
    found = documents.serving() | {"tables": planned.tables}
    for chart in (offload.tiers(found), offload.break_even(found)):
        assert chart is not None
        assert chart.table is not None
        numbers = [
            cell for row in chart.table.rows for cell in row[1:] if cell.text not in ("never", "no limit")
        ]
        assert {cell.metric for cell in numbers} <= set(planned.table_terms)
    assert "memory.swap_to_recompute_ratio.512x4" in planned.table_terms


def test_without_the_tables_there_is_no_chart() -> None:
    assert offload.tiers(documents.serving()) is None
    assert offload.break_even(None) is None
