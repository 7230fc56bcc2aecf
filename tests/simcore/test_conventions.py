"""Names carry units, and every field and metric has its words in the glossary."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import BaseModel

import simcore
from simcore import glossary
from simcore.catalog.catalog import overridable_figures
from simcore.scenario.overrides import union_members
from simcore.units import dimension_of
from tests.simcore.interface import KNOWN_METRICS

# A unit of something per something else, where the dimension table has no entry of its own.
COMPOSED = re.compile(r"(^|_)(s|bytes|flop|joule|usd|minutes|ratio)_per_[a-z0-9_]+$")

OWN_UNIT = "its unit stands in another field of the same object"
PURE = "a plain ratio or number that the field of work names so"
TOKENS = "tokens (or tokens × context tokens) summed over iterations"
# Every float that may go without: class, field, reason.
REASONED = {
    ("Cell", "value"): OWN_UNIT,
    ("Figure", "value"): OWN_UNIT,
    ("Term", "value"): OWN_UNIT,
    ("Fact", "expected"): OWN_UNIT,
    ("Fact", "tolerance"): OWN_UNIT,
    ("FactRow", "got"): OWN_UNIT,
    ("InputRange", "low"): OWN_UNIT,
    ("InputRange", "base"): OWN_UNIT,
    ("InputRange", "high"): OWN_UNIT,
    ("Axis", "values"): "their unit is that of the path beside them",
    ("GoalSeek", "low"): "its unit is that of the path beside it",
    ("GoalSeek", "high"): "its unit is that of the path beside it",
    ("Target", "at_most"): "its unit is that of the metric beside it",
    ("Target", "at_least"): "its unit is that of the metric beside it",
    ("End", "value"): "its unit is that of the swing's metric",
    ("Swing", "base_value"): "its unit is that of the swing's metric",
    ("Bar", "value"): "in the unit of the picture's metric",
    ("Swung", "low"): "in the unit of the picture's metric",
    ("Swung", "high"): "in the unit of the picture's metric",
    ("Swings", "base"): "in the unit of the picture's metric",
    ("Optic", "reach_m"): "metres, the only length",
    ("EconomicsSpec", "pue"): PURE,
    ("KvCache", "gpu_memory_utilization"): "vLLM's own option name",
    ("MemoryRequest", "gpu_memory_utilization"): "vLLM's own option name",
    ("Run", "gpu_memory_utilization"): "vLLM's own option name",
    ("LoopRules", "input_fractions"): "shares, two of them",
    ("LoopRules", "output_fractions"): "shares, two of them",
    ("Served", "running"): "requests, a count over time",
    ("Served", "waiting"): "requests, a count over time",
    ("_Columns", "layers"): "how often an overhead is paid",
    ("_Columns", "rank_doublings"): "how often an overhead is paid",
    ("_Columns", "sequences"): "how often an overhead is paid",
    ("_Columns", "prompts"): "how often an overhead is paid",
    ("Gamma", "cv"): PURE,
    ("Sessions", "turns_mean"): "turns, a mean",
    ("Sessions", "think_time_cv"): PURE,
    ("LogNormal", "input_cv"): PURE,
    ("LogNormal", "output_cv"): PURE,
    ("ChunkedPrefill", "prediction_cv"): PURE,
    ("Continuous", "prediction_cv"): PURE,
    ("Disaggregated", "prediction_cv"): PURE,
    ("Part", "repair_cv"): PURE,
    ("_Life", "repair_cv"): PURE,
    ("FullLife", "repair_cv"): PURE,
    ("QueueLife", "repair_cv"): PURE,
    ("QueueLife", "work_cv"): PURE,
    ("LengthPreset", "rank_correlation"): PURE,
    ("Pair", "measured"): OWN_UNIT,
    ("Pair", "simulated"): OWN_UNIT,
    ("ArrivalFit", "gap_cv"): PURE,
    ("ArrivalFit", "relative_rates"): "over the mean rate",
    ("ByOutstanding", "target"): "requests of one replica",
    ("ByKvUsage", "target"): PURE,
    ("Replicas", "ready_mean"): "replicas, a mean",
    ("Line", "ranks"): "what the order goes by: a priority, or tokens",
    ("RequestClass", "weight"): PURE,
    ("Interval", "mean"): "in the unit of what was averaged",
    ("Interval", "low"): "in the unit of what was averaged",
    ("Interval", "high"): "in the unit of what was averaged",
    ("Interval", "standard_deviation"): "in the unit of what was averaged",
    ("Trace", "time_scale"): PURE,
    ("Trace", "window"): "two instants in seconds, as the interface names it",
    ("BillRow", "scale"): PURE,
    ("PipelineStage", "share"): PURE,
    ("OperatingPoint", "batch"): "sequences, a mean",
    ("Curve", "batch"): "sequences, a mean",
    ("Occupancy", "mean_sequences"): "sequences, a mean",
    ("Totals", "iterations_by_sampled"): "iterations, counted by sampled sequences",
    ("Fabric", "hop_histogram"): "pairs of hops and share",
    ("MatrixSummary", "inside_blocks"): "pairs of block size and share",
    ("MatrixSummary", "busiest"): "sender, receiver and bytes",
    ("EngineConstants", "sampler_copies"): "copies of the logits, a fit",
    ("EngineConstants", "non_torch_bytes_parallel"): "bytes, of engines that run in parallel",
    ("Bound", "start"): "in the unit of the parameter that it bounds",
    ("Bound", "low"): "in the unit of the parameter that it bounds",
    ("Bound", "high"): "in the unit of the parameter that it bounds",
    ("Mix", "decode_steps"): "iterations, a mean",
    ("Mix", "iterations"): PURE,
    ("Mix", "iterations_per_token"): PURE,
    ("_Speculation", "acceptance_rate"): "a probability, by the field's own word",
    ("Ngram", "acceptance_rate"): "a probability, by the field's own word",
    ("Eagle", "acceptance_rate"): "a probability, by the field's own word",
    ("Eagle3", "acceptance_rate"): "a probability, by the field's own word",
    ("Mtp", "acceptance_rate"): "a probability, by the field's own word",
    ("DraftModel", "acceptance_rate"): "a probability, by the field's own word",
    ("SpeculationPlan", "acceptance_rate"): "a probability, by the field's own word",
    ("Relaxation", "asked"): "in the unit of the limit",
    ("Relaxation", "needed"): "in the unit of the limit",
    ("Columns", "batch"): "sequences, a mean",
    ("Grid", "axes"): "coordinates, each by its own name",
    ("Correction", "log_at"): "logarithms of such a coordinate",
    ("Mix", "held_blocks"): "KV blocks, a mean",
    ("Mix", "prefill_work"): TOKENS,
    ("Mix", "prefill_window_work"): TOKENS,
    ("Totals", "decode_context_token_sum"): TOKENS,
    ("Totals", "decode_window_token_sum"): TOKENS,
    ("Totals", "prefill_work_sum"): TOKENS,
    ("Totals", "prefill_window_work_sum"): TOKENS,
}


def holds_floats(annotation: object) -> bool:
    """Whether a float stands anywhere in a type, in an array or a container too.

    Keys of a mapping have names of their own, and a function holds nothing.
    """
    if typing.get_origin(annotation) in (dict, Mapping, Callable):
        return False
    return annotation in (float, np.float64) or any(map(holds_floats, typing.get_args(annotation)))


def names_a_unit(name: str) -> bool:
    return bool(dimension_of(name) or COMPOSED.search(name))


def float_fields(cls: type) -> list[str]:
    if dataclasses.is_dataclass(cls):
        hints = typing.get_type_hints(cls)
        return [field.name for field in dataclasses.fields(cls) if holds_floats(hints[field.name])]
    return [name for name, field in cls.model_fields.items() if holds_floats(field.annotation)]


def core_classes() -> list[type]:
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(simcore.__path__, "simcore.")
        if not found.name.endswith("__main__")
    ]
    return [
        cls
        for module in modules
        for cls in vars(module).values()
        if inspect.isclass(cls)
        and cls.__module__ == module.__name__
        and (dataclasses.is_dataclass(cls) or issubclass(cls, BaseModel))
    ]


CLASSES = core_classes()


def bare(cls: type) -> list[str]:
    return [
        name for name in float_fields(cls) if not names_a_unit(name) and (cls.__name__, name) not in REASONED
    ]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__qualname__}")
def test_a_float_says_its_unit_in_its_name(cls):
    assert bare(cls) == []


def test_the_walk_finds_the_core():
    names = {cls.__name__ for cls in CLASSES}
    assert {"Chip", "StepTimeTable", "Scenario", "KvBudget", "Fabric", "Result", "Term", "Totals"} <= names


@dataclasses.dataclass
class Bad:
    clock: float
    rate: float | None
    load: NDArray[np.float64]
    limit: Annotated[float, "an annotation"]
    pairs: tuple[tuple[int, float], ...]
    columns: dict[str, float]
    clock_s: float
    word: str
    number: int


def test_a_bare_float_is_refused_however_it_is_wrapped():
    assert bare(Bad) == ["clock", "rate", "load", "limit", "pairs"]


def test_no_reason_outlives_its_field():
    fields = {(cls.__name__, name) for cls in CLASSES for name in float_fields(cls)}
    assert {key for key in REASONED if key not in fields} == set()


def test_no_name_hides_bits_or_bytes():
    names = {
        name
        for cls in CLASSES
        for name in (getattr(cls, "__dataclass_fields__", None) or cls.model_fields)
        if re.search(r"gbps|mbps|tbps|gbit", name)
    }
    assert names == set()


# ---- the glossary


def schema_paths(prefix=""):
    """Every path that a scenario document may have."""
    for model in union_members(prefix):
        for name in model.model_fields:
            path = f"{prefix}.{name}" if prefix else name
            yield path
            yield from schema_paths(path) if union_members(path) else ()


SCHEMA_PATHS = sorted(set(schema_paths()))


def test_the_schema_is_walked_into_its_unions():
    assert {"topology.hb_domain_size", "workload.arrivals.concurrency", "serving.kv.block_size"} <= set(
        SCHEMA_PATHS
    )


def test_every_field_of_a_scenario_has_a_label_and_a_sentence():
    entries = {path: glossary.entry(path) for path in SCHEMA_PATHS}
    assert [path for path, entry in entries.items() if entry is None] == []
    assert [path for path, entry in entries.items() if entry.label == path or not entry.label] == []


def test_every_chip_figure_has_a_label():
    paths = [f"hardware.chip_overrides.{figure}" for figure in overridable_figures()]
    assert [path for path in paths if glossary.label(path).startswith(("hardware.", "Chip overrides"))] == []


RUNS = {
    "serving": {"hardware.chip_count": 2, "serving.parallelism.tp": 2},
    "cluster": {"workload.kind": "none", "hardware.chip_count": 2048, "topology.kind": "rail_only"},
    "pod": {"workload.kind": "none", "hardware.chip": "tpu-v4", "hardware.chip_count": 4096},
    "training": {"workload.kind": "training", "hardware.chip_count": 64, "training.parallelism.tp": 2},
}


@pytest.mark.parametrize("run", RUNS)
def test_every_metric_has_a_label(planner, run):
    assert [metric for metric in planner.result(RUNS[run]).metrics if glossary.label(metric) == metric] == []


def test_every_metric_of_the_glossary_is_of_the_interface():
    samples = ("", ".mean", ".p95", ".max", ".hbm", ".compute.gain_ratio")
    assert [
        entry.key
        for entry in glossary._METRICS
        if not any(KNOWN_METRICS.fullmatch(entry.key + sample) for sample in samples)
    ] == []


def test_a_doubling_is_labelled_by_its_resource():
    assert glossary.label("analysis.doubling.hbm_bandwidth.gain_ratio") == "Gain if doubled: HBM bandwidth"
    assert glossary.better("analysis.doubling.hbm_bandwidth.gain_ratio") == "up"


def test_a_path_without_an_entry_keeps_its_name():
    assert glossary.label("training.no_such_field") == "training.no_such_field"
    assert glossary.entry("training.no_such_field") is None


@pytest.mark.parametrize(
    ("metric", "better"),
    [
        ("serving.ttft_s.p99", "down"),
        ("serving.queue_s.mean", "down"),
        ("serving.slo_goodput_request_per_s", "up"),
        ("cost.usd_per_million_tokens.input", "down"),
        ("analysis.waiting.hbm_fraction", "down"),
        ("analysis.busy_fraction", "up"),
        ("fabric.transceiver_count", "down"),
        ("reliability.slice_goodput_fraction.q97", "up"),
        ("reliability.mtbf_s", "up"),
        ("model.parameter_count", "neutral"),
    ],
)
def test_the_direction_of_better_is_known(metric, better):
    assert glossary.better(metric) == better
