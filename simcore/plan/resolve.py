"""What `auto` becomes: the chip with its overrides, its server, the fabric's spec, and the model.

Further pools have chips, servers and calibrations of their own; the wiring is one for all, shaped by the main one.
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
from simcore.catalog.types import Calibration, Chip, LlmArchitecture, ScaleupDomain, Server
from simcore.errors import Message
from simcore.fabric import AnyTopology, Topology
from simcore.scenario import Scenario
from simcore.scenario.schema import ModelChoice
from simcore.serving.schedulers.disaggregated import MAIN_POOL

_TOPOLOGY: TypeAdapter[Any] = TypeAdapter(Topology)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedChips:
    """A pool: equal chips in equal servers."""

    name: str
    path: str  # where the scenario describes it
    chip: Chip
    calibration: Calibration
    reference_scaleup_bytes_per_s: float | None  # the link that collectives were measured on
    server: Server
    chip_count: int
    warnings: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The pools, the main one first, and the wiring of all of them."""

    pools: tuple[OwnedChips, ...]
    topology: AnyTopology
    scaleup_domain: ScaleupDomain | None  # as the main server is sold

    @property
    def main(self) -> OwnedChips:
        return self.pools[0]

    @property
    def chip(self) -> Chip:
        return self.main.chip

    @property
    def calibration(self) -> Calibration:
        return self.main.calibration

    @property
    def reference_scaleup_bytes_per_s(self) -> float | None:
        return self.main.reference_scaleup_bytes_per_s

    @property
    def server(self) -> Server:
        return self.main.server

    @property
    def chip_count(self) -> int:
        return sum(pool.chip_count for pool in self.pools)

    @property
    def warnings(self) -> tuple[Message, ...]:
        return tuple(message for pool in self.pools for message in pool.warnings) + self._one_fabric

    @property
    def _one_fabric(self) -> tuple[Message, ...]:
        if all(pool.server == self.server for pool in self.pools):
            return ()
        return (
            Message(
                code="pools.one_fabric",
                template="one fabric is built for all {chips:,} chips, as if all stood in {server}; each pool has its "
                "own servers' NICs and scale-up domain",
                params={"chips": self.chip_count, "server": self.server.name},
                path="hardware.pools",
            ),
        )


def resolve_hardware(scenario: Scenario, catalog: Catalog) -> Hardware:
    """Chips, servers and wiring of a scenario, looked up and overridden."""
    chosen = scenario.hardware
    main = _owned(
        scenario,
        catalog,
        name=MAIN_POOL,
        path="hardware",
        base=catalog.chip(chosen.chip),
        server=chosen.server,
        chip_count=chosen.chip_count,
    )
    further = [
        _owned(
            scenario,
            catalog,
            name=pool.name,
            path=f"hardware.pools.{place}",
            base=catalog.chip(pool.chip, path=f"hardware.pools.{place}.chip"),
            server=pool.server,
            chip_count=pool.chip_count,
        )
        for place, pool in enumerate(chosen.pools)
    ]
    return Hardware(
        pools=(main, *further),
        topology=scenario.topology or _default_topology(main.chip, main.server),
        scaleup_domain=catalog.scaleup_domain_of(main.server),
    )


def _owned(
    scenario: Scenario, catalog: Catalog, *, name: str, path: str, base: Chip, server: str, chip_count: int
) -> OwnedChips:
    """A pool; chip overrides and a chosen calibration are the main one's."""
    chosen, is_main = scenario.hardware, name == MAIN_POOL
    chip = override_chip(base, chosen.chip_overrides) if is_main else base
    wanted = chosen.calibration if is_main else "auto"
    calibration = catalog.calibration_for(base) if wanted == "auto" else catalog.calibration(wanted)
    measured = scenario.workload.kind == "serving" and scenario.serving.kernels == "measured"
    if measured:
        tables = measured_tables(base.slug, scenario.serving.engine)
        calibration = replace(calibration, measured=tables, measured_on=base)
    return OwnedChips(
        name=name,
        path=path,
        chip=chip,
        calibration=calibration,
        reference_scaleup_bytes_per_s=base.scaleup_bytes_per_s or base.pcie_bytes_per_s,
        server=catalog.server(chip.default_server if server == "auto" else server, path=f"{path}.server"),
        chip_count=chip_count,
        warnings=(
            *_warnings(base, calibration, wanted=wanted, path=path),
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


def _warnings(chip: Chip, calibration: Calibration, *, wanted: str, path: str) -> list[Message]:
    if calibration.is_class_default:
        return [_without_kernels(chip, path)] if wanted == "auto" else []
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


def _without_kernels(chip: Chip, path: str) -> Message:
    return Message(
        code="calibration.class_default",
        template="{chip} has no measured kernels here; class defaults are used, so expect a wider error",
        params={"chip": chip.name},
        path=f"{path}.chip",
    )
