"""Torus of chips joined by their scale-up links alone, as in TPU pods: no switch in the network.

A dimension of size s > 2 closes into a ring; of size 2 it is one link; of size 1 none. Links: N per
dimension that closes. Diameter: `Σ floor(s/2)`. Bisection per direction: the ring links across the
longest dimension, `2·N/s` of them (TPU v4, 16³: 512 links). Hops by convolution of the rings' distances.

Twisted: n × 2n, n × n × 2n or n × 2n × 2n, where a link around a short dimension lands n further along each long
one (Cámara et al. 2010; TPU v4, ISCA 2023). All chips and, with all traffic even, all links stay alike: an
all-to-all takes the mean distance over the links of a chip, 1.75 times less than untwisted on 4 × 4 × 8. The cut
moves to the shortest dimension, `2·N/n` links. Distances from one chip are all distances.
Limits: two or three dimensions; all links have one rate, the chip's scale-up bandwidth divided by its links (two
per dimension).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from simcore.fabric.base import Fabric, FailureDomain, Segment, Site
from simcore.fabric.lattice import (
    best_shape,
    bisection_links,
    link_rate,
    link_terms,
    path_terms,
    torus_histogram,
)
from simcore.fabric.shapes import Shape, Twist, auto_shape, check_shape, is_twisted
from simcore.fabric.specs import TopologySpec
from simcore.why import constant, leaf, total


class Torus(TopologySpec):
    """2-D or 3-D torus, wired once."""

    kind: Literal["torus"] = "torus"
    shape: Literal["auto"] | Shape = Field(default="auto", description="chips along each dimension")
    dimensions: Literal[2, 3] = Field(default=3, description="used by shape: auto, the most cubic shape")
    twisted: Twist = Field(
        default=False, description="shift around short dimensions; auto: where the shape allows"
    )
    price_book: str = "h100-sheet-2024-08"

    @field_validator("shape")
    @classmethod
    def _two_or_three(cls, shape: Literal["auto"] | Shape) -> Literal["auto"] | Shape:
        if shape != "auto" and (len(shape) not in (2, 3) or any(not 1 <= size <= 1024 for size in shape)):
            raise ValueError(
                f"got {list(shape)}; allowed are two or three sizes of 1 to 1024, such as [16, 16, 16]"
            )
        return shape


def build(spec: Torus, site: Site) -> Fabric:
    shape = _shape(spec, site)
    twisted = is_twisted(spec.twisted, shape, count=site.chip_count)
    links = link_terms(site, shape)
    rate = link_rate(site, len(shape))
    chips = leaf(site.chip_count, "chip_count", path="hardware.chip_count")
    bisection = (bisection_links(chips, shape, twisted=twisted) * rate).named("bisection_bytes_per_s")
    everything = total(constant(0, "no link"), *links).named("link_count")
    paths, disjoint = path_terms(shape, twisted=twisted)
    return Fabric(
        kind=spec.kind,
        chip_count=site.chip_count,
        endpoint_count=site.chip_count,
        hb_domain_size=site.chip_count,
        tiers=(),
        segments=(Segment(lower="chip", upper="chip", link_count=int(everything.value), medium="scaleup"),),
        link_bytes_per_s=rate.value,
        transceiver_convention="both_ends",
        transceivers={"both_ends": 0, "copper_first_hop": 0, "twin_port": 0},
        island_count=1,
        island_size=site.chip_count,
        hop_histogram=torus_histogram(shape, twisted=twisted),
        reachable_fraction=1.0,
        bisection_bytes_per_s=bisection.value,
        failure_domains=(_chip_failure(site.chip_count),),
        shape=shape,
        is_twisted=twisted,
        terms={
            "fabric.link_count": everything,
            "fabric.switch_count": constant(0, "a torus has no switch"),
            "fabric.bisection_bytes_per_s": bisection,
            "fabric.path_count": paths,
            "fabric.disjoint_path_count": disjoint,
        },
    )


def _shape(spec: Torus, site: Site) -> Shape:
    if spec.shape == "auto":
        return auto_shape(spec.twisted, best_shape(site.chip_count, spec.dimensions))
    check_shape(spec.shape, best_shape(site.chip_count, len(spec.shape)))
    return spec.shape


def _chip_failure(count: int) -> FailureDomain:
    return FailureDomain(component="chip", count=count, chip_count=1, capacity_loss_fraction=1 / count)
