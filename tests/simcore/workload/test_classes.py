"""Classes part the requests by share, and disturb neither arrivals nor each other's lengths."""

import numpy as np
import pytest

from simcore.errors import InputError
from simcore.scenario import Scenario
from simcore.workload.arrivals import Poisson, Trace
from simcore.workload.classes import RequestClass
from simcore.workload.lengths import Constant, LogNormal
from simcore.workload.requests import Requests, draw_requests
from simcore.workload.traces import read_trace

MIX = LogNormal(input_mean_tokens=1024, input_cv=1.0, output_mean_tokens=256, output_cv=0.5)
LONG = Constant(input_tokens=9000, output_tokens=900)
COUNT = 50_000


def drawn(*classes: RequestClass, seed: int = 1, count: int = COUNT) -> Requests:
    return draw_requests(
        Poisson(request_per_s=8), MIX, request_count=count, seed=seed, max_model_len=10**6, classes=classes
    )


def shares(*fractions: float, lengths: Constant | LogNormal | None = None) -> list[RequestClass]:
    return [
        RequestClass(name=str(place), share_fraction=share, lengths=lengths)
        for place, share in enumerate(fractions)
    ]


def test_each_class_gets_its_share() -> None:
    class_of = drawn(*shares(0.6, 0.3, 0.1)).class_of
    assert class_of is not None
    found = np.bincount(class_of, minlength=3) / COUNT
    assert found == pytest.approx([0.6, 0.3, 0.1], abs=4 * (0.25 / COUNT) ** 0.5)


@pytest.mark.parametrize("fractions", [(1.0,), (0.5, 0.5), (0.1, 0.2, 0.7)])
def test_classes_with_the_workloads_lengths_change_no_request(fractions: tuple[float, ...]) -> None:
    without, parted = drawn(), drawn(*shares(*fractions))
    assert without.class_of is None
    np.testing.assert_array_equal(parted.arrival_s, without.arrival_s)
    np.testing.assert_array_equal(parted.input_tokens, without.input_tokens)
    np.testing.assert_array_equal(parted.output_tokens, without.output_tokens)


def test_a_class_has_its_own_lengths_and_leaves_the_others_theirs() -> None:
    long = RequestClass(name="long", share_fraction=0.25, lengths=LONG)
    parted, without = drawn(*shares(0.75), long), drawn()
    of_long = parted.class_of == 1
    assert set(parted.input_tokens[of_long]) == {9000}
    assert set(parted.output_tokens[of_long]) == {900}
    np.testing.assert_array_equal(parted.input_tokens[~of_long], without.input_tokens[~of_long])
    np.testing.assert_array_equal(parted.arrival_s, without.arrival_s)


def test_a_larger_share_keeps_the_requests_of_a_smaller_one() -> None:
    few, many = drawn(*shares(0.2, 0.8)).class_of, drawn(*shares(0.3, 0.7)).class_of
    assert (many[few == 0] == 0).all()
    assert np.count_nonzero(many == 0) > np.count_nonzero(few == 0)
    np.testing.assert_array_equal(drawn(*shares(0.2, 0.8), count=50).class_of, few[:50])


def test_a_trace_is_parted_and_keeps_its_lengths() -> None:
    rows = "\n".join(f"{second},{second + 5},7" for second in range(1000))
    table = read_trace(f"timestamp_s,input_tokens,output_tokens\n{rows}\n".encode(), format="csv")
    requests = draw_requests(
        Trace(path="t.csv"),
        MIX,
        request_count=1,
        seed=1,
        trace=table,
        max_model_len=10**6,
        classes=shares(0.5, 0.5),
    )
    assert len(requests.class_of) == 1000
    assert set(requests.class_of) == {0, 1}
    np.testing.assert_array_equal(requests.input_tokens, np.arange(5, 1005))


def workload(classes: object, **others: object) -> dict[str, object]:
    return {"name": "x", "workload": {"classes": classes, **others}}


@pytest.mark.parametrize(
    ("classes", "path", "complaint"),
    [
        (
            [{"name": "a", "share_fraction": 0.7}, {"name": "b", "share_fraction": 0.2}],
            "workload.classes",
            "the shares sum to 0.9",
        ),
        (
            [{"name": "a", "share_fraction": 0.5}, {"name": "a", "share_fraction": 0.5}],
            "workload.classes",
            "'a' is the name of more than one class",
        ),
        ([{"name": "a", "share_fraction": 0}], "workload.classes.0.share_fraction", "greater than 0"),
        (
            [{"name": "a", "share_fraction": 1, "slo": {"ttft_s": "3 GB"}}],
            "workload.classes.0.slo.ttft_s",
            "GB",
        ),
        (
            [{"name": "a", "share_fraction": 1, "lengths": {"kind": "constant", "input_tokens": 4}}],
            "workload.classes.0.lengths.output_tokens",
            "required",
        ),
    ],
)
def test_impossible_classes_are_refused_at_their_path(classes: object, path: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        Scenario.parse(workload(classes))
    assert [message.path for message in caught.value.messages] == [path]


def test_thirds_are_a_whole() -> None:
    thirds = [{"name": name, "share_fraction": 1 / 3} for name in "abc"]
    assert len(Scenario.parse(workload(thirds)).workload.classes) == 3


def test_lengths_of_a_class_beside_a_trace_are_refused() -> None:
    trace = {"kind": "trace", "path": "t.csv"}
    one = {"name": "a", "share_fraction": 1.0}
    assert Scenario.parse(workload([one], arrivals=trace)).workload.classes
    lengths = {"kind": "constant", "input_tokens": 4, "output_tokens": 4}
    with pytest.raises(InputError, match="the trace brings its own") as caught:
        Scenario.parse(workload([one | {"lengths": lengths}], arrivals=trace))
    assert caught.value.messages[0].path == "workload.classes.0.lengths"
