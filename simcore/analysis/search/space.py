"""The hardware that a search tries: chips in their own servers, on each kind of fabric, and ways to cut the model.

A site is one chip on one fabric kind. Chip figures that the scenario overrides and its server hold for its own chip
alone; every other one stands in its default server. Left out is what cannot be: cuts that do not divide the model,
formats that the chip does not multiply in, fabrics that cannot be built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from simcore.analysis.search.spec import FabricKind, Search
from simcore.catalog import Catalog
from simcore.catalog.types import LlmArchitecture
from simcore.cost import CostModel
from simcore.errors import TrimtabError
from simcore.fabric import Fabric, Topology
from simcore.parallelism import Parallelism
from simcore.plan import priced
from simcore.plan.cutting import check_divides
from simcore.plan.resolve import Hardware, resolve_hardware
from simcore.plan.wiring import built
from simcore.scenario import Scenario

_TOPOLOGY: TypeAdapter[Any] = TypeAdapter(Topology)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A chip in its server on a fabric kind, at any count."""

    chip: str
    fabric_kind: FabricKind
    catalog: Catalog
    scenario: Scenario
    hardware: Hardware
    _costs: dict[int, CostModel | None] = field(default_factory=dict)

    def at(self, chip_count: int) -> Scenario:
        """The scenario with so many of the chips."""
        hardware = self.scenario.hardware.model_copy(update={"chip_count": chip_count})
        return self.scenario.model_copy(update={"hardware": hardware})

    def fabric(self, chip_count: int) -> Fabric | None:
        """The fabric of so many chips; None where this kind has none of that size."""
        try:
            return built(resolve_hardware(self.at(chip_count), self.catalog))
        except TrimtabError:
            return None

    def cost(self, chip_count: int) -> CostModel | None:
        """The money side of so many chips; None where they cannot be wired."""
        if chip_count not in self._costs:
            fabric = self.fabric(chip_count)
            self._costs[chip_count] = (
                None if fabric is None else priced(self.at(chip_count), fabric, self.catalog)
            )
        return self._costs[chip_count]

    def widest_fabric(self, most: int) -> Fabric | None:
        """The fabric of `most` chips, or of the largest power of two below that can be built."""
        counts = [most, *(2**power for power in range(most.bit_length() - 1, -1, -1))]
        return next((fabric for count in counts if (fabric := self.fabric(count)) is not None), None)


def sites(scenario: Scenario, search: Search, catalog: Catalog) -> Iterator[Site]:
    """Each chip on each fabric kind. Raises InputError where the catalog does not have a chip."""
    for slug in dict.fromkeys(search.chips):
        catalog.chip(slug, path="chips")
        for kind in dict.fromkeys(search.fabrics):
            placed = _placed(scenario, slug, kind)
            yield Site(
                chip=slug,
                fabric_kind=kind,
                catalog=catalog,
                scenario=placed,
                hardware=resolve_hardware(placed, catalog),
            )


def _placed(scenario: Scenario, slug: str, kind: FabricKind) -> Scenario:
    own = scenario.hardware
    update: dict[str, Any] = {"pools": ()}
    if slug != own.chip:
        update |= {"chip": slug, "chip_overrides": {}, "server": "auto", "calibration": "auto"}
    topology = scenario.topology if slug == own.chip else None
    if kind != "auto" and (topology is None or topology.kind != kind):
        topology = _TOPOLOGY.validate_python({"kind": kind})
    return scenario.model_copy(update={"hardware": own.model_copy(update=update), "topology": topology})


def cuts(search: Search, architecture: LlmArchitecture, *, most: int) -> Iterator[Parallelism]:
    """Every legal way to cut the model over at most so many chips: experts whole on a chip or sliced over all."""
    for tp in search.tp:
        for pp in search.pp:
            for dp in search.dp if architecture.is_moe else (1,):
                for ep in dict.fromkeys((1, dp * tp)) if architecture.is_moe else (1,):
                    cut = Parallelism(tp=tp, pp=pp, dp=dp, ep=ep)
                    if cut.replica_chip_count <= most and _divides(cut, architecture):
                        yield cut


def _divides(cut: Parallelism, architecture: LlmArchitecture) -> bool:
    if cut.pp > architecture.layers or (cut.dp > 1 and cut.ep == 1):
        return False  # sliced over ranks of one model that attends apart: nobody runs it
    try:
        check_divides(cut, architecture)
    except TrimtabError:
        return False
    return True
