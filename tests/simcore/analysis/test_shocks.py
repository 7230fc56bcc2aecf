"""The shock test through plan, engine and analysis: what is lost, what abilities buy, and where nothing happens."""

import numpy as np
import pytest

from simcore.analysis import analyse
from simcore.analysis.shocks import shock_test
from simcore.errors import InputError
from simcore.plan.shocks import outages_of, site_of
from simcore.simulate import simulate

SHOCK = "reliability.shock."
FLEET = {
    "hardware.chip_count": 32,
    "workload.arrivals.request_per_s": 240.0,
    "workload.request_count": 24_000,
    "workload.slo.ttft_s": 0.5,
    "reliability.spares": 1,
    "reliability.abilities.reconfiguration_s": 10.0,
}
HOST = {"kind": "host_failure", "at_s": 30, "duration_s": 30}


def shocked(*shocks, **more):
    return FLEET | {"reliability.shocks": list(shocks)} | more


@pytest.fixture(scope="module")
def host(planner):
    plan = planner.plan(shocked(HOST))
    return plan, shock_test(plan, plan.serving)


def test_a_failed_host_stops_the_replicas_on_it_and_no_other(planner):
    plan = planner.plan(shocked(HOST))
    (outage,) = outages_of(plan, plan.serving).outages
    assert len(outage.lanes) == 8
    assert outage.lanes[0] % 8 == 0
    assert (outage.begin_s, outage.end_s) == (30, 40)
    wide = planner.plan(shocked(HOST, **{"serving.parallelism.tp": 8, "serving.parallelism.pp": 2}))
    (outage,) = outages_of(wide, wide.serving).outages
    assert len(outage.lanes) == 2  # both batches in flight of the one replica that stands on it


def test_links_slow_only_those_who_talk_over_them(planner):
    shock = {"kind": "link_failure", "at_s": 30, "count": 32}
    plan = planner.plan(shocked(shock))
    assert outages_of(plan, plan.serving).outages == ()
    assert "shocks.no_talk" in {one.code for one in plan.warnings}
    wide = planner.plan(shocked(shock, **{"serving.parallelism.tp": 16, "model.name": "llama-3.1-70b"}))
    ratios = {one.slow_ratio for one in outages_of(wide, wide.serving).outages}
    assert len(ratios) == 1
    assert 1.0 < ratios.pop() < 8 / 7  # a step is not all talk, and one link of eight is lost


def test_a_leaf_of_a_clos_cuts_off_its_servers_and_one_of_a_rail_slows_them(planner):
    many = {"hardware.chip_count": 1024, "workload.request_count": 100}
    clos = planner.plan(many | {"topology": {"kind": "clos", "radix": 64}})
    rail = planner.plan(many | {"topology": {"kind": "rail_optimized", "radix": 64}})
    assert site_of(clos.fabric, clos.serving).tiers["leaf"].lost_fraction == 1.0
    leaf = site_of(rail.fabric, rail.serving).tiers["leaf"]
    assert leaf.lost_fraction == pytest.approx(1 / 8)
    assert leaf.server_count > site_of(clos.fabric, clos.serving).tiers["leaf"].server_count


def test_shocks_that_are_none_change_nothing(planner):
    plain = planner.result(FLEET)
    nothing = (HOST | {"duration_s": 0}, {"kind": "load", "at_s": 20, "rate_ratio": 1.0})
    plan = planner.plan(shocked(*nothing))
    quiet = planner.result(shocked(*nothing))
    for name in ("scheduled_s", "first_token_s", "finish_s"):
        np.testing.assert_array_equal(getattr(plain.records, name), getattr(quiet.records, name))
    found = shock_test(plan, plan.serving)
    assert found.metrics == {
        f"{SHOCK}{name}": 0.0 for name in ("dip_fraction", "recovery_s", "lost_goodput_fraction")
    }


def test_without_shocks_there_is_no_test_and_the_digest_stays(planner):
    plan = planner.plan()
    assert shock_test(plan, plan.serving).metrics == {}
    able = planner.plan({"reliability.abilities.task": True})
    assert able.digest == plan.digest
    assert planner.plan({"reliability.abilities.task": False}).digest != plan.digest


def test_what_the_abilities_bought_adds_up_and_never_costs(host):
    _, found = host
    rows = found.tables["shock_abilities"]
    lost = {
        tuple(row[name] for name in ("physical", "data", "task")): row["lost_goodput_fraction"]
        for row in rows
    }
    assert len(lost) == 8
    bought = {row["ability"]: row["lost_goodput_fraction"] for row in found.tables["shock_bought"]}
    saved = lost[False, False, False] - lost[True, True, True]
    assert sum(bought.values()) == pytest.approx(saved, abs=1e-12)
    assert saved > 0.02
    assert min(bought.values()) > -0.002
    worst = max(lost.values())
    assert lost[False, False, False] == pytest.approx(worst, abs=0.002)
    assert found.metrics[f"{SHOCK}lost_goodput_fraction"] == lost[True, True, True]


def test_the_goodput_is_that_of_the_calm_run_until_the_first_shock(host):
    _, found = host
    series = found.series["shock_goodput"]
    early = np.array(series["time_s"]) < 28
    for name in ("none", "task", "physical+data+task"):
        assert np.array(series[name])[early].tolist() == np.array(series["steady"])[early].tolist()
    assert min(series["none"]) < 0.9 * min(series["steady"])


def test_findings_carry_the_test_and_say_who_bought_most(planner):
    plan = planner.plan(shocked(HOST))
    heard = []
    result = simulate(plan)
    whole = result.with_findings(analyse(plan, result, lambda kind, payload: heard.append(payload["code"])))
    assert {"finding.shock", "finding.shock_ability"} <= set(heard)
    assert f"{SHOCK}recovery_s" in whole.metrics
    assert "shock_goodput" in whole.series


@pytest.mark.parametrize("able", [True, False])
def test_a_burst_of_load_costs_what_no_ability_can_buy_back(planner, able):
    burst = {"kind": "load", "at_s": 30, "duration_s": 20, "rate_ratio": 20.0}
    plan = planner.plan(shocked(burst, **{"reliability.abilities.task": able}))
    found = shock_test(plan, plan.serving)
    assert found.metrics[f"{SHOCK}lost_goodput_fraction"] > 0.05
    assert {row["lost_goodput_fraction"] for row in found.tables["shock_bought"]} == {0.0}
    requests = plan.serving.inputs.requests
    np.testing.assert_array_equal(requests.input_tokens, plan.serving.undisturbed.input_tokens)
    assert np.count_nonzero((requests.arrival_s >= 30) & (requests.arrival_s < 50)) > 15_000


def test_longer_prompts_are_longer_in_their_window_and_fit_the_model(planner):
    long = {"kind": "prompt_length", "at_s": 30, "duration_s": 20, "length_ratio": 50.0}
    plan = planner.plan(shocked(long, **{"serving.max_model_len": 4096}))
    requests, calm = plan.serving.inputs.requests, plan.serving.undisturbed
    during = (requests.arrival_s >= 30) & (requests.arrival_s < 50)
    assert (requests.input_tokens[during] == 4096 - requests.output_tokens[during]).all()
    np.testing.assert_array_equal(requests.input_tokens[~during], calm.input_tokens[~during])


def test_a_swap_of_weights_passes_all_replicas_in_turn(planner):
    plan = planner.plan(shocked({"kind": "model_swap", "at_s": 10, "duration_s": 5, "at_once": 8}))
    outages = outages_of(plan, plan.serving).outages
    assert [(one.begin_s, len(one.lanes)) for one in outages] == [(10, 8), (15, 8), (20, 8), (25, 8)]
    assert sorted(lane for one in outages for lane in one.lanes) == list(range(32))


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ({"serving.autoscaling": {"kind": "kv_usage"}}, "reliability.shocks.0.kind"),
        ({"reliability.shocks": [{"kind": "host_failure", "count": 9}]}, "reliability.shocks.0.count"),
        ({"reliability.shocks": [{"kind": "cube_failure"}]}, "reliability.shocks.0.kind"),
        (
            {
                "workload.arrivals": {"kind": "closed_loop", "concurrency": 8},
                "reliability.shocks": [{"kind": "load"}],
            },
            "reliability.shocks.0.kind",
        ),
    ],
)
def test_shocks_that_cannot_happen_here_are_refused(planner, overrides, path):
    with pytest.raises(InputError) as error:
        planner.plan(shocked(HOST) | overrides)
    assert error.value.message.path == path


def test_what_has_no_effect_is_said(planner):
    late = planner.plan(shocked(HOST | {"at_s": 9_999}))
    bare = planner.plan(shocked(HOST, **{"reliability.spares": 0}))
    assert "shocks.too_late" in {one.code for one in late.warnings}
    assert "shocks.no_spares" in {one.code for one in bare.warnings}
    told = planner.plan(shocked(HOST)).warnings
    assert "reliability.spares" not in {one.path for one in told}


def apart(planner, seed, prefill=8, **more):
    scheduler = {
        "kind": "disaggregated",
        "prefill": {"replica_count": prefill},
        "decode": {"replica_count": 32 - prefill},
    }
    more = {"serving.scheduler": scheduler, "run.seed": seed, "workload.request_count": 12_000} | more
    return planner.plan(shocked(HOST | {"at_s": 20, "duration_s": 20}, **more))


def hit(planner, host, **more):
    """A plan whose failed host is this one, of four."""
    plans = (apart(planner, seed, **more) for seed in range(40))
    return next(one for one in plans if outages_of(one, one.serving).outages[0].lanes[0] == 8 * host)


@pytest.mark.parametrize("host", [0, 3])
def test_a_failed_host_takes_replicas_that_prefill_or_some_that_decode(planner, host):
    plan = hit(planner, host)
    (outage,) = outages_of(plan, plan.serving).outages
    assert outage.lanes == tuple(range(8 * host, 8 * host + 8))
    found = shock_test(plan, plan.serving)
    lost = [row["lost_goodput_fraction"] for row in found.tables["shock_abilities"]]
    assert len(lost) == 8
    assert 0 <= lost[-1] < lost[0]
    assert (lost[0] > 0.4) == (host == 0)  # all that prefill, or a third of those that decode


def test_replicas_change_between_prefill_and_decode_where_they_are_alike_and_else_it_is_said(planner):
    plan = hit(planner, 0, prefill=8)
    assert outages_of(plan, plan.serving).shift.lanes_per_unit == 1
    assert "shocks.no_shift" not in {one.code for one in plan.warnings}
    tp = {"serving.scheduler.decode.parallelism": {"tp": 2}, "serving.scheduler.decode.replica_count": 12}
    unlike = apart(planner, 1, **tp)
    assert outages_of(unlike, unlike.serving).shift is None
    assert "shocks.no_shift" in {one.code for one in unlike.warnings}
    off = apart(planner, 1, **tp, **{"reliability.abilities.task": False})
    assert "shocks.no_shift" not in {one.code for one in off.warnings}


def test_decode_that_stands_in_for_all_lost_prefill_saves_most_of_what_the_loss_costs(planner):
    plan = hit(planner, 0, **{"reliability.spares": 0})
    found = shock_test(plan, plan.serving)
    lost = {
        (row["data"], row["task"]): row["lost_goodput_fraction"] for row in found.tables["shock_abilities"]
    }
    assert lost[False, True] < 0.3 * lost[False, False]
