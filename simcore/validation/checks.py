"""How the program answers a fact: one small function per kind of question, over the public entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import TypeAdapter

from simcore.catalog import default_catalog
from simcore.catalog.parameters import kv_bytes_per_token
from simcore.cost import EconomicsSpec, cost_model, saving_bounds, saving_fraction
from simcore.cost.energy import network_power_term, network_power_terms
from simcore.fabric import AnyTopology, Fabric, Topology, build_fabric
from simcore.reliability import (
    SliceGoodput,
    SliceSystem,
    any_box_goodput,
    daly_interval_s,
    needed_cube_availability,
    slice_goodput,
    waste_fraction,
    young_interval_s,
)
from simcore.validation.collectives import COLLECTIVE_CHECKS
from simcore.validation.failures import FAILURE_CHECKS
from simcore.validation.memory import MEMORY_CHECKS
from simcore.validation.topologies import TOPOLOGY_CHECKS
from simcore.validation.training import TRAINING_CHECKS
from simcore.validation.wiring import WIRING_CHECKS

Inputs = Mapping[str, Any]
SAVING_GRID: Final = ((32768, 64), (32768, 128), (32768, 256), (65536, 64), (65536, 128), (65536, 256))
_TOPOLOGY: Final[TypeAdapter[AnyTopology]] = TypeAdapter(Topology)
_NOT_TOPOLOGY: Final = {"chip_count", "ask", "server", "chip"}


def _fabric(inputs: Inputs, *, scaleup_bytes_per_s: float | None = None) -> Fabric:
    """The fabric that the inputs describe, on H100 servers unless they name others."""
    spec = {key: value for key, value in inputs.items() if key not in _NOT_TOPOLOGY}
    catalog = default_catalog()
    chip = catalog.chip(inputs.get("chip", "nvidia-h100-sxm"))
    return build_fabric(
        _TOPOLOGY.validate_python(spec),
        chip_count=inputs["chip_count"],
        server=catalog.server(inputs.get("server", "dgx-h100")),
        scaleup_bytes_per_s=scaleup_bytes_per_s or chip.scaleup_bytes_per_s,
    )


def _fabric_figure(inputs: Inputs) -> float:
    fabric, ask = _fabric(inputs), inputs["ask"]
    if ask in ("leaf", "spine", "core"):
        return next(tier.switch_count for tier in fabric.tiers if tier.name == ask)
    term = fabric.terms.get(f"fabric.{ask}")
    return term.value if term else float(getattr(fabric, ask))


def _pair(chip_count: int, radix: int, hb_domain_size: int) -> tuple[Fabric, Fabric]:
    clos = _fabric({"kind": "clos", "chip_count": chip_count, "radix": radix})
    rails = {"kind": "rail_only", "chip_count": chip_count, "radix": radix, "hb_domain_size": hb_domain_size}
    return clos, _fabric(rails)


def _edge(values: list[float], edge: str) -> float:
    return min(values) if edge == "least" else max(values)


def _saving_grid(inputs: Inputs) -> float:
    ratio = inputs["port_to_transceiver_ratio"]
    pairs = [_pair(chip_count, radix, 256) for chip_count, radix in SAVING_GRID]
    savings = [saving_fraction(clos, rails, port_to_transceiver_ratio=ratio) for clos, rails in pairs]
    return _edge(savings, inputs["edge"])


def _saving_bound(inputs: Inputs) -> float:
    bounds = saving_bounds(*_pair(32768, inputs["radix"], inputs["hb_domain_size"]))
    assert bounds is not None, "a Clos of 32,768 buys switches"
    return _edge(list(bounds), inputs["edge"])


def _fabric_capex(inputs: Inputs) -> float:
    catalog = default_catalog()
    model = cost_model(
        economics=EconomicsSpec(),
        chip=catalog.chip("nvidia-h100-sxm"),
        server=catalog.server("dgx-h100"),
        chip_count=inputs["chip_count"],
        fabric=_fabric(inputs),
        book=catalog.price_book("default-2026"),
        fabric_book=catalog.price_book(inputs["price_book"]),
    )
    return model.fabric_capex.value if model.fabric_capex else 0.0


def _fabric_power(inputs: Inputs) -> float:
    return network_power_term(network_power_terms(_fabric(inputs))).value


def _all_to_all_slowdown(inputs: Inputs) -> float:
    return _fabric({"kind": "rail_only", "chip_count": 512, **inputs}).all_to_all_slowdown_ratio


def _optics_per_chip(inputs: Inputs) -> float:
    fabric = _fabric({"kind": "ocs_pod", **inputs})
    return fabric.transceiver_count / fabric.chip_count


def _torus_bisection(inputs: Inputs) -> float:
    links_per_chip = 6
    rate = inputs["link_bytes_per_s"] * links_per_chip
    spec = {"kind": "torus", "chip_count": inputs["chip_count"]}
    return _fabric(spec, scaleup_bytes_per_s=rate).bisection_bytes_per_s


def _goodput(inputs: Inputs) -> SliceGoodput:
    system = SliceSystem(host_availability_fraction=inputs["availability"])
    return slice_goodput(system, inputs["slice_chips"])


def _slice_goodput(inputs: Inputs) -> float:
    return float(getattr(_goodput(inputs), f"{inputs['ask']}_fraction"))


def _slice_goodput_ratio(inputs: Inputs) -> float:
    found = _goodput(inputs)
    return found.ocs_q97_fraction / found.static_q97_fraction


def _any_box(inputs: Inputs) -> float:
    """Mean goodput of static slices in any contiguous box, or how often at least one fits."""
    system = SliceSystem(host_availability_fraction=inputs["availability"])
    found = any_box_goodput(system, inputs["slice_chips"], draws=inputs["draws"], seed=inputs["seed"])
    return float(getattr(found, f"{inputs['ask']}_fraction"))


def _needed_availability(inputs: Inputs) -> float:
    """Of a cube, or of each of its hosts."""
    cube = needed_cube_availability(inputs["cubes"], inputs["needed"])
    return float(cube ** (1 / inputs["hosts"]))


def _checkpoint(inputs: Inputs) -> float:
    write_s, mtbf_s = inputs["write_s"], inputs["mtbf_s"]
    young_s = young_interval_s(write_s, mtbf_s)
    answers = {
        "young": young_s,
        "daly": daly_interval_s(write_s, mtbf_s),
        "waste": waste_fraction(young_s, write_s, mtbf_s),
    }
    return answers[inputs["ask"]]


def _kv_bytes_per_token(inputs: Inputs) -> float:
    changes = {key: value for key, value in inputs.items() if key in ("layers", "window_layers")}
    architecture = replace(default_catalog().models[inputs["model"]], **changes)
    return kv_bytes_per_token(architecture, inputs.get("dtype", "bf16")).value


def _kv_bytes_of_request(inputs: Inputs) -> float:
    return _kv_bytes_per_token(inputs) * int(inputs["tokens"])


CHECKS: Final[Mapping[str, Callable[[Inputs], float]]] = {
    "all_to_all_slowdown": _all_to_all_slowdown,
    "any_box": _any_box,
    "checkpoint": _checkpoint,
    "fabric": _fabric_figure,
    "fabric_capex": _fabric_capex,
    "fabric_power": _fabric_power,
    "kv_bytes_of_request": _kv_bytes_of_request,
    "kv_bytes_per_token": _kv_bytes_per_token,
    "needed_availability": _needed_availability,
    "optics_per_chip": _optics_per_chip,
    "saving_bound": _saving_bound,
    "saving_grid": _saving_grid,
    "slice_goodput": _slice_goodput,
    "slice_goodput_ratio": _slice_goodput_ratio,
    "torus_bisection": _torus_bisection,
    **COLLECTIVE_CHECKS,
    **FAILURE_CHECKS,
    **MEMORY_CHECKS,
    **TRAINING_CHECKS,
    **TOPOLOGY_CHECKS,
    **WIRING_CHECKS,
}
