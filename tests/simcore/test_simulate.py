"""A run: its events in order, its series and shares, its metric ids, and that it is the same every time."""

import hashlib
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis import analyse
from simcore.catalog import default_catalog
from simcore.errors import TrimtabError
from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides
from simcore.serving.schedulers import SCHEDULER_CODES
from simcore.simulate import RESOURCES, simulate
from simcore.units import dimension_of
from simcore.workload.traces import read_trace
from tests.simcore.conftest import SMALL
from tests.simcore.interface import KNOWN_METRICS

CLOSED = {"workload.arrivals": {"kind": "closed_loop", "concurrency": 16}}
CLUSTER = {"workload.kind": "none", "hardware.chip_count": 1024}
COLUMNS = ["batch_tokens", "kv_usage_fraction", "preemption_count", "running", "time_s", "waiting"]

WORDS = {"compute.roofline_bound", "serving.regime", "analysis.bottleneck"}
# Without a unit because the name is a count of things or the field's own word.
UNITLESS = {
    "training.days",
    "cost.usd_per_training_run",
    "fabric.tiers",
    "serving.mean_batch_size",
    "memory.max_concurrency_at_max_len",
    "memory.kv_token_capacity",
    "analysis.fault_visibility",  # 1 / expected suspects, as the interface names it
}
ALWAYS = {
    "model.parameter_count", "memory.kv_block_count", "compute.decode_step_s", "compute.roofline_bound",
    "serving.ttft_s.p95", "serving.tpot_s.p95", "serving.itl_s.p99", "serving.e2e_s.mean", "serving.queue_s.p50",
    "serving.request_per_s", "serving.output_token_per_s_per_chip", "serving.slo_goodput_request_per_s",
    "serving.capacity_request_per_s", "serving.regime", "serving.mfu_fraction", "serving.mbu_fraction",
    "fabric.switch_count", "fabric.island_count", "cost.usd_per_million_tokens", "cost.joule_per_token",
    "analysis.busy_fraction", "analysis.waiting.hbm_fraction", "analysis.effective_utilisation_fraction",
}  # fmt: skip

VARIETY = {
    "open": {},
    "closed loop": CLOSED,
    "overloaded": {"workload.arrivals.request_per_s": 500.0},
    "idle chips": {"hardware.chip_count": 3, "serving.parallelism.tp": 2},
    "pipeline": {"hardware.chip_count": 2, "serving.parallelism": {"tp": 1, "pp": 2}},
    "over PCIe": {"hardware.chip": "nvidia-rtx-pro-6000", "hardware.chip_count": 2, "serving.parallelism.tp": 2},
    "across servers": {"hardware.chip_count": 16, "serving.parallelism.tp": 16},
    "experts": {"model.name": "qwen3-30b-a3b"},
    "continuous": {"serving.scheduler.kind": "continuous"},
    "one token out": {"workload.lengths.output_tokens": 1},
    "little memory": {"serving.num_gpu_blocks_override": 40, "serving.max_model_len": 512},
    "nothing fits": {"serving.num_gpu_blocks_override": 2, "workload.lengths.input_tokens": 400},
    "bounded lines": {
        "hardware.chip_count": 4, "serving.router.kind": "power_of_two",
        "serving.scheduler.max_num_seqs": 4, "serving.admission.max_queue_length": 2,
        "workload.arrivals.request_per_s": 2_000.0,
    },
    "hosts down": {"reliability.host_availability_fraction": 0.5},
    "one request": {"workload.request_count": 1},
    "cluster": CLUSTER,
    "training": {
        "workload.kind": "training", "hardware.chip_count": 64, "training.parallelism.tp": 2,
        "training.total_tokens": 15e12,
    },
    "optical pod": {**CLUSTER, "hardware.chip": "tpu-v4"},
}  # fmt: skip


@pytest.fixture(params=VARIETY, scope="module")
def varied(request, planner):
    return planner.result(VARIETY[request.param])


def events_of(planned):
    events = []
    result = simulate(planned, lambda kind, payload: events.append((kind, payload)))
    return events, result


@pytest.fixture(scope="module")
def run(planner):
    planned = planner.plan()
    events, result = events_of(planned)
    findings = analyse(planned, result, lambda kind, payload: events.append((kind, payload)))
    return events, result.with_findings(findings)


# ---- events


def test_events_come_cheapest_first(run):
    kinds = [payload.get("stage", kind) for kind, payload in run[0]]
    firsts = list(dict.fromkeys(kinds))
    assert firsts == ["closed_forms", "series", "serving", "finding"]
    assert kinds.count("closed_forms") == kinds.count("serving") == 1
    assert kinds == sorted(kinds, key=firsts.index)


def test_every_event_is_json_as_it_stands(run):
    for _, payload in run[0]:
        assert json.loads(json.dumps(payload, allow_nan=False)) == payload


def test_a_stage_carries_metrics_tables_and_warnings(run):
    stages = [payload for kind, payload in run[0] if kind == "stage"]
    assert all(set(stage) == {"stage", "metrics", "tables", "warnings"} for stage in stages)


def test_the_stages_and_findings_add_up_to_the_result(run):
    events, result = run
    gathered = {}
    for kind, payload in events:
        gathered |= payload["metrics"] if kind == "stage" else {}
    final = result.as_dict()["metrics"]
    assert gathered == {name: value for name, value in final.items() if name in gathered}
    later = {name for name in final if name not in gathered}
    assert all(
        name.startswith(("analysis.doubling", "analysis.bottleneck", "analysis.tax.", "analysis.friction"))
        for name in later
    )


def test_a_series_event_says_how_far_the_run_is(run):
    series = [payload for kind, payload in run[0] if kind == "series"]
    assert 10 < len(series) <= 100
    assert {payload["name"] for payload in series} == {"serving"}
    assert {payload["request_count"] for payload in series} == {200}
    for key in ("progress_fraction", "completed_count"):
        values = [payload[key] for payload in series]
        assert values == sorted(values)
    assert series[-1]["progress_fraction"] == 1.0
    assert series[-1]["completed_count"] == 200


def test_the_pieces_of_a_series_are_the_series_of_the_result(run):
    events, result = run
    pieces = [payload["columns"] for kind, payload in events if kind == "series"]
    whole = result.as_dict()["series"]["serving"]
    assert sorted(whole) == COLUMNS
    for name in COLUMNS:
        assert [value for piece in pieces for value in piece[name]] == whole[name]


def test_a_finding_carries_its_text_and_its_row(run):
    events, result = run
    findings = [payload for kind, payload in events if kind == "finding"]
    rows = [payload["row"] for payload in findings if "row" in payload]
    assert rows == result.tables["doublings"]
    for payload in findings:
        assert payload["text"] == payload["template"].format(**payload["params"])


def test_without_a_workload_there_is_one_stage(planner):
    events, result = events_of(planner.plan(CLUSTER))
    assert [payload["stage"] for _, payload in events] == ["closed_forms"]
    assert result.records is None
    assert "serving" not in result.series


class StoppedError(Exception):
    """What a listener raises to end a run."""


@pytest.mark.parametrize("after", [1, 5])
def test_a_listener_that_raises_stops_the_run(planner, after):
    heard = []

    def listen(kind, payload):
        heard.append(kind)
        if len(heard) == after:
            raise StoppedError

    with pytest.raises(StoppedError):
        simulate(planner.plan(), listen)
    assert len(heard) == after


# ---- metrics


def test_every_metric_id_is_of_the_interface(varied):
    assert [name for name in varied.metrics if not KNOWN_METRICS.fullmatch(name)] == []


def test_a_metric_is_a_finite_number_or_a_word_and_never_null(varied):
    for name, value in varied.as_dict()["metrics"].items():
        assert isinstance(value, str) if name in WORDS else math.isfinite(value), name


def test_a_metrics_unit_is_in_its_name(varied):
    numbers = set(varied.metrics) - WORDS - UNITLESS
    assert [name for name in numbers if not dimension_of(name)] == []


def test_fractions_lie_between_0_and_1(varied):
    fractions = {name: value for name, value in varied.metrics.items() if dimension_of(name) == "fraction"}
    assert {name: value for name, value in fractions.items() if not -1e-12 <= value <= 1 + 1e-12} == {}


def test_every_number_has_a_tree_with_its_value(varied):
    for name, value in varied.metrics.items():
        if name not in WORDS:
            assert varied.why[name].value == pytest.approx(value, rel=1e-12, abs=1e-12), name


def test_a_serving_run_has_the_metrics_that_pages_show(run):
    assert set(run[1].metrics) >= ALWAYS


def test_what_does_not_apply_is_absent(planner):
    assert "serving.tpot_s.mean" not in planner.result(VARIETY["one token out"]).metrics
    assert "serving.offered_load_ratio" not in planner.result(CLOSED).metrics
    assert "fabric.ocs_count" not in planner.result().metrics
    assert "reliability.mtbf_s" not in planner.result().metrics
    assert not any(
        name.startswith(("serving.", "memory.", "model.")) for name in planner.result(CLUSTER).metrics
    )


def test_the_result_document_has_the_keys_of_the_interface_and_is_json(varied):
    document = varied.as_dict()
    keys = {"schema_version", "engine_version", "digest", "seed", "scenario"}
    assert keys | {"metrics", "bands", "warnings", "series", "tables"} <= set(document)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert all({"code", "path", "message"} <= set(warning) for warning in document["warnings"])


def test_percentiles_are_in_order(varied):
    for name in ("ttft_s", "tpot_s", "itl_s", "e2e_s", "queue_s"):
        values = [varied.metrics.get(f"serving.{name}.{p}") for p in ("p50", "p90", "p95", "p99")]
        if None not in values:
            assert values == sorted(values), name


def test_a_distribution_rises_from_0_to_1_over_rising_times(varied):
    for name, columns in varied.series.items():
        if name.endswith("_cdf"):
            times = np.asarray(columns[name.removesuffix("_cdf") + "_s"])
            assert (columns["fraction"][0], columns["fraction"][-1]) == (0.0, 1.0)
            assert np.all(np.diff(times) >= 0)


# ---- where the time goes


def test_the_shares_of_chip_time_sum_to_one(varied):
    if "where_time_goes" in varied.tables:
        rows = varied.tables["where_time_goes"]
        assert {row["resource"] for row in rows} <= set(RESOURCES)
        assert math.fsum(row["fraction"] for row in rows) == pytest.approx(1.0, abs=1e-9)
        metrics = varied.metrics
        waits = [value for name, value in metrics.items() if name.startswith("analysis.waiting.")]
        assert metrics["analysis.busy_fraction"] + math.fsum(waits) == pytest.approx(1.0, abs=1e-9)


def small_scenarios():
    return st.fixed_dictionaries(
        {
            "hardware.chip_count": st.sampled_from([1, 2, 5]),
            "serving.scheduler.kind": st.sampled_from(sorted(SCHEDULER_CODES)),
            "workload.arrivals.request_per_s": st.floats(0.5, 200),
            "workload.lengths.input_tokens": st.integers(1, 2000),
            "workload.lengths.output_tokens": st.integers(1, 100),
            "workload.request_count": st.integers(1, 40),
            "reliability.host_availability_fraction": st.floats(0.0, 1.0),
            "serving.kv.block_size": st.sampled_from([1, 16, 64]),
            "run.seed": st.integers(0, 5),
        }
    )


@settings(max_examples=40, deadline=None)
@given(small_scenarios())
def test_the_laws_of_a_run_hold_for_any_small_scenario(planner, overrides):
    document = planner.document(overrides)
    result = simulate(plan(Scenario.parse(document)))
    metrics, count = result.metrics, overrides["workload.request_count"]
    shares = [row["fraction"] for row in result.tables["where_time_goes"]]
    assert math.fsum(shares) == pytest.approx(1.0, abs=1e-9)
    assert min(shares) > 0
    assert metrics["serving.completed_count"] + metrics["serving.rejected_count"] == count
    assert np.nanmin(result.records.ttft_s) > 0
    assert np.nanmax(result.records.ttft_s - result.records.e2e_s) <= 1e-9
    assert metrics["serving.ttft_s.mean"] <= metrics["serving.e2e_s.mean"] + 1e-9
    assert metrics["serving.queue_s.mean"] <= metrics["serving.ttft_s.mean"] + 1e-9


def test_where_no_request_fits_the_chips_wait_all_the_time(planner):
    result = planner.result(VARIETY["nothing fits"])
    assert result.metrics["serving.rejected_count"] == 200
    assert result.metrics["analysis.waiting.queue_fraction"] == pytest.approx(0.995)
    assert "serving.ttft_s.mean" not in result.metrics


def test_a_full_line_refuses_requests_that_count_as_offered_and_rejected(planner):
    bounded = planner.result(VARIETY["bounded lines"])
    refused = {warning.code: warning for warning in bounded.warnings}["serving.refused"]
    assert bounded.metrics["serving.rejected_count"] == refused.params["refused"] > 0
    assert bounded.metrics["serving.slo_attainment_fraction"] < 1
    free = planner.result({**VARIETY["bounded lines"], "serving.admission.max_queue_length": None})
    assert bounded.metrics["serving.offered_load_ratio"] == pytest.approx(
        free.metrics["serving.offered_load_ratio"]
    )
    assert bounded.metrics["serving.queue_s.p99"] < free.metrics["serving.queue_s.p99"]


def test_the_picks_of_a_router_follow_the_seed(planner):
    options = {"hardware.chip_count": 4, "serving.router.kind": "random"}
    one, again, other = (planner.result({**options, "run.seed": seed}) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.records.replica, again.records.replica)
    assert (one.records.replica != other.records.replica).any()


def test_idle_chips_wait_in_the_queue(planner):
    result = planner.result({"hardware.chip_count": 2, "serving.replica_count": 1})
    assert result.metrics["analysis.waiting.queue_fraction"] > 0.5 - 1e-2


def test_hosts_that_are_down_scale_all_the_rest(planner):
    up, half = (
        planner.result({"reliability.host_availability_fraction": share}).metrics for share in (1.0, 0.5)
    )
    assert "analysis.waiting.failure_fraction" not in up
    assert half["analysis.waiting.failure_fraction"] == 0.5
    for name in (
        "analysis.busy_fraction",
        "analysis.waiting.hbm_fraction",
        "analysis.waiting.queue_fraction",
    ):
        assert half[name] == pytest.approx(up[name] / 2)


def test_the_parts_of_an_iteration_add_up_to_the_mean_iteration(planner):
    result = planner.result()
    parts = [row["s_per_iteration"] for row in result.tables["where_time_goes"] if row["s_per_iteration"]]
    assert 1e-3 < math.fsum(parts) < 1.0


@st.composite
def any_scenarios(draw):
    """Legal values at their extremes, in combinations that nobody would choose."""
    kind = draw(st.sampled_from(["poisson", "gamma", "closed_loop"]))
    arrivals = {"kind": kind, "concurrency": draw(st.sampled_from([1, 3, 1_000_000]))}
    if kind != "closed_loop":
        arrivals = {"kind": kind, "request_per_s": draw(st.sampled_from([1e-9, 0.1, 50.0, 1e9]))}
    lengths = [1, 2, 17, 5000, 16_777_216]
    overrides = {
        "hardware.chip": draw(st.sampled_from(sorted(default_catalog().chips))),
        "model.name": draw(st.sampled_from(sorted(default_catalog().models))),
        "workload.kind": draw(st.sampled_from(["serving", "serving", "serving", "none", "training"])),
        "workload.arrivals": arrivals,
        "workload.lengths.input_tokens": draw(st.sampled_from(lengths)),
        "workload.lengths.output_tokens": draw(st.sampled_from(lengths[:4])),
        "workload.request_count": draw(st.sampled_from([1, 2, 30])),
    }
    choices = {
        "hardware.chip_count": [1, 7, 64, 4096, 1_048_576],
        "hardware.chip_overrides.hbm_bytes_per_s": ["x0.001", "x1000"],
        "hardware.chip_overrides.hbm_bytes": ["x0.01", "x100"],
        "topology.kind": [
            "clos",
            "rail_optimized",
            "rail_only",
            "torus",
            "ocs_pod",
            "dragonfly",
            "slim_fly",
            "hyperx",
        ],
        "serving.parallelism.tp": [1, 3, 8, 4096],
        "serving.parallelism.pp": [2, 61, 512],
        "serving.max_model_len": [1, 16, 16_777_216],
        "serving.num_gpu_blocks_override": [1, 100],
        "serving.kv_cache_memory_bytes": [1, 1e9, 1e15],
        "serving.scheduler.kind": ["continuous", "static_batch"],
        "serving.scheduler.max_num_seqs": [1, 65_536],
        "serving.scheduler.max_num_batched_tokens": [1, 16, 65_536],
        "serving.kv.block_size": [1, 3, 1024],
        "serving.kv.gpu_memory_utilization": [1e-9, 1.0],
        "serving.weights_dtype": ["fp8", "int4", "nvfp4"],
        "reliability.host_availability_fraction": [0.0, 1.0],
        "reliability.slice_chips": [1, 63, 10_000_000],
        "economics.electricity_usd_per_kwh": [0.0, 10.0],
    }
    for path in draw(st.lists(st.sampled_from(sorted(choices)), unique=True, max_size=6)):
        overrides[path] = draw(st.sampled_from(choices[path]))
    return overrides


@settings(max_examples=150, deadline=None)
@given(any_scenarios())
def test_any_scenario_is_answered_or_refused_at_a_path(overrides):
    document, _ = apply_overrides(SMALL, overrides)
    try:
        planned = plan(Scenario.parse(document))
    except TrimtabError as refusal:
        paths = [message.path for message in refusal.messages]
        assert all(paths), str(refusal)  # noqa: PT017
    else:
        result = simulate(planned)
        answer = result.with_findings(analyse(planned, result)).as_dict()
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer
        shares = [row["fraction"] for row in answer["tables"].get("where_time_goes", [])]
        assert not shares or math.fsum(shares) == pytest.approx(1.0, abs=1e-9)


# ---- the same every time


def fingerprint(result):
    return hashlib.sha256(json.dumps(result.as_dict(), sort_keys=True).encode()).hexdigest()


def test_a_plan_gives_the_same_result_bit_for_bit(planner):
    again = simulate(planner.plan())
    assert fingerprint(again) == fingerprint(planner.result())


def test_another_process_gives_the_same_result_bit_for_bit(planner):
    code = (
        "import hashlib, json, sys\n"
        "from simcore import Scenario, plan, simulate\n"
        "result = simulate(plan(Scenario.parse(json.load(sys.stdin))))\n"
        "print(hashlib.sha256(json.dumps(result.as_dict(), sort_keys=True).encode()).hexdigest())"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(planner.document()),
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == fingerprint(planner.result())


def test_another_seed_gives_other_requests_and_the_same_seed_the_same(planner):
    first, second = planner.result(), planner.result({"run.seed": 2})
    assert not np.array_equal(first.records.arrival_s, second.records.arrival_s)
    faster = planner.result({"hardware.chip_overrides.hbm_bytes_per_s": "x2"})
    assert np.array_equal(first.records.arrival_s, faster.records.arrival_s)


# ---- regimes


def at_load(planner, ratio):
    rate = planner.result().metrics["serving.capacity_request_per_s"] * ratio
    return planner.result({"workload.arrivals.request_per_s": rate, "workload.request_count": 2000})


@pytest.mark.parametrize(
    ("ratio", "regime"), [(0.5, "stable"), (1.0, "near_saturation"), (1.6, "overloaded")]
)
def test_the_regime_follows_the_offered_load(planner, ratio, regime):
    result = at_load(planner, ratio)
    assert result.metrics["serving.offered_load_ratio"] == pytest.approx(ratio, rel=0.06)
    assert result.metrics["serving.regime"] == regime
    told = [warning for warning in result.warnings if warning.code.startswith("serving.")]
    assert [warning.code for warning in told] == ([] if regime == "stable" else [f"serving.{regime}"])


def test_an_overloaded_run_serves_about_its_capacity(planner):
    metrics = at_load(planner, 3.0).metrics
    assert metrics["serving.request_per_s"] == pytest.approx(
        metrics["serving.capacity_request_per_s"], rel=0.25
    )


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"serving.scheduler.kind": "continuous"},
        {"serving.scheduler": {"kind": "static_batch", "max_num_seqs": 64}},
        {"serving.scheduler": {"kind": "chunked_prefill", "max_num_seqs": 64, "max_num_batched_tokens": 512}},
        {"hardware.chip_count": 2, "serving.parallelism": {"tp": 1, "pp": 2}},
        {"hardware.chip_count": 8, "model.name": "llama-3.1-70b", "serving.parallelism.tp": 8},
    ],
)
def test_the_closed_form_capacity_is_what_a_flooded_run_serves(planner, overrides):
    flood = {
        "workload.arrivals.request_per_s": 1000.0,
        "workload.request_count": 6000,
        "workload.lengths": {
            "kind": "lognormal",
            "input_mean_tokens": 512,
            "input_cv": 0.5,
            "output_mean_tokens": 128,
            "output_cv": 0.5,
        },
    }
    metrics = planner.result(flood | overrides).metrics
    share = metrics["serving.request_per_s"] / metrics["serving.capacity_request_per_s"]
    assert 0.9 < share < 1.02  # the run also fills and drains


def test_a_stable_run_serves_what_arrives(planner):
    metrics = at_load(planner, 0.5).metrics
    offered = metrics["serving.offered_load_ratio"] * metrics["serving.capacity_request_per_s"]
    assert metrics["serving.request_per_s"] == pytest.approx(offered, rel=0.02)


def test_a_closed_loop_keeps_its_users_in_flight(planner):
    result = planner.result(CLOSED)
    assert result.metrics["serving.mean_batch_size"] <= 16
    assert max(result.series["serving"]["running"] + result.series["serving"]["waiting"]) == 16


def test_doubling_the_users_raises_throughput_and_token_time(planner):
    few, many = (
        planner.result({"workload.arrivals": {"kind": "closed_loop", "concurrency": users}}).metrics
        for users in (4, 32)
    )
    assert many["serving.output_token_per_s"] > few["serving.output_token_per_s"]
    assert many["serving.tpot_s.mean"] > few["serving.tpot_s.mean"]


# ---- what a change does


@pytest.mark.parametrize(
    "change",
    [
        {"hardware.chip_overrides.scaleup_bytes_per_s": "x0.1"},
        {"topology": {"kind": "rail_optimized", "hb_domain_size": 1}},
    ],
)
def test_a_worse_scale_up_link_lengthens_the_time_per_token(planner, change):
    base = {**CLOSED, "hardware.chip_count": 8, "serving.parallelism.tp": 8}
    good, worse = planner.result(base), planner.result(base | change)
    assert worse.metrics["serving.tpot_s.mean"] > 1.02 * good.metrics["serving.tpot_s.mean"]


def test_too_little_kv_memory_preempts(planner):
    tight = planner.result(
        {
            "serving.num_gpu_blocks_override": 60,
            "serving.max_model_len": 512,
            "workload.lengths.output_tokens": 200,
            "workload.arrivals.request_per_s": 100,
        }
    )
    assert tight.metrics["serving.preemption_count"] > 0
    assert tight.metrics["serving.completed_count"] == 200


# ---- traces


def test_a_trace_is_replayed_row_by_row(tmp_path):
    path = tmp_path / "trace.csv"
    rows = [(0.0, 100, 10), (0.5, 200, 20), (0.5, 50, 5), (3.0, 400, 40)]
    path.write_text(
        "timestamp_s,input_tokens,output_tokens\n" + "\n".join(f"{t},{i},{o}" for t, i, o in rows)
    )
    document, _ = apply_overrides(
        {"name": "x", "hardware": {"chip_count": 1}},
        {"workload.arrivals": {"kind": "trace", "path": str(path)}, "workload.request_count": 99},
    )
    read = lambda named: read_trace(path, format=named.format, limit=named.limit)  # noqa: E731
    result = simulate(plan(Scenario.parse(document), traces=read))
    assert result.metrics["serving.completed_count"] == 4
    assert list(result.records.arrival_s) == [0.0, 0.5, 0.5, 3.0]
    assert list(result.records.input_tokens) == [100, 200, 50, 400]
    assert list(result.records.output_tokens) == [10, 20, 5, 40]


def test_rows_of_a_trace_without_work_are_skipped_and_told(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("timestamp_s,input_tokens,output_tokens\n0,100,10\n1,0,0\n2,100,0\n3,50,5\n")
    document = {"name": "x", "workload": {"arrivals": {"kind": "trace", "path": str(path)}}}
    result = simulate(
        plan(Scenario.parse(document), traces=lambda named: read_trace(path, format=named.format))
    )
    assert result.metrics["serving.completed_count"] == 2
    (told,) = [warning for warning in result.warnings if warning.code == "trace.rows_skipped"]
    assert told.text == "2 rows have no token in or out and were skipped, the first on line 3"


def test_the_azure_trace_runs(shared):
    path = shared / "data/traces/azure2023_conv.csv"
    arrivals = {"kind": "trace", "path": str(path), "limit": 2000}
    document = {"name": "azure", "hardware": {"chip_count": 1}, "workload": {"arrivals": arrivals}}
    read = lambda named: read_trace(path, format=named.format, limit=named.limit)  # noqa: E731
    result = simulate(plan(Scenario.parse(document), traces=read))
    assert result.metrics["serving.completed_count"] == 2000
    assert result.metrics["serving.offered_load_ratio"] > 0


def test_the_series_counts_preemptions_up_to_all_of_them(planner):
    """Few blocks and long answers: sequences are put back; samples stop at the last event, so the end may be more."""
    scarce = planner.result(
        {
            "serving.num_gpu_blocks_override": 120,
            "workload.arrivals": {"kind": "closed_loop", "concurrency": 64},
            "workload.lengths": {"kind": "constant", "input_tokens": 64, "output_tokens": 400},
        }
    )
    counted = scarce.series["serving"]["preemption_count"]
    assert (np.diff(counted) >= 0).all()
    assert 0 < counted[-1] <= scarce.metrics["serving.preemption_count"]
    assert planner.result({}).series["serving"]["preemption_count"][-1] == 0
