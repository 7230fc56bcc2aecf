"""Each class's waiting, running and TTFT by slice of simulated time: sums over its requests, and Little's law."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.serving.class_series import SLICES, class_series
from simcore.serving.records import Records
from simcore.serving.state import FINISHED, REJECTED
from simcore.simulate import Result
from simcore.workload.classes import RequestClass
from tests.simcore.conftest import Planner

CLASSES = [RequestClass(name=name, share_fraction=0.5) for name in ("chat", "batch")]
SPAN = st.floats(0.0, 50.0)


def records_of(rows: list[tuple[float, float, float, float, bool]]) -> Records:
    """From arrival, wait, prefill, decode and whether it was rejected."""
    arrival, wait, prefill, decode, rejected = (np.array(column) for column in zip(*rows, strict=True))
    scheduled = np.where(rejected, np.nan, arrival + wait)
    ones = np.ones(len(rows), np.int64)
    return Records(
        arrival_s=arrival,
        scheduled_s=scheduled,
        first_token_s=scheduled + prefill,
        finish_s=scheduled + prefill + decode,
        input_tokens=ones,
        output_tokens=ones,
        preemption_count=np.zeros(len(rows), np.int32),
        replica=np.zeros(len(rows), np.int32),
        status=np.where(rejected, REJECTED, FINISHED).astype(np.int32),
    )


ROWS = st.lists(st.tuples(SPAN, SPAN, SPAN, st.floats(0.1, 50.0), st.booleans()), min_size=1, max_size=40)


def overlap(begin: np.ndarray, end: np.ndarray, low: float, high: float) -> float:
    """Mean number present between two instants, summed over requests."""
    inside = np.clip(np.minimum(end, high) - np.maximum(begin, low), 0.0, None)
    return float(inside.sum() / (high - low))


@given(rows=ROWS, seed=st.integers(0, 99))
def test_means_and_percentiles_of_a_slice_are_those_of_its_requests(
    rows: list[tuple[float, float, float, float, bool]], seed: int
) -> None:
    records = records_of(rows)
    class_of = np.random.default_rng(seed).integers(0, 2, len(rows))
    found = class_series(records, classes=CLASSES, class_of=class_of, front_end_s=0.5)
    done = records.status == FINISHED
    if not done.any():
        assert found == {}
        return
    edges = [*found["time_s"], float(records.finish_s[done].max())]
    for place, one in enumerate(CLASSES):
        own = records.where(done & (class_of == place))
        for number in range(SLICES):
            low, high = edges[number], edges[number + 1]
            waiting, running = found[f"{one.name}.waiting"][number], found[f"{one.name}.running"][number]
            assert waiting == pytest.approx(overlap(own.arrival_s, own.scheduled_s, low, high), abs=1e-6)
            assert running == pytest.approx(overlap(own.scheduled_s, own.finish_s, low, high), abs=1e-6)
            came = own.ttft_s[(own.arrival_s >= low) & (own.arrival_s < high)]
            for percentile in (50, 99):
                value = found[f"{one.name}.ttft_s.p{percentile}"][number]
                assert (value is None) == (len(came) == 0)
                if value is not None:
                    assert value == pytest.approx(np.percentile(came, percentile) + 0.5)


@pytest.fixture(scope="module")
def result(planner: Planner) -> Result:
    classes = [
        {"name": "chat", "share_fraction": 0.7},
        {
            "name": "documents",
            "share_fraction": 0.3,
            "lengths": {"kind": "constant", "input_tokens": 3000, "output_tokens": 40},
        },
    ]
    return planner.result(
        {
            "workload.arrivals.request_per_s": 60,
            "workload.request_count": 600,
            "workload.classes": classes,
            "serving.scheduler.max_num_seqs": 8,
        }
    )


def test_the_area_under_the_curves_is_the_time_that_requests_spent(result: Result) -> None:
    found, records = result.series["serving_classes"], result.records
    slice_s = found["time_s"][1] - found["time_s"][0]
    waiting = sum(sum(found[f"{name}.waiting"]) for name in ("chat", "documents"))
    running = sum(sum(found[f"{name}.running"]) for name in ("chat", "documents"))
    assert waiting * slice_s == pytest.approx(records.queue_s.sum())
    assert running * slice_s == pytest.approx((records.finish_s - records.scheduled_s).sum())
    assert waiting > 0


def test_the_classes_together_are_what_the_engine_counted(result: Result) -> None:
    """The engine's samples are instants, the slices means: both are averaged over fifths of the run."""
    found, engine = result.series["serving_classes"], result.series["serving"]
    ends = np.linspace(found["time_s"][0], result.records.finish_s.max(), 6)
    for name in ("waiting", "running"):
        together = np.array(found[f"chat.{name}"]) + np.array(found[f"documents.{name}"])
        means = together.reshape(5, -1).mean(axis=1)
        counted = [
            np.mean(engine[name][(engine["time_s"] >= low) & (engine["time_s"] < high)])
            for low, high in pairwise(ends)
        ]
        assert means == pytest.approx(counted, rel=0.1, abs=0.5)


def test_a_result_with_classes_is_plain_json_and_one_without_has_no_such_series(
    result: Result, planner: Planner
) -> None:
    text = json.dumps(result.as_dict()["series"]["serving_classes"], allow_nan=False)
    assert len(json.loads(text)["chat.ttft_s.p99"]) == SLICES
    assert "serving_classes" not in planner.result({"workload.request_count": 50}).series
