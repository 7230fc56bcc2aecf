"""The stories: each is a baseline, one change and sources, and comes out as experience.md promises."""

import pytest

from simcore.analysis.shocks import shock_test
from simcore.compute.steps import decode_shares
from simcore.errors import InfeasibleError, InputError
from simcore.scenario import Scenario
from simcore.scenario.stories import stories, story

TABS = {"overview", "fabric", "memory", "serving", "reliability"}
SLUGS = list(stories())


@pytest.mark.parametrize("slug", SLUGS)
def test_a_story_has_two_scenarios_that_plan_and_run(planner, slug):
    told = story(slug)
    timed = told.baseline.get("reliability", {}).get("shocks")  # they come later than the first requests
    whole = timed or told.baseline["workload"].get("kind") == "none"
    small = {} if whole else {"workload.request_count": 50}
    before, after = (planner.result(small, dict(document)) for document in (told.baseline, told.variant))
    assert before.digest != after.digest
    assert before.metrics != after.metrics


@pytest.mark.parametrize("slug", SLUGS)
def test_a_story_says_what_to_look_at_and_where_it_comes_from(slug):
    told = story(slug)
    assert told.slug.startswith(told.number.lower() + "-")
    assert told.tab in TABS
    assert all((told.title, told.finding, told.look_at, told.sources))
    assert all(source["title"] and source["kind"] for source in told.sources)


@pytest.mark.parametrize("slug", SLUGS)
def test_the_variant_of_a_story_is_its_baseline_with_the_overrides(slug):
    told = story(slug)
    before, after = Scenario.parse(told.baseline), Scenario.parse(told.variant)
    assert before.name != after.name
    assert after.model_copy(update={"name": before.name}) != before


def test_stories_come_in_the_order_of_their_numbers():
    numbers = [int(told.number[1:]) for told in stories().values()]
    assert numbers == sorted(numbers)
    assert {1, 2, 3} <= set(numbers)


def test_an_unknown_story_names_the_known_ones():
    with pytest.raises(InputError, match="s1-rail-only"):
        story("s99")


# ---- S1: 3-tier Clos against rail-only, 32,768 GPUs, 128 ports


def counts(planner, told, **overrides):
    return planner.plan(
        {path.replace("__", "."): value for path, value in overrides.items()}, dict(told)
    ).metrics


def test_s1_removes_the_spine(planner):
    told = story("s1-rail-only")
    before, after = counts(planner, told.baseline), counts(planner, told.variant)
    assert (before["fabric.switch_count"], before["fabric.transceiver_count"]) == (1_280, 196_608)
    assert (after["fabric.switch_count"], after["fabric.transceiver_count"]) == (256, 65_536)
    assert after["fabric.island_count"] == 1
    saving = 1 - after["fabric.fabric_capex_usd"] / before["fabric.fabric_capex_usd"]
    assert 0.667 - 1e-3 <= saving <= 0.80 + 1e-3


def test_s1_breaks_into_islands_with_servers_of_eight(planner):
    planned = planner.plan({"topology.hb_domain_size": 8}, dict(story("s1-rail-only").variant))
    assert planned.metrics["fabric.island_count"] == 32
    (warning,) = [one for one in planned.warnings if one.code == "fabric.islands"]
    assert warning.text.startswith("32 islands of 1,024 chips")
    assert "N ≤ hb_domain_size × radix fails, 32,768 > 8 × 128 = 1,024" in warning.text


def test_s1_with_a_clos_on_each_rail_joins_them_again(planner):
    found = counts(planner, story("s1-rail-only").variant, topology__hb_domain_size=8, topology__tiers=2)
    assert (found["fabric.switch_count"], found["fabric.transceiver_count"]) == (768, 131_072)
    assert found["fabric.island_count"] == 1


def test_s1_shows_the_guard_rail_beside_the_saving(planner):
    warnings = planner.plan(base=dict(story("s1-rail-only").variant)).warnings
    assert any("N ≤ hb_domain_size × radix" in warning.text for warning in warnings)


# ---- S2: double HBM bandwidth


def decode_step(planner, *, batch, context, factor):
    """Seconds and scale-up share of a decode step of Llama-3.1-70B on 8 H100."""
    overrides = {
        "hardware.chip_overrides.hbm_bytes_per_s": f"x{factor}",
        "serving.scheduler.max_num_seqs": 512,
    }
    table = planner.plan(overrides, dict(story("s2-double-hbm").baseline)).serving.pool.step_table
    shares = decode_shares(table, batch=batch, context_tokens=context)
    whole = shares.step_s
    return whole, shares.scaleup_s / whole


def test_s2_speeds_decoding_up_by_a_third_at_batch_64_and_scale_up_takes_a_larger_share(planner):
    """The outcome first written for the story, 1.5, came from a model without host work: measured steps of this
    model on H100 (vLLM, tp 2 to 8) hold 5 ms that no bandwidth shortens, and the fit that meets them says 1.3."""
    before, share_before = decode_step(planner, batch=64, context=4096, factor=1)
    after, share_after = decode_step(planner, batch=64, context=4096, factor=2)
    assert before / after == pytest.approx(1.3, abs=0.1)
    assert share_after > share_before * 1.2


def test_s2_brings_a_tenth_at_batch_512_where_compute_binds(planner):
    before, _ = decode_step(planner, batch=512, context=1024, factor=1)
    after, _ = decode_step(planner, batch=512, context=1024, factor=2)
    assert before / after == pytest.approx(1.1, abs=0.08)


def test_s2_moves_the_measured_token_time_as_it_moves_the_step(planner):
    told = story("s2-double-hbm")
    before, after = (planner.result({}, dict(document)).metrics for document in (told.baseline, told.variant))
    gain = before["compute.decode_step_s"] / after["compute.decode_step_s"]
    assert gain == pytest.approx(1.3, abs=0.1)
    assert 1.1 < before["serving.tpot_s.mean"] / after["serving.tpot_s.mean"] < gain


# ---- S3: static against OCS slices of a TPU v4 pod


@pytest.mark.parametrize(
    ("availability", "ocs", "static"), [(0.99, 0.747, 0.076), (0.995, 0.751, 0.277), (0.999, 0.840, 0.774)]
)
def test_s3_slices_of_1024_chips(planner, availability, ocs, static):
    found = counts(
        planner, story("s3-ocs-slices").baseline, reliability__host_availability_fraction=availability
    )
    assert found["reliability.slice_goodput_fraction.mean"] == pytest.approx(ocs, abs=6e-4)
    assert found["reliability.static_goodput_fraction.mean"] == pytest.approx(static, abs=6e-4)


@pytest.mark.parametrize(
    ("chips", "availability", "ocs"),
    [
        (2048, 0.99, 0.500), (2048, 0.995, 0.503), (2048, 0.999, 0.679),
        (3072, 0.99, 0.742), (3072, 0.995, 0.750), (3072, 0.999, 0.750),
    ],
)  # fmt: skip
def test_s3_larger_slices_are_quantised(planner, chips, availability, ocs):
    found = counts(
        planner,
        story("s3-ocs-slices").baseline,
        reliability__slice_chips=chips,
        reliability__host_availability_fraction=availability,
    )
    assert found["reliability.slice_goodput_fraction.mean"] == pytest.approx(ocs, abs=6e-4)


# ---- S4: slots of the longest request against pages


def test_s4_pages_hold_what_slots_waste_and_more_decode_at_once(planner):
    told = story("s4-paged-kv")
    slots, pages = (planner.result({}, dict(document)).metrics for document in (told.baseline, told.variant))
    assert slots["memory.kv_useful_fraction"] == pytest.approx(1_200 / 8_192, abs=5e-3)
    wasted = pages["memory.kv_internal_waste_fraction"] / pages["memory.kv_useful_fraction"] * 1_200
    assert wasted == pytest.approx(16 / 2, abs=1)  # tokens per sequence
    for found in (slots, pages):
        uses = ("useful", "reserved_waste", "internal_waste", "external_waste")
        assert sum(found[f"memory.kv_{use}_fraction"] for use in uses) == pytest.approx(1.0)
    batches = pages["serving.mean_batch_size"] / slots["serving.mean_batch_size"]
    tokens = pages["serving.output_token_per_s"] / slots["serving.output_token_per_s"]
    assert batches > 5
    assert 1.4 < tokens < batches / 3  # memory no longer binds


def test_s4_runs_of_powers_of_two_lie_between_and_say_that_they_read_lengths(planner):
    told = story("s4-paged-kv")
    useful = {}
    for kind in ("contiguous_max", "contiguous_pow2", "contiguous_oracle", "paged"):
        document = planner.document({"serving.kv.allocator": kind}, dict(told.baseline))
        useful[kind] = planner.result({}, document).metrics["memory.kv_useful_fraction"]
        codes = {warning.code for warning in planner.plan({}, document).warnings}
        assert ("allocator.reads_lengths" in codes) == (kind in ("contiguous_pow2", "contiguous_oracle"))
    assert list(useful.values()) == sorted(useful.values())


def test_s4_a_batch_in_flight_without_room_for_a_slot_is_infeasible(planner):
    """Two pipeline stages halve what a batch in flight may hold."""
    changed = {
        "serving.max_model_len": 131_072,
        "serving.parallelism.pp": 2,
        "hardware.chip_count": 2,
        "serving.num_gpu_blocks_override": 8_192,
    }
    with pytest.raises(InfeasibleError, match=r"serving\.max_model_len"):
        planner.plan(changed, dict(story("s4-paged-kv").baseline))


def test_s6_over_pcie_the_prefill_waits_for_scale_up(planner):
    told = story("s6-nvlink-pcie")
    shares = []
    for document in (told.baseline, told.variant):
        rows = planner.result({"workload.request_count": 200}, dict(document)).tables["where_time_goes"]
        inside = {
            row["resource"]: row["fraction"] for row in rows if row["resource"] not in ("queue", "failure")
        }
        shares.append(inside["scaleup"] / sum(inside.values()))
    nvlink, pcie = shares
    assert pcie > 2 * nvlink


def test_s7_flash_attention_leaves_the_decode_step_and_shortens_long_prefill(planner):
    told = story("s7-flash-attention")
    naive, flash = (planner.plan(base=dict(document)).metrics for document in (told.baseline, told.variant))
    assert flash["compute.prefill_step_s"] < 0.8 * naive["compute.prefill_step_s"]


def test_s8_a_larger_budget_trades_gaps_for_first_tokens(planner):
    told = story("s8-token-budget")
    small, large = (planner.result({}, dict(document)).metrics for document in (told.baseline, told.variant))
    assert large["serving.ttft_s.p95"] < small["serving.ttft_s.p95"]
    assert large["serving.itl_s.p99"] > small["serving.itl_s.p99"]


# ---- S5: prefill and decode together or apart


def both(planner, **overrides):
    told = story("s5-prefill-apart")
    changed = {path.replace("__", "."): value for path, value in overrides.items()}
    documents = told.baseline, told.variant
    return [planner.result(changed, dict(document)).metrics for document in documents]


def test_s5_apart_wins_under_a_tight_pace(planner):
    """DistServe and AIConfigurator report factors of 1.7 to 4 in goodput under tight TPOT; 2.3 here."""
    together, apart = both(planner)
    assert apart["serving.tpot_s.p99"] < 0.5 * together["serving.tpot_s.p99"]
    assert apart["serving.slo_goodput_request_per_s"] > 1.5 * together["serving.slo_goodput_request_per_s"]
    assert apart["serving.ttft_s.mean"] > together["serving.ttft_s.mean"]


def test_s5_apart_loses_when_the_pace_is_loose(planner):
    together, apart = both(planner, workload__slo__tpot_s=0.1, workload__arrivals__request_per_s=20.0)
    assert apart["serving.slo_goodput_request_per_s"] < 0.8 * together["serving.slo_goodput_request_per_s"]


def test_s5_apart_loses_over_a_slow_link(planner):
    told = story("s5-prefill-apart")
    slow = {"serving.scheduler.kv_link_bytes_per_s": "1 GB/s"}
    apart = planner.result(slow, dict(told.variant)).metrics
    assert apart["serving.regime"] == "overloaded"
    assert apart["serving.capacity_request_per_s"] == apart["serving.kv_link_capacity_request_per_s"]
    together = planner.result({}, dict(told.baseline)).metrics
    assert apart["serving.slo_goodput_request_per_s"] < together["serving.slo_goodput_request_per_s"]


# ---- S9: KV sent to host memory


def test_s9_a_large_tier_helps_where_prefixes_recur(planner):
    """LMCache issue 1241 measured TTFT −70 % where the pool was large against the conversations."""
    told = story("s9-kv-offload")
    alone, tiered = (planner.result({}, dict(document)).metrics for document in (told.baseline, told.variant))
    assert tiered["memory.prefix_hit_fraction"] > alone["memory.prefix_hit_fraction"] + 0.3
    assert tiered["serving.ttft_s.mean"] < 0.4 * alone["serving.ttft_s.mean"]


def test_s9_a_tiny_tier_hurts(planner):
    """And +27 % where it was tiny: what is written never comes back."""
    told = story("s9-kv-offload")
    tiny = {"serving.kv.offload": [{"tier": "host_dram", "capacity_bytes": 1e9}]}
    alone = planner.result({}, dict(told.baseline)).metrics
    tiered = planner.result(tiny, dict(told.baseline)).metrics
    assert tiered["memory.prefix_hit_fraction.host_dram"] < 0.02
    assert tiered["serving.ttft_s.mean"] > 1.1 * alone["serving.ttft_s.mean"]


def test_s9_without_a_second_turn_only_the_system_prompt_recurs(planner):
    told = story("s9-kv-offload")
    single = {"workload.sessions.turns_mean": 1}
    alone, tiered = (
        planner.result(single, dict(document)).metrics for document in (told.baseline, told.variant)
    )
    assert tiered["memory.prefix_hit_fraction.host_dram"] < 0.01
    assert tiered["serving.ttft_s.mean"] > 0.95 * alone["serving.ttft_s.mean"]


# ---- S12: what a year of failures leaves of a pod


@pytest.fixture(scope="module")
def s12(planner):
    told = story("s12-spares-and-restarts")
    return [planner.result({}, dict(document)) for document in (told.baseline, told.variant)]


def test_s12_re_wiring_keeps_most_of_the_year(s12):
    fixed, rewired = (found.metrics["reliability.life.goodput_fraction"] for found in s12)
    assert fixed == pytest.approx(0.30, abs=0.03)
    assert rewired == pytest.approx(0.80, abs=0.02)


def test_s12_small_spare_pools_recover_most(s12):
    kept = {row["spare_count"]: row["job_time_fraction"] for row in s12[1].tables["life_spares"]}
    assert [kept[spares] for spares in (0, 1, 2, 4)] == pytest.approx([0.32, 0.63, 0.79, 0.85], abs=0.015)
    assert kept[4] - kept[0] > 0.95 * (max(kept.values()) - kept[0])


def test_s12_restarts_weigh_most_once_spares_hold(s12):
    scopes = {row["scope"]: row for row in s12[1].tables["life_scopes"]}
    assert scopes["host"]["goodput_fraction"] == pytest.approx(0.83, abs=0.015)
    assert scopes["peer"]["goodput_fraction"] == pytest.approx(0.88, abs=0.015)
    job = scopes["job"]
    assert (
        job["restart_fraction"] + job["rework_fraction"] > job["repair_fraction"] + job["stranded_fraction"]
    )


# ---- S10: MoE all-to-all on rail-only


@pytest.mark.parametrize(("chip", "longer"), [("nvidia-h100-sxm", 0.111), ("nvidia-a100-80gb-sxm", 0.083)])
def test_s10_an_all_to_all_without_a_spine_takes_longer_by_one_crossing(planner, chip, longer):
    """Published: 11.2 and 8.2 %."""
    told, changed = story("s10-moe-all-to-all"), {"hardware.chip": chip, "workload.kind": "none"}
    spine, rails = (planner.plan(changed, dict(one)).metrics for one in (told.baseline, told.variant))
    assert rails["fabric.all_to_all_slowdown_ratio"] == pytest.approx(longer, abs=5e-4)
    name = "fabric.collective.all_to_all_s"
    assert rails[name] / spine[name] - 1 == pytest.approx(longer, abs=5e-4)
    assert (spine["fabric.switch_count"], rails["fabric.switch_count"]) == (12, 4)


def test_s10_tokens_come_later_by_less_than_the_all_to_all(planner):
    told = story("s10-moe-all-to-all")
    spine, rails = (planner.result({}, dict(one)).metrics for one in (told.baseline, told.variant))
    for name in ("serving.ttft_s.mean", "serving.tpot_s.mean", "compute.prefill_step_s"):
        assert 0.03 < rails[name] / spine[name] - 1 < 0.06


# ---- S13: a host fails under load


@pytest.fixture(scope="module")
def s13(planner):
    told = story("s13-shock-test")
    plans = [planner.plan({}, dict(document)) for document in (told.baseline, told.variant)]
    return [shock_test(one, one.serving) for one in plans]


def test_s13_abilities_bring_the_goodput_back_sooner(s13):
    lost, recovery_s = (
        [found.metrics[f"reliability.shock.{name}"] for found in s13]
        for name in ("lost_goodput_fraction", "recovery_s")
    )
    assert lost == pytest.approx([0.178, 0.033], abs=0.01)
    assert recovery_s == pytest.approx([132, 34], abs=4)


def test_s13_re_routing_alone_overloads_who_is_left(s13):
    lost = {
        tuple(name for name in ("physical", "data", "task") if row[name]): row["lost_goodput_fraction"]
        for row in s13[1].tables["shock_abilities"]
    }
    assert lost["task",] > 2 * lost[()]
    assert lost["physical", "task"] < 0.3 * lost["physical",]
    assert lost["physical", "task"] - lost["physical", "data", "task"] < 0.02
