"""A plan's traffic on its fabric: loads against closed forms, tables that add up, and what cannot flow."""

import pytest

from simcore.plan import plan
from simcore.plan.fabric_load import fabric_load
from simcore.plan.traffic import traffic_of
from simcore.scenario import Scenario
from simcore.simulate import simulate

TRAINING = {
    "name": "training",
    "hardware": {"chip_count": 256},
    "topology": {"kind": "rail_optimized", "radix": 32},
    "model": {"name": "llama-3.1-8b"},
    "workload": {"kind": "training"},
    "training": {
        "parallelism": {"tp": 8, "pp": 2, "dp": 16},
        "sequence_length": 4096,
        "global_batch_tokens": 4096 * 16 * 8,
    },
}


def planned(document=TRAINING, **topology):
    return plan(Scenario.parse({**document, "topology": {**document.get("topology", {}), **topology}}))


def row(load, group):
    return next(one for one in load.tables["traffic_groups"] if one["group"] == group)


def test_the_busiest_link_is_the_scale_up_port_that_tensor_rings_fill():
    found = planned()
    load = fabric_load(found)
    tensor, step_s = row(load, "sequence"), found.training.step.step_s.value
    of_port = tensor["bytes"] / 256 / found.chip.scaleup_bytes_per_s
    assert load.terms["fabric.max_link_load_fraction"].value == pytest.approx(of_port / step_s, rel=0.01)
    assert tensor["completion_s"] == pytest.approx(of_port, rel=0.01)


def test_groups_add_up_to_all_traffic():
    found = planned()
    rows = fabric_load(found).tables["traffic_groups"]
    assert sum(one["bytes"] for one in rows) == pytest.approx(traffic_of(found).flows.total_bytes)
    assert sum(one["share_fraction"] for one in rows) == pytest.approx(1.0)
    assert all(0 <= one["domain_fraction"] + one["rail_fraction"] <= 1.0000001 for one in rows)


def test_placement_keeps_tensor_traffic_in_servers_and_data_traffic_on_rails():
    load = fabric_load(planned())
    assert row(load, "sequence")["domain_fraction"] == 1
    assert row(load, "data")["rail_fraction"] == 1
    assert row(load, "data")["leaf_fraction"] == 1  # 16 servers of a stage hang on one leaf of each rail


def test_the_coarse_matrices_hold_every_byte():
    found = planned()
    for view in fabric_load(found).tables["traffic_matrix"]:
        assert sum(view["bytes"]) == pytest.approx(traffic_of(found).flows.total_bytes, rel=1e-3)


def test_an_oversubscribed_fabric_is_busier_and_later():
    few = {**TRAINING, "training": {**TRAINING["training"], "parallelism": {"tp": 1, "pp": 2, "dp": 128}}}
    few["training"]["global_batch_tokens"] = 4096 * 128 * 2
    even = fabric_load(planned(few, kind="clos")).terms
    tapered = fabric_load(planned(few, kind="clos", oversubscription_ratio=4)).terms
    for name in ("fabric.max_link_load_fraction", "fabric.completion_s"):
        assert tapered[name].value > even[name].value


def test_flows_between_islands_are_reported():
    load = fabric_load(planned(kind="rail_only", tiers=1, radix=16))
    (said,) = [one for one in load.warnings if one.code == "fabric.unreachable_flows"]
    assert said.params["count"] > 0


def test_a_link_that_is_said_to_be_faster_than_the_fabric_is_found_out():
    document = {
        "name": "kv",
        "hardware": {"chip_count": 128},
        "topology": {"kind": "clos", "radix": 64, "oversubscription_ratio": 32},
        "model": {"name": "llama-2-7b"},
        "workload": {
            "arrivals": {"kind": "poisson", "request_per_s": 2000},
            "lengths": {"kind": "constant", "input_tokens": 2000, "output_tokens": 16},
        },
        "serving": {
            "parallelism": {"tp": 1},
            "scheduler": {
                "kind": "disaggregated",
                "kv_link_bytes_per_s": "50 GB/s",
                "prefill": {"replica_count": 64},
                "decode": {"replica_count": 64},
            },
        },
    }
    load = fabric_load(plan(Scenario.parse(document)))
    assert [one.code for one in load.warnings] == ["fabric.overloaded"]
    assert load.terms["fabric.completion_s"].value > 1


def test_the_stage_comes_after_the_closed_forms_and_lands_in_the_result():
    stages = []
    result = simulate(planned(), lambda kind, payload: stages.append(payload.get("stage")))
    assert stages[:3] == ["closed_forms", "fabric", "training"]
    assert {"traffic_groups", "traffic_matrix", "link_loads", "hottest_links"} <= result.tables.keys()
    assert result.metrics["fabric.completion_s"] == result.why["fabric.completion_s"].value


def test_one_chip_has_no_traffic_and_no_stage():
    stages = []
    one = plan(Scenario.parse({"name": "one", "hardware": {"chip_count": 1}}))
    simulate(one, lambda kind, payload: stages.append(payload.get("stage")))
    assert "fabric" not in stages


def test_a_network_that_is_only_counted_has_no_loads():
    """No graph of a Slim Fly of q = 12 is known."""
    found = planned({**TRAINING, "topology": {"kind": "slim_fly", "q": 12, "radix": 32}})
    assert fabric_load(found) is None
    assert "fabric.no_such_graph" in {warning.code for warning in found.warnings}
