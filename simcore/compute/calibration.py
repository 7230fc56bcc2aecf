"""Which efficiency an operator class reaches on a chip, and how launch time is charged.

The fits give, per chip and dtype, `e_c`, `e_m` and an isolated launch t0 (`types.Efficiency`). A dtype
that a calibration lacks takes the class default, scaled by how this chip's bf16 fit stands to the class's
bf16. A chip without arithmetic for a weight format computes in bf16 and still reads the narrow weights.

**Launch.** t0 (4-16 µs for a GEMM) was measured on one kernel per call, with the launch and the drain of
an empty device. Inside an engine's captured graph the next kernel's launch overlaps the one that runs, so
charging t0 per kernel would count it several times. An isolated kernel costs t0 (`isolated_launch_s`, for
kernel validation); a step costs per layer, once for all its kernels,

    StepOverhead.per_layer_s  +  [quantised activations] (t0(dtype) − t0(bf16))  +  [experts] t0(moe)

The second term: an fp8 GEMM's t0 carries the quantisation of its input (13 against 4 µs); a layer has four
such inputs, most fused into the norm or activation before, and one difference per layer is what decode
steps show (H100 +10, B200 +13 µs). The third: routing, sorting and two grouped products are a chain of
dependent kernels, which no graph overlaps. With tensor parallelism each layer also waits twice for the
slowest rank, `.rank_skew_s` beside the all-reduce's own time. CPU work per iteration and per sequence is
`.per_iteration_s` and `.per_sequence_s`, kept apart from the layers. An engine without graphs launches each
kernel from the host, so that its layers take at least `.eager_per_layer_s`; one whose graphs hold decode steps
alone adds `.per_prefill_layer_s` to each layer of an iteration with prompts. All by engine and version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from simcore.catalog.kernels import WHOLE_EXPERTS, ExpertKernel, GemmKernel
from simcore.catalog.types import Calibration, Chip, Efficiency, Source, StepOverhead
from simcore.compute.roofline import Rates
from simcore.why import LeafKind, Term, constant, leaf, maximum

OperatorClass = Literal["gemm", "moe", "attention_prefill", "attention_decode"]

_FITS: Final = Source(
    title="median over NVIDIA chips of three-parameter fits to aiconfigurator-core 0.12 kernels",
    kind="estimate",
)


def _default(compute: float, memory: float, launch_us: float, mape: float, p90: float) -> Efficiency:
    return Efficiency(
        compute_fraction=compute,
        memory_fraction=memory,
        launch_s=launch_us * 1e-6,
        mape_fraction=mape,
        p90_fraction=p90,
        source=_FITS,
    )


CLASS_DEFAULTS: Final[Mapping[OperatorClass, Mapping[str, Efficiency]]] = {
    "gemm": {
        "bf16": _default(0.73, 0.74, 3.4, 0.10, 0.21),
        "fp8": _default(0.51, 0.77, 13.7, 0.10, 0.22),
        "fp8_block": _default(0.46, 0.80, 7.4, 0.17, 0.38),
        "int8": _default(0.51, 0.77, 13.7, 0.15, 0.30),
        "nvfp4": _default(0.35, 0.51, 11.3, 0.19, 0.41),
    },
    "moe": {
        "bf16": _default(0.33, 0.76, 32.0, 0.25, 0.60),
        "fp8": _default(0.20, 0.70, 33.0, 0.29, 0.65),
        "fp8_block": _default(0.17, 0.69, 32.0, 0.25, 0.52),
        "int8": _default(0.20, 0.70, 33.0, 0.30, 0.65),
        "nvfp4": _default(0.12, 0.45, 40.0, 0.26, 0.55),
    },
    "attention_prefill": {
        "bf16": _default(0.50, 0.25, 12.8, 0.15, 0.33),
        "fp8": _default(0.31, 0.20, 14.7, 0.17, 0.33),
    },
    "attention_decode": {
        "bf16": _default(0.50, 0.90, 15.0, 0.10, 0.30),
        "fp8": _default(0.50, 0.85, 15.0, 0.12, 0.40),
    },
}
DEFAULT_STEP_OVERHEAD: Final = StepOverhead(
    per_iteration_s=0.3e-3,
    per_layer_s=22e-6,
    per_sequence_s=4e-6,
    mape_fraction=0.15,
    source=Source(title="dense decode steps of vLLM on H100 and B200", kind="measured"),
)
INDEXER_LAUNCH_S: Final = 85e-6  # per layer that chooses its keys: scoring, top-k, gathering
# Formats that are only stored narrow: the engine widens them to 16 bit in front of the multiplication.
_WEIGHT_ONLY: Final = frozenset({"int4", "mxfp4"})
_PEAK_FIGURE: Final = {
    "fp8": "fp8_flop_per_s",
    "fp8_block": "fp8_flop_per_s",
    "int8": "int8_flop_per_s",
    "nvfp4": "fp4_flop_per_s",
}


def arithmetic_dtype(chip: Chip, weights_dtype: str) -> str:
    """The format the chip multiplies in: its own where it has one, bf16 for weight-only formats.

    A100 has no fp8 units, so fp8 weights are read narrow and multiplied in bf16.
    """
    figure = _PEAK_FIGURE.get(weights_dtype)
    if weights_dtype in _WEIGHT_ONLY or figure is None or not getattr(chip, figure):
        return "bf16"
    return weights_dtype


def efficiency(calibration: Calibration, operator_class: OperatorClass, dtype: str) -> Efficiency:
    """The fit for this class and dtype, or the class default scaled to this chip's bf16 fit."""
    fitted = _fitted(calibration, operator_class)
    wanted = "bf16" if dtype in ("fp16", "mxfp4", "int4") else dtype
    if wanted in fitted and fitted[wanted].compute_fraction > 0:
        return fitted[wanted]
    defaults = CLASS_DEFAULTS[operator_class]
    default = defaults.get(wanted, defaults["bf16"])
    own = fitted.get("bf16")
    if own is None:
        return default
    return _scaled(default, own, defaults["bf16"])


def _fitted(calibration: Calibration, operator_class: OperatorClass) -> Mapping[str, Efficiency]:
    """Fits of one class by dtype. Fused MoE fits stand among the GEMMs under `moe_<dtype>`."""
    if operator_class == "gemm":
        return calibration.gemm
    if operator_class == "moe":
        return {k.removeprefix("moe_"): v for k, v in calibration.gemm.items() if k.startswith("moe_")}
    if operator_class == "attention_prefill":
        return calibration.attention_prefill
    return calibration.attention_decode


def _scaled(default: Efficiency, own: Efficiency, reference: Efficiency) -> Efficiency:
    return Efficiency(
        compute_fraction=min(
            1.0, default.compute_fraction * own.compute_fraction / reference.compute_fraction
        ),
        memory_fraction=min(1.0, default.memory_fraction * own.memory_fraction / reference.memory_fraction),
        launch_s=default.launch_s,
        mape_fraction=max(default.mape_fraction, own.mape_fraction),
        p90_fraction=max(default.p90_fraction, own.p90_fraction),
        source=Source(
            title=f"class default scaled by this chip's bf16 fit ({own.source.title})", kind="estimate"
        ),
    )


def rates(
    chip: Chip, calibration: Calibration, operator_class: OperatorClass, dtype: str, *, name: str
) -> Rates:
    """Attainable FLOP/s and bytes/s of an operator class: catalog peak × calibrated efficiency."""
    fit = efficiency(calibration, operator_class, dtype)
    kind: LeafKind = "assumption" if fit.source.kind in ("estimate", "assumption") else "calibrated"
    source = f"{fit.source.title}; mean error {fit.mape_fraction:.0%}"
    compute = leaf(
        fit.compute_fraction, f"{name}_compute_fraction", kind=kind, source=source, dimension="fraction"
    )
    memory = leaf(
        fit.memory_fraction, f"{name}_memory_fraction", kind=kind, source=source, dimension="fraction"
    )
    return Rates(
        flop_per_s=(compute * peak(chip, dtype)).named(f"{name}_flop_per_s", "flop_per_s"),
        bytes_per_s=(memory * chip.leaf("hbm_bytes_per_s")).named(f"{name}_bytes_per_s", "bytes_per_s"),
    )


def peak(chip: Chip, dtype: str) -> Term:
    """Dense peak for a dtype as a catalog leaf; bf16 where the chip has no units for it."""
    figure = _PEAK_FIGURE.get(dtype)
    return chip.leaf(figure if figure and getattr(chip, figure) else "bf16_flop_per_s")


def isolated_launch_s(calibration: Calibration, operator_class: OperatorClass, dtype: str) -> Term:
    """Launch and drain of one kernel on an empty device, as the fit measured it."""
    fit = efficiency(calibration, operator_class, dtype)
    return leaf(
        fit.launch_s,
        f"{operator_class}_{dtype}_launch_s",
        kind="calibrated",
        source=fit.source.title,
        dimension="s",
    )


def step_launch_s(calibration: Calibration, operator_class: OperatorClass, dtype: str) -> Term:
    """The same as a step pays it: of the richer fit where there is one."""
    kernel = kernel_fit(calibration, operator_class, dtype)
    if kernel is None:
        return isolated_launch_s(calibration, operator_class, dtype.removesuffix(WHOLE_EXPERTS))
    return leaf(
        kernel.launch_s,
        f"{operator_class}_{dtype}_launch_s",
        kind="calibrated",
        source=kernel.source.title,
        dimension="s",
    )


def kernel_fit(
    calibration: Calibration, operator_class: OperatorClass, dtype: str
) -> GemmKernel | ExpertKernel | None:
    """The richer fit of a product or an expert layer (`Operator.fit_dtype`), if this chip has one for the format."""
    wanted = "bf16" if dtype in ("fp16", "mxfp4", "int4") else dtype
    if operator_class == "gemm":
        return calibration.kernels.gemm.get(wanted)
    experts = calibration.kernels.experts if operator_class == "moe" else {}
    return experts.get(dtype) or experts.get(wanted.removesuffix(WHOLE_EXPERTS))


def engine_overhead(calibration: Calibration, engine: str) -> StepOverhead:
    """Overhead of an engine "family version" on this chip: of the newest measured version up to it.

    >>> from simcore.catalog import default_catalog
    >>> engine_overhead(default_catalog().calibrations["class-default"], "").per_layer_s
    2.1e-05
    """
    family, _, version = engine.partition(" ")
    wanted = _version(version)
    known = {
        _version(name.partition(" ")[2]): overhead
        for name, overhead in calibration.engine_overheads.items()
        if name.partition(" ")[0] == family
    }
    usable = [first for first in known if first <= wanted]
    return known[max(usable)] if usable else calibration.step_overhead


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def overhead_leaf(
    overhead: StepOverhead,
    figure: Literal[
        "per_iteration_s",
        "per_layer_s",
        "per_sequence_s",
        "rank_skew_s",
        "eager_per_layer_s",
        "per_prefill_layer_s",
    ],
) -> Term:
    value: float = getattr(overhead, figure)
    return leaf(value, f"overhead_{figure}", kind="calibrated", source=overhead.source.title, dimension="s")


def quantisation_launch_s(calibration: Calibration, dtype: str) -> Term:
    """What quantising activations adds to a layer: the dtype's t0 over that of bf16, never negative."""
    narrow, plain = (step_launch_s(calibration, "gemm", name) for name in (dtype, "bf16"))
    return maximum(constant(0.0), narrow - plain).named("quantisation_launch_s", "s")


def indexer_launch_s() -> Term:
    return leaf(
        INDEXER_LAUNCH_S,
        "indexer_launch_s",
        kind="calibrated",
        source="GLM-5 at tp 8 on H200, B200 and B300 (SGLang, 1 to 128 sequences), less what is explained",
        dimension="s",
    )
