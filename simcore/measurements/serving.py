"""Results of serving benchmarks: five tools' files, each figure by what it means there.

    tool             TPOT is                        ITL is                     E2E / output tokens is called
    vllm bench       mean_tpot_ms                   mean_itl_ms
    GuideLLM         inter_token_latency_ms         -                          time_per_output_token_ms
    AIPerf           inter_token_latency            inter_chunk_latency
    inference-perf   time_per_output_token          inter_token_latency        normalized_time_per_output_token
    llm-d 0.2        time_per_output_token          inter_token_latency        normalized_time_per_output_token

Only completed requests count. Where a file has no end-to-end time, the mean is TTFT + TPOT · (output − 1) of
the means, and the note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from simcore.errors import InputError
from simcore.measurements.nodes import Node, read_document, read_json_documents
from simcore.measurements.rows import Latency, ServingMeasurement

_OVERSHOOT_RATIO: Final = 1.1


def read_serving(
    tool: str, raw: bytes, *, path: str = "", model: str = "", gpu: str = "", tp: int | None = None
) -> list[ServingMeasurement]:
    """The rows of one result file of a tool in `TOOLS`; `model`, `gpu`, `tp` fill what it does not say."""
    rows = TOOLS[tool](raw, path)
    filled = [
        replace(row, model=row.model or model, gpu=row.gpu or gpu, tp=row.tp or tp)
        for row in map(_with_e2e, rows)
    ]
    return [_with_overshoot(row) for row in filled]


def _with_e2e(row: ServingMeasurement) -> ServingMeasurement:
    """Estimate a mean end-to-end time that the file leaves out."""
    parts = (row.ttft.mean_s, row.tpot.mean_s, row.output_tokens)
    if row.e2e.mean_s is not None or None in parts:
        return row
    ttft_s, tpot_s, output = (float(part) for part in parts if part is not None)
    estimate = Latency(mean_s=ttft_s + tpot_s * max(output - 1, 0.0))
    return replace(
        row, e2e=estimate, note=_joined(row.note, "E2E is TTFT + TPOT · (output - 1) of the means")
    )


def _with_overshoot(row: ServingMeasurement) -> ServingMeasurement:
    achieved, stated = row.achieved_concurrency, row.concurrency
    if not achieved or not stated or 1 / _OVERSHOOT_RATIO <= achieved / stated <= _OVERSHOOT_RATIO:
        return row
    return replace(row, note=_joined(row.note, f"set to {stated} in flight, {achieved:.1f} by Little's law"))


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


# ---- vllm bench serve --------------------------------------------------------------------------------


def _vllm_bench(raw: bytes, path: str) -> list[ServingMeasurement]:
    return [_vllm_row(node) for node in read_json_documents(raw, path)]


def _vllm_row(node: Node) -> ServingMeasurement:
    tool = "vllm bench serve"
    completed = node.at("completed").positive(tool)
    tokens = {kind: node.at(f"total_{kind}_tokens").number() for kind in ("input", "output")}
    e2e = _vllm_latency(node, "e2el")
    return ServingMeasurement(
        source_tool="vllm-bench",
        model=node.at("model_id").text(),
        gpu=node.first(("gpu",), ("hardware",)).text(),
        tp=node.first(("tensor_parallel_size",), ("tp",)).integer(),
        concurrency=node.at("max_concurrency").integer(),
        request_per_s=node.at("request_throughput").positive(tool),
        input_tokens=None if tokens["input"] is None else tokens["input"] / completed,
        output_tokens=None if tokens["output"] is None else tokens["output"] / completed,
        ttft=replace(_vllm_latency(node, "ttft"), mean_s=node.at("mean_ttft_ms").positive(tool) / 1e3),
        tpot=_vllm_latency(node, "tpot"),
        itl=_vllm_latency(node, "itl"),
        e2e=e2e if e2e.mean_s is not None else Latency(mean_s=_vllm_e2e_s(node, completed)),
        output_token_per_s=node.at("output_throughput").number(),
        note=_failures(node.at("failed").number()),
    )


def _vllm_latency(node: Node, name: str) -> Latency:
    return Latency(
        mean_s=node.at(f"mean_{name}_ms").seconds("ms"),
        p50_s=node.first((f"median_{name}_ms",), (f"p50_{name}_ms",)).seconds("ms"),
        p99_s=node.at(f"p99_{name}_ms").seconds("ms"),
    )


def _vllm_e2e_s(node: Node, completed: float) -> float | None:
    """Mean over requests of TTFT + all gaps, where the file was saved with details."""
    ttfts, gaps = list(node.at("ttfts").items()), list(node.at("itls").items())
    if not ttfts or len(ttfts) != len(gaps):
        return None
    first_s = sum(one.number() or 0.0 for one in ttfts)
    return (first_s + sum(gap.number() or 0.0 for one in gaps for gap in one.items())) / completed


def _failures(count: float | None) -> str:
    return f"{count:.0f} requests failed and are not counted" if count else ""


# ---- GuideLLM ----------------------------------------------------------------------------------------


def _guidellm(raw: bytes, path: str) -> list[ServingMeasurement]:
    report = read_document(raw, path)
    benchmarks = list(report.at("benchmarks").items())
    if not benchmarks:
        raise InputError.at(
            "benchmarks",
            "measurement.missing",
            "missing or empty; a GuideLLM report lists its benchmarks there",
        )
    model = report.first(
        ("args", "model"),
        ("args", "backend_kwargs", "model"),
        ("config", "spec", "model"),
        ("config", "spec", "backend", "model"),
    ).text()
    return [_guidellm_row(node, model) for node in benchmarks]


def _guidellm_row(node: Node, model: str) -> ServingMeasurement:
    metrics = node.at("metrics")
    strategy = node.first(("config", "strategy"), ("args", "strategy"), ("scheduler", "strategy"))
    return ServingMeasurement(
        source_tool="guidellm",
        model=model or node.first(("worker", "backend_model"), ("config", "backend", "model")).text(),
        concurrency=strategy.first(("streams",), ("max_concurrency",)).integer(),
        request_per_s=metrics.at("requests_per_second", "successful", "mean").positive("GuideLLM"),
        input_tokens=metrics.at("prompt_token_count", "successful", "mean").number(),
        output_tokens=metrics.at("output_token_count", "successful", "mean").number(),
        ttft=_guidellm_latency(metrics, "time_to_first_token_ms", "ms"),
        tpot=_guidellm_latency(metrics, "inter_token_latency_ms", "ms"),
        itl=Latency(),
        e2e=_guidellm_latency(metrics, "request_latency", "s"),
        output_token_per_s=metrics.at("output_tokens_per_second", "successful", "mean").number(),
        note="TPOT is GuideLLM's inter_token_latency_ms; its time_per_output_token_ms spreads TTFT over the tokens",
    )


def _guidellm_latency(metrics: Node, name: str, unit: str) -> Latency:
    node = metrics.at(name, "successful")
    return Latency(
        mean_s=node.at("mean").seconds(unit),
        p50_s=node.first(("median",), ("percentiles", "p50")).seconds(unit),
        p99_s=node.at("percentiles", "p99").seconds(unit),
    )


# ---- AIPerf ------------------------------------------------------------------------------------------


def _aiperf(raw: bytes, path: str) -> list[ServingMeasurement]:
    return [_aiperf_row(node) for node in read_json_documents(raw, path)]


def _aiperf_row(node: Node) -> ServingMeasurement:
    asked = node.at("input_config")
    names = asked.first(("endpoint", "model_names"), ("model_names",), ("models", "items"), ("models",))
    return ServingMeasurement(
        source_tool="aiperf",
        model=", ".join(name.text() or name.at("name").text() for name in names.items())[:200]
        or names.text(),
        concurrency=_aiperf_concurrency(asked),
        request_per_s=node.at("request_throughput", "avg").positive("AIPerf"),
        input_tokens=node.at("input_sequence_length", "avg").number(),
        output_tokens=node.at("output_sequence_length", "avg").number(),
        ttft=_aiperf_latency(node.at("time_to_first_token")),
        tpot=_aiperf_latency(node.at("inter_token_latency")),
        itl=_aiperf_latency(node.at("inter_chunk_latency")),
        e2e=_aiperf_latency(node.at("request_latency")),
        output_token_per_s=node.at("output_token_throughput", "avg").number(),
        note=_joined(
            "TPOT is AIPerf's inter_token_latency, a mean per request",
            _failures(node.at("error_request_count", "avg").number()),
        ),
    )


def _aiperf_concurrency(asked: Node) -> int | None:
    """Of the load generator; of the phase that was measured, where the file lists phases."""
    set_once = asked.first(("loadgen", "concurrency"), ("concurrency",)).integer()
    phases = [one for one in asked.at("phases").items() if one.at("name").text() == "profiling"]
    return set_once or (phases[0].at("concurrency").integer() if phases else None)


def _aiperf_latency(node: Node) -> Latency:
    unit = node.at("unit").text() or "ms"
    return Latency(
        mean_s=node.at("avg").seconds(unit),
        p50_s=node.at("p50").seconds(unit),
        p99_s=node.at("p99").seconds(unit),
    )


# ---- inference-perf ----------------------------------------------------------------------------------


def _inference_perf(raw: bytes, path: str) -> list[ServingMeasurement]:
    return [_inference_perf_row(node) for node in read_json_documents(raw, path)]


def _inference_perf_row(node: Node) -> ServingMeasurement:
    done = node.at("successes")
    return ServingMeasurement(
        source_tool="inference-perf",
        concurrency=node.at("load_summary", "concurrency").integer(),
        request_per_s=done.at("throughput", "requests_per_sec").positive("inference-perf"),
        input_tokens=done.first(("prompt_len", "mean"), ("prompt_tokens", "mean")).number(),
        output_tokens=done.first(("output_len", "mean"), ("output_tokens", "mean")).number(),
        ttft=_inference_perf_latency(done, "time_to_first_token"),
        tpot=_inference_perf_latency(done, "time_per_output_token"),
        itl=_inference_perf_latency(done, "inter_token_latency"),
        e2e=_inference_perf_latency(done, "request_latency"),
        output_token_per_s=done.at("throughput", "output_tokens_per_sec").number(),
        note=_failures(node.at("failures", "count").number()),
    )


def _inference_perf_latency(done: Node, name: str) -> Latency:
    node = done.at("latency", name)
    return Latency(
        mean_s=node.at("mean").seconds("s"),
        p50_s=node.first(("median",), ("p50",)).seconds("s"),
        p99_s=node.at("p99").seconds("s"),
    )


# ---- llm-d benchmark report --------------------------------------------------------------------------


def _llm_d(raw: bytes, path: str) -> list[ServingMeasurement]:
    report = read_document(raw, path)
    version = str(report.at("version").value)[:20]
    if not version.startswith("0.2"):
        raise InputError.at(
            "version",
            "measurement.version",
            "got {got!r}; benchmark report 0.2 and 0.2.1 are read, so convert the report",
            got=version,
        )
    engines = [
        part.at("standardized")
        for part in report.at("scenario", "stack").items()
        if part.at("standardized", "kind").text() == "inference_engine"
    ]
    engine = engines[0] if engines else Node(value=None, path="scenario.stack")
    found = report.at("results", "request_performance", "aggregate")
    roles = [
        f"{part.at('replicas').integer() or 1} × {part.at('role').text() or 'replica'}" for part in engines
    ]
    requests = found.at("requests")
    return [
        ServingMeasurement(
            source_tool="llm-d",
            model=engine.at("model", "name").text(),
            gpu=engine.at("accelerator", "model").text(),
            tp=engine.at("accelerator", "parallelism", "tp").integer(),
            concurrency=report.at("scenario", "load", "standardized", "concurrency").integer(),
            request_per_s=found.at("throughput", "request_rate", "mean").positive("llm-d benchmark"),
            input_tokens=requests.at("input_length", "mean").number(),
            output_tokens=requests.at("output_length", "mean").number(),
            ttft=_llm_d_latency(found, "time_to_first_token"),
            tpot=_llm_d_latency(found, "time_per_output_token"),
            itl=_llm_d_latency(found, "inter_token_latency"),
            e2e=_llm_d_latency(found, "request_latency"),
            output_token_per_s=found.at("throughput", "output_token_rate", "mean").number(),
            note=_joined(", ".join(roles)[:100], _failures(requests.at("failures").number())),
        )
    ]


def _llm_d_latency(found: Node, name: str) -> Latency:
    node = found.at("latency", name)
    unit = node.at("units").text() or "s"
    return Latency(
        mean_s=node.at("mean").seconds(unit),
        p50_s=node.at("p50").seconds(unit),
        p99_s=node.at("p99").seconds(unit),
    )


TOOLS: Final[Mapping[str, Callable[[bytes, str], list[ServingMeasurement]]]] = {
    "vllm-bench": _vllm_bench,
    "guidellm": _guidellm,
    "aiperf": _aiperf,
    "inference-perf": _inference_perf,
    "llm-d": _llm_d,
}
