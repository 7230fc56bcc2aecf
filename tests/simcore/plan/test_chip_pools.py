"""Prefill and decode on pools of chips of their own: who is where, what the link carries, what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.errors import InfeasibleError, InputError, TrimtabError
from simcore.plan import Plan, plan
from simcore.report.engine_command import vllm_command
from simcore.scenario import Scenario
from simcore.simulate import simulate

BIG = {"name": "big", "chip": "nvidia-h200-sxm", "chip_count": 8}
MORE = {"name": "more", "chip": "nvidia-h100-sxm", "chip_count": 8}


def planned(*pools: dict[str, Any], chip_count: int = 8, **scheduler: Any) -> Plan:
    return plan(
        Scenario.parse(
            {
                "name": "pools",
                "hardware": {"chip": "nvidia-h100-sxm", "chip_count": chip_count, "pools": list(pools)},
                "model": {"name": "llama-3.1-70b"},
                "workload": {
                    "arrivals": {"kind": "poisson", "request_per_s": 6.0},
                    "lengths": {
                        "kind": "lognormal",
                        "input_mean_tokens": 3000,
                        "input_cv": 1.0,
                        "output_mean_tokens": 300,
                        "output_cv": 1.0,
                    },
                    "request_count": 500,
                },
                "serving": {
                    "weights_dtype": "fp8",
                    "parallelism": {"tp": 4},
                    "scheduler": {"kind": "disaggregated"} | scheduler,
                },
            }
        )
    )


def failure(*pools: dict[str, Any], **scheduler: Any) -> TrimtabError:
    with pytest.raises((InputError, InfeasibleError)) as caught:
        planned(*pools, **scheduler)
    return caught.value


def test_roles_on_two_pools_of_one_chip_are_as_on_one_pool_of_both() -> None:
    apart = planned(MORE, decode={"pool": "more"})
    one = planned(chip_count=16, prefill={"replica_count": 2}, decode={"replica_count": 2})
    assert {name: term.value for name, term in apart.terms.items()} == {
        name: term.value for name, term in one.terms.items()
    }
    assert simulate(apart).metrics == simulate(one).metrics


def test_both_roles_on_one_further_pool_share_it_as_they_would_share_the_main_one() -> None:
    there = planned(BIG, prefill={"pool": "big"}, decode={"pool": "big"})
    assert there.serving is not None
    assert [pool.chip.slug for pool in there.serving.pools] == ["nvidia-h200-sxm"] * 2
    assert there.serving.chip_count == there.serving.idle_chip_count == 8
    assert [one.path for one in there.warnings if one.code == "input.no_effect"] == ["hardware.chip_count"]


def test_decode_on_chips_with_more_memory_holds_more_kv_and_prefill_stays_as_it_is() -> None:
    plain, apart = planned(MORE, decode={"pool": "more"}), planned(BIG, decode={"pool": "big"})
    before, after = plain.serving, apart.serving
    assert before is not None
    assert after is not None
    assert [pool.chip.slug for pool in after.pools] == ["nvidia-h100-sxm", "nvidia-h200-sxm"]
    assert apart.terms["compute.prefill_step_s"].value == plain.terms["compute.prefill_step_s"].value
    assert after.pool.kv.token_capacity.value > 1.8 * before.pool.kv.token_capacity.value
    assert apart.terms["compute.decode_step_s"].value < plain.terms["compute.decode_step_s"].value
    assert simulate(apart).metrics["serving.tpot_s.mean"] < simulate(plain).metrics["serving.tpot_s.mean"]


def test_each_end_of_the_link_has_its_own_nics_and_the_slower_one_binds() -> None:
    """An L40S server has fewer NICs than chips, a DGX H100 one 400 Gb/s NIC a chip."""
    slow = {"name": "cards", "chip": "nvidia-l40s", "chip_count": 8}
    found = planned(slow, decode={"pool": "cards"})
    assert found.serving is not None
    assert found.serving.prefill is not None
    (sender, _), (taker, _) = found.serving.sides
    link = found.serving.prefill.link.link

    def share(server: Any) -> float:
        return float(
            server.nic_bytes_per_s * min(server.nic_count, server.chips_per_server) / server.chips_per_server
        )

    assert share(taker.server) < share(sender.server)
    each = 327_680 / 4
    assert link.prefill_s_per_token == pytest.approx(each / share(sender.server), rel=0.01)
    assert link.decode_s_per_token == pytest.approx(each / share(taker.server), rel=0.01)
    tokens = sender.requests.input_tokens.mean()
    assert found.terms["serving.kv_transfer_alone_s"].value == pytest.approx(
        tokens * link.decode_s_per_token + link.latency_s
    )


def test_chips_of_every_pool_are_paid_for_and_draw_their_own_power() -> None:
    alone, both = planned(chip_count=16), planned(BIG, decode={"pool": "big"})
    rows = {row["item"]: row for row in both.tables["bill"]}
    assert rows["chip:nvidia-h100-sxm"]["count"] == rows["chip:nvidia-h200-sxm"]["count"] == 8
    assert rows["server:dgx-h100"]["count"] == rows["server:dgx-h200"]["count"] == 1
    difference = sum(row["total_usd"] for row in both.tables["bill"]) - sum(
        row["total_usd"] for row in alone.tables["bill"]
    )
    unit = rows["chip:nvidia-h200-sxm"]["unit_usd"] - rows["chip:nvidia-h100-sxm"]["unit_usd"]
    servers = rows["server:dgx-h200"]["unit_usd"] - rows["server:dgx-h100"]["unit_usd"]
    assert difference == pytest.approx(8 * unit + servers)
    assert both.fabric.chip_count == 16


def test_servers_of_another_kind_are_wired_as_the_main_ones_and_that_is_said() -> None:
    assert "pools.one_fabric" in {one.code for one in planned(BIG, decode={"pool": "big"}).warnings}
    assert "pools.one_fabric" not in {one.code for one in planned(MORE, decode={"pool": "more"}).warnings}


def test_a_pool_that_is_not_there_is_named_with_those_that_are() -> None:
    message = failure(BIG, decode={"pool": "bog"}).message
    assert message.path == "serving.scheduler.decode.pool"
    assert "'bog'" in message.text
    assert "main, big" in message.text


@pytest.mark.parametrize(
    ("chip_count", "count"), [(2, "auto"), (8, 3)], ids=["not one replica", "fewer than asked for"]
)
def test_a_pool_with_too_few_chips_is_named(chip_count: int, count: int | str) -> None:
    error = failure(BIG | {"chip_count": chip_count}, decode={"pool": "big", "replica_count": count})
    assert isinstance(error, InfeasibleError)
    assert error.message.path == "hardware.pools.0.chip_count"


def test_what_does_not_fit_on_a_pool_is_said_of_that_pool() -> None:
    small = {"name": "cards", "chip": "nvidia-rtx-4090", "chip_count": 8}
    error = failure(small, decode={"pool": "cards", "parallelism": {"tp": 2}})
    assert error.message.path == "hardware.pools.0"


def test_no_scaleup_link_joins_two_pools() -> None:
    message = failure(MORE, decode={"pool": "more"}, kv_link="scaleup").message
    assert message.path == "serving.scheduler.kv_link"
    assert "scaleout" in message.text


def test_a_pool_that_no_role_is_on_is_named() -> None:
    paths = [one.path for one in planned(BIG, MORE, decode={"pool": "more"}).warnings]
    assert "hardware.pools.0" in paths
    assert "hardware.pools.1" not in paths


@pytest.mark.parametrize("pools", [[BIG, BIG], [BIG | {"name": "main"}]], ids=["twice", "main"])
def test_a_name_stands_for_one_pool(pools: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="another pool has") as caught:
        planned(*pools)
    assert caught.value.message.path == f"hardware.pools.{len(pools) - 1}.name"


@pytest.mark.parametrize(
    ("changed", "path"),
    [({"chip": "nvidia-h20"}, "hardware.pools.0.chip"), ({"server": "dgx"}, "hardware.pools.0.server")],
)
def test_what_the_catalog_lacks_is_refused_where_it_stands(changed: dict[str, str], path: str) -> None:
    assert failure(BIG | changed).message.path == path


def test_a_training_step_has_no_pools() -> None:
    with pytest.raises(InputError, match="equal chips"):
        Scenario.parse({"name": "x", "workload": {"kind": "training"}, "hardware": {"pools": [BIG]}})


def test_the_command_says_which_line_is_for_which_chips() -> None:
    text = vllm_command(planned(BIG, decode={"pool": "big"}))
    assert "# prefill on NVIDIA H100 SXM of pool main" in text
    assert "# decode on NVIDIA H200 SXM of pool big" in text


def test_a_pool_that_is_written_out_as_main_changes_no_digest() -> None:
    assert planned(chip_count=16, decode={"pool": "main"}).digest == planned(chip_count=16).digest
    assert planned(BIG, decode={"pool": "big"}).digest != planned(BIG).digest
