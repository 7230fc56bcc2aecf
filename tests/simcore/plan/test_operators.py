"""One iteration taken apart: the rows are the step, and the bytes per token are theirs."""

import pytest

PIPELINE = {"hardware.chip_count": 8, "serving.parallelism": {"tp": 2, "pp": 2}}


@pytest.mark.parametrize("overrides", [{}, PIPELINE, {"hardware.chip_count": 4, "serving.parallelism.tp": 4}])
def test_the_rows_of_a_phase_sum_to_its_step(planner, overrides):
    planned = planner.plan(overrides)
    for phase in ("decode", "prefill"):
        rows = [row for row in planned.tables["operators"] if row["phase"] == phase]
        step_s = planned.metrics[f"compute.{phase}_step_s"]
        assert sum(row["s"] for row in rows) == pytest.approx(step_s, rel=1e-9)


def test_no_operator_is_above_the_roofs(planner):
    tables = planner.plan({}).tables
    peaks = {row["dtype"]: row["per_s"] for row in tables["roofs"] if row["kind"] == "compute"}
    hbm = next(row["per_s"] for row in tables["roofs"] if row["kind"] == "hbm")
    for row in tables["operators"]:
        if row["attained_flop_per_s"]:
            roof = min(peaks[row["dtype"]], hbm * row["intensity_flop_per_byte"])
            assert row["attained_flop_per_s"] <= roof


def test_bytes_per_output_token_are_those_of_the_decode_rows(planner):
    planned = planner.plan(PIPELINE)
    rows = [row for row in planned.tables["operators"] if row["phase"] == "decode"]
    batch = max(1, round(planned.serving.pool.operating_point.batch))
    moved = planned.metrics["compute.moved_bytes_per_output_token.hbm"]
    assert moved == pytest.approx(
        2 * sum(row["bytes"] for row in rows) / batch
    )  # tp = 2, stages are in the rows


def test_links_carry_bytes_only_between_ranks(planner):
    alone = planner.plan({"serving.parallelism.tp": 1}).metrics
    assert "compute.moved_bytes_per_output_token.scaleup" not in alone
    tiers = [row["tier"] for row in planner.plan(PIPELINE).tables["data_movement"]]
    assert tiers == ["hbm", "scaleup"]
