"""Benchmarks of the core: speed as figures and as ratios measured within one run."""

from __future__ import annotations

from collections.abc import Mapping

from simcore.bench.cluster import run_cluster
from simcore.bench.disagg import run_disagg
from simcore.bench.edit import run_edit
from simcore.bench.fabric import run_fabric
from simcore.bench.flows import run_flows
from simcore.bench.life import run_life
from simcore.bench.plan import run_plan
from simcore.bench.search import run_search
from simcore.bench.serving import run_serving
from simcore.bench.slices import run_slices
from simcore.bench.sweep import run_sweep

__all__ = [
    "as_text",
    "run",
    "run_cluster",
    "run_disagg",
    "run_edit",
    "run_fabric",
    "run_flows",
    "run_life",
    "run_plan",
    "run_search",
    "run_serving",
    "run_slices",
    "run_sweep",
]


def run(what: str) -> dict[str, float]:
    """The benchmark called `what`."""
    return {
        "serving": run_serving,
        "edit": run_edit,
        "plan": run_plan,
        "cluster": run_cluster,
        "disagg": run_disagg,
        "fabric": run_fabric,
        "flows": run_flows,
        "life": run_life,
        "slices": run_slices,
        "sweep": run_sweep,
        "search": run_search,
    }[what]()


def as_text(what: str, measured: Mapping[str, float]) -> str:
    """One line per figure, for a terminal."""
    lines = [f"bench {what}"]
    for name, value in measured.items():
        shown = f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.4g}"
        lines.append(f"  {name:<28} {shown:>16}")
    return "\n".join(lines)
