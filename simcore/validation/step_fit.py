"""What an engine adds to a step, fitted to decode steps and closed loops of served models.

Times per iteration, layer, doubling of ranks, sequence, and iteration with prompts; of a request, the front end.

**Which terms, and how large: the rule, set before the fit.** No term has an upper bound that an outcome could touch,
save the time per iteration where all rows are of one depth (it cannot be told from layers there: at most the chip's
present one). The time per layer is at least that of a layer's captured kernels following each other
(`LEAST_PER_LAYER_S`). Time per sequence and per iteration with prompts look alike in most rows, so
data decide: of the four choices of the two, the one is taken whose error is smallest (to a hundredth of a per cent;
of equals the shortest) on rows left out, by batch size, by lengths, and by format and ranks in turn, among the rows
that are fitted at all. Held-out rows, stories and tests
have no say. (Until November 2026 the time per sequence was bounded at 8 µs by hand.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from simcore.catalog import Catalog
from simcore.catalog.types import Calibration, Chip, Source, StepOverhead
from simcore.compute.fitting import Bound, least_squares
from simcore.compute.roofline import Floats
from simcore.validation.serving_loops import served
from simcore.validation.step_rows import (
    EAGER_ENGINE,
    StepRow,
    architecture,
    predicted_s,
    prompts_per_step,
    step_tables,
)

LEAST_PER_LAYER_S: Final = 8e-6
_FREE_S: Final = 1.0  # no bound that matters
_NOTHING_S: Final = 1e-8
_FORMS: Final = ((), ("per_sequence_s",), ("per_prefill_layer_s",), ("per_sequence_s", "per_prefill_layer_s"))
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def engine_key(engine: str) -> str:
    """Under which version an overhead is kept: the first that it holds for."""
    return {"vLLM 0.19": "vLLM 0.3", "TensorRT-LLM 1.0": "TensorRT-LLM 0.8"}.get(engine, engine)


def predict_steps(
    rows: Sequence[StepRow], chip: Chip, calibration: Calibration, catalog: Catalog
) -> dict[StepRow, float]:
    """What a calibration says of each row: loops simulated, single steps from the table."""
    calibrated = replace(catalog, calibrations={**catalog.calibrations, chip.calibration: calibration})
    loops = [row for row in rows if row.phase in ("tpot", "ttft")]
    steps = [row for row in rows if row.phase in ("decode", "prefill")]
    tables = step_tables(steps, chip, calibration, catalog)
    found = served(loops, chip, calibrated)
    return found | {row: predicted_s(row, tables[row.engine, row.lane]) for row in steps}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Of each row, seconds without overheads and how often each overhead is paid."""

    base_s: Floats
    layers: Floats
    rank_doublings: Floats  # layers × doublings
    sequences: Floats
    prompts: Floats  # layers × prompts of a step
    measured_s: Floats
    eager: bool
    one_depth: bool

    def of(self, rows: Mask) -> _Columns:
        arrays = ("base_s", "layers", "rank_doublings", "sequences", "prompts", "measured_s")
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})

    def seconds(self, values: Floats) -> Floats:
        """`values`: per layer, doubling, sequence, prompt, iteration; then the eager pace of a layer."""
        beside = (
            self.rank_doublings * values[1]
            + self.sequences * values[2]
            + self.prompts * values[3]
            + values[4]
        )
        captured: Floats = self.base_s + self.layers * values[0] + beside
        return np.maximum(captured, self.layers * values[5] + beside) if self.eager else captured

    def errors(self, values: Floats) -> Floats:
        found: Floats = np.abs(self.seconds(values) / self.measured_s - 1.0)
        return found


def fit_overhead(
    rows: Sequence[StepRow], calibration: Calibration, chip: Chip, catalog: Catalog
) -> StepOverhead:
    """On the rows that are not held out, by the rule above; an eager engine has one form only."""
    fitted = [row for row in rows if not row.is_held_out]
    columns = _columns(fitted, calibration, chip, catalog)
    known_s = calibration.step_overhead.per_iteration_s
    form = ("per_sequence_s",) if columns.eager else _best_form(fitted, columns, known_s)
    values = _fit(columns, form, known_s)
    return StepOverhead(
        per_iteration_s=float(values[4]),
        per_layer_s=float(values[0]),
        per_sequence_s=_paid(values[2]),
        rank_skew_s=float(values[1]),
        eager_per_layer_s=float(values[5]) if columns.eager else 0.0,
        per_prefill_layer_s=_paid(values[3]),
        mape_fraction=float(columns.errors(values).mean()),
        source=_source(fitted, chip),
    )


def _paid(seconds: float) -> float:
    """A term that is not in the form, or came out at its lower bound, is not paid at all."""
    return float(seconds) if seconds > _NOTHING_S else 0.0


def fit_front_end_s(rows: Sequence[StepRow], predicted: Mapping[StepRow, float]) -> float:
    """Seconds that stand between measured and simulated times to first token, on the rows that are not held out."""
    fitted = [row for row in rows if row.phase == "ttft" and not row.is_held_out]
    if not fitted:
        return 0.0
    said = np.array([predicted[row] for row in fitted])
    measured = np.log([row.measured_s for row in fitted])
    values, _ = least_squares(
        lambda values: said + values[0], [Bound(start=0.02, low=1e-6, high=_FREE_S)], measured
    )
    return float(values[0])


def _source(fitted: Sequence[StepRow], chip: Chip) -> Source:
    return Source(
        title=f"fit of {len(fitted)} decode steps of {fitted[0].engine.split()[0]} on {chip.name}",
        kind="measured",
        note="half of the rows held out; terms chosen by leaving batch sizes, lengths and formats out in turn",
    )


def _columns(fitted: Sequence[StepRow], calibration: Calibration, chip: Chip, catalog: Catalog) -> _Columns:
    none = StepOverhead(
        per_iteration_s=0.0,
        per_layer_s=0.0,
        per_sequence_s=0.0,
        rank_skew_s=0.0,
        mape_fraction=0.0,
        source=calibration.step_overhead.source,
    )
    tables = step_tables(fitted, chip, replace(calibration, step_overhead=none, engine_overheads={}), catalog)
    depth = np.array([float(architecture(row.model, catalog).layers) for row in fitted])
    return _Columns(
        base_s=np.array([predicted_s(row, tables[row.engine, row.lane]) for row in fitted]),
        layers=depth,
        rank_doublings=depth * np.log2([row.tp for row in fitted]),
        sequences=np.array([float(row.seated_count) for row in fitted]),
        prompts=depth * np.array([prompts_per_step(row) for row in fitted]),
        measured_s=np.array([row.measured_s for row in fitted]),
        eager=fitted[0].engine == EAGER_ENGINE,
        one_depth=len(set(depth)) == 1,
    )


def _fit(columns: _Columns, form: Sequence[str], known_s: float) -> Floats:
    def term(name: str, start: float) -> Bound:
        return (
            Bound(start=start, low=1e-9, high=_FREE_S)
            if name in form
            else Bound(start=2e-12, low=1e-12, high=3e-12)
        )

    bounds = [
        Bound(start=2e-5, low=LEAST_PER_LAYER_S, high=_FREE_S),
        Bound(start=4e-6, low=1e-8, high=_FREE_S),
        term("per_sequence_s", 5e-6),
        term("per_prefill_layer_s", 1e-4),
        Bound(start=known_s, low=min(1e-4, 0.9 * known_s), high=known_s)
        if columns.one_depth or columns.eager
        else Bound(start=3e-4, low=1e-6, high=_FREE_S),
    ]
    if columns.eager:
        bounds.append(Bound(start=4e-4, low=1e-7, high=_FREE_S))
    values, _ = least_squares(columns.seconds, bounds, np.log(columns.measured_s))
    return values


def _best_form(fitted: Sequence[StepRow], columns: _Columns, known_s: float) -> Sequence[str]:
    return min(
        _FORMS, key=lambda form: (round(cross_validated_error(fitted, columns, form, known_s), 4), len(form))
    )


_PARTITIONS: Final[tuple[Callable[[StepRow], Hashable], ...]] = (
    lambda row: row.batch_count,
    lambda row: (row.input_tokens, row.output_tokens),
    lambda row: (row.weights_dtype, row.tp),
)


def cross_validated_error(
    fitted: Sequence[StepRow], columns: _Columns, form: Sequence[str], known_s: float
) -> float:
    """Mean error of rows when those like them are left out of the fit, over three ways of being alike."""
    means = []
    for alike in _PARTITIONS:
        keys = [None if row.is_always_fitted else alike(row) for row in fitted]
        kinds = {key for key in keys if key is not None}
        if len(kinds) < 2:
            continue
        errors = []
        for key in sorted(kinds, key=str):
            left_out = np.array([one == key for one in keys])
            values = _fit(columns.of(~left_out), form, known_s)
            errors.append(columns.of(left_out).errors(values))
        means.append(float(np.concatenate(errors).mean()))
    return sum(means) / len(means) if means else 0.0
