"""Cubes of chips joined by optical circuit switches, as in TPU v4, v5p and Ironwood pods.

Inside a 4×4×4 cube, copper: 144 links. On each of its six faces 16 links leave by fibre to the optical
switches, 96 per cube; opposite faces' links of one position meet on one switch, so 3 × 16 = 48 switches
serve a pod and each uses two ports per cube (64 cubes: 128 of 136). One transceiver per fibre (the switch
is passive): 1.5 per chip (Jouppi et al., TPU v4, ISCA 2023). The cubes form any torus of cubes, twisted too
(`simcore.fabric.torus`); distances here are those of one slice over all cubes, of the `shape` given or the most
cubic one. Fewer chips than a cube are a mesh inside it.
A generation says how many cubes a pod has, and how many one slice may take.
Limits: a partly used cube is built whole; the pod is one group of 48 switches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field, field_validator

from simcore.errors import InfeasibleError, Message
from simcore.fabric.base import Fabric, FailureDomain, Segment, Site
from simcore.fabric.hops import Histogram
from simcore.fabric.lattice import best_shape, bisection_links, link_rate, path_terms, torus_histogram
from simcore.fabric.shapes import Shape, Twist, auto_shape, check_shape, is_twisted
from simcore.fabric.specs import TRANSCEIVER_CONVENTIONS, TopologySpec
from simcore.why import Term, ceil, constant, leaf

EDGE = 4
CUBE_CHIPS = EDGE**3
FACE_LINKS = EDGE**2
CHIPS_PER_HOST = 4
OCS_COUNT = 3 * FACE_LINKS
FIBRES_PER_CUBE = 6 * FACE_LINKS
COPPER_PER_CUBE = 3 * EDGE**2 * (EDGE - 1)
# Usable ports: 128 of Palomar's 136; 288 fibres per switch in a 144-cube Ironwood pod.
SWITCH_PORTS = (128, 288)


@dataclass(frozen=True, slots=True)
class Generation:
    """Cubes of a pod, and of its largest slice."""

    pod_cubes: int
    slice_cubes: int


# TPU v4: 4,096 chips; v5p: 8,960, and 6,144 in one slice; Ironwood: 9,216; 8t: 9,600 (public pages of Google Cloud).
GENERATIONS: Final = {
    "tpu-v4": Generation(64, 64),
    "tpu-v5p": Generation(140, 96),
    "tpu7x": Generation(144, 144),
    "tpu-8t": Generation(150, 150),
}


class OcsPod(TopologySpec):
    """Cubes of 64 chips joined by optical circuit switches."""

    kind: Literal["ocs_pod"] = "ocs_pod"
    generation: Literal["auto", "tpu-v4", "tpu-v5p", "tpu7x", "tpu-8t"] = Field(
        default="auto",
        description="how large a pod and its slices may be; auto: as the switches' ports allow",
    )
    ocs_usable_ports: Literal["auto"] | int = Field(
        default="auto", description="usable ports per optical switch; auto: 128 (64 cubes), beyond that 288"
    )
    shape: Literal["auto"] | Shape = Field(default="auto", description="chips along each dimension")
    twisted: Twist = Field(
        default=False, description="shift around short dimensions; auto: where the shape allows"
    )
    price_book: str = "h100-sheet-2024-08"

    @field_validator("shape")
    @classmethod
    def _whole_cubes(cls, shape: Literal["auto"] | Shape) -> Literal["auto"] | Shape:
        if shape != "auto" and (
            len(shape) != 3 or any(size % EDGE or not 4 <= size <= 1024 for size in shape)
        ):
            raise ValueError(
                f"got {list(shape)}; allowed are three multiples of 4 up to 1024, such as [8, 8, 16]"
            )
        return shape


def build(spec: OcsPod, site: Site) -> Fabric:
    chips = leaf(site.chip_count, "chip_count", path="hardware.chip_count")
    if site.chip_count < CUBE_CHIPS:
        return _inside_one_cube(spec, site)
    cubes = ceil(chips / constant(CUBE_CHIPS, "chips_per_cube")).named("cube_count")
    count = int(cubes.value)
    _check_ports(spec, count)
    shape = _shape(spec, count)
    twisted = is_twisted(spec.twisted, shape, count=count * CUBE_CHIPS, unit=EDGE)
    rate = link_rate(site, 3)
    terms = _terms(cubes, bisection_links(cubes * CUBE_CHIPS, shape, twisted=twisted) * rate)
    paths, disjoint = path_terms(shape, twisted=twisted)
    fibres = count * FIBRES_PER_CUBE
    return Fabric(
        kind=spec.kind,
        chip_count=site.chip_count,
        endpoint_count=count * CUBE_CHIPS,
        hb_domain_size=site.chip_count,
        tiers=(),
        segments=(
            Segment(lower="chip", upper="chip", link_count=count * COPPER_PER_CUBE, medium="copper"),
            Segment(lower="chip", upper="ocs", link_count=fibres, medium="optical"),
        ),
        link_bytes_per_s=rate.value,
        ocs_count=OCS_COUNT,
        transceiver_convention="both_ends",
        transceivers=dict.fromkeys(TRANSCEIVER_CONVENTIONS, fibres),
        island_count=1,
        island_size=site.chip_count,
        hop_histogram=torus_histogram(shape, twisted=twisted),
        reachable_fraction=1.0,
        bisection_bytes_per_s=terms["fabric.bisection_bytes_per_s"].value,
        failure_domains=_failure_domains(count),
        warnings=_larger_than_a_slice(spec, count),
        shape=shape,
        is_twisted=twisted,
        chosen={"cubes": count},
        terms=terms | {"fabric.path_count": paths, "fabric.disjoint_path_count": disjoint},
    )


def _shape(spec: OcsPod, cubes: int) -> Shape:
    """The slice over all cubes."""
    most_cubic = tuple(EDGE * size for size in best_shape(cubes, 3))
    if spec.shape != "auto":
        check_shape(spec.shape, most_cubic)
        return spec.shape
    return auto_shape(spec.twisted, most_cubic, unit=EDGE)


def _terms(cubes: Term, bisection: Term) -> dict[str, Term]:
    fibres = (cubes * FIBRES_PER_CUBE).named("optical_link_count")
    copper = (cubes * COPPER_PER_CUBE).named("copper_link_count")
    return {
        "fabric.switch_count": constant(0, "no packet switch"),
        "fabric.ocs_count": constant(OCS_COUNT, "3 dimensions × 16 positions").named("ocs_count"),
        "fabric.link_count": (copper + fibres).named("link_count"),
        "fabric.transceiver_count": (fibres * 1).named("transceiver_count"),
        "fabric.bisection_bytes_per_s": bisection.named("bisection_bytes_per_s"),
    }


def _check_ports(spec: OcsPod, cubes: int) -> None:
    pod = GENERATIONS.get(spec.generation)
    if pod is not None and cubes > pod.pod_cubes:
        raise InfeasibleError.at(
            "topology.generation",
            "fabric.pod_size",
            "{cubes} cubes do not fit: a pod of {generation} has {limit}; use at most {chips:,} chips",
            cubes=cubes,
            generation=spec.generation,
            limit=pod.pod_cubes,
            chips=pod.pod_cubes * CUBE_CHIPS,
        )
    ports = spec.ocs_usable_ports
    usable = (2 * pod.pod_cubes if pod else max(SWITCH_PORTS)) if ports == "auto" else ports
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


def _larger_than_a_slice(spec: OcsPod, cubes: int) -> tuple[Message, ...]:
    pod = GENERATIONS.get(spec.generation)
    if pod is None or cubes <= pod.slice_cubes:
        return ()
    return (
        Message(
            code="fabric.slice_size",
            template="a slice of {generation} has at most {limit:,} chips: distances and bisection are those of "
            "one torus over all {chips:,}, which no job can have",
            params={
                "generation": spec.generation,
                "limit": pod.slice_cubes * CUBE_CHIPS,
                "chips": cubes * CUBE_CHIPS,
            },
            path="topology.generation",
        ),
    )


def _failure_domains(cubes: int) -> tuple[FailureDomain, ...]:
    """A host takes its whole cube out of a slice; an optical switch takes one ring of every slice."""
    hosts = cubes * CUBE_CHIPS // CHIPS_PER_HOST
    return (
        FailureDomain(
            component="host", count=hosts, chip_count=CHIPS_PER_HOST, capacity_loss_fraction=1 / hosts
        ),
        FailureDomain(component="cube", count=cubes, chip_count=CUBE_CHIPS, capacity_loss_fraction=1 / cubes),
        FailureDomain(
            component="optical switch", count=OCS_COUNT, chip_count=0, capacity_loss_fraction=1 / OCS_COUNT
        ),
    )


def _inside_one_cube(spec: OcsPod, site: Site) -> Fabric:
    """A mesh without wrap-around: distances along a line instead of a ring."""
    count, shape = site.chip_count, best_shape(site.chip_count, 3)
    if spec.shape != "auto":
        check_shape(spec.shape, shape)
    is_twisted(spec.twisted, shape, count=count, unit=EDGE)
    chips = leaf(count, "chip_count", path="hardware.chip_count")
    absent = [chips / leaf(size, "dimension", path="hardware.chip_count") for size in shape]
    links = 3 * chips - sum(absent[1:], absent[0])
    rate = link_rate(site, 3)
    longest = max(shape)
    cut = (
        chips / leaf(longest, "longest_dimension", kind="derived", source="the shape of the torus")
        if longest > 1
        else constant(0, "one chip")
    )
    bisection = (cut * rate).named("bisection_bytes_per_s")
    paths, disjoint = path_terms(shape, closes=False)
    return Fabric(
        kind=spec.kind,
        chip_count=count,
        endpoint_count=count,
        hb_domain_size=count,
        tiers=(),
        segments=(Segment(lower="chip", upper="chip", link_count=int(links.value), medium="copper"),),
        link_bytes_per_s=rate.value,
        transceiver_convention="both_ends",
        transceivers={"both_ends": 0, "copper_first_hop": 0, "twin_port": 0},
        island_count=1,
        island_size=count,
        hop_histogram=_mesh_histogram(shape),
        reachable_fraction=1.0,
        bisection_bytes_per_s=bisection.value,
        failure_domains=(
            FailureDomain(component="chip", count=count, chip_count=1, capacity_loss_fraction=1 / count),
        ),
        terms={
            "fabric.switch_count": constant(0, "no packet switch"),
            "fabric.link_count": links.named("link_count"),
            "fabric.bisection_bytes_per_s": bisection,
            "fabric.path_count": paths,
            "fabric.disjoint_path_count": disjoint,
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
