"""A measured matrix, studied: first what it says, then which topologies carry it, how fast and at what price.

Ranks are taken to be the chips of the given server, one behind the other; the chip is the catalog's that comes in that
server. Nothing is scaled: times are for the bytes of the matrix, whatever the time that it was measured over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simcore.analysis.matrix import MatrixSummary, flows_of, pairs_of, summarise
from simcore.analysis.topologies import Candidate, rank_topologies
from simcore.catalog import Catalog
from simcore.catalog.types import Chip, Server
from simcore.errors import InputError
from simcore.fabric.locality import Placement
from simcore.measurements.matrix import MeasuredMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixStudy:
    """The summary and the topologies, best first."""

    server: Server
    chip: Chip
    summary: MatrixSummary
    ranking: tuple[Candidate, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "server": self.server.slug,
            "chip": self.chip.slug,
            "summary": self.summary.as_dict(),
            "ranking": [candidate.as_dict() for candidate in self.ranking],
        }


def study(
    matrix: MeasuredMatrix, catalog: Catalog, *, server: str, given: Mapping[str, Any] | None = None
) -> MatrixStudy:
    """The matrix on chips of such servers; `given` are keys of the topology section."""
    chassis = catalog.server(server, path="server")
    chip = chip_in(catalog, chassis)
    domain = chassis.chips_per_server if chassis.scaleup_kind == "ici" else chassis.scaleup_domain_chip_count
    placement = Placement(
        rank_count=matrix.rank_count,
        domain_size=max(1, min(domain, matrix.rank_count)),
        chips_per_nic=max(1, -(-chassis.chips_per_server // max(1, chassis.nic_count))),
    )
    pairs = pairs_of(matrix)
    return MatrixStudy(
        server=chassis,
        chip=chip,
        summary=summarise(matrix, placement, pairs),
        ranking=tuple(
            rank_topologies(
                flows_of(pairs),
                chip=chip,
                server=chassis,
                chip_count=matrix.rank_count,
                catalog=catalog,
                given=given,
            )
        ),
    )


def chip_in(catalog: Catalog, server: Server) -> Chip:
    """The catalog's chip that comes in this server."""
    for chip in catalog.chips.values():
        if chip.default_server == server.slug:
            return chip
    raise InputError.at(
        "server",
        "matrix.no_chip",
        "no chip of the catalog comes in {server}; use one of {allowed}",
        server=server.slug,
        allowed=", ".join(servers_with_chips(catalog)),
    )


def servers_with_chips(catalog: Catalog) -> list[str]:
    return sorted({chip.default_server for chip in catalog.chips.values()})
