"""Flows of a plan: the bytes that steps are charged for, on the ranks that the placement names."""

import numpy as np
import pytest

from simcore.plan import plan
from simcore.plan.traffic import traffic_of
from simcore.scenario import Scenario
from simcore.training import communication

DENSE = {
    "name": "dense",
    "hardware": {"chip_count": 128},
    "model": {"name": "llama-3.1-8b"},
    "workload": {"kind": "training"},
    "training": {
        "parallelism": {"tp": 4, "pp": 2, "dp": 8, "cp": 2},
        "sequence_length": 4096,
        "global_batch_tokens": 4096 * 8 * 16,
    },
}
EXPERTS = {
    "name": "experts",
    "hardware": {"chip_count": 256},
    "model": {"name": "qwen3-30b-a3b"},
    "workload": {"kind": "training"},
    "training": {
        "parallelism": {"tp": 1, "pp": 4, "dp": 64, "ep": 32},
        "sequence_length": 4096,
        "global_batch_tokens": 4096 * 64 * 8,
    },
}
SERVING = {
    "name": "serving",
    "hardware": {"chip_count": 32},
    "model": {"name": "llama-3.1-70b"},
    "serving": {"parallelism": {"tp": 4, "pp": 2}},
    "workload": {"arrivals": {"kind": "poisson", "request_per_s": 4}},
}


def planned(document, **training):
    if training:
        document = {**document, "training": {**document["training"], **training}}
    return plan(Scenario.parse(document))


def moved(document, **training):
    traffic = traffic_of(planned(document, **training))
    sums = np.bincount(traffic.flows.group_of, traffic.flows.moved_bytes)
    return dict(zip((group.name for group in traffic.flows.groups), sums, strict=True))


def classes(document, **training):
    return {g.name: g.traffic_class for g in traffic_of(planned(document, **training)).flows.groups}


def charged(monkeypatch, document, **training):
    """Every collective that the step's times were asked for."""
    asked, real = [], communication.collective_s

    def noting(operation, payload, ranks, network):
        asked.append((operation, payload.value, ranks))
        return real(operation, payload, ranks, network)

    monkeypatch.setattr(communication, "collective_s", noting)
    planned(document, **training)
    return asked


def test_tensor_bytes_are_payload_times_bus_factor_times_groups_times_calls(monkeypatch):
    payload = next(
        each for op, each, ranks in charged(monkeypatch, DENSE) if (op, ranks) == ("reduce_scatter", 4)
    )
    assert payload == 2 * 4096 / 2 * 4096  # 16 bit, tokens of a context rank, hidden
    layers, passes, batches, groups = 32, 2, 16, 16
    calls = 2 * layers * passes * batches  # over both stages
    assert moved(DENSE)["sequence"] == pytest.approx(payload * 2 * 3 / 4 * 4 * groups * calls)


def test_without_sequence_parallelism_an_all_reduce_moves_the_same():
    assert moved(DENSE, sequence_parallel=False)["tensor"] == pytest.approx(moved(DENSE)["sequence"])


def test_context_bytes_are_gathers_of_keys_and_values(monkeypatch):
    payload = next(
        each for op, each, ranks in charged(monkeypatch, DENSE) if (op, ranks) == ("all_gather", 2)
    )
    assert payload == 4 * 4096 * 2 * 128  # two tensors of 16 bit, tokens, KV heads of a rank, head
    groups, layers_and_batches = 32, 32 * 16
    assert moved(DENSE)["context"] == pytest.approx(3 * payload / 2 * 2 * groups * layers_and_batches)


def test_stages_send_activations_on_and_gradients_back():
    payload = 2 * 2048 * 4096 / 4
    pairs, batches = 64, 16
    assert moved(DENSE)["pipeline"] == pytest.approx(2 * payload * pairs * batches)


def test_virtual_stages_send_as_often_as_there_are_boundaries():
    virtual = moved(DENSE, virtual_stages=4)["pipeline"]
    assert virtual == pytest.approx(moved(DENSE)["pipeline"] * (2 * 4 - 1))


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_data_bytes_are_those_of_the_zero_stage(monkeypatch, zero_stage):
    asked = [one for one in charged(monkeypatch, DENSE, zero_stage=zero_stage) if one[2] == 16]
    times = {0: (1,), 1: (1, 1), 2: (16, 1), 3: (16, 32)}[zero_stage]
    factors = {"all_reduce": 2 * 15 / 16, "reduce_scatter": 15 / 16, "all_gather": 15 / 16}
    slowest = sum(n * factors[op] * each for n, (op, each, _) in zip(times, asked, strict=True))
    found = planned(DENSE, zero_stage=zero_stage)
    flows = traffic_of(found).flows
    data = flows.group_of == [g.name for g in flows.groups].index("data")
    own = data & (flows.source // 64 == int(found.training.step.slowest.stage.is_last))
    assert flows.moved_bytes[own].sum() == pytest.approx(slowest * 64)


def test_experts_get_their_rows_once_per_rank_and_once_per_domain():
    flows = traffic_of(planned(EXPERTS)).flows
    expert = flows.group_of == [g.name for g in flows.groups].index("expert")
    source, target = flows.source[expert], flows.target[expert]
    assert (source // 32 == target // 32).all()  # inside its group
    away = source // 8 != target // 8
    assert (source[away] % 8 == target[away] % 8).all()
    token_bytes, calls = 2 * 4096 * 2048, 2 * 48 * 2 * 8
    ranks_reached, domains_reached = 32 * (1 - (31 / 32) ** 8), 4 * (1 - (3 / 4) ** 8)
    assert flows.moved_bytes[expert][~away].sum() == pytest.approx(
        64 * calls * token_bytes * ranks_reached * 7 / 8
    )
    assert flows.moved_bytes[expert][away].sum() == pytest.approx(
        64 * calls * token_bytes * domains_reached * 3 / 4
    )


def test_a_plain_dispatcher_sends_every_row_to_its_expert():
    routed = 2 * 4096 * 2048 * 8
    assert moved(EXPERTS, dispatcher="all_to_all")["expert"] == pytest.approx(
        64 * 2 * 48 * 2 * 8 * routed * 31 / 32
    )


def test_gradients_of_experts_go_over_their_own_groups():
    assert {"data", "expert_data"} <= moved(EXPERTS).keys()


def test_what_hides_is_no_longer_on_the_critical_path():
    found = classes(DENSE)
    assert found["sequence"] == found["context"] == found["pipeline"] == "core"
    assert found["data"] == "inter_domain"
    assert found["checkpoint"] == found["monitoring"] == "management"
    assert classes(DENSE, overlap={"dp": False})["data"] == "core"


def test_serving_reduces_every_token_in_every_block():
    asked = planned(SERVING).serving.inputs.requests
    tokens = float(asked.input_tokens.mean() + asked.output_tokens.mean())
    offered = planned(SERVING).serving.pool.operating_point.offered_request_per_s
    payload = 2 * 8192 * tokens * offered
    assert moved(SERVING)["tensor"] == pytest.approx(payload * 2 * 80 * 2 * 3 / 4 * 4)
    assert moved(SERVING)["pipeline"] == pytest.approx(payload)


def test_kv_goes_from_prefill_to_decode():
    document = {
        **SERVING,
        "serving": {
            "parallelism": {"tp": 4},
            "scheduler": {
                "kind": "disaggregated", "prefill": {"replica_count": 3}, "decode": {"replica_count": 5}
            },
        },
    }  # fmt: skip
    found = planned(document)
    flows = traffic_of(found).flows
    kv = flows.group_of == [g.name for g in flows.groups].index("kv")
    assert set(flows.source[kv]) == set(range(12))
    assert set(flows.target[kv]) == set(range(12, 32))
    requests = found.serving.inputs.requests
    per_s = found.serving.sides[0][1].operating_point.offered_request_per_s
    expected = float(requests.input_tokens.mean()) * per_s * found.terms["model.kv_bytes_per_token"].value
    assert flows.moved_bytes[kv].sum() == pytest.approx(expected, rel=0.01)


def test_what_runs_nothing_sends_nothing():
    assert traffic_of(plan(Scenario.parse({"name": "bare", "workload": {"kind": "none"}}))) is None


def test_one_chip_sends_nothing():
    assert traffic_of(plan(Scenario.parse({"name": "one", "hardware": {"chip_count": 1}}))) is None
