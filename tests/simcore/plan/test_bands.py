"""Each headline has its band, wide where little was measured, and a point beyond what was measured says so."""

import json

import pytest

from simcore.errors import Message
from simcore.plan.bands import LEVEL, Band

HEADLINES = {
    "compute.decode_step_s",
    "compute.prefill_step_s",
    "serving.tpot_s.mean",
    "serving.ttft_s.p50",
    "serving.capacity_request_per_s",
}


def bands(planner, **overrides):
    return planner.result({f"{key.replace('__', '.')}": value for key, value in overrides.items()}).bands


def ratio(band):
    return band["high"] / band["low"]


def codes(planner, overrides):
    return {message.code for message in planner.plan(overrides).warnings}


def test_every_headline_has_a_band_of_nine_in_ten_around_it(planner):
    result = planner.result()
    assert set(result.bands) == HEADLINES
    for name, band in result.bands.items():
        assert band["level"] == LEVEL == 0.9
        assert band["low"] < band["high"]
        assert band["low"] <= 1.1 * result.metrics[name]
        assert band["high"] >= 0.9 * result.metrics[name]
        assert "measurements that were not fitted" in band["basis"]


def test_bands_are_part_of_the_result_document(planner):
    document = planner.result().as_dict()
    assert document["bands"]["serving.tpot_s.mean"]["level"] == 0.9


def test_time_to_first_token_is_known_far_less_well_than_a_step(planner):
    found = bands(planner)
    assert ratio(found["serving.ttft_s.p50"]) - 1 > 2 * (ratio(found["serving.tpot_s.mean"]) - 1)


@pytest.mark.parametrize(
    ("chip", "says"),
    [
        ("nvidia-h100-sxm", "of vLLM on this chip"),
        ("nvidia-h200-sxm", "chips whose kernels alone were fitted"),
        ("nvidia-rtx-4090", "chips that were not measured"),
        ("amd-mi300x", "another vendor's chip, an assumption"),
    ],
)
def test_a_band_says_what_it_is_taken_from(planner, chip, says):
    overrides = {"hardware.chip": chip}
    assert says in planner.result(overrides).bands["compute.decode_step_s"]["basis"]


def test_a_chip_that_was_not_measured_is_known_less_well(planner):
    known = planner.result().bands["compute.decode_step_s"]
    unknown = planner.result({"hardware.chip": "amd-mi300x"}).bands["compute.decode_step_s"]
    assert ratio(unknown) > 1.5 * ratio(known)


def test_an_engine_that_was_not_measured_takes_another_of_the_chip(planner):
    basis = planner.result({"serving.engine": "SGLang 0.5"}).bands["compute.decode_step_s"]["basis"]
    assert "on this chip" in basis


def test_the_eager_engine_has_its_own(planner):
    found = planner.result({"serving.engine": "vLLM 0.2"}).bands
    assert "decode steps of vLLM 0.2" in found["compute.decode_step_s"]["basis"]
    assert "prefills of vLLM 0.2" in found["compute.prefill_step_s"]["basis"]


def test_experts_widen_the_band(planner):
    moe = {"model.name": "qwen3-30b-a3b"}
    assert ratio(planner.result(moe).bands["serving.tpot_s.mean"]) > ratio(
        planner.result().bands["serving.tpot_s.mean"]
    )
    assert "expert" in planner.result(moe).bands["serving.tpot_s.mean"]["basis"]


def test_a_point_inside_the_measured_range_is_not_called_extrapolated(planner):
    assert "compute.extrapolated" not in codes(planner, {})


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"workload.arrivals": {"kind": "closed_loop", "concurrency": 200}}, "sequences, measured up to 64"),
        (
            {"workload.lengths.input_tokens": 50_000, "workload.request_count": 10},
            "tokens of context, measured up to 8,704",
        ),
        ({"model.name": "qwen3-30b-a3b"}, "a model that is not dense"),
        ({"hardware.chip": "nvidia-h200-sxm"}, "no served model was measured on this chip"),
    ],
)
def test_a_point_outside_says_so_and_how(planner, overrides, says):
    message = next(m for m in planner.plan(overrides).warnings if m.code == "compute.extrapolated")
    assert says in message.text


def test_a_point_outside_has_a_wider_band(planner):
    many = {"workload.arrivals": {"kind": "closed_loop", "concurrency": 200}}
    outside = planner.result(many).bands["compute.decode_step_s"]
    assert ratio(outside) > ratio(planner.result().bands["compute.decode_step_s"])
    assert "wider" in outside["basis"]


def test_the_band_of_a_rate_is_that_of_the_time_turned_round():
    band = Band(low_ratio=0.8, high_ratio=1.25, basis=(Message(code="made", template="made"),))
    assert band.inverse.low_ratio == pytest.approx(0.8)
    assert band.inverse.high_ratio == pytest.approx(1.25)
    around = band.around(2.0)
    assert (around["low"], around["high"], around["level"], around["basis"]) == (1.6, 2.5, 0.9, "made")


def test_a_basis_is_the_messages_that_it_is_made_of(planner):
    for band in planner.result({"model.name": "qwen3-30b-a3b"}).as_dict()["bands"].values():
        assert "; ".join(reason["message"] for reason in band["reasons"]) == band["basis"]
        json.dumps(band)
