"""Training runs as published, put to the engine: step times, scaling, activations kept per layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from simcore.catalog import default_catalog
from simcore.catalog.types import LlmArchitecture
from simcore.fabric.collectives import interconnect
from simcore.parallelism import Parallelism, pipeline_stages
from simcore.training import Training, TrainingInputs, training_step
from simcore.training.memory import layer_activation_bytes

_DEGREES: Final = ("tp", "pp", "dp", "cp", "ep")


def gpt(
    layers: int, hidden: int, heads: int, *, vocab: int = 51_200, positions: int = 2048
) -> LlmArchitecture:
    """A GPT-style decoder: plain MLP of four times the width, learned positions, tied head."""
    return LlmArchitecture(
        slug="gpt",
        name=f"GPT {layers}×{hidden}",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        intermediate=4 * hidden,
        vocab=vocab,
        gated_mlp=False,
        tied_embeddings=True,
        learned_positions=positions,
        max_position=positions,
    )


def run_inputs(
    arch: LlmArchitecture,
    chip_slug: str,
    degrees: Mapping[str, int],
    *,
    batch: float,
    length: int,
    **spec: Any,
) -> TrainingInputs:
    """Engine inputs of a run on servers of this chip, with a non-blocking fabric; `batch` in sequences."""
    catalog = default_catalog()
    chip = catalog.chip(chip_slug)
    calibration = catalog.calibration_for(chip)
    return TrainingInputs(
        arch=arch,
        chip=chip,
        calibration=calibration,
        network=interconnect(chip, catalog.server(chip.default_server), calibration),
        spec=Training.model_validate(
            {"sequence_length": length, "global_batch_tokens": round(batch * length), **spec}
        ),
        parallelism=Parallelism(**degrees),
    )


def _inputs(inputs: Mapping[str, Any]) -> TrainingInputs:
    options = dict(inputs)
    shape, model = options.pop("gpt", None), options.pop("model", None)
    arch = gpt(*shape) if shape else default_catalog().model(model)
    degrees: dict[str, int] = {name: options.pop(name) for name in _DEGREES if name in options}
    return run_inputs(arch, options.pop("chip"), {"tp": 1} | degrees, **options)


def _step_s(inputs: Mapping[str, Any]) -> float:
    return training_step(_inputs(inputs)).step_s.value


def _scaling(inputs: Mapping[str, Any]) -> float:
    """Tokens per second and chip, over those of the run that it is compared with."""
    options = dict(inputs)
    other = options | options.pop("against")
    now, then = (
        training_step(given).token_per_s.value / given.chip_count
        for given in (_inputs(options), _inputs({k: v for k, v in other.items() if k != "against"}))
    )
    return now / then


def _activation_bytes(inputs: Mapping[str, Any]) -> float:
    given = _inputs(inputs)
    return layer_activation_bytes(given, pipeline_stages(given.arch, 1)[0]).value


def _bubble(inputs: Mapping[str, Any]) -> float:
    return training_step(_inputs(inputs)).bubble_fraction.value


TRAINING_CHECKS: Final[Mapping[str, Callable[[Mapping[str, Any]], float]]] = {
    "training_activation_bytes": _activation_bytes,
    "training_bubble": _bubble,
    "training_scaling": _scaling,
    "training_step_s": _step_s,
}
