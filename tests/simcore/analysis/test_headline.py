"""The finding in words, on results as they come."""

import pytest

from simcore.analysis import analyse
from simcore.analysis.headline import headline
from simcore.scenario.stories import story


@pytest.fixture(scope="module")
def document(planner):
    def of(base, overrides=None):
        planned, result = planner.plan(overrides, base), planner.result(overrides, base)
        return result.with_findings(analyse(planned, result)).as_dict()

    return of


def sentences(before, after):
    return [message.text for message in headline(before, after)]


def story_sentences(document, slug):
    told = story(slug)
    return sentences(document(dict(told.baseline)), document(dict(told.variant)))


def test_nothing_is_said_where_nothing_was_changed(document):
    same = document(dict(story("s8-token-budget").baseline))
    assert headline(same, same) == []


def test_a_multiplied_figure_is_held_against_what_it_promised(document):
    first, second, third = story_sentences(document, "s2-double-hbm")
    told = story("s2-double-hbm")
    slow, fast = (
        document(dict(side))["metrics"]["compute.decode_step_s"] for side in (told.baseline, told.variant)
    )
    assert first == f"HBM bandwidth ×2 makes decoding {slow / fast - 1:.0%} faster, not 100%"
    assert 1.2 < slow / fast < 1.5
    assert "Scale-up" in second
    assert "the next doubling that brings most is" in second
    assert third.startswith("the cheapest unit of gain is ")


def test_a_trade_names_both_sides(document):
    text = story_sentences(document, "s8-token-budget")[0]
    assert text.startswith("Token budget 512 → 8,192 makes ")
    assert "TTFT p95" in text
    assert ", but " in text


def test_wiring_counts_switches_and_transceivers(document):
    (text,) = story_sentences(document, "s1-rail-only")
    assert "Switches 1,280 → 256" in text
    assert "Transceivers 196,608 → 65,536" in text
    assert text.endswith("as long as N ≤ K × k (32,768 ≤ 256 × 128)")


def test_wiring_in_islands_says_so(document):
    told = story("s1-rail-only")
    before, after = (
        document(dict(told.baseline)),
        document(dict(told.variant), {"topology.hb_domain_size": 8}),
    )
    (text,) = sentences(before, after)
    assert text.endswith("but in 32 islands")


def test_slices_are_compared_by_their_goodput(document):
    (text,) = story_sentences(document, "s3-ocs-slices")
    assert "Slice goodput, OCS mean 75.1 % → 74.7 %" in text
    assert "static mean 27.7 % → 7.63 %" in text


def test_a_change_without_an_effect_says_so(document):
    base = dict(story("s8-token-budget").baseline)
    text = sentences(document(base), document(base, {"economics.pue": 1.3}))[0]
    assert text == "PUE 1.25 → 1.3 changes next to nothing here"


def test_a_factor_on_a_factor_is_the_step_between_them(document):
    base = dict(story("s2-double-hbm").baseline)
    path = "hardware.chip_overrides.hbm_bytes_per_s"
    text = sentences(document(base, {path: "x2"}), document(base, {path: "x4"}))[0]
    assert "HBM bandwidth ×2 makes" in text
    assert text.endswith("not 100%")


def test_several_changes_are_counted(document):
    base = dict(story("s8-token-budget").baseline)
    changes = {"hardware.chip_overrides.hbm_bytes_per_s": "x2", "serving.kv.block_size": 32}
    assert sentences(document(base), document(base, changes))[0].startswith("Changing 2 inputs makes ")


def test_a_figure_that_is_taken_away_again_promises_nothing(document):
    base = dict(story("s2-double-hbm").baseline)
    path = "hardware.chip_overrides.hbm_bytes_per_s"
    text = sentences(document(base, {path: "x2"}), document(base))[0]
    assert text.startswith("HBM bandwidth ×0.5 makes decoding ")
    assert text.endswith("% slower")


def test_a_calibration_has_the_name_that_its_owner_gave_it(document, catalog):
    base = dict(story("s2-double-hbm").baseline)
    before, after = document(base), document(base, {"hardware.calibration": "class-default"})
    named = catalog.calibrations["class-default"].name
    assert headline(before, after)[0].text.startswith(f"Calibration auto → {named}")
