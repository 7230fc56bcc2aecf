"""Torus of chips joined by their scale-up links alone, as in TPU pods: no switch in the network.

A dimension of size s > 2 closes into a ring; of size 2 it is one link; of size 1 none. Links: N per
dimension that closes. Diameter: `Σ floor(s/2)`. Bisection per direction: the ring links across the
longest dimension, `2·N/s` of them (TPU v4, 16³: 512 links). Hops by convolution of the rings' distances.
Limits: two or three dimensions; twisted tori are not built here; all links have one rate, the chip's
scale-up bandwidth divided by its links (two per dimension).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from simcore.errors import InputError
from simcore.fabric.base import Fabric, FailureDomain, Segment, Site
from simcore.fabric.lattice import (
    best_shape,
    bisection_links,
    link_rate,
    link_terms,
    torus_histogram,
)
from simcore.fabric.specs import TopologySpec
from simcore.why import constant, total


class Torus(TopologySpec):
    """2-D or 3-D torus, wired once."""

    kind: Literal["torus"] = "torus"
    shape: Literal["auto"] | tuple[int, ...] = Field(default="auto", description="chips along each dimension")
    dimensions: Literal[2, 3] = Field(default=3, description="used by shape: auto, the most cubic shape")
    price_book: str = "h100-sheet-2024-08"

    @field_validator("shape")
    @classmethod
    def _two_or_three(cls, shape: Literal["auto"] | tuple[int, ...]) -> Literal["auto"] | tuple[int, ...]:
        if shape != "auto" and (len(shape) not in (2, 3) or any(not 1 <= size <= 1024 for size in shape)):
            raise ValueError(
                f"got {list(shape)}; allowed are two or three sizes of 1 to 1024, such as [16, 16, 16]"
            )
        return shape


def build(spec: Torus, site: Site) -> Fabric:
    shape = best_shape(site.chip_count, spec.dimensions) if spec.shape == "auto" else spec.shape
    count = 1
    for size in shape:
        count *= size
    if count != site.chip_count:
        raise InputError.at(
            "topology.shape",
            "fabric.shape",
            "{shape} has {count:,} chips, hardware.chip_count is {chip_count:,}; "
            "make them equal or use shape: auto",
            shape=" × ".join(map(str, shape)),
            count=count,
            chip_count=site.chip_count,
        )
    links = link_terms(site, shape)
    rate = link_rate(site, len(shape))
    bisection = (bisection_links(site, shape) * rate).named("bisection_bytes_per_s")
    everything = total(constant(0, "no link"), *links).named("link_count")
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
        hop_histogram=torus_histogram(shape),
        reachable_fraction=1.0,
        bisection_bytes_per_s=bisection.value,
        failure_domains=(
            FailureDomain(component="chip", count=count, chip_count=1, capacity_loss_fraction=1 / count),
        ),
        shape=shape,
        terms={
            "fabric.link_count": everything,
            "fabric.switch_count": constant(0, "a torus has no switch"),
            "fabric.bisection_bytes_per_s": bisection,
        },
    )
