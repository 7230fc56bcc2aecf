"""Questions about money, answered by the whole program: N072, N073, N076, N080, N085, N091 (N083: `physical`)."""

from typing import Any

import pytest

from simcore.analysis.money import money
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import Result, simulate


def served(**sections: Any) -> tuple[Result, dict[str, Any]]:
    document = {
        "name": "question",
        "hardware": {"chip_count": 8},
        "model": {"name": "llama-3.3-70b"},
        "workload": {"arrivals": {"kind": "poisson", "request_per_s": 3}, "request_count": 300},
        **sections,
    }
    planned = plan(Scenario.parse(document))
    result = simulate(planned)
    return result, dict(money(planned, result).tables)


def test_n072_break_even_is_between_nothing_and_all_of_the_time() -> None:
    """ "Self-host or API? infra TCO?": owning 8 H100s pays above 41 % use against 2.80 USD an hour."""
    result, tables = served()
    assert result.metrics["cost.cloud_break_even_fraction"] == pytest.approx(0.41, abs=0.02)
    lines = {row["label"] for row in tables["tco"]}
    assert {"chips", "servers", "nics", "energy", "floor"} <= lines


def test_n073_a_mix_of_tokens_has_one_price() -> None:
    """1,024 in and 256 out at 0.13 and 0.38 USD: between both, nearer to the input's; own tokens stand beside it."""
    lengths = {"kind": "constant", "input_tokens": 1024, "output_tokens": 256}
    workload = {"arrivals": {"kind": "poisson", "request_per_s": 3}, "lengths": lengths, "request_count": 200}
    result, tables = served(workload=workload)
    assert result.metrics["cost.api_usd_per_million_tokens"] == pytest.approx(0.8 * 0.13 + 0.2 * 0.38)
    assert tables["break_even"][-1]["api_usd"] == pytest.approx(
        result.metrics["cost.api_usd_per_million_tokens"]
    )


def test_n076_the_cap_on_cost_leaves_room_for_many_replicas_of_two_h100() -> None:
    """200 users, 500 in and 200 out, below 1.50 USD per million tokens and 4 s at p95: eight replicas of two H100s in
    FP8 cost 0.20 USD, and when all users come at once p95 is 5.1 s (20.6 s with one replica, at 0.12 USD)."""
    result, _tables = served(
        hardware={"chip_count": 16},
        serving={"weights_dtype": "fp8", "parallelism": {"tp": 2}},
        workload={
            "arrivals": {"kind": "closed_loop", "concurrency": 200},
            "lengths": {"kind": "constant", "input_tokens": 500, "output_tokens": 200},
            "request_count": 1000,
        },
    )
    assert result.metrics["cost.usd_per_million_tokens"] == pytest.approx(0.2, rel=0.1)
    assert result.metrics["serving.e2e_s.p95"] == pytest.approx(5.1, rel=0.1)


def test_n080_a_private_deployment_that_stands_idle_costs_most_of_what_a_busy_one_does() -> None:
    """The trap of private deployments: idle gear is written off as busy gear is; a tenth of the load pays 7.6 times
    for a token."""
    busy, _ = served()
    idle, _ = served(workload={"arrivals": {"kind": "poisson", "request_per_s": 0.3}, "request_count": 300})
    year, tokens = "cost.tco_usd_per_year", "cost.usd_per_million_output_tokens"
    assert idle.metrics[year] > 0.9 * busy.metrics[year]
    assert idle.metrics[tokens] > 7 * busy.metrics[tokens]


def test_n085_utilisation_drives_the_price_of_a_token_before_life_price_power_and_pue() -> None:
    """ "Which input drives $/effective FLOP?": price, power, PUE, life, utilization."""
    _result, tables = served()
    order = [row["path"].removeprefix("economics.") for row in tables["cost_swings"]]
    assert order[0] == "utilisation_fraction"
    assert (
        order.index("depreciation_years")
        < order.index("price_ratio")
        < order.index("electricity_usd_per_kwh")
    )
    assert order[-1] == "pue"


def test_n091_a_dearer_fabric_has_to_bring_what_it_costs() -> None:
    """ "InfiniBand +15 % at 2.3 times the cost", 10k GPUs: the network is so small a part that 2.3 times its price adds
    about as much to a year as 15 % more work is worth."""

    def year(ratio: float) -> float:
        document = {
            "name": "question",
            "hardware": {"chip_count": 10_240},
            "topology": {"kind": "rail_optimized", "radix": 64},
            "workload": {"kind": "none"},
            "economics": {"network_price_ratio": ratio},
        }
        return plan(Scenario.parse(document)).terms["cost.tco_usd_per_year"].value

    assert year(2.3) / year(1.0) == pytest.approx(1.16, abs=0.06)
