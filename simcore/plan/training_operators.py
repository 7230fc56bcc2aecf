"""One training iteration of a plan, taken apart: operators under the chip's roofs, and the pipeline's schedule.

`operators` has the rows of `training/rows.py`; those of a phase sum to `training.<phase>_s`. `pipeline` is one row:
all that `training/schedule.py` needs to say which micro-batch runs where.
"""

from __future__ import annotations

from typing import Any

from simcore.compute.calibration import peak
from simcore.training import TrainingInputs, TrainingRow
from simcore.why import Term


def training_operator_tables(
    inputs: TrainingInputs, rows: list[TrainingRow], phases: dict[str, Term]
) -> dict[str, list[dict[str, Any]]]:
    """`operators`, `roofs` and `pipeline`."""
    dtypes = dict.fromkeys(row.dtype for row in rows if row.flop)
    peaks = [{"kind": "compute", "dtype": dtype, "per_s": peak(inputs.chip, dtype).value} for dtype in dtypes]
    return {
        "operators": [_row(row) for row in rows],
        "roofs": [*peaks, {"kind": "hbm", "dtype": "", "per_s": inputs.chip.hbm_bytes_per_s}],
        "pipeline": [
            {
                "stages": inputs.parallelism.pp,
                "pieces": inputs.spec.virtual_stages,
                "micro_batches": inputs.micro_batch_count,
                **{name.removeprefix("training."): term.value for name, term in phases.items()},
            }
        ],
    }


def _row(row: TrainingRow) -> dict[str, Any]:
    seconds = row.seconds.value
    return {
        "phase": row.phase,
        "operator": row.operator,
        "term": row.term,
        "lane": row.lane,
        "per_layer": False,
        "count": row.count,
        "flop": row.flop,
        "bytes": row.moved_bytes,
        "s": seconds,
        "bound": row.bound,
        "dtype": row.dtype,
        "intensity_flop_per_byte": row.flop / row.moved_bytes if row.moved_bytes else None,
        "attained_flop_per_s": row.flop / seconds if row.flop else None,
    }
