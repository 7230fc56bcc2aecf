"""Overrides: typed values, factors, changes of kind, resets and paths that do not exist."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.errors import InputError
from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides
from simcore.scenario.overrides import parse_assignment, union_members
from simcore.units import printed_text

BASE = {"name": "x", "hardware": {"chip_count": 16}, "topology": {"kind": "clos", "radix": 64, "tiers": 2}}


def overridden(base=BASE, **paths):
    document, _ = apply_overrides(base, {path.replace("__", "."): value for path, value in paths.items()})
    return document


@pytest.mark.parametrize(
    ("path", "typed", "value"),
    [
        ("hardware.chip_count", "32", 32),
        ("hardware.chip", "nvidia-b200-sxm", "nvidia-b200-sxm"),
        ("workload.slo.ttft_s", "200 ms", "200 ms"),
        ("topology.oversubscription_ratio", "[1, 2]", [1, 2]),
        ("serving.kv.enable_prefix_caching", "false", False),
        ("serving.parallelism.tp", "auto", "auto"),
        ("run.seed", 5, 5),
        ("name", "2026", "2026"),
        ("description", "true", "true"),
    ],
)
def test_a_value_is_what_a_person_would_type(path, typed, value):
    document, warnings = apply_overrides(BASE, {path: typed})
    *parents, last = path.split(".")
    for key in parents:
        document = document[key]
    assert document[last] == value
    assert type(document[last]) is type(value)
    assert warnings == []


def test_the_document_that_is_overridden_stays_as_it_was():
    before = copy.deepcopy(BASE)
    apply_overrides(
        BASE, {"topology.radix": 128, "hardware.chip_overrides.tdp_w": "1 kW", "topology.kind": "torus"}
    )
    assert before == BASE


def test_a_number_is_multiplied_and_stays_whole():
    assert overridden(hardware__chip_count="x2")["hardware"]["chip_count"] == 32
    assert overridden(topology__radix="x1.5")["topology"]["radix"] == 96


def test_a_default_is_multiplied_too():
    assert overridden(workload__slo__ttft_s="x0.5")["workload"]["slo"]["ttft_s"] == 0.5


@pytest.mark.parametrize(
    "path", ["hardware.chip", "serving.parallelism.tp", "serving.kv.enable_prefix_caching"]
)
def test_a_factor_on_what_is_no_number_is_refused(path):
    with pytest.raises(InputError, match="x2 multiplies a number") as caught:
        apply_overrides(BASE, {path: "x2"})
    assert caught.value.message.path == path


def test_a_factor_on_a_chip_figure_multiplies_the_datasheet():
    planned = plan(Scenario.parse(overridden(hardware__chip_overrides__hbm_bytes_per_s="x2")))
    assert planned.chip.hbm_bytes_per_s == 2 * 3.35e12


@pytest.mark.parametrize("first", ["6.7 TB/s", 6.7e12, "x2", "×2"])
def test_a_factor_on_an_overridden_chip_figure_multiplies_the_override(first):
    once = overridden(hardware__chip_overrides__hbm_bytes_per_s=first)
    twice = overridden(once, hardware__chip_overrides__hbm_bytes_per_s="x2")
    assert plan(Scenario.parse(twice)).chip.hbm_bytes_per_s == 4 * 3.35e12


@given(st.floats(0.1, 10).map(lambda factor: round(factor, 4)))
def test_a_factor_is_the_same_as_the_product_written_out(factor):
    written = printed_text(3.35e12 * factor, "bytes_per_s", digits=12)
    chips = [
        plan(
            Scenario.parse(overridden(hardware__chip_overrides__hbm_bytes_per_s=value, workload__kind="none"))
        ).chip
        for value in (f"x{factor}", written)
    ]
    assert chips[0].hbm_bytes_per_s == pytest.approx(chips[1].hbm_bytes_per_s, rel=1e-9)


def test_a_change_of_kind_drops_the_keys_that_the_new_kind_lacks_and_says_so():
    document, warnings = apply_overrides(BASE, {"topology.kind": "torus"})
    Scenario.parse(document)
    assert document["topology"] == {"kind": "torus"}
    assert [warning.path for warning in warnings] == ["topology.radix", "topology.tiers"]
    assert "radix was dropped: kind torus does not have it" in str(warnings[0])


def test_a_change_of_kind_keeps_the_keys_that_both_kinds_have():
    document, warnings = apply_overrides(BASE, {"topology.kind": "rail_only"})
    assert document["topology"] == {"kind": "rail_only", "radix": 64, "tiers": 2}
    assert warnings == []


@pytest.mark.parametrize(
    ("before", "after", "kept", "dropped"),
    [
        ({"kind": "clos", "radix": 48, "planes": 2}, "dragonfly", {"radix": 48}, ["planes"]),
        ({"kind": "dragonfly", "radix": 48, "p": 4, "a": 8, "g": 3}, "slim_fly", {"radix": 48, "p": 4}, ["a", "g"]),
        ({"kind": "slim_fly", "q": 5, "p": 4}, "hyperx", {"p": 4}, ["q"]),
        ({"kind": "hyperx", "sizes": [4, 4], "links_per_pair": 2}, "clos", {}, ["links_per_pair", "sizes"]),
        ({"kind": "torus", "shape": [4, 4, 8], "dimensions": 3, "twisted": True}, "ocs_pod",
         {"shape": [4, 4, 8], "twisted": True}, ["dimensions"]),
        ({"kind": "ocs_pod", "generation": "tpu-v4"}, "torus", {}, ["generation"]),
    ],
)  # fmt: skip
def test_a_change_between_topologies_keeps_what_both_have(before, after, kept, dropped):
    document, warnings = apply_overrides({"name": "x", "topology": before}, {"topology.kind": after})
    Scenario.parse(document)
    assert document["topology"] == {"kind": after, **kept}
    assert sorted(warning.path for warning in warnings) == [f"topology.{key}" for key in dropped]


def test_a_change_of_kind_works_where_the_section_was_a_default():
    document, warnings = apply_overrides(
        {"name": "x"}, {"workload.arrivals.kind": "closed_loop", "workload.arrivals.concurrency": 8}
    )
    assert Scenario.parse(document).workload.arrivals.concurrency == 8
    assert [warning.path for warning in warnings] == ["workload.arrivals.request_per_s"]


def test_one_key_of_a_default_union_can_be_set():
    document, _ = apply_overrides({"name": "x"}, {"serving.scheduler.max_num_seqs": 7})
    assert Scenario.parse(document).serving.scheduler.max_num_seqs == 7
    document, _ = apply_overrides({"name": "x"}, {"topology.radix": 128})
    assert Scenario.parse(document).topology.radix == 128


@pytest.mark.parametrize(
    "section",
    [
        {"topology": {"kind": "clos", "radix": 64}},
        {"serving": {"autoscaling": {"kind": "kv_usage", "target": 0.5}}},
        {"serving": {"autoscaling": {"kind": "kv_usage"}}},
        {"serving": {"speculative": {"kind": "eagle", "acceptance_rate": 0.6}}},
    ],
    ids=str,
)
@pytest.mark.parametrize("nothing", [None, "null"])
def test_without_its_kind_a_section_that_need_not_be_there_is_gone(section, nothing):
    ((outer, inner),) = section.items()
    path = outer if outer == "topology" else f"{outer}.{next(iter(inner))}"
    document, warnings = apply_overrides({"name": "x"} | section, {f"{path}.kind": nothing})
    assert Scenario.parse(document) == Scenario(name="x")
    assert not warnings


def test_an_unknown_kind_keeps_the_keys_and_is_refused_by_the_schema():
    document, warnings = apply_overrides(BASE, {"topology.kind": "moebius"})
    assert warnings == []
    assert document["topology"]["radix"] == 64
    with pytest.raises(InputError, match="unknown kind 'moebius'"):
        Scenario.parse(document)


@pytest.mark.parametrize("value", [None, "null"])
def test_null_resets_to_the_default(value):
    document, _ = apply_overrides(
        BASE, {"hardware.chip_count": value, "topology.radix": value, "topology": None}
    )
    scenario = Scenario.parse(document)
    assert scenario.hardware.chip_count == 8
    assert scenario.topology is None


def test_null_takes_a_chip_override_back():
    document = overridden(hardware__chip_overrides__tdp_w="1 kW")
    assert overridden(document, hardware__chip_overrides__tdp_w=None)["hardware"]["chip_overrides"] == {}


@pytest.mark.parametrize("path", ["", ".", "a..b", "topology.", ".".join("abcdefghijklm")])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InputError, match="not a path of a scenario"):
        apply_overrides(BASE, {path: 1})


@pytest.mark.parametrize(
    "path", ["nope", "hardware.nope", "workload.slo.nope", "serving.kv.block_size.deeper"]
)
def test_a_path_that_the_schema_lacks_is_refused_by_the_schema_at_that_path(path):
    document, _ = apply_overrides(BASE, {path: 1})
    with pytest.raises(InputError) as caught:
        Scenario.parse(document)
    assert path.startswith(caught.value.message.path)


def test_later_overrides_see_earlier_ones():
    document = overridden(topology__radix=100, topology__kind="rail_only")
    assert overridden(document, topology__radix="x2")["topology"] == {
        "kind": "rail_only",
        "radix": 200,
        "tiers": 2,
    }


@pytest.mark.parametrize("text", ["topology.kind", "=x", "  =", ""])
def test_an_assignment_needs_a_path_and_a_value(text):
    with pytest.raises(InputError, match="write path=value"):
        parse_assignment(text)


def test_an_assignment_splits_at_the_first_equals_sign():
    assert parse_assignment(" description = a=b ") == ("description", "a=b")


def test_the_members_of_a_union_are_those_of_the_schema():
    kinds = {model.model_fields["kind"].default for model in union_members("topology")}
    assert {"clos", "rail_optimized", "rail_only"} <= kinds
    assert {model.__name__ for model in union_members("serving.scheduler")} == {
        "ChunkedPrefill",
        "Continuous",
        "Disaggregated",
        "StaticBatch",
    }
    assert union_members("hardware.chip") == []
    assert union_members("no.such") == []
