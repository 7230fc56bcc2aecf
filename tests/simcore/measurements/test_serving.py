"""Five tools' result files: every figure lands where its definition says, and no file ends in a traceback."""

import contextlib
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simcore.errors import InputError
from simcore.measurements import TOOLS, as_csv, read_serving

VLLM = {
    "date": "20260110-101010",
    "endpoint_type": "openai",
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "tokenizer_id": "meta-llama/Llama-3.1-8B-Instruct",
    "num_prompts": 200,
    "tensor_parallel_size": "2",
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 45,
    "duration": 50.0,
    "completed": 200,
    "failed": 3,
    "total_input_tokens": 102400,
    "total_output_tokens": 51200,
    "request_throughput": 4.0,
    "output_throughput": 1024.0,
    "total_token_throughput": 3072.0,
    "mean_ttft_ms": 120.0,
    "median_ttft_ms": 100.0,
    "p99_ttft_ms": 400.0,
    "mean_tpot_ms": 40.0,
    "median_tpot_ms": 39.0,
    "p99_tpot_ms": 45.0,
    "mean_itl_ms": 41.0,
    "median_itl_ms": 38.0,
    "p99_itl_ms": 90.0,
}


def spread(mean, median, p99):
    return {"successful": {"mean": mean, "median": median, "percentiles": {"p50": median, "p99": p99}}}


GUIDELLM = {
    "args": {"model": "Qwen/Qwen3-32B"},
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent", "streams": 8}},
            "metrics": {
                "requests_per_second": spread(0.5, 0.5, 0.6),
                "request_latency": spread(16.0, 15.5, 20.0),
                "prompt_token_count": spread(1024.0, 1024.0, 1024.0),
                "output_token_count": spread(256.0, 256.0, 256.0),
                "time_to_first_token_ms": spread(700.0, 650.0, 1500.0),
                "time_per_output_token_ms": spread(62.5, 61.0, 70.0),
                "inter_token_latency_ms": spread(60.0, 59.0, 66.0),
                "output_tokens_per_second": spread(128.0, 128.0, 140.0),
            },
        }
    ],
}

AIPERF = {
    "input_config": {"endpoint": {"model_names": ["openai/gpt-oss-20b"]}, "loadgen": {"concurrency": 16}},
    "request_throughput": {"unit": "requests/sec", "avg": 8.0},
    "request_latency": {"unit": "ms", "avg": 2000.0, "p50": 1900.0, "p99": 3000.0},
    "time_to_first_token": {"unit": "ms", "avg": 50.0, "p50": 45.0, "p99": 200.0},
    "inter_token_latency": {"unit": "ms", "avg": 8.0, "p50": 7.9, "p99": 9.0},
    "inter_chunk_latency": {"unit": "us", "avg": 16000.0, "p50": 15000.0, "p99": 30000.0},
    "input_sequence_length": {"unit": "tokens", "avg": 550.0},
    "output_sequence_length": {"unit": "tokens", "avg": 245.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 1960.0},
    "error_request_count": {"unit": "requests", "avg": 0},
}

INFERENCE_PERF = {
    "load_summary": {"count": 100, "requested_rate": 2.0, "achieved_rate": 2.0},
    "successes": {
        "count": 98,
        "latency": {
            "request_latency": {"mean": 5.0, "median": 4.9, "p99": 6.9},
            "normalized_time_per_output_token": {"mean": 0.03, "median": 0.02, "p99": 0.45},
            "time_per_output_token": {"mean": 0.0097, "median": 0.0095, "p99": 0.015},
            "time_to_first_token": {"mean": 0.2, "median": 0.15, "p99": 0.9},
            "inter_token_latency": {"mean": 0.0096, "median": 0.009, "p99": 0.03},
        },
        "throughput": {
            "input_tokens_per_sec": 900.0,
            "output_tokens_per_sec": 980.0,
            "requests_per_sec": 1.96,
        },
        "prompt_len": {"mean": 460.0},
        "output_len": {"mean": 500.0},
    },
    "failures": {"count": 2},
}


def statistics(mean, units, **more):
    return {"units": units, "mean": mean, **more}


LLM_D = {
    "version": "0.2.1",
    "run": {"uid": "a", "time": {"duration": "PT50S"}},
    "scenario": {
        "stack": [
            {"standardized": {"kind": "generic", "tool": "llm-d-inference-scheduler"}},
            {
                "standardized": {
                    "kind": "inference_engine",
                    "model": {"name": "Qwen/Qwen3-0.6B"},
                    "replicas": 2,
                    "role": "decode",
                    "accelerator": {"model": "NVIDIA-H100-80GB-HBM3", "count": 8, "parallelism": {"tp": 8}},
                }
            },
        ],
        "load": {"standardized": {"tool": "inference-perf", "concurrency": float("inf"), "rate_qps": 10.0}},
    },
    "results": {
        "request_performance": {
            "aggregate": {
                "requests": {
                    "total": 500,
                    "failures": 1,
                    "input_length": statistics(2262.0, "count"),
                    "output_length": statistics(1000.0, "count"),
                },
                "latency": {
                    "time_to_first_token": statistics(36.0, "ms", p50=35.0, p99=50.0),
                    "time_per_output_token": statistics(0.004, "s/token"),
                    "inter_token_latency": statistics(4.1, "ms/token", p99=9.0),
                    "request_latency": statistics(4.1, "s"),
                },
                "throughput": {
                    "request_rate": statistics(9.9, "queries/s"),
                    "output_token_rate": statistics(9900.0, "tokens/s"),
                },
            }
        }
    },
}
SAMPLES = {
    "vllm-bench": VLLM,
    "guidellm": GUIDELLM,
    "aiperf": AIPERF,
    "inference-perf": INFERENCE_PERF,
    "llm-d": LLM_D,
}


def read(tool, document, **given):
    return read_serving(tool, json.dumps(document).encode(), **given)


def test_vllm_bench_in_seconds_with_means_of_tokens():
    (row,) = read("vllm-bench", VLLM, gpu="nvidia-h100-sxm")
    assert (row.model, row.gpu, row.tp, row.concurrency) == (
        "meta-llama/Llama-3.1-8B-Instruct",
        "nvidia-h100-sxm",
        2,
        45,
    )
    assert (row.input_tokens, row.output_tokens, row.request_per_s) == (512, 256, 4.0)
    assert (row.ttft.mean_s, row.ttft.p50_s, row.ttft.p99_s) == (0.12, 0.1, 0.4)
    assert (row.tpot.mean_s, row.itl.mean_s) == (0.04, 0.041)
    assert row.e2e.mean_s == pytest.approx(0.12 + 0.04 * 255)
    assert "3 requests failed" in row.note


def test_more_in_flight_than_was_set_is_said():
    """Question N141: 45 configured, 74.5 observed."""
    (row,) = read("vllm-bench", VLLM | {"mean_e2el_ms": 18_625.0})
    assert row.achieved_concurrency == pytest.approx(74.5)
    assert "set to 45 in flight, 74.5 by Little's law" in row.note


def test_details_give_the_end_to_end_time_itself():
    detailed = VLLM | {"completed": 2, "ttfts": [0.1, 0.3], "itls": [[0.05] * 4, [0.05] * 8]}
    (row,) = read("vllm-bench", detailed)
    assert row.e2e.mean_s == pytest.approx((0.1 + 0.2 + 0.3 + 0.4) / 2)
    assert "of the means" not in row.note


def test_results_appended_to_one_file_are_all_read():
    lines = b"\n".join(json.dumps(VLLM | {"max_concurrency": count}).encode() for count in (1, 2, None))
    assert [row.concurrency for row in read_serving("vllm-bench", lines)] == [1, 2, None]


def test_tpot_is_what_we_define_whatever_guidellm_calls_it():
    """Question N071: time_per_output_token_ms is E2E / output there, inter_token_latency_ms what we call TPOT."""
    (row,) = read("guidellm", GUIDELLM)
    assert row.tpot.mean_s == pytest.approx((16.0 - 0.7) / 255)
    assert row.itl.mean_s is None
    assert "spreads TTFT over the tokens" in row.note
    assert (row.model, row.concurrency, row.e2e.mean_s) == ("Qwen/Qwen3-32B", 8, 16.0)
    assert row.achieved_concurrency == pytest.approx(8.0)


def test_aiperf_by_its_own_units():
    (row,) = read("aiperf", AIPERF)
    assert (row.model, row.concurrency) == ("openai/gpt-oss-20b", 16)
    assert (row.tpot.mean_s, row.itl.mean_s, row.itl.p99_s) == pytest.approx((0.008, 0.016, 0.03))
    assert row.achieved_concurrency == pytest.approx(16.0)


def test_aiperf_with_its_load_in_phases():
    """From schema 2.0 on, models are a list of names and the load is that of the measured phase."""
    asked = {
        "models": {"strategy": "round_robin", "items": [{"name": "openai/gpt-oss-20b"}]},
        "endpoint": {"type": "chat", "streaming": True},
        "phases": [
            {"name": "warmup", "type": "concurrency", "concurrency": 2},
            {"name": "profiling", "type": "concurrency", "requests": 100, "concurrency": 16},
        ],
    }
    counts = {"input_config": asked, "error_request_count": None, "was_cancelled": False}
    (row,) = read("aiperf", AIPERF | counts)
    assert (row.model, row.concurrency, row.note.count("failed")) == ("openai/gpt-oss-20b", 16, 0)
    (row,) = read("aiperf", AIPERF | {"input_config": asked | {"models": ["a", "b"], "phases": []}})
    assert (row.model, row.concurrency) == ("a, b", None)


def test_guidellm_with_its_model_under_the_backend():
    """Reports of version 2 have no args; the strategy is named by kind."""
    benchmark = GUIDELLM["benchmarks"][0] | {"config": {"strategy": {"kind": "concurrent", "streams": 8}}}
    report = {
        "metadata": {"version": 2, "guidellm_version": "0.7.3"},
        "config": {"spec": {"backend": {"kind": "openai_http", "model": "Qwen/Qwen3-32B"}}},
        "benchmarks": [benchmark],
    }
    (row,) = read("guidellm", report)
    assert (row.model, row.concurrency) == ("Qwen/Qwen3-32B", 8)


def test_inference_perf_counts_tokens_as_the_server_does_where_it_says_only_that():
    """Newer reports have prompt_tokens in place of prompt_len, with totals beside the distribution."""
    old = INFERENCE_PERF["successes"]
    new = {name: value for name, value in old.items() if name not in ("prompt_len", "output_len")}
    new |= {
        "prompt_tokens": {
            "total": 45_080.0,
            "cached": 0.0,
            "uncached": 45_080.0,
            "mean": 460.0,
            "median": 455.0,
        },
        "output_tokens": {"total": 49_000.0, "mean": 500.0},
        "token_count_mismatches": 0,
    }
    (row,) = read("inference-perf", INFERENCE_PERF | {"successes": new, "benchmark_time_seconds": 50.0})
    assert (row.input_tokens, row.output_tokens) == (460.0, 500.0)


def test_inference_perf_by_stages_of_concurrency_and_without_a_99th_percentile():
    times = {
        name: {key: value for key, value in one.items() if key != "p99"}
        for name, one in INFERENCE_PERF["successes"]["latency"].items()
    }
    stage = {
        "load_summary": {"count": 100, "requested_rate": 2.0, "achieved_rate": 2.0, "concurrency": 8},
        "successes": INFERENCE_PERF["successes"] | {"latency": times},
        "failures": {"count": 0, "request_latency": None, "prompt_len": None},
    }
    (row,) = read("inference-perf", stage)
    assert (row.concurrency, row.ttft.p50_s, row.ttft.p99_s) == (8, 0.15, None)


def test_inference_perf_in_seconds():
    (row,) = read("inference-perf", INFERENCE_PERF, model="llama", tp=4)
    assert (row.model, row.tp, row.tpot.mean_s, row.itl.p99_s) == ("llama", 4, 0.0097, 0.03)
    assert (row.request_per_s, row.output_tokens) == (1.96, 500.0)
    assert "2 requests failed" in row.note


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
def test_llm_d_report_as_json_or_yaml(write):
    (row,) = read_serving("llm-d", write(LLM_D).encode())
    assert (row.model, row.gpu, row.tp) == ("Qwen/Qwen3-0.6B", "NVIDIA-H100-80GB-HBM3", 8)
    assert row.concurrency is None  # infinite: an open loop
    assert (row.ttft.mean_s, row.tpot.mean_s, row.itl.mean_s) == pytest.approx((0.036, 0.004, 0.0041))
    assert "2 × decode" in row.note


@pytest.mark.parametrize(
    ("tool", "change", "path"),
    [
        ("vllm-bench", {"mean_ttft_ms": None}, "mean_ttft_ms"),
        ("vllm-bench", {"completed": 0}, "completed"),
        ("vllm-bench", {"mean_tpot_ms": "fast"}, "mean_tpot_ms"),
        ("vllm-bench", {"p99_itl_ms": -1.0}, "p99_itl_ms"),
        ("guidellm", {"benchmarks": []}, "benchmarks"),
        ("guidellm", {"benchmarks": [{}]}, "benchmarks.0.metrics.requests_per_second.successful.mean"),
        ("aiperf", {"request_latency": {"unit": "fortnights", "avg": 1.0}}, "request_latency.avg"),
        ("inference-perf", {"successes": {}}, "successes.throughput.requests_per_sec"),
        ("llm-d", {"version": "0.1"}, "version"),
    ],
)
def test_a_wrong_field_is_named(tool, change, path):
    with pytest.raises(InputError) as caught:
        read(tool, SAMPLES[tool] | change)
    assert caught.value.message.path == path


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"[1]", b"{", b"\xff", b"[" * 100_000, b"1" * 5000, b"nan", b"- 1"]
)
def test_what_is_no_result_is_refused(tool, raw):
    with pytest.raises(InputError):
        read_serving(tool, raw)


def test_yaml_bombs_and_tags_are_refused():
    for text in (
        b"a: &x [1]\nb: *x",
        b"version: !!bool x",
        b"version: !!python/object:os.system {}",
        b"? [a]: b",
    ):
        with pytest.raises(InputError):
            read_serving("llm-d", text)


def test_nan_is_no_data():
    (row,) = read("vllm-bench", VLLM | {"p99_itl_ms": float("nan")})
    assert row.itl.p99_s is None


def test_csv_has_one_column_per_figure_and_no_formulas():
    rows = [row for tool in TOOLS for row in read(tool, SAMPLES[tool])]
    rows += read("vllm-bench", VLLM | {"model_id": "=cmd()"})
    head, *lines = as_csv(rows).splitlines()
    assert head.startswith(
        "source_tool,model,gpu,tp,concurrency,request_per_s,input_tokens,output_tokens,ttft_s_mean"
    )
    assert len(lines) == len(rows)
    assert ",'=cmd()," in lines[-1]


def places(value, here=()):
    """Every path into a document."""
    yield here
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inside:
        yield from places(below, (*here, key))


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=4), inside, max_size=3),
    max_leaves=4,
)


@pytest.mark.parametrize("tool", TOOLS)
@given(data=st.data())
def test_any_value_anywhere_is_read_or_refused(tool, data):
    sample = SAMPLES[tool]
    path = data.draw(st.sampled_from(list(places(sample))))
    document = changed(sample, path, data.draw(ANYTHING))
    with contextlib.suppress(InputError):
        as_csv(read(tool, document))


@pytest.mark.parametrize("tool", TOOLS)
@given(raw=st.binary(max_size=60) | st.text(alphabet='{}[]:,"-!&*?|>% \n01aé', max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(tool, raw):
    with contextlib.suppress(InputError):
        read_serving(tool, raw)
