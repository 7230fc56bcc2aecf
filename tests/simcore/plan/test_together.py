"""Unlike replicas side by side: equal pools are one larger pool, capacity adds up, and a blind router is warned of."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.analysis.bottleneck import double
from simcore.errors import InputError
from simcore.plan import Plan, ServingPlan, plan
from simcore.report.engine_command import vllm_command
from simcore.scenario import Scenario
from simcore.simulate import Result, simulate

MORE = {"name": "more", "chip": "nvidia-h100-sxm", "chip_count": 8}
BIG = {"name": "big", "chip": "nvidia-h200-sxm", "chip_count": 8}
OLD = {"name": "old", "chip": "nvidia-a100-80gb-sxm", "chip_count": 8}


def planned(
    *pools: dict[str, Any],
    chip: str = "nvidia-h100-sxm",
    chip_count: int = 8,
    request_per_s: float = 10.0,
    router: str = "least_outstanding",
    **serving: Any,
) -> Plan:
    return plan(
        Scenario.parse(
            {
                "name": "together",
                "hardware": {"chip": chip, "chip_count": chip_count, "pools": list(pools)},
                "model": {"name": "llama-3.1-70b"},
                "workload": {
                    "arrivals": {"kind": "poisson", "request_per_s": request_per_s},
                    "lengths": {
                        "kind": "lognormal",
                        "input_mean_tokens": 2000,
                        "input_cv": 1.0,
                        "output_mean_tokens": 200,
                        "output_cv": 1.0,
                    },
                    "request_count": 1500,
                },
                "serving": {"parallelism": {"tp": 4}, "router": {"kind": router}} | serving,
            }
        )
    )


def served(found: Plan) -> ServingPlan:
    assert found.serving is not None
    return found.serving


def capacity(found: Plan) -> float:
    return found.terms["serving.capacity_request_per_s"].value


def numbers(found: Result) -> dict[str, float]:
    return {name: value for name, value in found.metrics.items() if not isinstance(value, str)}


@pytest.mark.parametrize("router", ["least_outstanding", "round_robin"])
def test_a_pool_equal_to_the_main_one_is_one_larger_pool(router: str) -> None:
    two, one = planned(MORE, router=router), planned(chip_count=16, router=router)
    assert {name: term.value for name, term in two.terms.items()} == pytest.approx(
        {name: term.value for name, term in one.terms.items()}, rel=1e-9
    )
    assert numbers(simulate(two)) == pytest.approx(numbers(simulate(one)), rel=1e-9)


def test_capacity_is_the_sum_of_what_the_pools_carry_alone() -> None:
    alone = capacity(planned()), capacity(planned(chip=BIG["chip"]))
    assert capacity(planned(BIG)) == pytest.approx(sum(alone), rel=1e-12)


def test_the_faster_replicas_get_more_requests_where_the_router_looks_at_the_lines() -> None:
    found = served(planned(OLD))
    (new, _), (old, _) = found.sides
    assert new.request_fraction > 0.6
    assert new.request_fraction + old.request_fraction == pytest.approx(1.0)
    blind = served(planned(OLD, router="round_robin"))
    assert [inputs.request_fraction for inputs, _ in blind.sides] == [0.5, 0.5]


def test_the_simulation_meets_the_estimate_of_unlike_replicas_at_half_load() -> None:
    half = 0.5 * capacity(planned(BIG))
    found = simulate(planned(BIG, request_per_s=half)).metrics
    assert found["serving.ttft_s.mean"] == pytest.approx(found["serving.estimate.ttft_s"], rel=0.35)
    assert found["serving.tpot_s.mean"] == pytest.approx(found["serving.estimate.tpot_s"], rel=0.1)


def test_a_blind_router_is_said_to_fill_the_slow_replicas_first_and_does() -> None:
    some = 0.9 * capacity(planned(OLD))
    blind, looking = (
        planned(OLD, request_per_s=some, router=router) for router in ("round_robin", "least_outstanding")
    )
    codes = [{one.code for one in each.warnings} for each in (blind, looking)]
    assert ["router.unlike_replicas" in each for each in codes] == [True, False]
    slow, fast = (simulate(each).metrics["serving.ttft_s.p99"] for each in (blind, looking))
    assert slow > 2 * fast


def test_equal_replicas_of_two_pools_are_no_reason_for_a_warning() -> None:
    assert "router.unlike_replicas" not in {one.code for one in planned(MORE, router="round_robin").warnings}


def test_each_pool_is_cut_as_it_fits() -> None:
    cards = {"name": "cards", "chip": "nvidia-l40s", "chip_count": 8}
    found = served(planned(cards, weights_dtype="fp8", parallelism={"tp": "auto"}))
    assert [pool.parallelism.tp_ranks for pool in found.pools] == [1, 2]
    assert found.idle_chip_count == 0


def test_a_replica_count_is_that_of_the_main_chips() -> None:
    found = planned(BIG, replica_count=1)
    assert [pool.replica_count for pool in served(found).pools] == [1, 2]
    assert served(found).idle_chip_count == 4
    assert "4 of 16 chips are idle: 3 replicas on 2 pools use the rest" in [
        one.text for one in found.warnings
    ]


def test_unlike_replicas_hold_kv_in_pages() -> None:
    with pytest.raises(InputError, match="use paged") as caught:
        planned(BIG, kv={"allocator": "contiguous_max"})
    assert caught.value.message.path == "serving.kv.allocator"


def test_a_doubling_is_of_every_pool() -> None:
    """What all carry with twice the bandwidth is what each of them does."""
    both, *alone = planned(BIG), planned(), planned(chip=BIG["chip"])

    def doubled(found: Plan) -> float:
        return capacity(found) * double(served(found), "hbm_bandwidth").gain_ratio

    assert doubled(both) > 1.05 * capacity(both)
    assert doubled(both) == pytest.approx(sum(map(doubled, alone)), rel=1e-9)


def test_every_pool_has_a_command() -> None:
    text = vllm_command(planned(BIG))
    assert text.count("vllm serve") == 2
    assert "# on NVIDIA H200 SXM of pool big" in text
