"""The catalog: every entry by slug, look-ups that name what is close, and overrides of a chip's figures.

`default_catalog()` is made once per process. A look-up of an unknown slug is an InputError that names the
closest ones. `override_chip` inherits a chip and replaces figures ("x2", "6.7 TB/s", 6.7e12); what the
user changed is marked as such, so that it shows in every Why trace.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

from simcore.catalog import loader
from simcore.catalog.types import (
    Calibration,
    Chip,
    Figure,
    LlmArchitecture,
    Optic,
    OpticalSwitch,
    PriceBook,
    ScaleupDomain,
    Server,
    Source,
    Switch,
)
from simcore.errors import InputError
from simcore.units import dimension_of, printed_text, quantity

CLASS_DEFAULT: Final = "class-default"
_ABSURD_RATIO: Final = 1e6
_USER: Final = Source(title="your override", kind="user")
_TIMES: Final = re.compile(r"^\s*[x×*]\s*([0-9.eE+-]+)\s*$")
# What model ids append to the name of the architecture they share.
_VARIANTS: Final = re.compile(
    r"([-. ](instruct|chat|hf|it|base|pt|thinking|fp8|fp4|nvfp4|mxfp4|int4|int8|bf16|awq|gptq|gguf|dynamic|static"
    r"|pertensor|quantized|w[48]a(8|16)|v0\.[1-9]|\d{4}|\d{6}))+$"
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every entry by slug. The mappings are read-only and read their files lazily."""

    chips: Mapping[str, Chip]
    servers: Mapping[str, Server]
    scaleup_domains: Mapping[str, ScaleupDomain]
    switches: Mapping[str, Switch]
    optics: Mapping[str, Optic]
    optical_switches: Mapping[str, OpticalSwitch]
    models: Mapping[str, LlmArchitecture]
    price_books: Mapping[str, PriceBook]
    calibrations: Mapping[str, Calibration]
    own_calibrations: Mapping[str, Calibration] = field(default_factory=dict)  # of whoever asks, by name

    def chip(self, slug: str, path: str = "hardware.chip") -> Chip:
        return _find(self.chips, slug, path, "chip")

    def server(self, slug: str, path: str = "hardware.server") -> Server:
        return _find(self.servers, slug, path, "server")

    def scaleup_domain_of(self, server: Server) -> ScaleupDomain | None:
        """How the chips of this server's domain are joined; None where it is not known."""
        return next((one for one in self.scaleup_domains.values() if server.slug in one.servers), None)

    def switch(self, slug: str, path: str = "topology.switch") -> Switch:
        return _find(self.switches, slug, path, "switch")

    def optic(self, slug: str, path: str = "topology.optic") -> Optic:
        return _find(self.optics, slug, path, "optic")

    def optical_switch(self, slug: str, path: str = "topology.optical_switch") -> OpticalSwitch:
        return _find(self.optical_switches, slug, path, "optical switch")

    def model(self, slug: str, path: str = "model.name") -> LlmArchitecture:
        return _find(self.models, self.find_model(slug) or slug, path, "model")

    def price_book(self, slug: str, path: str = "economics.price_book") -> PriceBook:
        return _find(self.price_books, slug, path, "price book")

    def calibration_for(self, chip: Chip) -> Calibration:
        """The chip's own calibration, or the class default with its wider error."""
        return self.calibrations[chip.calibration or CLASS_DEFAULT]

    def calibration(self, name: str, path: str = "hardware.calibration") -> Calibration:
        """One by its name, the user's own first."""
        own = self.own_calibrations.get(name)
        return own or _find(self.calibrations, name, path, "calibration")

    def find_model(self, name: str) -> str | None:
        """Slug of a model's shape, by slug or by a model id such as "Qwen/Qwen3-32B-FP8"; None if unknown."""
        wanted = name.strip().lower()
        if wanted in self.models:
            return wanted
        plain = plain_model_name(wanted)
        for slug in self.models:
            if plain_model_name(slug) == plain:
                return slug
        for slug, architecture in self.models.items():
            if plain in map(plain_model_name, architecture.also_known_as):
                return slug
        return None


def plain_model_name(name: str) -> str:
    """A model id without its owner and without the variant words that leave the architecture unchanged.

    >>> plain_model_name("Qwen/Qwen3-30B-A3B-Instruct-2507")
    'qwen3-30b-a3b'
    """
    last = name.strip().lower().replace("_", "-").split("/")[-1]
    return _VARIANTS.sub("", last.removeprefix("meta-"))


def load_catalog(data: Path = loader.DATA) -> Catalog:
    """A catalog over a folder of YAML files."""
    shelves: dict[str, Any] = {
        kind: loader.entity_shelf(cls, data / kind) for kind, cls in loader.ENTITY_KINDS.items()
    }
    return Catalog(
        price_books=loader.price_shelf(data / "prices"),
        calibrations=loader.calibration_shelf(data / "calibration"),
        **shelves,
    )


@lru_cache(maxsize=1)
def default_catalog() -> Catalog:
    return load_catalog()


def _find(shelf: Mapping[str, T], slug: str, path: str, what: str) -> T:
    if slug in shelf:
        return shelf[slug]
    known = list(shelf)
    close = difflib.get_close_matches(slug.lower(), known, n=3, cutoff=0.4) or known[:8]
    found = {"what": what, "got": slug[:80], "closest": ", ".join(close)}
    if what == "model":
        raise InputError.at(
            path,
            "catalog.unknown",
            "no {what} {got!r} in the catalog; closest: {closest} (all: `trimtab catalog`). Any other model: give "
            "its config.json as model.config",
            **found,
        )
    if what == "chip":
        raise InputError.at(
            path,
            "catalog.unknown",
            "no {what} {got!r} in the catalog; closest: {closest} (all: `trimtab catalog`). Any other chip: take a "
            "near one and set hardware.chip_overrides",
            **found,
        )
    raise InputError.at(
        path,
        "catalog.unknown",
        "no {what} {got!r} in the catalog; closest: {closest} (all: `trimtab catalog`)",
        **found,
    )


def override_chip(
    chip: Chip, overrides: Mapping[str, object], *, path: str = "hardware.chip_overrides"
) -> Chip:
    """The chip with some figures replaced: "x2" multiplies, a text with a unit or a number (SI) sets.

    Visible memory follows an overridden `hbm_bytes` in proportion, unless it is overridden too.
    """
    values: dict[str, Any] = {}
    figures = dict(chip.figures)
    wanted = dict(overrides)
    if "hbm_bytes" in wanted and "hbm_visible_bytes" not in wanted:
        size = _overridden(chip, "hbm_bytes", wanted["hbm_bytes"], f"{path}.hbm_bytes")
        wanted["hbm_visible_bytes"] = size / chip.hbm_bytes * chip.hbm_visible_bytes
    for name, given in wanted.items():
        where = f"{path}.{name}"
        _check_overridable(name, where)
        values[name] = _overridden(chip, name, given, where)
        before: float | None = getattr(chip, name)
        note = f"was {printed_text(before, dimension_of(name))}" if before is not None else "was not printed"
        shown = given if isinstance(given, str) else printed_text(values[name], dimension_of(name))
        figures[name] = Figure(value=values[name], printed=shown, source=_USER, note=note)
    return replace(chip, figures=figures, **values) if values else chip


def overridable_figures() -> list[str]:
    """Names of a chip's figures that a scenario may override."""
    kinds = loader.field_types(Chip)
    return [item.name for item in fields(Chip) if loader.is_float(kinds[item.name])]


def _check_overridable(name: str, path: str) -> None:
    known = overridable_figures()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}? " if close else ""
        raise InputError.at(
            path,
            "key.unknown",
            "not a figure of a chip; {hint}allowed: {allowed}",
            hint=hint,
            allowed=", ".join(known),
        )


def _overridden(chip: Chip, name: str, given: object, path: str) -> float:
    base: float | None = getattr(chip, name)
    times = _TIMES.match(given) if isinstance(given, str) else None
    if times is None:
        value = quantity(given, loader.dimension_of_figure(name), path=path)
    elif base is None:
        raise InputError.at(
            path,
            "override.no_base",
            "{chip} prints no such figure to multiply; give a value with a unit",
            chip=chip.name,
        )
    else:
        value = base * quantity(times[1], "", path=path)
    if not math.isfinite(value) or value <= 0:
        raise InputError.at(
            path, "number.not_positive", "got {got}; a positive finite number is needed", got=str(given)[:60]
        )
    if base is not None and not 1 / _ABSURD_RATIO <= value / base <= _ABSURD_RATIO:
        raise InputError.at(
            path,
            "number.absurd",
            "got {got}, more than a million times off the catalog's {base}; check the unit",
            got=str(given)[:60],
            base=printed_text(base, dimension_of(name)),
        )
    return value
