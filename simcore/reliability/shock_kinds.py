"""What a timeline of shocks is made of: a spec per kind, one union, and the abilities to react.

A shock begins at `at_s` of the run and lasts `duration_s`: until what failed is repaired, the maintenance is over or
the load is as before. Which hosts, links, cubes or switches fail is drawn from the seed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from simcore.spec import Spec

_Count = Annotated[int, Field(ge=1, le=100_000)]


class _Shock(Spec):
    """When it happens, and for how long."""

    at_s: float = Field(default=120.0, ge=0, le=31_536_000)
    duration_s: float = Field(default=300.0, ge=0, le=31_536_000)


class HostFailure(_Shock):
    """Servers fail, with their chips and what is in their memory, until they are repaired."""

    kind: Literal["host_failure"] = "host_failure"
    count: _Count = 1


class CubeFailure(_Shock):
    """Whole cubes of 64 chips of a pod of tori fail, until they are repaired."""

    kind: Literal["cube_failure"] = "cube_failure"
    count: _Count = 1


class LinkFailure(_Shock):
    """Links of servers into the network fail: what crosses it gets slower, until they are repaired."""

    kind: Literal["link_failure"] = "link_failure"
    count: _Count = 1


class SwitchFailure(_Shock):
    """Switches of one tier fail: servers are cut off, or lose a part of their bandwidth, until they are repaired."""

    kind: Literal["switch_failure"] = "switch_failure"
    tier: Literal["leaf", "spine", "core"] = "leaf"
    count: _Count = 1


class Drain(_Shock):
    """Servers are taken out for maintenance, after they have finished what they have."""

    kind: Literal["drain"] = "drain"
    count: _Count = 1


class ModelSwap(_Shock):
    """Replicas load other weights of the same architecture, some at a time, each in `duration_s`."""

    kind: Literal["model_swap"] = "model_swap"
    at_once: _Count = 1


class LoadBurst(_Shock):
    """Requests arrive so many times as often."""

    kind: Literal["load"] = "load"
    rate_ratio: float = Field(default=2.0, ge=0.01, le=100)


class LongPrompts(_Shock):
    """Prompts of requests that arrive are so many times as long."""

    kind: Literal["prompt_length"] = "prompt_length"
    length_ratio: float = Field(default=2.0, ge=0.01, le=100)


Shock = Annotated[
    HostFailure | CubeFailure | LinkFailure | SwitchFailure | Drain | ModelSwap | LoadBurst | LongPrompts,
    Field(discriminator="kind"),
]
LOAD_KINDS = (LoadBurst, LongPrompts)  # they change what arrives, all others what there is to serve it


class Abilities(Spec):
    """What can be re-arranged after a shock. Spares for re-wiring are `reliability.spares`."""

    physical: bool = True  # a spare takes the place of what failed
    data: bool = True  # KV, or a training job's state, is kept elsewhere and brought back
    task: bool = True  # requests go elsewhere, roles change; a training job goes on with fewer replicas
    reconfiguration_s: float = Field(default=60.0, ge=0, le=86_400)  # until a spare serves
