"""What `auto` becomes: the chip with its overrides, its server, the fabric's spec, and the model.

The server and the topology default to the chip's own (tpu-v4 goes to its pod, DGX to rail-optimised), so
that "H100, 64 of them" is a complete description of hardware.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from simcore.catalog import Catalog, override_chip
from simcore.catalog.huggingface import architecture_from_config
from simcore.catalog.measured import measured_tables
from simcore.catalog.types import Calibration, Chip, LlmArchitecture, Server
from simcore.errors import Message
from simcore.fabric import AnyTopology, Topology
from simcore.scenario import Scenario
from simcore.scenario.schema import ModelChoice

_TOPOLOGY: TypeAdapter[Any] = TypeAdapter(Topology)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    chip: Chip
    calibration: Calibration
    reference_scaleup_bytes_per_s: float | None  # the link that collectives were measured on
    server: Server
    topology: AnyTopology
    warnings: tuple[Message, ...]


def resolve_hardware(scenario: Scenario, catalog: Catalog) -> Hardware:
    """Chip, server and wiring of a scenario, looked up and overridden."""
    chosen = scenario.hardware
    base = catalog.chip(chosen.chip)
    chip = override_chip(base, chosen.chip_overrides)
    server = catalog.server(chip.default_server if chosen.server == "auto" else chosen.server)
    wanted = chosen.calibration
    calibration = catalog.calibration_for(base) if wanted == "auto" else catalog.calibration(wanted)
    measured = scenario.workload.kind == "serving" and scenario.serving.kernels == "measured"
    if measured:
        tables = measured_tables(base.slug, scenario.serving.engine)
        calibration = replace(calibration, measured=tables, measured_on=base)
    return Hardware(
        chip=chip,
        calibration=calibration,
        reference_scaleup_bytes_per_s=base.scaleup_bytes_per_s or base.pcie_bytes_per_s,
        server=server,
        topology=scenario.topology or _default_topology(chip, server),
        warnings=(
            *_warnings(base, calibration, wanted=wanted),
            *([_without_tables(base)] if measured and calibration.measured is None else []),
        ),
    )


def resolve_model(choice: ModelChoice, catalog: Catalog) -> tuple[LlmArchitecture, list[Message]]:
    if choice.config is None:
        return catalog.model(choice.name), []
    return architecture_from_config(choice.config, name=choice.name)


def length_warnings(wanted: int | str, architecture: LlmArchitecture) -> list[Message]:
    """Where `serving.max_model_len` is longer than the model was made for."""
    if not isinstance(wanted, int) or wanted <= architecture.max_position:
        return []
    return [
        Message(
            code="length.beyond_model",
            template="{wanted:,} tokens are more than the {own:,} positions of {model}: vLLM refuses such a length "
            "unless VLLM_ALLOW_LONG_MAX_MODEL_LEN is set",
            params={"wanted": wanted, "own": architecture.max_position, "model": architecture.name},
            path="serving.max_model_len",
        )
    ]


def _default_topology(chip: Chip, server: Server) -> AnyTopology:
    found: AnyTopology = _TOPOLOGY.validate_python(dict(chip.default_topology or server.default_topology))
    return found


def _warnings(chip: Chip, calibration: Calibration, *, wanted: str) -> list[Message]:
    if calibration.is_class_default:
        return [_without_kernels(chip)] if wanted == "auto" else []
    fitted_for = calibration.chip or calibration.slug
    if wanted == "auto" or fitted_for in (chip.slug, chip.calibration):
        return []
    return [
        Message(
            code="calibration.other_chip",
            template="{calibration} was fitted on {other}; its shares of the peaks are used for {chip}",
            params={"calibration": calibration.name, "other": fitted_for, "chip": chip.name},
            path="hardware.calibration",
        )
    ]


def _without_tables(chip: Chip) -> Message:
    return Message(
        code="measured.no_tables",
        template="{chip} has no measured tables; its kernels are used as fitted",
        params={"chip": chip.name},
        path="serving.kernels",
    )


def _without_kernels(chip: Chip) -> Message:
    return Message(
        code="calibration.class_default",
        template="{chip} has no measured kernels here; class defaults are used, so expect a wider error",
        params={"chip": chip.name},
        path="hardware.chip",
    )
