"""Circuits of a plan: whose jobs, which spare, and what is said where no optical switch stands."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.errors import InfeasibleError, InputError
from simcore.plan import Plan, plan
from simcore.scenario import Scenario

TIME = "reliability.reconfiguration_s"


def planned(reliability: dict[str, Any], **hardware: Any) -> Plan:
    document = {
        "name": "x",
        "hardware": {"chip": "tpu-v4", "chip_count": 4096, **hardware},
        "workload": {"kind": "none"},
        "reliability": reliability,
    }
    return plan(Scenario.parse(document))


def test_as_many_slices_as_fit_beside_a_spare_cube() -> None:
    found = planned({"slice_chips": 1024})
    assert [row["cubes"] for row in found.tables["circuit_jobs"]] == [[2, 2, 4]] * 3
    swap = found.tables["circuit_swap"][0]
    assert swap == {
        "failed_cube": 0,
        "spare_cube": 48,
        "moved_circuit_count": 96,
        "circuit_count": 48 * 48,
    }
    assert found.terms[TIME].value == pytest.approx(30.01)


def test_bring_up_is_an_input() -> None:
    assert planned({"bring_up_s": "2 min"}).terms[TIME].value == pytest.approx(120.01)


def test_jobs_of_other_shapes_and_twists() -> None:
    jobs = [{"shape": [4, 4, 8], "count": 2, "twisted": True}, {"chips": 512}]
    found = planned({"jobs": jobs})
    assert [row["cubes"] for row in found.tables["circuit_jobs"]] == [[1, 1, 2], [1, 1, 2], [2, 2, 2]]
    assert sum(row["job"] >= 0 for row in found.tables["circuits"]) == 12


def test_a_pod_without_a_free_cube_replaces_nothing() -> None:
    found = planned({"slice_chips": 4096})
    assert TIME not in found.terms
    assert "circuit_swap" not in found.tables
    assert len(found.tables["circuits"]) == 64


def test_too_many_jobs_are_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="use at most 64 cubes"):
        planned({"jobs": [{"chips": 4096, "count": 2}]})


@pytest.mark.parametrize("job", [{}, {"chips": 64, "shape": [4, 4, 4]}])
def test_a_job_has_one_size(job: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="give one of them"):
        planned({"jobs": [job]})


def test_servers_behind_switches_have_no_circuits() -> None:
    found = planned({"jobs": [{"chips": 64}]}, chip="nvidia-h100-sxm", chip_count=64)
    assert "circuits" not in found.tables
    assert "reliability.jobs" in {warning.path for warning in found.warnings}
