"""A scenario's life, resolved and run: what its fields change, and what it refuses."""

from typing import Any

import pytest

from simcore.errors import InfeasibleError, InputError, TrimtabError
from simcore.plan import plan
from simcore.reliability import daly_interval_s
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import Result, simulate

POD = {
    "name": "pod",
    "hardware": {"chip": "tpu-v4", "chip_count": 4096},
    "workload": {"kind": "none"},
    "reliability": {"slice_chips": 1024, "life": {"kind": "always_full", "duration_s": "60 d"}},
}
DAY_S = 86_400.0


def scenario(**overrides: Any) -> Scenario:
    document, _ = apply_overrides(POD, {name.replace("__", "."): value for name, value in overrides.items()})
    return Scenario.parse(document)


def lived(**overrides: Any) -> Result:
    return simulate(plan(scenario(**overrides)))


def number(result: Result, name: str) -> float:
    return float(result.metrics[f"reliability.life.{name}"])


@pytest.fixture(scope="module")
def pod() -> Result:
    return lived()


def test_without_a_life_nothing_is_lived_and_the_digest_is_that_of_before() -> None:
    document = {**POD, "reliability": {"slice_chips": 1024}}
    planned = plan(Scenario.parse(document))
    assert planned.life is None
    assert not [name for name in simulate(planned).metrics if ".life." in name]
    off = plan(Scenario.parse({**POD, "reliability": {"slice_chips": 1024, "life": None}}))
    assert off.digest == planned.digest
    assert plan(scenario()).digest != planned.digest


def test_a_pod_is_cubes_and_their_parts(pod: Result) -> None:
    inputs = plan(scenario()).life
    assert inputs is not None
    assert (inputs.unit, inputs.unit_count, inputs.job_units) == ("cube", 64, (16,))
    assert {part.name: part.count for part in inputs.parts} == {"server": 1024, "link": 12288, "ocs": 48}
    mttr_s = next(part.mttr_s for part in inputs.parts)
    assert mttr_s == pytest.approx(1000 / 6.5 * DAY_S * 0.005 / 0.995)


def test_the_interval_is_dalys_at_the_rate_of_the_slice() -> None:
    inputs = plan(scenario()).life
    assert inputs is not None
    assert list(inputs.intervals_s) == pytest.approx([daly_interval_s(60, 1000 / 6.5 * DAY_S / 256)])


def test_behind_switches_a_unit_is_a_server_and_a_leaf_takes_its_servers() -> None:
    clos = {
        "hardware__chip": "nvidia-h100-sxm", "hardware__chip_count": 1024, "reliability__slice_chips": 512,
        "topology": {"kind": "clos", "radix": 64},
    }  # fmt: skip
    inputs = plan(scenario(**clos)).life
    assert inputs is not None
    assert (inputs.unit, inputs.unit_count, inputs.rewires) == ("server", 128, False)
    switch = next(part for part in inputs.parts if part.name == "switch")
    assert switch.span == 128 / switch.count
    assert not switch.slows
    rails = plan(scenario(**clos | {"topology": {"kind": "rail_optimized", "radix": 64}})).life
    assert rails is not None
    leaf = next(part for part in rails.parts if part.name == "switch")
    assert leaf.span == 8 * 128 / leaf.count
    assert leaf.slows


def test_the_account_sums_to_one_and_has_its_trees(pod: Result) -> None:
    assert sum(row["fraction"] for row in pod.tables["life_time"]) == pytest.approx(1.0)
    lives = {name for name in pod.metrics if name.startswith("reliability.life.")}
    assert lives
    assert lives <= set(pod.why)
    assert len(pod.series["life"]["time_s"]) == 400
    assert len(pod.series["life_events"]["time_s"]) <= 1000


def test_re_wiring_keeps_more_than_fixed_places(pod: Result) -> None:
    static = lived(reliability__life__allocation="static")
    assert number(pod, "goodput_fraction") > 2 * number(static, "goodput_fraction")
    rows = {row["allocation"]: row["goodput_fraction"] for row in pod.tables["life_allocations"]}
    assert rows["ocs"] == number(pod, "goodput_fraction")
    assert rows["static"] == number(static, "goodput_fraction")
    assert "reliability.life.reconfiguration_count" not in static.metrics


def test_without_fault_tolerant_routing_links_and_optical_switches_stop_jobs_too(pod: Result) -> None:
    brittle = lived(reliability__life__fault_tolerant_routing=False)
    causes = [{row["cause"] for row in found.tables["life_time"]} for found in (pod, brittle)]
    assert ["slowdown" in found for found in causes] == [True, False]
    assert number(brittle, "interruption_count") > number(pod, "interruption_count")
    assert number(brittle, "goodput_fraction") < number(pod, "goodput_fraction")


def test_a_part_that_takes_all_units_counts_in_full_for_the_interval() -> None:
    brittle = plan(scenario(reliability__life__fault_tolerant_routing=False)).life
    assert brittle is not None
    per_s = {part.name: part.count / part.mtbf_s for part in brittle.parts}
    mtbf_s = 1 / ((per_s["server"] + per_s["link"]) / 4 + per_s["ocs"])
    assert list(brittle.intervals_s) == pytest.approx([daly_interval_s(60, mtbf_s)])


def test_a_smaller_scope_of_restart_keeps_more(pod: Result) -> None:
    scopes = {row["scope"]: row["goodput_fraction"] for row in pod.tables["life_scopes"]}
    assert scopes["job"] < scopes["host"] < scopes["peer"]
    assert scopes["job"] == number(pod, "goodput_fraction")
    assert scopes["peer"] == number(
        lived(reliability__life__restart_scope="host", reliability__life__recover_from="peer"),
        "goodput_fraction",
    )


def test_spare_cubes_on_top_bring_the_jobs_more_time(pod: Result) -> None:
    rows = pod.tables["life_spares"]
    assert [row["spare_count"] for row in rows] == [0, 1, 2, 4, 8, 16]
    assert rows[-1]["job_time_fraction"] > rows[0]["job_time_fraction"] + 0.1


def test_held_back_spares_leave_room_for_fewer_slices() -> None:
    held = plan(scenario(reliability__spares=4)).life
    assert held is not None
    assert held.full_count == 3


def test_a_queue_has_waits_and_finished_jobs() -> None:
    queue = lived(
        reliability__life={
            "kind": "queue", "duration_s": "60 d", "slice_chips": [256, 1024], "interarrival_s": "4 h", "work_s": "1 d",
        }
    )  # fmt: skip
    assert number(queue, "finished_count") > 50
    assert 0 <= number(queue, "wait_s.mean") <= number(queue, "wait_s.p95")
    assert "life_spares" not in queue.tables


def test_replications_give_a_mean_with_its_interval() -> None:
    three = lived(run__replications=3)
    name = "reliability.life.goodput_fraction"
    band = three.bands[name]
    assert band["low"] < float(three.metrics[name]) < band["high"]
    assert band["level"] == 0.95
    assert not [w for w in three.warnings if w.path == "run.replications"]


def test_a_repair_time_of_its_own_takes_the_place_of_availability() -> None:
    slow, fast = (lived(reliability__mttr_s=f"{hours} h") for hours in (48, 1))
    assert number(slow, "goodput_fraction") < number(fast, "goodput_fraction")


@pytest.mark.parametrize(
    ("overrides", "error", "path"),
    [
        ({"reliability__slice_chips": 8192}, InfeasibleError, "reliability.slice_chips"),
        ({"reliability__spares": 60}, InfeasibleError, "reliability.slice_chips"),
        (
            {"reliability__life": {"kind": "queue", "slice_chips": [8192]}},
            InfeasibleError,
            "reliability.life.slice_chips",
        ),
        ({"reliability__host_availability_fraction": 0}, InputError, "reliability.mttr_s"),
        ({"reliability__life__chip_mtbf_s": 60}, InputError, "reliability.life.duration_s"),
        (
            {"reliability__life": {"kind": "queue", "interarrival_s": 1}},
            InputError,
            "reliability.life.duration_s",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    overrides: dict[str, Any], error: type[TrimtabError], path: str
) -> None:
    with pytest.raises(error) as caught:
        plan(scenario(**overrides))
    assert [message.path for message in caught.value.messages] == [path]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"host_restart_s": 5}, "host_restart_s"),
        ({"fault_tolerant_routing": False, "link_slowdown_ratio": 2}, "link_slowdown_ratio"),
        ({"switch_mtbf_s": "1 d"}, "switch_mtbf_s"),
        ({"maintenance_window_s": "1 h"}, "maintenance_window_s"),
    ],
)
def test_what_changes_nothing_says_so(pod: Result, changes: dict[str, Any], path: str) -> None:
    changed = lived(**{f"reliability__life__{key}": value for key, value in changes.items()})
    assert f"reliability.life.{path}" in [warning.path for warning in changed.warnings]
    if "fault_tolerant_routing" not in changes:
        assert number(changed, "goodput_fraction") == number(pod, "goodput_fraction")


def test_an_availability_that_rounds_to_nothing_is_no_life_of_zeros() -> None:
    assert number(lived(reliability__host_availability_fraction=1.0), "goodput_fraction") > 0.9
