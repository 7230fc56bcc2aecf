"""What fails, by component: published counts, and the rates that follow from them.

FIT is failures in 10⁹ hours of one component; rates of independent components add, so `n` of them fail every
`10⁹ / (n·FIT)` hours. The counts are those of Llama-3's training on 16,384 H100 in 2,048 servers over 54 days
(arXiv 2407.21783, Table 5): 18 causes that sum to 419 unexpected interruptions, beside 47 planned ones.
Limits: the table counts interruptions of a job, not repairs; it does not tell switches from cables, of which
half each is assumed, on one leaf switch per 16 GPUs and two links per GPU; an optical circuit switch is assumed
to fail as a packet switch; a TPU, its links and hosts are assumed to fail as these do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from simcore.why import LeafKind

Part = Literal["chip", "hbm", "nic", "server", "software", "network"]
LLAMA_SOURCE: Final = "Llama 3, arXiv 2407.21783, Table 5 (54 days, 16,384 GPUs in 2,048 servers)"
LLAMA_HOURS: Final = 54 * 24
LLAMA_GPUS: Final = 16_384
LLAMA_SERVERS: Final = 2_048
LLAMA_PLANNED: Final = 47
FIT_HOURS: Final = 1e9
_GPUS_PER_LEAF: Final = 16
_LINKS_PER_GPU: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A row of the table: how often it interrupted the job, and which part of the system it is of."""

    name: str
    count: int
    part: Part
    is_gpu: bool = False  # the paper's class "GPU"


LLAMA_CAUSES: Final = (
    Cause(name="faulty GPU", count=148, part="chip", is_gpu=True),
    Cause(name="GPU HBM3 memory", count=72, part="hbm", is_gpu=True),
    Cause(name="software bug", count=54, part="software"),
    Cause(name="network switch or cable", count=35, part="network"),
    Cause(name="unplanned host maintenance", count=32, part="server"),
    Cause(name="GPU SRAM memory", count=19, part="chip", is_gpu=True),
    Cause(name="GPU system processor", count=17, part="chip", is_gpu=True),
    Cause(name="NIC", count=7, part="nic"),
    Cause(name="NCCL watchdog timeout", count=7, part="software"),
    Cause(name="silent data corruption", count=6, part="chip", is_gpu=True),
    Cause(name="GPU thermal interface and sensor", count=6, part="chip", is_gpu=True),
    Cause(name="SSD", count=3, part="server"),
    Cause(name="power supply", count=3, part="server"),
    Cause(name="server chassis", count=2, part="server"),
    Cause(name="IO expansion board", count=2, part="server"),
    Cause(name="dependency", count=2, part="software"),
    Cause(name="CPU", count=2, part="server"),
    Cause(name="system memory", count=2, part="server"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentRate:
    """How often one component fails."""

    component: str
    fit_count: float
    kind: LeafKind
    source: str


def fleet_mtbf_h(fit_count: float, count: int) -> float:
    """Hours between failures of `count` equal components.

    >>> round(fleet_mtbf_h(41_900, 1)), round(fleet_mtbf_h(41_900, 1024), 1)
    (23866, 23.3)
    """
    return FIT_HOURS / (fit_count * count)


def caused(*parts: Part) -> int:
    """Interruptions by these parts."""
    return sum(cause.count for cause in LLAMA_CAUSES if cause.part in parts)


def _counted(component: str, count: float, components: int, note: str = "") -> ComponentRate:
    return ComponentRate(
        component=component,
        fit_count=count / (components * LLAMA_HOURS) * FIT_HOURS,
        kind="assumption" if note else "catalog",
        source=f"{LLAMA_SOURCE}: {count:g} by {components:,}{note}",
    )


_SPLIT: Final = "; half of 35 by switches or cables, an assumption"
COMPONENT_RATES: Final[Mapping[str, ComponentRate]] = {
    rate.component: rate
    for rate in (
        _counted("chip", caused("chip"), LLAMA_GPUS),
        _counted("hbm", caused("hbm"), LLAMA_GPUS),
        _counted("nic", caused("nic"), LLAMA_GPUS),
        _counted("server", caused("server"), LLAMA_SERVERS),
        _counted("software", caused("software"), LLAMA_SERVERS),
        _counted("link", caused("network") / 2, _LINKS_PER_GPU * LLAMA_GPUS, _SPLIT),
        _counted("switch", caused("network") / 2, LLAMA_GPUS // _GPUS_PER_LEAF, _SPLIT),
        _counted("ocs", caused("network") / 2, LLAMA_GPUS // _GPUS_PER_LEAF, _SPLIT + "; taken for an OCS"),
    )
}
IN_A_SERVER: Final = ("chip", "hbm", "nic", "server", "software")
