"""Attribution: whose change earned the gain, by hand, by law and on the stories."""

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.analysis.layer_words import sentences
from simcore.analysis.layers import LAYERS, attribution, changes_by_layer, mixed, shares, together, worths
from simcore.reliability.recovery import shapley
from simcore.scenario import Scenario, apply_overrides
from simcore.scenario.stories import stories
from simcore.why import leaf

SERVES = {
    "name": "serves",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 8},
    "model": {"name": "llama-3.1-8b"},
    "workload": {
        "arrivals": {"kind": "closed_loop", "concurrency": 64},
        "lengths": {"kind": "constant", "input_tokens": 512, "output_tokens": 64},
        "request_count": 300,
    },
}


def after(document, **overrides):
    edited, _ = apply_overrides(
        document, {path.replace("__", "."): value for path, value in overrides.items()}
    )
    return Scenario.parse(edited)


def attributed(document, **overrides):
    return attribution(Scenario.parse(document), after(document, **overrides))


def subsets(layers):
    return [frozenset(some) for size in range(len(layers) + 1) for some in combinations(layers, size)]


def worth_of(values):
    """A worth per subset of as many layers as the values are for: 2, 4 or 8 of them."""
    layers = LAYERS[: int(math.log2(len(values)))]
    return layers, {some: leaf(value, "worth") for some, value in zip(subsets(layers), values, strict=True)}


POSITIVE = st.floats(1e-3, 1e3)
WORTHS = st.sampled_from((2, 4, 8)).flatmap(lambda n: st.lists(POSITIVE, min_size=n, max_size=n))


def test_two_layers_by_hand():
    """Worth 100; 200 with the first, 150 with the second, 600 with both: together ×2 that neither has alone.

    First: mean in logarithms of 200/100 and 600/150 = √8. Second: of 150/100 and 600/200 = √4.5. √8 × √4.5 = 6.
    """
    layers, worth = worth_of([100.0, 200.0, 150.0, 600.0])
    first, second = shares(layers, worth)
    assert first.earned.value == pytest.approx(math.sqrt(8))
    assert second.earned.value == pytest.approx(math.sqrt(4.5))
    assert (first.alone.value, second.alone.value) == (2.0, 1.5)
    assert {names: term.value for names, term in together(layers, worth).items()} == {
        ("physical", "data"): pytest.approx(2.0)
    }


def test_what_cannot_be_built_is_worth_the_worst_that_can():
    """100 and 400 with both; alone the first is impossible, the second brings 50: the impossible one counts 50."""
    layers, worth = worth_of([100.0, 100.0, 50.0, 400.0])
    worth = worths({some: None if some == {"physical"} else term for some, term in worth.items()})
    first, second = shares(layers, worth)
    assert first.earned.value == pytest.approx(math.sqrt(50 / 100 * 400 / 50))
    assert second.earned.value == pytest.approx(math.sqrt(50 / 100 * 400 / 50))


@given(WORTHS)
def test_what_layers_earned_multiplies_to_the_whole(values):
    layers, worth = worth_of(values)
    whole = math.log(values[-1] / values[0])
    found = shares(layers, worth)
    assert sum(math.log(one.earned.value) for one in found) == pytest.approx(whole, abs=1e-9)
    met = sum(math.log(term.value) for term in together(layers, worth).values())
    assert sum(math.log(one.alone.value) for one in found) + met == pytest.approx(whole, abs=1e-9)


@given(WORTHS)
def test_it_is_the_shapley_value_of_the_logarithm(values):
    layers, worth = worth_of(values)
    expected = shapley(layers, lambda some: math.log(worth[some].value))
    assert {one.layer: math.log(one.earned.value) for one in shares(layers, worth)} == pytest.approx(
        expected, abs=1e-9
    )


@given(st.lists(POSITIVE, min_size=4, max_size=4))
def test_layers_that_do_the_same_earn_the_same(values):
    """Symmetry: where the worth depends on how many changed, not on which."""
    worth = {some: leaf(values[len(some)], "worth") for some in subsets(LAYERS)}
    earned = [one.earned.value for one in shares(LAYERS, worth)]
    assert earned == pytest.approx([earned[0]] * 3)


@given(st.lists(POSITIVE, min_size=4, max_size=4))
def test_a_layer_that_changes_nothing_earns_nothing(values):
    known = dict(zip(subsets(("physical", "data")), values, strict=True))
    worth = {some: leaf(known[some - {"task"}], "worth") for some in subsets(LAYERS)}
    assert shares(LAYERS, worth)[2].earned.value == pytest.approx(1.0)
    assert all(
        term.value == pytest.approx(1.0) for names, term in together(LAYERS, worth).items() if "task" in names
    )


def test_inputs_are_grouped_by_layer_and_demand_stands_apart():
    found = changes_by_layer(
        Scenario.parse(SERVES),
        after(
            SERVES,
            hardware__chip_count=16,
            serving__kv__block_size=32,
            serving__weights_dtype="fp8",
            serving__scheduler__max_num_seqs=64,
            workload__request_count=400,
            training__sequence_length=4096,
        ),
    )
    assert {layer: [row.path for row in rows] for layer, rows in found.items()} == {
        "physical": ["hardware.chip_count"],
        "data": ["serving.kv.block_size", "serving.weights_dtype"],
        "task": ["serving.scheduler.max_num_seqs"],
        "demand": ["workload.request_count"],
    }


def test_all_layers_of_the_second_are_the_second():
    first, second = (
        Scenario.parse(SERVES),
        after(SERVES, serving__scheduler__kind="static_batch", run__seed=3),
    )
    whole = Scenario.parse(mixed(first, second, frozenset(LAYERS)))
    assert whole == second
    assert Scenario.parse(mixed(first, first, frozenset())) == first


def test_three_layers_of_a_real_scenario_multiply_to_the_whole():
    found = attributed(
        SERVES,
        hardware__chip_overrides__hbm_bytes_per_s="x2",
        serving__weights_dtype="fp8",
        serving__scheduler__max_num_seqs=16,
    )
    assert len(found.combinations) == 8
    earned = math.prod(one.earned.value for one in found.shares)
    assert earned == pytest.approx(found.whole.value)
    assert math.prod(one.alone.value for one in found.shares) * found.beyond == pytest.approx(earned)
    back = attribution(after(SERVES, serving__weights_dtype="fp8"), Scenario.parse(SERVES))
    there = attributed(SERVES, serving__weights_dtype="fp8")
    assert back.whole.value * there.whole.value == pytest.approx(1.0)


def test_what_is_known_is_not_run_again():
    asked = []

    def recall(digest):
        asked.append(digest)
        return {"serving.slo_goodput_request_per_s": float(len(asked)), "serving.makespan_s": 10.0}

    found = attribution(Scenario.parse(SERVES), after(SERVES, serving__weights_dtype="fp8"), recall=recall)
    assert (len(asked), found.whole.value) == (2, 2.0)
    assert found.yardstick.slug == "requests_within_slo_per_chip", "what has no price is judged by chips"


def test_a_change_that_only_another_layer_makes_possible_is_blocked_by_it():
    """70B in 16 bits needs more than one chip; two ranks need two chips."""
    document = {**SERVES, "hardware": {"chip": "nvidia-h200-sxm", "chip_count": 1}}
    found = attributed(document, hardware__chip_count=2, serving__parallelism__tp=2)
    blocked = next(one for one in found.combinations if one.error)
    assert (blocked.layers, blocked.blocked_by) == (("task",), ("physical",))
    assert "blocked by the physical layer" in " ".join(message.text for message in sentences(found))


def test_what_could_not_be_built_before_has_no_ratio_but_a_reason():
    document = {**SERVES, "model": {"name": "llama-3.1-70b"}, "hardware": {"chip_count": 1}}
    found = attributed(document, hardware__chip_count=8)
    assert found.whole is None
    text = sentences(found)[0].text
    assert text.startswith("What was there cannot carry this demand")
    assert "the change of the physical layer makes it possible" in text


def test_a_layer_that_earned_nothing_is_said_apart():
    found = attributed(
        SERVES, hardware__chip_overrides__hbm_bytes_per_s="x2", serving__scheduler__max_num_seqs=2000
    )
    finding, idle = sentences(found)
    assert (finding.code, idle.code) == ("layers.single", "layers.idle")
    assert "×1" not in finding.text
    assert finding.text.startswith("The physical layer (HBM bandwidth) earned the whole gain")
    assert idle.text.startswith("The change of the task layer (")


def test_the_demand_is_set_on_both_sides_first():
    found = attributed(SERVES, workload__arrivals__concurrency=128, serving__weights_dtype="fp8")
    assert found.changed == ("data",)
    assert found.demand is not None
    assert sentences(found)[-1].code == "layers.demand_effect"
    only = attributed(SERVES, workload__arrivals__concurrency=128)
    assert (only.whole.value, sentences(only)[0].code) == (1.0, "layers.demand_only")


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (
            "S2",
            "The physical layer (HBM bandwidth) earned the whole gain: 1.2 times the requests within the SLO per USD",
        ),
        (
            "S5",
            "The task layer (Scheduler) earned the whole gain: 2.37 times the requests within the SLO per USD",
        ),
        (
            "S12",
            "The physical layer (Allocation) earned the whole gain: 2.75 times the working chip time per chip",
        ),
    ],
)
def test_the_finding_of_a_story_is_a_sentence(number, sentence):
    told = next(one for one in stories().values() if one.number == number)
    found = attribution(Scenario.parse(told.baseline), Scenario.parse(told.variant))
    assert sentences(found)[0].text == sentence
