"""Charts read Result documents and nothing else; tests read their data, never pixels."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go
import pytest
from django.utils import translation

from explorer import charts
from explorer.charts import (
    doublings,
    fabric,
    latency_cdf,
    memory,
    overview,
    reliability,
    serving,
    style,
    topology,
)
from explorer.charts.style import Chart, Panel
from tests.explorer import documents

SERVES, BEFORE = documents.serving(), documents.serving(hbm_s=0.009, tokens=322.0, ttft_p95=2.3)
CLOS, RAILS = documents.fabric(), documents.fabric(rail_only=True)
PAIRS = [
    (SERVES, None),
    (SERVES, BEFORE),
    (CLOS, None),
    (RAILS, CLOS),
    (documents.fabric(rail_only=True, islands=32), CLOS),
]


def panels() -> Iterator[Panel]:
    for result, baseline in PAIRS:
        for tab in charts.TABS:
            yield charts.panel(tab, result, baseline=baseline)
    yield charts.comparison_panel(
        [BEFORE["scenario"], SERVES["scenario"]], [BEFORE, SERVES], ["before", "after"]
    )


def all_charts() -> list[Chart]:
    return [chart for panel in panels() for chart in panel.charts]


def without_variables(value: Any) -> Any:
    """A figure as the browser resolves it: names of CSS variables become a colour or a font."""
    if isinstance(value, dict):
        return {key: without_variables(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_variables(item) for item in value]
    if isinstance(value, str) and value.startswith("var("):
        return "Arial" if "sans" in value else "#123456"
    return value


@pytest.mark.parametrize("chart", [c for c in all_charts() if c.draw == "plot"], ids=lambda c: c.slug)
def test_it_draws_figures_that_plotly_accepts(chart: Chart) -> None:
    figure = without_variables(chart.body)
    figure["layout"].pop("meta", None)
    assert go.Figure(figure).to_plotly_json()["data"]


def test_it_names_colours_by_variable_only() -> None:
    text = repr([chart.body for chart in all_charts()])
    assert not re.search(r"#[0-9a-fA-F]{6}|rgb\(", text)


def test_each_chart_has_a_finding_an_axis_and_a_summary() -> None:
    for chart in all_charts():
        assert chart.title, chart.slug
        assert chart.axis, chart.slug
        assert chart.summary, chart.slug


def test_each_chart_has_its_data_as_a_table_with_full_rows() -> None:
    for chart in all_charts():
        if chart.slug.startswith("compare-"):
            continue
        assert chart.table is not None, chart.slug
        assert all(len(row) == len(chart.table.columns) for row in chart.table.rows), chart.slug


def test_it_leaves_its_documents_alone() -> None:
    before = copy.deepcopy(SERVES)
    for tab in charts.TABS:
        charts.panel(tab, SERVES, baseline=BEFORE)
    assert before == SERVES


@pytest.mark.parametrize("tab", charts.TABS)
def test_it_shows_what_a_running_simulation_has_said_so_far(tab: str) -> None:
    for partial in (
        {},
        {"metrics": {}, "tables": {}, "series": {}, "warnings": []},
        {"metrics": SERVES["metrics"]},
    ):
        panel = charts.panel(tab, partial, baseline=None)
        assert panel.headline


def test_it_shows_nothing_yet() -> None:
    assert charts.strip(None).tiles == ()
    assert charts.panel("overview", None).headline == "Simulating"


# --- where time goes ----------------------------------------------------------------------------------------


def test_segments_of_a_bar_meet_and_keep_proportion() -> None:
    chart = overview.where_time_goes(SERVES, BEFORE)
    assert chart is not None
    before, now = chart.body
    assert [part.resource for part in now.segments] == ["hbm", "scaleup", "compute", "overhead"]
    for left, right in zip(now.segments, now.segments[1:], strict=False):
        assert left.left + left.width == pytest.approx(right.left, abs=0.01)
    assert before.width / now.width == pytest.approx(0.015 / 0.010, rel=1e-3)


def test_the_finding_says_from_what_to_what() -> None:
    chart = overview.where_time_goes(SERVES, BEFORE)
    assert chart is not None
    assert chart.title == "An iteration falls from 15 ms to 10.0 ms; 40 % of it is HBM"


def test_shares_include_idle_time() -> None:
    chart = overview.where_time_goes(SERVES)
    assert chart is not None
    assert chart.table is not None
    idle = next(row for row in chart.table.rows if row[0].key == "queue")
    assert idle[1].text == "10.0 %"


def test_doublings_come_largest_first() -> None:
    chart = doublings.doublings(SERVES)
    assert chart is not None
    assert [bar.label for bar in chart.body] == ["Compute", "HBM bandwidth"]
    assert chart.title == "Compute is the best next doubling: +16 %, then HBM bandwidth"


# --- serving ------------------------------------------------------------------------------------------------


def test_a_distribution_tells_the_share_within_the_objective() -> None:
    chart = latency_cdf.cdf("ttft", SERVES)
    assert chart is not None
    assert chart.title == "95.0 % of requests meet the 2 s TTFT objective"
    assert chart.body["layout"]["shapes"][0]["x0"] == 2.0


@pytest.mark.parametrize(("limit", "share"), [(0.05, 0.0), (0.1, 0.0), (0.15, 0.1), (2.0, 0.95), (9.0, 1.0)])
def test_a_share_is_read_off_the_curve(limit: float, share: float) -> None:
    assert latency_cdf.share_within(SERVES["series"]["ttft_cdf"], "ttft", limit) == pytest.approx(share)


def test_gaps_between_tokens_are_held_against_the_tpot_objective() -> None:
    chart = latency_cdf.cdf("itl", SERVES)
    assert chart is not None
    assert chart.title == "99.0 % of the gaps between tokens are within 50 ms, the TPOT objective"
    assert chart.body["layout"]["annotations"][0]["text"] == "TPOT SLO 50 ms"
    assert "gaps between tokens" in chart.axis
    assert chart.body["data"][0]["line"]["shape"] == "linear"


def with_workload(**workload: Any) -> dict[str, Any]:
    scenario = SERVES["scenario"]
    return {**SERVES, "scenario": {**scenario, "workload": {**scenario["workload"], **workload}}}


def test_end_to_end_times_have_an_objective_where_all_answers_are_as_long() -> None:
    """2 s to the first token and 50 ms for each of 200 more: 12 s, which three in five of these meet."""
    constant = with_workload(lengths={"kind": "constant", "input_tokens": 10, "output_tokens": 201})
    chart = latency_cdf.cdf("e2e", constant)
    assert chart is not None
    assert chart.body["layout"]["shapes"][0]["x0"] == pytest.approx(12.0)
    assert chart.title == "10.0 % of requests meet the 12 s End to end objective"
    spread = {"kind": "lognormal", "input_mean_tokens": 10, "output_mean_tokens": 201}
    varied = latency_cdf.cdf("e2e", with_workload(lengths=spread))
    assert varied is not None
    assert varied.body["layout"]["shapes"] == []


def test_preemptions_are_told_beside_queue_and_batch() -> None:
    columns = SERVES["series"]["serving"] | {"preemption_count": [0, 0, 3, 7]}
    scarce = {
        **SERVES,
        "metrics": SERVES["metrics"] | {"serving.preemption_count": 7},
        "series": {**SERVES["series"], "serving": columns},
    }
    chart = serving.over_time(scarce)
    assert chart.title == "At most 64 requests run at once, up to 64 wait, and KV runs out 7 times"
    assert chart.table is not None
    assert chart.table.columns[-1] == "preemptions so far"
    assert chart.body["data"][3]["y"] == [0, 0, 3, 7]


def test_what_waits_between_prefill_and_decode_is_a_line_of_its_own_where_they_are_apart() -> None:
    together = documents.serving()
    series = together["series"]["serving"]
    apart = together | {"series": {"serving": series | {"handing_over": [0.0] * len(series["time_s"])}}}
    lines = [
        [trace["meta"]["column"] for trace in serving.over_time(one).body["data"]]
        for one in (together, apart)
    ]
    assert "handing_over" not in lines[0]
    assert lines[1] == [*lines[0], "handing_over"]


def test_the_baseline_is_dashed_and_now_is_solid() -> None:
    chart = latency_cdf.cdf("ttft", SERVES, BEFORE)
    assert chart is not None
    before, now = chart.body["data"]
    assert before["line"]["dash"]
    assert "dash" not in now["line"]
    assert now["x"] == SERVES["series"]["ttft_cdf"]["ttft_s"]


def test_a_stream_finds_the_columns_of_its_traces() -> None:
    chart = serving.over_time({})
    assert [trace["meta"]["column"] for trace in chart.body["data"]] == [
        "running",
        "waiting",
        "kv_usage_fraction",
        "preemption_count",
    ]
    assert chart.body["layout"]["meta"] == {"series": "serving"}
    assert all(trace["x"] == [] for trace in chart.body["data"])


@pytest.mark.parametrize(("low", "high"), [(0.010, 0.030), (0.1, 10.0), (1e-6, 1e3), (2.0, 2.0)])
def test_a_logarithmic_axis_has_few_printed_ticks(low: float, high: float) -> None:
    axis = style.log_axis([low, high], "x_s")
    assert 1 <= len(axis["tickvals"]) <= 10
    assert all(re.fullmatch(r"[\d.,]+ (ns|µs|ms|s|min|h|d)", text) for text in axis["ticktext"])


# --- memory, fabric, reliability ----------------------------------------------------------------------------


def test_the_waterfall_ends_where_the_cache_begins() -> None:
    chart = memory.waterfall(SERVES)
    assert chart is not None
    falls = {fall.label: fall for fall in chart.body}
    weights, cache = falls["Weights"], falls["KV cache"]
    assert cache.left + cache.width == pytest.approx(weights.left, abs=0.01)
    assert chart.title == "Of 85 GB, 58.9 GB (69 %) hold the KV cache"


def test_tiers_stand_from_core_to_chips_with_their_counts() -> None:
    chart = topology.picture(CLOS)
    assert chart is not None
    counts = [word.text for word in chart.body.words if word.css.startswith("cnt")]
    assert counts == ["256", "512", "512", "32,768"]
    assert "Chips, 128 scale-up domains of 256" in [word.text for word in chart.body.words]


def test_removed_tiers_are_dashed() -> None:
    chart = topology.picture(RAILS, other=CLOS)
    assert chart is not None
    assert {box.css for box in chart.body.boxes} == {"swt", "ghost", "gpu"}
    assert chart.title == "Rail-only: 256 switches join 32,768 chips, and nothing stands above them"


def test_switches_that_are_joined_to_their_like_say_by_how_many_links() -> None:
    """Those to the chips below stand beside the wires, those among the switches at their row."""
    graph = {
        "nodes": [
            {"id": "chip", "kind": "chip", "count": 72, "tier": 0},
            {"id": "switch", "kind": "switch", "count": 36, "tier": 1},
        ],
        "edges": [
            {"source": "chip", "target": "switch", "link_count": 72, "medium": "optical"},
            {"source": "switch", "target": "switch", "link_count": 90, "medium": "optical"},
        ],
    }
    chart = topology.picture({**CLOS, "tables": {"quotient_graph": graph}})
    assert chart is not None
    words = {word.text for word in chart.body.words}
    assert {"Switches, 90 links among them", "72 links"} <= words


def test_the_picture_stays_inside_its_frame() -> None:
    for result in (CLOS, RAILS):
        chart = topology.picture(result)
        assert chart is not None
        assert all(box.left >= 0 and box.left + box.width <= 100 for box in chart.body.boxes)
        assert all(word.y <= chart.body.height for word in chart.body.words)


def test_islands_raise_the_guard_rail_with_its_numbers_and_a_way_out() -> None:
    guard = fabric.guard(documents.fabric(rail_only=True, islands=32))
    assert guard is not None
    assert guard.numbers == "32,768 > 8 × 128 = 1,024"
    assert [edit.path for edit in guard.edits] == [
        "topology.hb_domain_size",
        "topology.tiers",
        "topology.kind",
    ]
    assert guard.edits[0].value == "256"
    assert fabric.guard(RAILS) is None


def test_goodput_has_one_line_per_way_of_slicing() -> None:
    chart = reliability.slice_goodput(CLOS)
    assert chart is not None
    assert len(chart.body["data"]) == 4
    assert chart.body["layout"]["shapes"][0]["x0"] == 1024


def test_what_has_no_price_is_said_so() -> None:
    panel = charts.panel("overview", SERVES)
    bill = next(chart for chart in panel.charts if chart.slug == "bill")
    assert bill.title == "The priced part costs 224 k USD; 1 items have no price"
    assert bill.table is not None
    assert bill.table.rows[1][2].text == "unpriced"
    tile = next(tile for tile in charts.strip(SERVES).tiles if "usd" in tile.metric)
    assert tile.flag == "partial"


# --- numbers and directions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "before", "metric", "text", "quality", "arrow"),
    [
        (410.0, 322.0, "serving.output_token_per_s_per_chip", "27 %", "better", "up"),
        (2.1, 2.3, "serving.ttft_s.p95", "8.7 %", "better", "down"),
        (0.962, 0.881, "serving.slo_attainment_fraction", "8.1 pt", "better", "up"),
        (10.0, 5.0, "cost.power_w", "100 %", "worse", "up"),
        (5.0, 5.0, "cost.power_w", "no change", "same", ""),
        (32.0, 1.0, "fabric.island_count", "31", "worse", "up"),
        (5.0, 0.0, "serving.preemption_count", "5", "worse", "up"),
        (9.0, 8.0, "serving.mean_batch_size", "1", "same", "up"),
    ],
)
def test_a_change_knows_the_direction_of_better(
    value: float, before: float, metric: str, text: str, quality: str, arrow: str
) -> None:
    change = style.delta(value, before, metric)
    assert change is not None
    assert (change.text, change.quality, change.arrow) == (text, quality, arrow)


def test_the_strip_has_at_most_six_tiles_and_names_the_baseline() -> None:
    strip = charts.strip(SERVES, BEFORE, baseline_name="before")
    assert 1 <= len(strip.tiles) <= 6
    assert strip.baseline_name == "before"
    assert strip.tiles[1].delta is not None
    assert [tile.metric for tile in charts.strip(RAILS, CLOS).tiles][:2] == [
        "fabric.switch_count",
        "fabric.transceiver_count",
    ]


def test_scenarios_that_do_different_work_are_not_judged() -> None:
    panel = charts.comparison_panel([SERVES["scenario"], CLOS["scenario"]], [SERVES, CLOS], ["a", "b"])
    table = next(chart for chart in panel.charts if chart.slug == "results").table
    assert table is not None
    assert table.columns == ("Result", "a", "b")
    assert all(cell.delta is None for row in table.rows for cell in row)


def test_a_message_is_filled_after_it_is_translated() -> None:
    row = {"template": "{count:,} chips", "params": {"count": 4096}, "text": "?"}
    assert charts.translated(row) == "4,096 chips"
    assert charts.translated({"template": "{missing}", "params": {}, "message": "as it was"}) == "as it was"


@pytest.mark.parametrize(
    ("words", "chinese"),
    [
        ("HBM bandwidth ×2", "HBM 带宽 ×2"),
        ("decoding 48% faster", "解码加快 48%"),
        ("ITL p99 5.2 times longer", "ITL p99延长 5.2 倍"),
        ("Compute 35% (27%), Scale-up 32% (25%)", "计算 35% (27%), 纵向扩展 32% (25%)"),
        ("nothing that anybody knows", "nothing that anybody knows"),
    ],
)
def test_labels_inside_a_param_are_translated_and_numbers_stay(words: str, chinese: str) -> None:
    row = {"template": "{change}", "params": {"change": words}}
    assert charts.translated(row) == words
    with translation.override("zh-hans"):
        assert charts.translated(row) == chinese


def test_kv_memory_is_told_in_parts_of_a_whole() -> None:
    result = documents.serving()
    parts = {"useful": 0.15, "reserved_waste": 0.05, "internal_waste": 0.7, "external_waste": 0.1}
    result["metrics"] |= {f"memory.kv_{name}_fraction": share for name, share in parts.items()}
    chart = memory.kv_parts(result)
    assert chart is not None
    (bar,) = chart.body
    assert sum(part.width for part in bar.segments) == pytest.approx(96, abs=0.01)
    assert chart.title == "15.0 % of the KV memory holds tokens"
    assert memory.kv_parts(SERVES) is None


def test_a_headline_shows_its_band_and_says_when_it_is_stretched() -> None:
    result = documents.serving()
    result["bands"] = {
        "serving.tpot_s.mean": {"low": 0.0091, "high": 0.0116, "level": 0.9, "basis": "40 measurements"}
    }
    tile = style.tile("serving.tpot_s.mean", result)
    assert tile is not None
    assert tile.band == "90 %: 9.10 – 11.6 ms"
    result["warnings"] = [*result["warnings"], {"code": "compute.extrapolated", "params": {"reasons": "x"}}]
    tile = style.tile("serving.tpot_s.mean", result)
    assert tile is not None
    assert tile.band.endswith("beyond what was calibrated")
    plain = style.tile("serving.ttft_s.p95", result)
    assert plain is not None
    assert plain.band == ""
