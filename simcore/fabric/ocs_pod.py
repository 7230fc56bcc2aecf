"""Cubes of chips joined by optical circuit switches, as in TPU v4, v5p and Ironwood pods.

Inside a 4×4×4 cube, copper: 144 links. On each of its six faces 16 links leave by fibre to the optical
switches, 96 per cube; opposite faces' links of one position meet on one switch, so 3 × 16 = 48 switches
serve a pod and each uses two ports per cube (64 cubes: 128 of 136). One transceiver per fibre (the switch
is passive): 1.5 per chip (Jouppi et al., TPU v4, ISCA 2023). The cubes form any torus of cubes; distances
here are those of the most cubic one over all cubes. Fewer chips than a cube are a mesh inside it.
Limits: a partly used cube is built whole; the pod is one group of 48 switches.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from simcore.errors import InfeasibleError
from simcore.fabric.base import Fabric, FailureDomain, Segment, Site
from simcore.fabric.hops import Histogram
from simcore.fabric.lattice import best_shape, link_rate, torus_histogram
from simcore.fabric.specs import TopologySpec
from simcore.why import Term, ceil, constant, leaf

EDGE = 4
CUBE_CHIPS = EDGE**3
FACE_LINKS = EDGE**2
CHIPS_PER_HOST = 4
_SHAPE = "the most cubic torus of all cubes"
# Usable ports: 128 of Palomar's 136; 288 fibres per switch in a 144-cube Ironwood pod.
SWITCH_PORTS = (128, 288)


class OcsPod(TopologySpec):
    """Cubes of 64 chips joined by optical circuit switches."""

    kind: Literal["ocs_pod"] = "ocs_pod"
    ocs_usable_ports: Literal["auto"] | int = Field(
        default="auto", description="usable ports per optical switch; auto: 128 (64 cubes), beyond that 288"
    )
    price_book: str = "h100-sheet-2024-08"


def build(spec: OcsPod, site: Site) -> Fabric:
    chips = leaf(site.chip_count, "chip_count", path="hardware.chip_count")
    if site.chip_count < CUBE_CHIPS:
        return _inside_one_cube(spec, site)
    cubes = ceil(chips / constant(CUBE_CHIPS, "chips_per_cube")).named("cube_count")
    _check_ports(spec, int(cubes.value))
    shape = tuple(EDGE * size for size in best_shape(int(cubes.value), 3))
    fibres = (cubes * (6 * FACE_LINKS)).named("optical_link_count")
    copper = (cubes * (3 * EDGE**2 * (EDGE - 1))).named("copper_link_count")
    switches = constant(3 * FACE_LINKS, "3 dimensions × 16 positions")
    rate = link_rate(site, 3)
    # A cut through the longest dimension meets two links of every ring across it.
    cut = 2 * cubes * CUBE_CHIPS / leaf(max(shape), "longest_dimension", kind="derived", source=_SHAPE)
    bisection = (cut * rate).named("bisection_bytes_per_s")
    modules = int(fibres.value)
    return Fabric(
        kind=spec.kind,
        chip_count=site.chip_count,
        endpoint_count=int(cubes.value) * CUBE_CHIPS,
        hb_domain_size=site.chip_count,
        tiers=(),
        segments=(
            Segment(lower="chip", upper="chip", link_count=int(copper.value), medium="copper"),
            Segment(lower="chip", upper="ocs", link_count=modules, medium="optical"),
        ),
        link_bytes_per_s=rate.value,
        ocs_count=int(switches.value),
        transceiver_convention="both_ends",
        transceivers={"both_ends": modules, "copper_first_hop": modules, "twin_port": modules},
        island_count=1,
        island_size=site.chip_count,
        hop_histogram=torus_histogram(shape),
        reachable_fraction=1.0,
        bisection_bytes_per_s=bisection.value,
        failure_domains=_failure_domains(int(cubes.value)),
        shape=shape,
        terms=_terms(copper, fibres, switches, bisection),
    )


def _terms(copper: Term, fibres: Term, switches: Term, bisection: Term) -> dict[str, Term]:
    return {
        "fabric.switch_count": constant(0, "no packet switch"),
        "fabric.ocs_count": switches.named("ocs_count"),
        "fabric.link_count": (copper + fibres).named("link_count"),
        "fabric.transceiver_count": (fibres * 1).named("transceiver_count"),
        "fabric.bisection_bytes_per_s": bisection,
    }


def _check_ports(spec: OcsPod, cubes: int) -> None:
    ports = spec.ocs_usable_ports
    usable = max(SWITCH_PORTS) if ports == "auto" else ports
    if 2 * cubes > usable:
        raise InfeasibleError.at(
            "topology.ocs_usable_ports",
            "fabric.ocs_ports",
            "{cubes} cubes need 2 × cubes ≤ usable ports, but {needed} > {usable}; "
            "use at most {limit:,} chips",
            cubes=cubes,
            needed=2 * cubes,
            usable=usable,
            limit=usable // 2 * CUBE_CHIPS,
        )


def _failure_domains(cubes: int) -> tuple[FailureDomain, ...]:
    """A host takes its whole cube out of a slice; an optical switch takes one ring of every slice."""
    hosts = cubes * CUBE_CHIPS // CHIPS_PER_HOST
    return (
        FailureDomain(
            component="host", count=hosts, chip_count=CHIPS_PER_HOST, capacity_loss_fraction=1 / hosts
        ),
        FailureDomain(component="cube", count=cubes, chip_count=CUBE_CHIPS, capacity_loss_fraction=1 / cubes),
        FailureDomain(component="optical switch", count=48, chip_count=0, capacity_loss_fraction=1 / 48),
    )


def _inside_one_cube(spec: OcsPod, site: Site) -> Fabric:
    """A mesh without wrap-around: distances along a line instead of a ring."""
    shape = best_shape(site.chip_count, 3)
    chips = leaf(site.chip_count, "chip_count", path="hardware.chip_count")
    absent = [chips / leaf(size, "dimension", path="hardware.chip_count") for size in shape]
    links = 3 * chips - sum(absent[1:], absent[0])
    rate = link_rate(site, 3)
    longest = max(shape)
    cut = (
        chips / leaf(longest, "longest_dimension", kind="derived", source=_SHAPE)
        if longest > 1
        else constant(0, "one chip")
    )
    bisection = (cut * rate).named("bisection_bytes_per_s")
    count = int(links.value)
    return Fabric(
        kind=spec.kind,
        chip_count=site.chip_count,
        endpoint_count=site.chip_count,
        hb_domain_size=site.chip_count,
        tiers=(),
        segments=(Segment(lower="chip", upper="chip", link_count=count, medium="copper"),),
        link_bytes_per_s=rate.value,
        transceiver_convention="both_ends",
        transceivers={"both_ends": 0, "copper_first_hop": 0, "twin_port": 0},
        island_count=1,
        island_size=site.chip_count,
        hop_histogram=_mesh_histogram(shape),
        reachable_fraction=1.0,
        bisection_bytes_per_s=bisection.value,
        failure_domains=(
            FailureDomain(
                component="chip",
                count=site.chip_count,
                chip_count=1,
                capacity_loss_fraction=1 / site.chip_count,
            ),
        ),
        terms={
            "fabric.switch_count": constant(0, "no packet switch"),
            "fabric.link_count": links.named("link_count"),
            "fabric.bisection_bytes_per_s": bisection,
        },
    )


def _mesh_histogram(shape: tuple[int, ...]) -> Histogram:
    counts: dict[int, int] = {0: 1}
    for size in shape:
        line = {step: size if step == 0 else 2 * (size - step) for step in range(size)}
        counts = _convolved(counts, line)
    pairs = sum(count for hops, count in counts.items() if hops)
    return tuple((hops, counts[hops] / pairs) for hops in sorted(counts) if hops)


def _convolved(left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for a, count in left.items():
        for b, other in right.items():
            found[a + b] = found.get(a + b, 0) + count * other
    return found
