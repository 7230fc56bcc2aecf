"""Overheads are found again from steps that they made, and terms that made none are not taken."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from simcore.catalog import default_catalog
from simcore.catalog.types import Calibration, StepOverhead
from simcore.validation.step_fit import fit_front_end_s, fit_overhead
from simcore.validation.step_rows import StepRow, predicted_s, step_tables

CATALOG = default_catalog()
H100 = CATALOG.chip("nvidia-h100-sxm")
TRUTH = StepOverhead(
    per_iteration_s=3e-4,
    per_layer_s=2e-5,
    per_sequence_s=0.0,
    rank_skew_s=5e-6,
    mape_fraction=0.0,
    source=CATALOG.calibration_for(H100).step_overhead.source,
)


def calibration(overhead: StepOverhead) -> Calibration:
    return replace(CATALOG.calibration_for(H100), step_overhead=overhead, engine_overheads={})


def made_rows(overhead: StepOverhead) -> list[StepRow]:
    """Loops of two models whose times are the model's own."""
    rows = [
        StepRow(
            phase="tpot",
            engine="vLLM 0.19",
            model=model,
            tp=tp,
            weights_dtype=weights,
            kv_dtype="bf16",
            batch_count=batch,
            input_tokens=lengths[0],
            output_tokens=lengths[1],
            context_tokens=lengths[0] + lengths[1] / 2,
            measured_s=1.0,
        )
        for model, tp, weights, batch, lengths in itertools.product(
            ("llama-3.1-8b", "llama-3.1-70b"),
            (2, 8),
            ("fp8",),
            (4, 16, 64),
            ((1024.0, 1024.0), (1024.0, 8192.0), (8192.0, 1024.0)),
        )
    ]
    tables = step_tables(rows, H100, calibration(overhead), CATALOG)
    return [replace(row, measured_s=predicted_s(row, tables[row.engine, row.lane])) for row in rows]


@pytest.mark.parametrize(
    ("per_sequence_s", "per_prefill_layer_s"), [(0.0, 0.0), (3e-5, 0.0), (0.0, 4e-4), (2e-5, 2e-4)]
)
def test_the_terms_that_made_the_rows_are_the_ones_taken(
    per_sequence_s: float, per_prefill_layer_s: float
) -> None:
    truth = replace(TRUTH, per_sequence_s=per_sequence_s, per_prefill_layer_s=per_prefill_layer_s)
    found = fit_overhead(made_rows(truth), calibration(TRUTH), H100, CATALOG)
    assert found.per_sequence_s == pytest.approx(per_sequence_s, rel=0.05, abs=2e-7)
    assert found.per_prefill_layer_s == pytest.approx(per_prefill_layer_s, rel=0.05, abs=4e-6)
    assert found.per_layer_s == pytest.approx(truth.per_layer_s, rel=0.1)
    assert found.mape_fraction < 2e-3


def test_what_is_missing_before_the_first_token_is_the_front_end() -> None:
    rows = [replace(row, phase="ttft", measured_s=row.input_tokens * 1e-4 + 0.03) for row in made_rows(TRUTH)]
    said = {row: row.input_tokens * 1e-4 for row in rows}
    assert fit_front_end_s(rows, said) == pytest.approx(0.03, rel=1e-3)
    assert fit_front_end_s([replace(row, phase="tpot") for row in rows], said) == 0.0
