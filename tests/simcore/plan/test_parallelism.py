"""How a scenario's parallelism is resolved, refused, or explained."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.errors import InfeasibleError, InputError
from simcore.plan import Plan, plan
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import simulate


def planned(overrides: dict[str, Any]) -> Plan:
    document, _ = apply_overrides({"name": "test", "workload": {"request_count": 50}}, overrides)
    return plan(Scenario.parse(document))


def test_an_open_tp_stays_inside_a_server_where_the_model_fits_there() -> None:
    resolved = planned({"hardware.chip_count": 64, "model.name": "llama-3.1-70b"}).resolved
    assert resolved["serving.parallelism.tp"] == 2


def test_an_open_tp_crosses_servers_where_nothing_less_fits_and_says_so() -> None:
    across = planned({"hardware.chip_count": 16, "model.name": "deepseek-v3"})
    assert across.resolved["serving.parallelism.tp"] == 16
    assert "tp.crosses_domain" in {warning.code for warning in across.warnings}


def test_waiting_for_collectives_across_servers_is_waiting_for_scale_out() -> None:
    inside = simulate(planned({"model.name": "llama-3.1-70b", "serving.parallelism.tp": 8}))
    across = simulate(
        planned({"hardware.chip_count": 16, "model.name": "llama-3.1-70b", "serving.parallelism.tp": 16})
    )
    waits = [
        {row["resource"] for row in result.tables["where_time_goes"]} & {"scaleup", "scaleout"}
        for result in (inside, across)
    ]
    assert waits == [{"scaleup"}, {"scaleout"}]


def test_what_does_not_fit_one_server_names_a_replica_that_would() -> None:
    with pytest.raises(InfeasibleError, match=r"serving.parallelism.tp: 16, 16 chips a replica, leaves room"):
        planned({"hardware.chip_count": 8, "model.name": "deepseek-v3"})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"serving.parallelism.pp": 33, "hardware.chip_count": 64}, "got 33 stages for 32 layers"),
        ({"serving.parallelism.ep": 2}, "got 2, and Llama 3.1-8B has no experts to share out; use 1"),
        ({"serving.parallelism.ep": 7, "model.name": "mixtral-8x7b"}, "got 7; it must divide the 8 experts"),
        ({"serving.parallelism.cp": 2}, "context parallel serving is not modelled; remove cp"),
        ({"serving.parallelism.tp": 3}, "got 3, which does not divide the 32 attention heads"),
    ],
)
def test_impossible_degrees_are_refused_with_a_next_step(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        planned(overrides)


def test_more_stages_than_chips_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="16 chips and 8 are owned"):
        planned({"serving.parallelism.pp": 16, "hardware.chip_count": 8})
