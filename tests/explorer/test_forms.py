"""The form says what the schema says, shows what was typed, and posts back only what a person changed."""

from typing import Any

import pytest
from pydantic import BaseModel

from explorer.forms import Field, Outline, at, changes, outline
from simcore.errors import Message
from simcore.scenario import Scenario, apply_overrides
from simcore.scenario.overrides import union_members
from simcore.scenario.stories import stories

SMALLEST = {"name": "smallest"}


def field(form: Outline, path: str) -> Field:
    return next(field for field in form.fields if field.path == path)


def posted(form: Outline) -> dict[str, str]:
    """What a browser sends when the whole form is submitted untouched."""
    return {field.path: field.value for field in form.fields}


DOCUMENTS = [
    SMALLEST,
    *(dict(story.baseline) for story in stories().values()),
    *(dict(story.variant) for story in stories().values()),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document["name"])[:24])
def test_a_form_that_is_posted_untouched_changes_nothing(document: dict[str, Any]) -> None:
    assert changes(document, posted(outline(document))) == {}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document["name"])[:24])
def test_every_field_is_a_path_of_the_schema(document: dict[str, Any]) -> None:
    for item in outline(document).fields:
        section, _, key = item.path.rpartition(".")
        if section == "hardware.chip_overrides":
            continue
        models = union_members(section)
        assert any(issubclass(model, BaseModel) and key in model.model_fields for model in models), item.path


def test_every_section_of_the_scenario_is_there() -> None:
    sections = [section.key for section in outline(SMALLEST).sections]
    assert set(sections) == set(Scenario.model_fields) - {"schema_version", "name", "description"}


def test_every_field_has_a_label_and_an_id_of_its_own() -> None:
    form = outline(SMALLEST)
    assert all(item.label for item in form.fields)
    assert len({item.html_id for item in form.fields}) == len(form.fields)


def test_a_value_is_shown_as_it_was_typed() -> None:
    document = {"name": "x", "hardware": {"chip_overrides": {"hbm_bytes_per_s": "3.35 TB/s"}}}
    item = field(outline(document), "hardware.chip_overrides.hbm_bytes_per_s")
    assert item.value == "3.35 TB/s"
    assert item.dot == "you"


def test_a_figure_that_is_not_overridden_shows_the_catalog_and_its_source() -> None:
    item = field(outline(SMALLEST), "hardware.chip_overrides.hbm_bytes_per_s")
    assert (item.value, item.placeholder) == ("", "3.35 TB/s")
    assert item.dot == "ds"
    assert item.source


def test_a_factor_says_what_it_comes_to() -> None:
    document = {"name": "x", "hardware": {"chip_overrides": {"hbm_bytes_per_s": "x2"}}}
    item = field(outline(document, baseline=SMALLEST), "hardware.chip_overrides.hbm_bytes_per_s")
    assert item.changed
    assert item.note == "= 6.70 TB/s, was 3.35 TB/s"


def test_an_empty_field_names_its_default() -> None:
    form = outline(SMALLEST)
    assert field(form, "workload.arrivals.request_per_s").placeholder == "8"
    assert field(form, "workload.slo.tpot_s").placeholder == "50 ms"
    assert field(form, "workload.request_count").placeholder == "10,000"


def test_naming_the_default_is_no_change() -> None:
    assert changes(SMALLEST, {"workload.kind": "serving", "topology.kind": "", "run.seed": ""}) == {}


def test_a_changed_field_is_marked_against_the_baseline() -> None:
    document = {"name": "x", "hardware": {"chip_count": 64}}
    form = outline(document, baseline={"name": "x", "hardware": {"chip_count": 8}})
    assert field(form, "hardware.chip_count").note == "was 8"
    assert next(section for section in form.sections if section.key == "hardware").change_count == 1
    assert not any(item.changed for item in outline(document).fields)


def test_a_union_shows_the_fields_of_its_kind() -> None:
    paths = {item.path for item in outline({"name": "x", "topology": {"kind": "rail_only"}}).fields}
    assert {"topology.kind", "topology.radix", "topology.tiers"} <= paths
    assert "topology.radix" not in {item.path for item in outline(SMALLEST).fields}


def test_a_scenario_that_serves_nothing_has_no_knobs_for_it() -> None:
    form = outline({"name": "x", "workload": {"kind": "none"}})
    assert [item.path for item in form.fields if item.path.startswith(("workload.", "serving."))] == [
        "workload.kind"
    ]


@pytest.mark.parametrize(
    ("path", "kind", "needs"),
    [
        ("workload.arrivals.kind", "closed_loop", "workload.arrivals.concurrency"),
        ("workload.arrivals.kind", "gamma", "workload.arrivals.request_per_s"),
        ("workload.lengths.kind", "constant", "workload.lengths.output_tokens"),
        ("topology.kind", "rail_only", ""),
        ("serving.scheduler.kind", "continuous", ""),
    ],
)
def test_a_new_kind_comes_with_what_it_cannot_do_without(path: str, kind: str, needs: str) -> None:
    everything = posted(outline(SMALLEST)) | {path: kind}
    found = changes(SMALLEST, everything)
    assert found[path] == kind
    assert not needs or found[needs]
    document, _ = apply_overrides(SMALLEST, found)
    assert at(Scenario.parse(document).model_dump(), path) == kind


@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("workload.arrivals.request_per_s", "12"),
        ("workload.lengths.input_mean_tokens", "2048"),
        ("serving.scheduler.max_num_seqs", "64"),
    ],
)
def test_a_key_of_a_default_kind_can_be_set_alone(path: str, typed: str) -> None:
    document, _ = apply_overrides(SMALLEST, changes(SMALLEST, {path: typed}))
    scenario = Scenario.parse(document).model_dump()
    assert at(scenario, path) == float(typed)
    assert at(scenario, "workload.lengths.output_mean_tokens") == 256


def test_an_emptied_field_goes_back_to_its_default() -> None:
    document = {"name": "x", "hardware": {"chip_count": 64}}
    assert changes(document, {"hardware.chip_count": "  "}) == {"hardware.chip_count": ""}


def test_what_is_not_of_the_scenario_is_left_out() -> None:
    assert (
        changes(SMALLEST, {"csrfmiddlewaretoken": "x", "tab": "fabric", "name": "other", "owner": "me"}) == {}
    )


def test_a_refused_value_stays_with_its_message_at_its_field() -> None:
    draft = {"hardware.chip_count": {"typed": "nonsense", "message": "a whole number is needed"}}
    form = outline(SMALLEST, draft=draft)
    item = field(form, "hardware.chip_count")
    assert (item.value, item.error) == ("nonsense", "a whole number is needed")
    assert not form.valid
    assert form.messages == ()


def test_an_error_of_this_edit_is_translated_at_its_field() -> None:
    errors = {
        "topology.radix": Message(code="x", template="{got} is odd", params={"got": 7}, path="topology.radix")
    }
    form = outline({"name": "x", "topology": {"kind": "clos"}}, errors=errors)
    assert field(form, "topology.radix").error == "7 is odd"


def test_an_error_of_a_section_stands_at_its_kind_and_others_on_top() -> None:
    errors = {
        "workload.arrivals": Message(code="x", template="no", path="workload.arrivals"),
        "serving.parallelism": Message(code="x", template="too many", path="serving.parallelism"),
    }
    form = outline(SMALLEST, errors=errors)
    assert field(form, "workload.arrivals.kind").error == "no"
    assert form.messages == ("Parallelism: too many",)


def test_a_trace_can_be_chosen_once_there_is_one() -> None:
    kinds = [value for value, _ in field(outline(SMALLEST), "workload.arrivals.kind").choices]
    assert "trace" not in kinds
    document = {"name": "x", "workload": {"arrivals": {"kind": "trace", "trace": "abc", "format": "azure"}}}
    form = outline(document, traces=[("abc", "conversation.csv")])
    assert ("abc", "conversation.csv") in field(form, "workload.arrivals.trace").choices
    assert field(form, "workload.arrivals.trace").value == "abc"


def test_a_chip_that_the_catalog_does_not_know_is_still_shown() -> None:
    item = field(outline({"name": "x", "hardware": {"chip": "nvidia-x"}}), "hardware.chip")
    assert ("nvidia-x", "nvidia-x") in item.choices


def test_a_calibration_of_ones_own_is_offered_and_what_it_replaced_is_named() -> None:
    document = {**SMALLEST, "hardware": {"calibration": "our-lab-1f"}}
    form = outline(document, baseline=SMALLEST, calibrations=[("our-lab-1f", "Our lab")])
    item = field(form, "hardware.calibration")
    assert ("our-lab-1f", "Our lab") in item.choices
    assert (item.value, item.dot, item.note) == ("our-lab-1f", "you", "was the chip's own")


def test_the_shipped_calibration_says_which_and_of_when() -> None:
    item = field(outline(SMALLEST), "hardware.calibration")
    assert (item.value, item.dot) == ("auto", "cal")
    assert item.source.startswith("NVIDIA H100 SXM, fitted, 20")
    unmeasured = field(outline({**SMALLEST, "hardware": {"chip": "tpu-v4"}}), "hardware.calibration")
    assert unmeasured.dot == "def"


def test_lengths_fitted_to_a_trace_are_chosen_by_its_title_and_say_their_source() -> None:
    document = {**SMALLEST, "workload": {"lengths": {"kind": "preset", "name": "sharegpt"}}}
    item = field(outline(document), "workload.lengths.name")
    assert ("servegen-m-large", "ServeGen, language m-large") in item.choices
    assert item.value == "sharegpt"
    assert "MIT" in item.source
    draft = {"workload.lengths.name": {"typed": "nonsense", "message": "no"}}
    assert field(outline(document, draft=draft), "workload.lengths.name").error == "no"


def test_a_table_of_lengths_comes_with_a_document_and_stays_when_the_form_is_posted() -> None:
    lengths = {"kind": "empirical", "input_tokens": [100, 2000], "output_tokens": [10, 300]}
    document = {**SMALLEST, "workload": {"lengths": lengths}}
    form = outline(document)
    assert field(form, "workload.lengths.kind").value == "empirical"
    assert changes(document, posted(form)) == {}


def test_arrivals_fitted_to_a_trace_are_chosen_by_its_title_and_need_a_rate_of_ones_own() -> None:
    arrivals = {"kind": "preset", "name": "servegen-m-large", "request_per_s": 8.0}
    form = outline({**SMALLEST, "workload": {"arrivals": arrivals}})
    item = field(form, "workload.arrivals.name")
    assert ("servegen-m-large", "ServeGen, language m-large") in item.choices
    assert "14 days by hours" in item.source
    assert field(form, "workload.arrivals.request_per_s").value == "8"
    period = field(form, "workload.arrivals.period_s")
    assert (period.value, period.placeholder) == ("", "auto")


def test_a_timeline_of_shocks_is_written_out_and_its_faults_stand_there() -> None:
    document = {"name": "x", "reliability": {"shocks": [{"kind": "host_failure", "at_s": 60}]}}
    text = field(outline(document), "reliability.shocks").value
    assert changes(document, {"reliability.shocks": text}) == {}
    edited = changes(document, {"reliability.shocks": text.replace("60", "90")})
    found, _ = apply_overrides(document, edited)
    assert Scenario.parse(found).reliability.shocks[0].at_s == 90
    path = "reliability.shocks.0.count"
    told = outline(document, errors={path: Message(code="x", template="too many", path=path)})
    assert field(told, "reliability.shocks").error == "too many"
