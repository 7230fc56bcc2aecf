"""Every name in every Why tree has a label, of every preset, model and chip."""

from collections.abc import Iterator

import pytest

from simcore.catalog import default_catalog
from simcore.errors import TrimtabError
from simcore.plan import Plan, plan
from simcore.scenario import Scenario, apply_overrides
from simcore.scenario.stories import stories
from simcore.term_names import OPERATORS, messages, term_label
from simcore.why import Term, is_plain_number
from tests.simcore.plan.test_why import HELD, SCENARIOS

TRAINS = {
    "name": "trains",
    "hardware": {"chip_count": 64},
    "model": {"name": "llama-3.1-8b"},
    "workload": {"kind": "training"},
}
TRAINING = {
    "alone": {},
    "experts": {"model.name": "mixtral-8x7b"},
    "pipeline": {"training.parallelism.tp": 2, "training.parallelism.pp": 2},
    "shared states": {"training.zero_stage": 1},
}
# Names that are numbers or counts of combinations, not words.
NUMBERS = ("·C(",)


def test_the_parts_of_a_name_make_its_label() -> None:
    assert term_label("mlp_up_s_per_layer").text == "MLP up time per layer"  # type: ignore[union-attr]
    assert term_label("moe_fp8_block_launch_s").text == "Expert products in fp8_block: launch time"  # type: ignore[union-attr]
    assert term_label("bytes_per_fp8_element").text == "Bytes of one fp8 element"  # type: ignore[union-attr]
    assert term_label("unit_switch_port_usd").text == "Price of one: switch port"  # type: ignore[union-attr]
    assert term_label("intermediate_of_these_layers") == term_label("intermediate")
    assert term_label("no_such_thing") is None


def test_a_metric_has_its_label_in_the_glossary() -> None:
    assert term_label("compute.decode_step_s").text == "Decode step"  # type: ignore[union-attr]
    assert term_label("decode_step_s").text == "Decode step"  # type: ignore[union-attr]


def test_translators_see_all_labels() -> None:
    assert set(OPERATORS.values()) <= messages()
    assert "{operator} {quantity}" in messages()


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_every_name_of_a_serving_plan_has_a_label(planner, scenario):
    assert not unlabelled(planner.plan(SCENARIOS[scenario], HELD))


@pytest.mark.parametrize("scenario", sorted(TRAINING))
def test_every_name_of_a_training_plan_has_a_label(planner, scenario):
    assert not unlabelled(planner.plan(TRAINING[scenario], TRAINS))


@pytest.mark.parametrize("slug", sorted(stories()))
def test_every_name_of_a_story_has_a_label(slug):
    story = stories()[slug]
    for document in (story.baseline, story.variant):
        assert not unlabelled(plan(Scenario.parse(document)))


def test_every_name_of_every_model_and_chip_has_a_label():
    planned = 0
    for overrides in _catalog_overrides():
        document, _ = apply_overrides(HELD, overrides)
        try:
            found = plan(Scenario.parse(document))
        except TrimtabError:
            continue  # does not fit, or cannot be cut so
        planned += 1
        assert not unlabelled(found), overrides
    assert planned > 60


def _catalog_overrides() -> Iterator[dict[str, object]]:
    catalog = default_catalog()
    for model in catalog.models:
        yield {"model.name": model, "hardware.chip_count": 16, "serving.weights_dtype": "fp8"}
    for chip in catalog.chips:
        yield {"model.name": "qwen3-8b", "hardware.chip": chip, "serving.parallelism.tp": 1}


def unlabelled(planned: Plan) -> set[str]:
    """Names in the plan's trees, constants included, that nothing puts into words."""
    found: set[str] = set()
    seen: set[int] = set()

    def visit(term: Term) -> None:
        if id(term) in seen:
            return
        seen.add(id(term))
        if term.name and not is_plain_number(term) and not any(mark in term.name for mark in NUMBERS):
            found.add(term.name)
        for arg in term.args:
            visit(arg)

    for term in planned.why.values():
        visit(term)
    return {name for name in found if term_label(name) is None}
