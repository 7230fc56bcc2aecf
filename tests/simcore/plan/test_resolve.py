"""What `auto` becomes: tensor parallelism, sizes by card, server and wiring, replicas and idle chips."""

import pytest

from simcore.errors import InfeasibleError, InputError
from simcore.plan import plan
from simcore.scenario import Scenario


def planned(**sections):
    return plan(Scenario.parse({"name": "x", "workload": {"request_count": 20}, **sections}))


@pytest.mark.parametrize(
    ("model", "chip", "tp"),
    [
        ("llama-3.1-8b", "nvidia-h100-sxm", 1),
        ("llama-3.1-70b", "nvidia-h100-sxm", 2),
        ("llama-3.1-70b", "nvidia-b200-sxm", 1),
        ("qwen3-32b", "nvidia-h100-sxm", 1),
        ("llama-3.1-70b", "nvidia-a100-80gb-sxm", 2),
    ],
)
def test_tensor_parallelism_is_the_smallest_power_of_two_that_fits(model, chip, tp):
    hardware, choice = {"chip": chip, "chip_count": 8}, {"name": model}
    assert planned(hardware=hardware, model=choice).resolved["serving.parallelism.tp"] == tp
    if tp > 1:
        with pytest.raises(InfeasibleError):
            planned(hardware=hardware, model=choice, serving={"parallelism": {"tp": tp // 2}})


def test_a_long_model_length_needs_more_chips():
    short, long = (
        planned(model={"name": "llama-3.1-70b"}, serving={"max_model_len": length})
        for length in (4096, 131_072)
    )
    assert short.resolved["serving.parallelism.tp"] < long.resolved["serving.parallelism.tp"]


@pytest.mark.parametrize(
    ("chip", "seats", "budget"),
    [
        ("nvidia-h100-sxm", 1024, 8192),
        ("nvidia-a100-80gb-sxm", 1024, 8192),
        ("nvidia-b200-sxm", 1024, 8192),
        ("nvidia-l40s", 256, 2048),
        ("nvidia-rtx-4090", 256, 2048),
    ],
)
def test_seats_and_token_budget_follow_the_size_of_the_card(chip, seats, budget):
    resolved = planned(hardware={"chip": chip, "chip_count": 8}).resolved
    assert resolved["serving.scheduler.max_num_seqs"] == seats
    assert resolved["serving.scheduler.max_num_batched_tokens"] == budget


@pytest.mark.parametrize(
    ("chip", "server", "kind"),
    [
        ("nvidia-h100-sxm", "dgx-h100", "rail_optimized"),
        ("nvidia-gb200", "gb200-nvl72", "rail_optimized"),
        ("nvidia-rtx-pro-6000", "rtx-pro-6000-pcie", "clos"),
        ("tpu-v4", "tpu-v4-pod", "ocs_pod"),
    ],
)
def test_server_and_wiring_come_from_the_chips_file(chip, server, kind):
    resolved = planned(hardware={"chip": chip, "chip_count": 128}, workload={"kind": "none"}).resolved
    assert resolved["hardware.server"] == server
    assert resolved["topology.kind"] == kind


def test_the_scale_up_domain_is_the_servers_unless_it_is_set():
    topology = {"kind": "rail_optimized", "radix": 128}
    hardware, none = {"chip_count": 256}, {"kind": "none"}
    assert planned(hardware=hardware, topology=topology, workload=none).fabric.hb_domain_size == 8
    wide = planned(hardware=hardware, topology=topology | {"hb_domain_size": 64}, workload=none)
    assert wide.fabric.hb_domain_size == 64


def test_auto_leaves_no_auto_behind():
    assert "auto" not in planned(hardware={"chip_count": 64}).resolved.values()


def test_replicas_take_all_chips_and_what_is_left_is_named():
    found = planned(hardware={"chip_count": 7}, serving={"parallelism": {"tp": 2}})
    assert found.serving.pool.replica_count == 3
    assert found.serving.idle_chip_count == 1
    (warning,) = [one for one in found.warnings if one.code == "chips.idle"]
    assert "1 of 7 chips are idle" in warning.text


def test_no_chip_is_idle_where_replicas_divide():
    found = planned(hardware={"chip_count": 8}, serving={"parallelism": {"tp": 2}})
    assert found.serving.idle_chip_count == 0
    assert "chips.idle" not in {one.code for one in found.warnings}


def test_fewer_replicas_leave_chips_idle_and_more_are_refused():
    assert planned(serving={"replica_count": 3}).serving.idle_chip_count == 5
    with pytest.raises(InputError, match="use at most 8"):
        planned(serving={"replica_count": 9})


def test_a_tensor_group_beyond_the_scale_up_domain_is_warned_of():
    found = planned(
        hardware={"chip_count": 16}, model={"name": "llama-3.1-70b"}, serving={"parallelism": {"tp": 16}}
    )
    assert "tp.crosses_domain" in {one.code for one in found.warnings}
    assert found.serving.pool.collective_tier == "scaleout"


def test_requests_longer_than_the_model_are_cut_and_counted():
    found = plan(
        Scenario.parse(
            {
                "name": "x",
                "workload": {
                    "lengths": {"kind": "constant", "input_tokens": 5000, "output_tokens": 100},
                    "request_count": 10,
                },
                "serving": {"max_model_len": 4096},
            }
        )
    )
    assert found.serving.inputs.requests.clipped_count == 10
    assert (
        found.serving.inputs.requests.input_tokens + found.serving.inputs.requests.output_tokens
    ).max() <= 4096
    assert "requests.clipped" in {one.code for one in found.warnings}


def test_a_chip_without_measured_kernels_says_so():
    codes = {one.code for one in planned(hardware={"chip": "tpu-v4", "chip_count": 64}).warnings}
    assert "calibration.class_default" in codes
    assert "calibration.class_default" not in {one.code for one in planned().warnings}


def test_without_a_workload_there_is_wiring_and_money_and_no_serving():
    found = planned(hardware={"chip_count": 1024}, workload={"kind": "none"})
    assert found.serving is None
    heads = {metric.partition(".")[0] for metric in found.metrics}
    assert heads == {"fabric", "reliability", "cost", "analysis"}
    assert {name for name in found.metrics if name.startswith("analysis.")} == {"analysis.fault_visibility"}


def test_a_length_beyond_the_models_own_is_a_warning_at_its_field():
    serving = {"max_model_len": 200_000, "parallelism": {"tp": 8}}
    found = [m for m in planned(serving=serving).warnings if m.code == "length.beyond_model"]
    assert [m.path for m in found] == ["serving.max_model_len"]
    assert "131,072 positions" in found[0].text
    serving["max_model_len"] = 131_072
    assert not [m for m in planned(serving=serving).warnings if m.code == "length.beyond_model"]
