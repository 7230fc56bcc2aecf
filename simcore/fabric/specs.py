"""The keys that topologies share: those of every network of switches, and those of a folded Clos."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from simcore.spec import Spec
from simcore.why import Term, leaf

TransceiverConvention = Literal["both_ends", "copper_first_hop", "twin_port"]
TRANSCEIVER_CONVENTIONS: tuple[TransceiverConvention, ...] = ("both_ends", "copper_first_hop", "twin_port")
MAX_DOMAIN = 1_048_576
RoutingChoice = Literal["auto", "ecmp", "hashed", "adaptive", "dimension_order", "minimal_adaptive"]
ClassSharing = Literal["max_min", "strict", "weighted"]
Weight = Annotated[float, Field(gt=0, le=1000)]
AutoCount = Literal["auto"] | Annotated[int, Field(ge=1, le=4096)]


class Degraded(Spec):
    """A link or a switch that has lost capacity; at 0 it is dead."""

    link: str | None = Field(default=None, description="its two ends, such as leaf 3 → spine 1")
    switch: str | None = Field(default=None, description="such as spine 2")
    capacity_fraction: float = Field(default=0.0, ge=0, le=1, description="what is left of its capacity")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.link is None) == (self.switch is None):
            raise ValueError("name either a link, such as leaf 3 → spine 1, or a switch, such as spine 2")
        return self


class TopologySpec(Spec):
    """The keys that all topologies share."""

    degraded: tuple[Degraded, ...] = Field(
        default=(), max_length=1000, description="links and switches that have lost capacity"
    )
    routing: RoutingChoice = Field(
        default="auto", description="auto: dimension order on a torus, even ECMP over switches"
    )
    class_sharing: ClassSharing = Field(
        default="max_min", description="how core, inter-domain and management traffic share a link"
    )
    class_weight_ratio: tuple[Weight, Weight, Weight] = Field(
        default=(4.0, 2.0, 1.0),
        description="of core, inter-domain and management; for class_sharing: weighted",
    )


class NetworkSpec(TopologySpec):
    """The keys that all networks of packet switches share."""

    radix: int = Field(default=64, ge=2, le=4096, description="ports per switch")
    hb_domain_size: Literal["auto"] | int = Field(
        default="auto", description="chips that reach each other over the scale-up link; auto: the server's"
    )
    transceiver_convention: TransceiverConvention = "both_ends"
    price_book: str = Field(default="h100-sheet-2024-08", description="prices of switches and optics")

    @field_validator("hb_domain_size", mode="before")
    @classmethod
    def _positive_domain(cls, size: Any) -> Any:
        number = int(size) if isinstance(size, str) and size.isdecimal() else size
        if number != "auto" and not (isinstance(number, int) and 1 <= number <= MAX_DOMAIN):
            raise ValueError(f"got {size!r}; allowed are auto and 1 to {MAX_DOMAIN:,} chips")
        return number


class SwitchedSpec(NetworkSpec):
    """The keys that all folded Clos fabrics share."""

    tiers: Literal["auto", 1, 2, 3] = Field(default="auto", description="switch tiers; auto takes the fewest")
    oversubscription_ratio: float | tuple[float, ...] = Field(
        default=1.0, description="downlinks to uplinks of a tier; one number, or one per tier from the leaves"
    )

    @field_validator("radix")
    @classmethod
    def _even_radix(cls, radix: int) -> int:
        if radix % 2:
            raise ValueError(
                f"{radix} is odd; a folded Clos splits each switch's ports evenly, "
                f"so use an even radix such as {radix + 1}"
            )
        return radix

    @field_validator("oversubscription_ratio")
    @classmethod
    def _at_least_one(cls, ratio: float | tuple[float, ...]) -> float | tuple[float, ...]:
        ratios = ratio if isinstance(ratio, tuple) else (ratio,)
        if not 1 <= len(ratios) <= 2 or not all(1 <= one <= 64 for one in ratios):
            raise ValueError(
                f"got {ratio}; allowed are 1 to 64 (downlinks to uplinks), one number or two (leaf, spine)"
            )
        return ratio

    def ratio_terms(self) -> tuple[Term, Term]:
        """Oversubscription of the leaf and of the spine tier."""
        ratio = self.oversubscription_ratio
        both = (ratio, ratio) if isinstance(ratio, float | int) else (ratio[0], ratio[-1])
        path = "topology.oversubscription_ratio"
        leaf_ratio, spine_ratio = (leaf(one, "oversubscription_ratio", path=path) for one in both)
        return leaf_ratio, spine_ratio


class PlanedSpec(SwitchedSpec):
    """A folded Clos that may be built several times over, each endpoint on all of them."""

    planes: int = Field(
        default=1, ge=1, le=64, description="equal networks over which each NIC's rate is split"
    )
