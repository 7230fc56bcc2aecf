"""Between which values an input may lie and how that is known: what is varied where a person says nothing.

From the best knowledge that there is: prices between the low and the high of their book; a chip's peak by what its
measured kernels reach of the prediction (a peak divided by the 95 % and 5 % quantiles of measured ÷ predicted time);
else an *assumption*, 20 % on either side or the range in `_ASSUMED`. Integers are rounded outwards by one at least.
Limits: inputs are varied one by one or as independent, and only numbers are: a choice (a scheduler, a dtype) is a
grid's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from simcore.cost.bill import BillRow
from simcore.errors import Message
from simcore.plan import Plan
from simcore.scenario.overrides import union_members
from simcore.units import dimension_of, printed_text

Confidence = Literal["source", "calibrated", "assumption", "yours"]
CHIP: Final = "hardware.chip_overrides."
_ASSUMED_SHARE: Final = 0.2
# Low and high of what differs more, or less, than 20 % between sites and years.
_ASSUMED: Final[Mapping[str, tuple[float, float]]] = {
    "economics.electricity_usd_per_kwh": (0.04, 0.16),
    "economics.pue": (1.1, 1.5),
    "economics.depreciation_years": (3.0, 6.0),
    "serving.kv.gpu_memory_utilization": (0.85, 0.95),
}
_AVAILABILITY: Final = "reliability.host_availability_fraction"
_MONEY: Final = (
    "economics.price_ratio",
    "economics.network_price_ratio",
    "economics.electricity_usd_per_kwh",
    "economics.pue",
    "economics.depreciation_years",
    f"{CHIP}tdp_w",
)
_ARRIVALS: Final = ("request_per_s", "concurrency", "end_request_per_s")
_LENGTHS: Final = ("input_mean_tokens", "output_mean_tokens", "input_tokens", "output_tokens")
_SERVING: Final = ("serving.kv.gpu_memory_utilization", "serving.scheduler.max_num_batched_tokens")
_TRAINING: Final = ("training.global_batch_tokens", "training.total_tokens")
_PEAKS: Final[Mapping[str, str]] = {
    "fp8": "fp8_flop_per_s",
    "fp8_block": "fp8_flop_per_s",
    "int8": "int8_flop_per_s",
    "nvfp4": "fp4_flop_per_s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRange:
    """One input with its value and its ends, low below high."""

    path: str
    low: float
    base: float
    high: float
    basis: Message
    confidence: Confidence

    def narrowed(self, low: float, high: float) -> InputRange:
        """The same input between ends that somebody wrote."""
        basis = Message(code="range.yours", template="as you wrote it")
        return replace(self, low=low, high=high, basis=basis, confidence="yours")

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "low": self.low,
            "base": self.base,
            "high": self.high,
            "basis": self.basis.as_dict(),
            "confidence": self.confidence,
        }


def default_ranges(plan: Plan) -> tuple[InputRange, ...]:
    """The inputs that matter most often for this kind of work, with what is known of each."""
    found = [*_of_chip(plan), *_of_work(plan), *_of_money(plan)]
    return tuple(one for one in found if one.low < one.high)


def assumed_range(plan: Plan, path: str) -> InputRange | None:
    """A range around the value at a path; None where no number stands there."""
    base = value_at(plan, path)
    if base is None:
        return None
    if path == _AVAILABILITY:  # lost time halved and doubled
        low, high = max(0.0, 1 - 2 * (1 - base)), 1 - (1 - base) / 2
    elif path in _ASSUMED and _ASSUMED[path][0] <= base <= _ASSUMED[path][1]:
        low, high = _ASSUMED[path]
    else:
        low, high = base * (1 - _ASSUMED_SHARE), base * (1 + _ASSUMED_SHARE)
        if dimension_of(path) == "fraction":
            high = min(1.0, high)
        if is_integer(path):
            low, high = max(1.0, min(round(low), base - 1)), max(round(high), base + 1)
        return InputRange(
            path=path, low=low, base=base, high=high, basis=_by_share(), confidence="assumption"
        )
    return InputRange(
        path=path, low=low, base=base, high=high, basis=_typical(path, low, high), confidence="assumption"
    )


def value_at(plan: Plan, path: str) -> float | None:
    """The number at a path as planned: `auto` as what it became, a chip's figure as its datasheet has it."""
    if path.startswith(CHIP):
        return _number(getattr(plan.chip, path.removeprefix(CHIP), None))
    here: Any = plan.scenario
    for key in path.split("."):
        here = here.get(key) if isinstance(here, Mapping) else getattr(here, key, None)
    return _number(plan.resolved.get(path, here) if here in (None, "auto") else here)


def is_integer(path: str) -> bool:
    """Whether only whole numbers may stand at a path of the schema."""
    section, _, key = path.rpartition(".")
    texts = [
        str(model.model_fields[key].annotation)
        for model in union_members(section)
        if key in model.model_fields
    ]
    return bool(texts) and all("int" in text and "float" not in text for text in texts)


def as_typed(path: str, value: float) -> float | int:
    """The value as the schema wants it."""
    return round(value) if is_integer(path) else value


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _of_chip(plan: Plan) -> Iterator[InputRange]:
    if plan.serving is None and plan.training is None:
        return
    dtype = plan.serving.inputs.weights_dtype if plan.serving else plan.scenario.training.dtype
    peak = _PEAKS.get(dtype, "bf16_flop_per_s")
    if getattr(plan.chip, peak) is None:
        peak = "bf16_flop_per_s"
    yield from _reached(plan, peak, f"gemm.{dtype}")
    yield from _reached(plan, "hbm_bytes_per_s", "attention_decode.bf16")
    yield from _assumed(plan, [f"{CHIP}hbm_bytes"])
    link = "pcie_bytes_per_s" if plan.chip.scaleup_bytes_per_s is None else "scaleup_bytes_per_s"
    yield from _assumed(plan, [CHIP + link])


def _reached(plan: Plan, figure: str, regime: str) -> Iterator[InputRange]:
    """A peak by what kernels were measured to reach of it, where they were."""
    inputs = plan.serving.inputs if plan.serving else plan.training.inputs if plan.training else None
    residuals = inputs.calibration.residuals.get(regime) if inputs else None
    base = value_at(plan, CHIP + figure)
    if residuals is None or base is None:
        yield from _assumed(plan, [CHIP + figure])
        return
    basis = Message(
        code="range.kernels",
        template="what {rows:,} measured kernels reach of the prediction, from 5 to 95 %",
        params={"rows": residuals.row_count},
    )
    ends = sorted((base / residuals.p95_ratio, base / residuals.p5_ratio))
    yield InputRange(
        path=CHIP + figure, low=ends[0], base=base, high=ends[1], basis=basis, confidence="calibrated"
    )


def _of_work(plan: Plan) -> Iterator[InputRange]:
    if plan.serving is not None:
        workload = plan.scenario.workload
        yield from _assumed(plan, [f"workload.arrivals.{key}" for key in _ARRIVALS])
        if workload.arrivals.kind != "trace":
            yield from _assumed(plan, [f"workload.lengths.{key}" for key in _LENGTHS])
        yield from _assumed(plan, _SERVING)
    elif plan.training is not None:
        yield from _assumed(plan, (*_TRAINING, _AVAILABILITY))
    else:
        yield from _assumed(plan, [_AVAILABILITY])


def _of_money(plan: Plan) -> Iterator[InputRange]:
    rows = {"economics.price_ratio": "compute", "economics.network_price_ratio": "network"}
    for path in _MONEY:
        group = [row for row in plan.cost.bill if row.group == rows.get(path)]
        if path not in rows:
            yield from _assumed(plan, [path])
        elif any(row.priced for row in group):
            yield _price_range(plan, path, group)


def _price_range(plan: Plan, path: str, rows: Sequence[BillRow]) -> InputRange:
    """The level of the low and high totals over that of the middle; as assumed where the book has one price."""
    base = value_at(plan, path) or 1.0
    low, mid, high = (sum(_total(row, edge) for row in rows) for edge in ("low", "mid", "high"))
    if not low < high:
        ends = base * (1 - _ASSUMED_SHARE), base * (1 + _ASSUMED_SHARE)
        return InputRange(
            path=path, low=ends[0], base=base, high=ends[1], basis=_by_share(), confidence="assumption"
        )
    basis = Message(
        code="range.prices",
        template="between the low and the high prices of {book}",
        params={"book": rows[0].book},
    )
    return InputRange(
        path=path, low=low / mid * base, base=base, high=high / mid * base, basis=basis, confidence="source"
    )


def _total(row: BillRow, edge: Literal["low", "mid", "high"]) -> float:
    term = row.total(edge)
    return term.value if term is not None else 0.0


def _assumed(plan: Plan, paths: Sequence[str]) -> Iterator[InputRange]:
    for path in paths:
        found = assumed_range(plan, path)
        if found is not None:
            yield found


def _by_share() -> Message:
    return Message(
        code="range.assumed", template="±{share}, an assumption", params={"share": f"{_ASSUMED_SHARE:.0%}"}
    )


def _typical(path: str, low: float, high: float) -> Message:
    dimension = dimension_of(path)
    return Message(
        code="range.typical",
        template="{low} to {high}, an assumption",
        params={"low": printed_text(low, dimension), "high": printed_text(high, dimension)},
    )
