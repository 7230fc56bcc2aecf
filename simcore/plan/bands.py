"""Error bands of the headlines: between which values nine of ten measurements of such a setting fall.

A band is the value times the 5 % and 95 % quantiles of measured ÷ predicted, over rows of the same regime that
no fit has seen. Regimes, nearest first: decode steps of this engine on this chip, of another engine on it,
then chips whose kernels were fitted but whose steps were not, then chips that were not measured at all. What
was not measured widens the band, and says so: expert layers by the residuals of their kernels; a batch, a
context or a rank count beyond the measured ones by as much again (`compute.extrapolated`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from simcore.catalog.kernels import Residuals
from simcore.catalog.types import Calibration
from simcore.errors import Message, Phrases
from simcore.plan.types import PoolInputs, PoolPlan, ServingPlan

LEVEL: Final = 0.9
_EAGER: Final = "vLLM 0.2"
_OTHER_VENDOR_RATIO: Final = 1.3  # assumed: no step of another vendor's chip was compared
_UNMEASURED_EXPERTS_RATIO: Final = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Between which multiples of a predicted value measurements fall, and why."""

    low_ratio: float
    high_ratio: float
    basis: tuple[Message, ...]

    def around(self, value: float) -> dict[str, Any]:
        """`basis` is the English sentence, `reasons` the messages that it is made of."""
        return {
            "low": value * self.low_ratio,
            "high": value * self.high_ratio,
            "level": LEVEL,
            "basis": str(Phrases(self.basis)),
            "reasons": [message.as_dict() for message in self.basis],
        }

    def widened(self, low_ratio: float, high_ratio: float, *reasons: Message) -> Band:
        wider = Message(code="band.wider", template="wider: {reasons}", params={"reasons": Phrases(reasons)})
        return replace(
            self,
            low_ratio=self.low_ratio * min(1.0, low_ratio),
            high_ratio=self.high_ratio * max(1.0, high_ratio),
            basis=(*self.basis, wider),
        )

    @property
    def inverse(self) -> Band:
        """Of a rate, where the band is that of a time."""
        return replace(self, low_ratio=1.0 / self.high_ratio, high_ratio=1.0 / self.low_ratio)


def serving_bands(serving: ServingPlan, metrics: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The band of each headline that is among the metrics."""
    decode = _step_band(serving, "tpot")
    first = _step_band(serving, "ttft")
    found: dict[str, Band] = {
        "compute.decode_step_s": decode,
        "serving.tpot_s.mean": decode,
        "compute.prefill_step_s": _prefill_band(serving),
        "serving.ttft_s.p50": first,
        "serving.capacity_request_per_s": decode.inverse,
    }
    return {
        name: band.around(float(metrics[name]))
        for name, band in found.items()
        if isinstance(metrics.get(name), int | float)
    }


def extrapolation(serving: ServingPlan) -> list[Message]:
    """What lies beyond the settings that the step model was compared with."""
    beyond = _beyond(serving)
    if not beyond:
        return []
    return [
        Message(
            code="compute.extrapolated",
            template="Step times are extrapolated: {reasons}; their error bands are wider",
            params={"reasons": Phrases(tuple(beyond))},
            path="serving",
        )
    ]


def _beyond(serving: ServingPlan) -> list[Message]:
    pool, calibration = serving.pool, serving.inputs.calibration
    reach, point = calibration.step_range, pool.operating_point
    if reach is None:
        return [Message(code="beyond.no_steps", template="no served model was measured on this chip")]
    found = []
    if point.batch > reach.most_sequences_count:
        found.append(
            Message(
                code="beyond.batch",
                template="{got:,.0f} sequences, measured up to {most:,.0f}",
                params={"got": point.batch, "most": reach.most_sequences_count},
            )
        )
    if point.context_tokens > reach.most_context_tokens:
        found.append(
            Message(
                code="beyond.context",
                template="{got:,.0f} tokens of context, measured up to {most:,.0f}",
                params={"got": point.context_tokens, "most": reach.most_context_tokens},
            )
        )
    ranks = pool.parallelism.tp_ranks
    if ranks > reach.most_ranks_count:
        found.append(
            Message(
                code="beyond.ranks",
                template="{got} tensor parallel ranks, measured up to {most:,.0f}",
                params={"got": ranks, "most": reach.most_ranks_count},
            )
        )
    if not _is_plain(serving):
        found.append(
            Message(
                code="beyond.model",
                template="a model that is not dense with grouped-query attention, which alone was measured",
            )
        )
    return found


def _at_work(serving: ServingPlan, phase: str) -> tuple[PoolInputs, PoolPlan]:
    """The replicas that a time is of: prompts are computed on the first pool that a request passes."""
    return serving.sides[0] if phase == "ttft" else (serving.inputs, serving.pool)


def _is_plain(serving: ServingPlan) -> bool:
    arch = serving.inputs.architecture
    return not (arch.is_moe or arch.is_mla or arch.recurrent_layers or arch.context_groups)


def _step_band(serving: ServingPlan, phase: str) -> Band:
    band = _of(*_nearest(serving, phase))
    inputs, pool = _at_work(serving, phase)
    calibration, arch = inputs.calibration, inputs.architecture
    if arch.is_moe:
        experts = _expert_residuals(calibration, serving.inputs.weights_dtype)
        if experts is None:
            unknown = Message(
                code="band.experts_unmeasured",
                template="expert layers were not measured on this chip, an assumption",
            )
            band = band.widened(1 / _UNMEASURED_EXPERTS_RATIO, _UNMEASURED_EXPERTS_RATIO, unknown)
        else:
            known = Message(code="band.experts", template="residuals of expert layers")
            band = band.widened(experts.p5_ratio, experts.p95_ratio, known)
    if pool.chip.vendor != "NVIDIA":
        other = Message(code="band.other_vendor", template="another vendor's chip, an assumption")
        band = band.widened(1 / _OTHER_VENDOR_RATIO, _OTHER_VENDOR_RATIO, other)
    beyond = [] if calibration.step_range is None else _beyond(serving)
    if beyond:
        band = band.widened(math.sqrt(band.low_ratio), math.sqrt(band.high_ratio), *beyond)
    return band


def _nearest(serving: ServingPlan, phase: str) -> tuple[Message, Residuals]:
    """The regime whose residuals stand for this engine and chip, and how it is named."""
    calibration, engine = _at_work(serving, phase)[0].calibration, serving.inputs.engine
    own = {
        name.removeprefix(f"{phase}."): found
        for name, found in calibration.residuals.items()
        if name.startswith(f"{phase}.") and not calibration.is_class_default
    }
    if engine.name == _EAGER and "decode.vLLM 0.2" in calibration.residuals and phase == "tpot":
        eager = Message(
            code="band.decode_steps",
            template="decode steps of {engine} on this chip",
            params={"engine": _EAGER},
        )
        return eager, calibration.residuals["decode.vLLM 0.2"]
    for name, found in own.items():
        if name.split()[0] == engine.family:
            return _on_this_chip(phase, engine.family), found
    if own:
        name, found = next(iter(own.items()))
        return _on_this_chip(phase, name.split()[0]), found
    kind = "kernels" if calibration.kernels.gemm else "class"
    elsewhere = _on_others(phase, fitted_kernels=kind == "kernels")
    return elsewhere, serving.inputs.default_residuals[f"{phase}.{kind}"]


def _on_this_chip(phase: str, engine: str) -> Message:
    return Message(
        code=f"band.{phase}.chip",
        template="{what} of {engine} on this chip",
        params={"what": _SAID[phase], "engine": engine},
    )


_SAID: Final = {
    "tpot": Phrases((Message(code="band.tpot", template="time per output token"),)),
    "ttft": Phrases((Message(code="band.ttft", template="median time to first token"),)),
}


def _on_others(phase: str, *, fitted_kernels: bool) -> Message:
    params = {"what": _SAID[phase]}
    if fitted_kernels:
        return Message(
            code=f"band.{phase}.kernels",
            template="{what} on chips whose kernels alone were fitted",
            params=params,
        )
    return Message(
        code=f"band.{phase}.class", template="{what} on chips that were not measured", params=params
    )


def _of(regime: Message, residuals: Residuals) -> Band:
    basis = Message(
        code="band.regime",
        template="{regime}: {rows:,} measurements that were not fitted",
        params={"regime": Phrases((regime,)), "rows": residuals.row_count},
    )
    return Band(low_ratio=residuals.p5_ratio, high_ratio=residuals.p95_ratio, basis=(basis,))


def _prefill_band(serving: ServingPlan) -> Band:
    """Prompts alone were measured on the eager engine of 2023 only; elsewhere their products stand for them."""
    calibration, engine = _at_work(serving, "ttft")[0].calibration, serving.inputs.engine
    eager = calibration.residuals.get(f"prefill.{_EAGER}")
    if engine.name == _EAGER and eager is not None:
        prefills = Message(
            code="band.prefills", template="prefills of {engine} on this chip", params={"engine": _EAGER}
        )
        return _of(prefills, eager)
    dtype = serving.inputs.weights_dtype
    products = calibration.residuals.get(f"gemm.{dtype}")
    if products is None:
        unknown = _on_others("tpot", fitted_kernels=False)
        return _of(unknown, serving.inputs.default_residuals["tpot.class"])
    known = Message(
        code="band.products", template="matrix products in {dtype} on this chip", params={"dtype": dtype}
    )
    return _of(known, products)


def _expert_residuals(calibration: Calibration, weights_dtype: str) -> Residuals | None:
    return calibration.residuals.get(f"experts.{weights_dtype}")
