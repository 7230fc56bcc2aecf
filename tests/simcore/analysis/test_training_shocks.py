"""The shock test of a training job: hand-made sums, what abilities buy, steps planned anew, and what is said."""

from dataclasses import replace

import pytest

from simcore import why
from simcore.analysis import analyse
from simcore.analysis.training_shocks import training_shock_test
from simcore.errors import InputError
from simcore.plan.training_shocks import shocked_job, without_replicas
from simcore.simulate import simulate

SHOCK = "reliability.shock."
BASE = {
    "name": "70B on 512",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 512},
    "model": {"name": "llama-3.1-70b"},
    "workload": {"kind": "training"},
    "topology": {"kind": "clos", "radix": 64},
    "training": {"parallelism": {"tp": 8, "pp": 4}, "virtual_stages": 5},
    "reliability": {
        "spares": 1,
        "checkpoint_interval_s": 1000,
        "checkpoint_write_s": 50,
        "restart_s": 600,
        "abilities": {"reconfiguration_s": 60},
    },
}
HOST = {"kind": "host_failure", "at_s": 600, "duration_s": 7200}
NONE = {f"reliability.abilities.{name}": False for name in ("physical", "data", "task")}


@pytest.fixture
def shocked(planner):
    def plan(*shocks, **more):
        return planner.plan({"reliability.shocks": list(shocks)} | more, BASE)

    return plan


def findings_of(plan):
    return training_shock_test(plan.training, plan.scenario.reliability, seed=plan.seed)


def job_of(plan):
    return shocked_job(plan.training, plan.scenario.reliability, seed=plan.seed)


def by_set(found):
    return {
        tuple(name for name in ("physical", "data", "task") if row[name]): row
        for row in found.tables["shock_abilities"]
    }


def test_without_any_ability_a_host_costs_its_repair_a_restart_and_half_an_interval(shocked):
    found = findings_of(shocked(HOST, **NONE))
    missing_s = 7200 + 600 + (1000 + 50) / 2
    assert found.metrics[f"{SHOCK}recovery_s"] == pytest.approx(missing_s)
    assert found.metrics[f"{SHOCK}dip_fraction"] == 1.0
    assert found.metrics[f"{SHOCK}lost_goodput_fraction"] == pytest.approx(
        missing_s / (2 * (600 + missing_s))
    )


def test_a_spare_takes_the_place_of_the_repair(shocked):
    rows = by_set(findings_of(shocked(HOST)))
    assert rows["physical",]["recovery_s"] == pytest.approx(60 + 600 + 525)


def test_state_in_memory_saves_the_work_since_the_checkpoint_and_the_reading_of_it(shocked):
    plan = shocked(HOST)
    uses, step_s = plan.training.memory.uses, plan.training.step.step_s.value
    sent_s = (uses["weights"].value + uses["optimizer"].value) / 50e9
    row = by_set(findings_of(plan))["data",]
    assert row["recovery_s"] == pytest.approx(7200 + 600 - 50 + sent_s + step_s / 2 * 1050 / 1000, rel=1e-9)


def test_fewer_replicas_take_the_same_batch_unevenly(shocked):
    plan = shocked(HOST)
    inputs = plan.training.inputs
    assert (inputs.parallelism.dp, inputs.micro_batch_count) == (16, 32)
    pace = without_replicas(plan.training, 1)
    assert 32 / 35 < pace < 32 / 35 * 1.05  # 512 micro-batches over 15: 35 on the fullest; overheads stay
    assert without_replicas(plan.training, 8) == pytest.approx(0.5, rel=0.1)
    assert without_replicas(plan.training, 16) == 0.0


def test_of_expert_groups_only_whole_ones_are_left(planner):
    plan = planner.plan(
        {
            "model.name": "mixtral-8x7b",
            "training.parallelism": {"tp": 1, "pp": 4, "dp": 128, "ep": 8},
            "training.virtual_stages": 1,
        },
        BASE,
    )
    assert without_replicas(plan.training, 1) == without_replicas(plan.training, 8)


def test_a_job_of_one_replica_waits_and_says_so(shocked):
    one = {"hardware.chip_count": 32, "training.parallelism": {"tp": 8, "pp": 4}}
    plan = shocked(HOST, **one)
    assert "shocks.cannot_shrink" in {message.code for message in plan.warnings}
    rows = by_set(findings_of(plan))
    assert rows["task",]["lost_goodput_fraction"] == rows[()]["lost_goodput_fraction"]


@pytest.mark.parametrize("kind", ["host_failure", "drain"])
def test_what_the_abilities_bought_adds_up_and_none_costs(shocked, kind):
    found = findings_of(shocked({"kind": kind, "at_s": 600, "duration_s": 7200, "count": 3}))
    lost = {some: row["lost_goodput_fraction"] for some, row in by_set(found).items()}
    assert len(lost) == 8
    bought = {row["ability"]: row["lost_goodput_fraction"] for row in found.tables["shock_bought"]}
    assert sum(bought.values()) == pytest.approx(lost[()] - lost["physical", "data", "task"], abs=1e-12)
    assert min(bought.values()) >= 0.0
    assert max(lost.values()) == lost[()]
    assert found.metrics[f"{SHOCK}lost_goodput_fraction"] == lost["physical", "data", "task"]


def test_a_drain_loses_no_work(shocked):
    found = findings_of(shocked(HOST | {"kind": "drain"}, **NONE))
    assert found.metrics[f"{SHOCK}recovery_s"] == pytest.approx(7200 + 600)


def test_links_and_switches_slow_the_step_as_much_as_it_waits_for_them(shocked):
    exposed = {"training.overlap.dp": False}
    spine = shocked({"kind": "switch_failure", "tier": "spine", "at_s": 600, "duration_s": 7200}, **exposed)
    link = shocked(HOST | {"kind": "link_failure"}, **exposed)
    for plan in (spine, link):
        found = findings_of(plan).metrics
        assert 0.0 < found[f"{SHOCK}dip_fraction"] < 1 / 7
        assert found[f"{SHOCK}lost_goodput_fraction"] == pytest.approx(
            found[f"{SHOCK}dip_fraction"] * 7200 / (2 * 7800)
        )
    degraded = shocked(**exposed, **{"topology.degraded": [{"switch": "spine 0", "capacity_fraction": 0}]})
    pace = spine.training.step.step_s.value / degraded.training.step.step_s.value
    assert findings_of(spine).metrics[f"{SHOCK}dip_fraction"] == pytest.approx(1 - pace)


def test_a_leaf_of_a_clos_stops_the_job_and_no_spare_stands_in_for_it(shocked):
    leaf = {"kind": "switch_failure", "tier": "leaf", "at_s": 600, "duration_s": 7200}
    rows = by_set(findings_of(shocked(leaf)))
    assert rows["physical",] | {"physical": False} == rows[()]
    assert rows[()]["dip_fraction"] == 1.0


def test_what_changes_only_what_is_served_has_no_effect_and_says_so(shocked):
    plan = shocked({"kind": "load"}, {"kind": "prompt_length"}, {"kind": "model_swap"})
    named = {message.path for message in plan.warnings if message.code == "input.no_effect"}
    assert named == {f"reliability.shocks.{place}.kind" for place in range(3)}
    assert set(findings_of(plan).metrics.values()) == {0.0}


def test_recovery_counts_from_the_first_shock_that_the_job_feels(shocked):
    alone, with_load = shocked(HOST), shocked({"kind": "load", "at_s": 100, "duration_s": 10}, HOST)
    assert findings_of(with_load).metrics == pytest.approx(findings_of(alone).metrics)


def test_a_shock_of_no_length_changes_nothing(shocked):
    assert set(findings_of(shocked(HOST | {"duration_s": 0})).metrics.values()) == {0.0}


def test_the_steady_rate_is_that_of_the_step_less_the_time_for_checkpoints(shocked):
    plan = shocked(HOST)
    series = findings_of(plan).series["shock_goodput"]
    steady = plan.training.step.token_per_s.value * 1000 / 1050
    assert series["steady"] == pytest.approx([steady] * len(series["steady"]))
    width_s = series["time_s"][1] - series["time_s"][0]
    lost = 1 - sum(series["none"]) * width_s / (steady * width_s * len(series["none"]))
    assert lost == pytest.approx(by_set(findings_of(plan))[()]["lost_goodput_fraction"])


def test_without_shocks_there_is_no_test_and_the_digest_stays(shocked, planner):
    plan = shocked()
    assert findings_of(plan).metrics == {}
    assert plan.digest == planner.plan({}, BASE).digest


def test_findings_carry_the_test_its_trees_and_its_assumption(shocked):
    plan = shocked(HOST)
    result = simulate(plan)
    whole = result.with_findings(analyse(plan, result))
    codes = {message.code for message in whole.findings}
    assert {"finding.training_shock", "finding.shock_state", "finding.shock_ability"} <= codes
    for name in ("dip_fraction", "recovery_s", "lost_goodput_fraction"):
        term = whole.why[SHOCK + name]
        assert why.evaluate(term, {}) == pytest.approx(whole.metrics[SHOCK + name], abs=1e-12)
    assert "shock_goodput" in whole.series


def test_the_inputs_of_a_training_job_are_not_called_useless_where_its_slice_is_too_large(shocked):
    told = {message.path for message in shocked(HOST).warnings if message.code == "input.no_effect"}
    assert not {path for path in told if path.startswith("reliability.")}


@pytest.mark.parametrize(
    ("shock", "path"),
    [
        ({"kind": "host_failure", "count": 65}, "reliability.shocks.0.count"),
        ({"kind": "cube_failure"}, "reliability.shocks.0.kind"),
        ({"kind": "switch_failure", "tier": "core"}, "reliability.shocks.0.kind"),
    ],
)
def test_shocks_that_cannot_happen_here_are_refused(shocked, shock, path):
    with pytest.raises(InputError) as error:
        shocked(shock)
    assert error.value.message.path == path


def test_the_same_servers_fail_whatever_the_abilities(shocked):
    job = job_of(shocked(HOST | {"count": 5}))
    able = job.spec.abilities
    hit = [
        [one.servers for one in job.events(able.model_copy(update={"physical": physical}))]
        for physical in (True, False)
    ]
    assert hit[0] == hit[1]
    other = replace(job, seed=job.seed + 1)
    assert [one.servers for one in other.events(able)] != hit[0]
