"""The form as a page draws it: sections, fields, what was typed, where values come from, what is wrong.

Labels, help and units come from `simcore.glossary` and the field's suffix, choices from literals and the
catalog, defaults from the schema or the datasheet. Values are shown as they were typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from explorer.forms.schema import (
    OVERRIDES,
    SECTIONS,
    Leaf,
    at,
    default_kind,
    default_of,
    defaults,
    field_at,
    leaves,
    literals,
    shown,
)
from explorer.forms.scrub import Scrub, scrub_of
from explorer.wording import plain_name, translated
from simcore.catalog import Catalog, Chip, default_catalog, override_chip
from simcore.catalog.catalog import CLASS_DEFAULT
from simcore.errors import InputError, Message
from simcore.glossary import entry
from simcore.units import UNITS, dimension_of, printed
from simcore.workload.arrival_presets import arrival_presets
from simcore.workload.fitted import Fitted
from simcore.workload.presets import length_presets

Dot = Literal["ds", "cal", "def", "you"]
CALIBRATION: Final = "hardware.calibration"
# What a trace's name stands for.
_FITS: Final[Mapping[str, Callable[[], Mapping[str, Fitted]]]] = {
    "workload.arrivals.name": arrival_presets,
    "workload.lengths.name": length_presets,
}
OPEN: Final = frozenset({"hardware", "topology", "model", "workload", "serving", "training"})
_CATALOG_CHOICES: Final = {
    "hardware.chip": "chips",
    "hardware.server": "servers",
    "model.name": "models",
    "serving.speculative.model": "models",
    "topology.price_book": "price_books",
    "economics.price_book": "price_books",
}
# Kinds without one of which nothing is done.
_OFF: Final = frozenset({"serving.speculative.kind", "serving.autoscaling.kind", "reliability.life.kind"})
# Shown behind "More": what most people leave alone.
_RARE: Final = frozenset(
    {
        "hbm_visible_bytes", "l2_bytes", "sram_bytes_per_core", "pcie_bytes_per_s", "tdp_w", "fp8_flop_per_s",
        "int8_flop_per_s", "fp4_flop_per_s", "transceiver_convention", "cp", "ep",
        "num_gpu_blocks_override", "kv_cache_memory_bytes", "time_scale", "input_cv", "output_cv",
        "attainment_fraction", "engine", "imbalance_ratio", "max_queue_length",
    }
)  # fmt: skip
_RARE_PARTS: Final = tuple(
    f"serving.scheduler.{role}.{key}"
    for role in ("prefill", "decode")
    for key in ("parallelism.pp", "parallelism.dp", "parallelism.expert", "max_num")
) + tuple(
    f"reliability.life.{key}"
    for key in (
        "repair_cv",
        "crew",
        "chip_mtbf",
        "link_mtbf",
        "switch_mtbf",
        "ocs_mtbf",
        "maintenance",
        "work_cv",
    )
)
_DOTS: Final[dict[str, Dot]] = {
    "vendor": "ds", "paper": "cal", "measured": "cal", "estimate": "def", "assumption": "def", "user": "you",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One input: its path is its name, its id and the address of its errors."""

    path: str
    label: str
    help: str
    control: Literal["text", "select"]
    value: str = ""
    placeholder: str = ""
    unit: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    dot: Dot = "def"
    source: str = ""
    note: str = ""
    error: str = ""
    changed: bool = False
    rare: bool = False
    step: str = ""
    scrub: Scrub | None = None

    @property
    def html_id(self) -> str:
        return "f-" + self.path.replace(".", "-")

    @property
    def numeric(self) -> bool:
        return self.control == "text" and bool(self.unit or self.placeholder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A collapsible part of the outline with a summary of what it holds."""

    key: str
    label: str
    help: str
    summary: str
    fields: tuple[Field, ...]
    open: bool

    @property
    def common(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if not field.rare)

    @property
    def rare(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.rare)

    @property
    def change_count(self) -> int:
        return sum(field.changed for field in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The whole form; `messages` are the errors that belong to no field."""

    sections: tuple[Section, ...]
    messages: tuple[str, ...] = ()
    chip: str = ""  # slug of the chip that is chosen

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(field for section in self.sections for field in section.fields)

    @property
    def valid(self) -> bool:
        return not self.messages and not any(field.error for field in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What one rendering of the form is made from."""

    document: Mapping[str, Any]
    baseline: Mapping[str, Any] | None
    draft: Mapping[str, Mapping[str, str]]
    errors: Mapping[str, str]
    traces: Sequence[tuple[str, str]]
    calibrations: Sequence[tuple[str, str]]
    catalog: Catalog

    def typed(self, path: str) -> str:
        """What the person sees at a path: a refused draft first, then the document."""
        if path in self.draft:
            return str(self.draft[path].get("typed", ""))
        return shown(at(self.document, path))

    @property
    def chip(self) -> Chip | None:
        """The chip that is chosen, None where the catalog does not know it."""
        return self.catalog.chips.get(
            self.typed("hardware.chip") or shown(default_of(field_at("hardware.chip", {})))
        )


def outline(
    document: Mapping[str, Any],
    *,
    baseline: Mapping[str, Any] | None = None,
    draft: Mapping[str, Mapping[str, str]] | None = None,
    errors: Mapping[str, Message] | None = None,
    traces: Sequence[tuple[str, str]] = (),
    calibrations: Sequence[tuple[str, str]] = (),
) -> Outline:
    """The form of a document. `draft` is what was typed and refused, `errors` the messages by path; `traces` and
    `calibrations` are the reader's own, (key, name)."""
    told = {path: str(one.get("message", "")) for path, one in (draft or {}).items()}
    told |= {path: translated(message) for path, message in (errors or {}).items()}
    view = _View(
        document=document,
        baseline=baseline,
        draft=draft or {},
        errors={path: text for path, text in told.items() if text},
        traces=traces,
        calibrations=calibrations,
        catalog=default_catalog(),
    )
    sections = tuple(_section(key, view) for key in SECTIONS)
    known = {field.path for section in sections for field in section.fields}
    homeless = tuple(_said(path, text) for path, text in view.errors.items() if _home(path, known) is None)
    return Outline(sections=sections, messages=homeless, chip=view.chip.slug if view.chip else "")


def _section(key: str, view: _View) -> Section:
    fields = tuple(_field(leaf, view) for leaf in leaves(key, view.typed))
    found = entry(key)
    wrong = any(field.error for field in fields)
    return Section(
        key=key,
        label=_(found.label) if found else key,
        help=_(found.help) if found and found.help else "",
        summary=_summary(key, fields, view),
        fields=fields,
        open=key in OPEN or wrong,
    )


def _summary(key: str, fields: Sequence[Field], view: _View) -> str:
    changed = sum(field.changed for field in fields)
    if changed:
        return ngettext("%(count)s change", "%(count)s changes", changed) % {"count": changed}
    text = {
        "topology": view.typed("topology.kind") or _("the server's own"),
        "model": view.typed("model.name"),
        "workload": view.typed("workload.arrivals.kind"),
        "run": _("seed %(seed)s") % {"seed": view.typed("run.seed") or "1"},
    }.get(key, "")
    return _choice_text(text) if text else ""


def _field(leaf: Leaf, view: _View) -> Field:
    path = leaf.path
    found = entry(path)
    name = path.rsplit(".", 1)[-1]
    choices = _choices(leaf, view)
    typed = view.typed(path)
    default, unit = _placeholder(leaf, view)
    before = shown(at(view.baseline, path)) if view.baseline is not None else typed
    changed = view.baseline is not None and _meant(typed, default, choices) != _meant(
        before, default, choices
    )
    dot, source = _dot(leaf, view, typed)
    return Field(
        path=path,
        label=_(found.label) if found else plain_name(name),
        help=_(found.help) if found and found.help else "",
        control="select" if choices else "text",
        value=typed or (_selected(leaf) if choices else ""),
        placeholder=default,
        unit=unit,
        choices=choices,
        dot=dot,
        source=source,
        note=_note(leaf, view, before, changed=changed, choices=choices, default=default),
        error=_error(path, view),
        changed=changed,
        rare=(name in _RARE or path.startswith(_RARE_PARTS)) and not typed and not _error(path, view),
        step="x2"
        if path.startswith(OVERRIDES) and name.endswith(("_per_s", "hbm_bytes")) and not typed
        else "",
        scrub=scrub_of(path, typed or default),
    )


def _meant(typed: str, default: str, choices: Sequence[tuple[str, str]]) -> str:
    """An empty field means its default, so naming the default is no change."""
    if choices:
        return typed or choices[0][0]
    return typed or default


def _selected(leaf: Leaf) -> str:
    if leaf.kinds:
        return default_kind(leaf.info) if leaf.info else ""
    return shown(default_of(leaf.info))


def _choices(leaf: Leaf, view: _View) -> tuple[tuple[str, str], ...]:
    if leaf.kinds:
        nothing = _("off") if leaf.path in _OFF else _("the server's own")
        own = (("", nothing),) if leaf.info and not default_kind(leaf.info) else ()
        usable = [
            kind for kind in leaf.kinds if kind != "trace" or view.traces or view.typed(leaf.path) == kind
        ]
        return (*own, *((kind, _choice_text(kind)) for kind in usable))
    shelf = _CATALOG_CHOICES.get(leaf.path)
    if shelf:
        return _catalog_choices(leaf, shelf, view)
    if leaf.path == CALIBRATION:
        return _calibration_choices(view)
    if leaf.path == "workload.arrivals.trace":
        return (("", _("upload one below")), *view.traces)
    if leaf.path in _FITS:
        return tuple((name, fitted.title) for name, fitted in _FITS[leaf.path]().items())
    options = literals(leaf.info.annotation) if leaf.info else ()
    return tuple((shown(option), _choice_text(shown(option))) for option in options)


def _catalog_choices(leaf: Leaf, shelf: str, view: _View) -> tuple[tuple[str, str], ...]:
    entries: Mapping[str, Any] = getattr(view.catalog, shelf)
    default = shown(default_of(leaf.info))
    listed = [(slug, str(entries[slug].name)) for slug in entries]
    own = [(default, _choice_text(default))] if default and default not in entries else []
    typed = view.typed(leaf.path)
    foreign = [(typed, typed)] if typed and typed not in entries and typed != default else []
    return (*own, *foreign, *sorted(listed, key=lambda pair: pair[1].lower()))


def _calibration_choices(view: _View) -> tuple[tuple[str, str], ...]:
    """The chip's shipped fit, the reader's own, the class defaults, and whatever else the document names."""
    chip, typed = view.chip, view.typed(CALIBRATION)
    shipped = _("the chip's own") if chip and chip.calibration else _("class defaults: not measured")
    listed = [("auto", shipped), *view.calibrations]
    if chip and chip.calibration:
        listed.append((CLASS_DEFAULT, _("class defaults")))
    foreign = [(typed, typed)] if typed and typed not in dict(listed) else []
    return (*listed, *foreign)


def _choice_text(option: str) -> str:
    """`rail_only` -> "rail-only", translated."""
    if option in ("true", "false"):
        return _("yes") if option == "true" else _("no")
    return _(option.replace("_", " ")) if option else ""


def _placeholder(leaf: Leaf, view: _View) -> tuple[str, str]:
    """The default as people write it, and the unit that an empty field stands in."""
    if leaf.kinds:
        return "", ""
    name = leaf.path.rsplit(".", 1)[-1]
    dimension = dimension_of(name)
    if leaf.path.startswith(OVERRIDES):
        chip = view.chip
        value = getattr(chip, name, None)
        return (" ".join(printed(value, dimension)).strip(), "") if value is not None else ("–", "")
    default = _default_at(leaf, view)
    unit = printed(1.0, dimension)[1] if dimension in UNITS or dimension in ("tokens", "years") else ""
    if isinstance(default, int | float) and not isinstance(default, bool):
        if dimension == "fraction":
            return f"{default:g}", ""
        if dimension == "s":
            return " ".join(printed(float(default), dimension)).strip(), ""
        return f"{default:,.0f}" if float(default).is_integer() else f"{default:,g}", unit
    return shown(default), ""


def _default_at(leaf: Leaf, view: _View) -> Any:
    """What an empty field means: the default scenario's value where the kinds agree, else the class's."""
    section = leaf.path.rpartition(".")[0]
    kind = at(defaults(), f"{section}.kind")
    same = kind is None or (view.typed(f"{section}.kind") or kind) == kind
    value = at(defaults(), leaf.path) if same else None
    return default_of(leaf.info) if value is None else value


def _dot(leaf: Leaf, view: _View, typed: str) -> tuple[Dot, str]:
    """Where the value comes from, as a shape and in words."""
    if leaf.path.startswith(OVERRIDES):
        if typed:
            return "you", _("yours")
        chip = view.chip
        figure = chip.figures.get(leaf.path.rsplit(".", 1)[-1]) if chip else None
        if figure is None:
            return "def", _("assumption")
        return _DOTS.get(figure.source.kind, "def"), f"{figure.source.title}: {figure.printed}"
    if leaf.path == CALIBRATION and typed in ("", "auto") and view.chip:
        fit = view.catalog.calibration_for(view.chip)
        text = f"{fit.name}, {fit.fitted_on}" if fit.fitted_on else fit.name
        return ("def" if fit.is_class_default else "cal"), text
    if leaf.path in _FITS:
        fitted = _FITS[leaf.path]().get(typed or shown(default_of(leaf.info)))
        return "cal", f"{fitted.note}; {fitted.licence}, {fitted.fitted_on}" if fitted else ""
    if leaf.path in _CATALOG_CHOICES and leaf.path != "hardware.server":
        return "ds", _("catalog")
    return ("you", _("yours")) if typed else ("def", _("default"))


def _note(
    leaf: Leaf, view: _View, before: str, *, changed: bool, choices: Sequence[tuple[str, str]], default: str
) -> str:
    """What an override comes to, and what the baseline has."""
    typed = view.typed(leaf.path)
    parts = []
    if leaf.path.startswith(OVERRIDES) and typed[:1] in ("x", "×", "*"):
        parts.append(_resolved(leaf.path, view, typed))
    if changed:
        was = dict(choices).get(before or choices[0][0], before) if choices else before or default
        parts.append(_("was %(value)s") % {"value": was or "–"})
    return ", ".join(part for part in parts if part)


def _resolved(path: str, view: _View, typed: str) -> str:
    name = path.rsplit(".", 1)[-1]
    chip = view.chip
    try:
        value = getattr(override_chip(chip, {name: typed}), name) if chip else None
    except InputError:
        return ""
    return "= " + " ".join(printed(value, dimension_of(name))) if value is not None else ""


def _error(path: str, view: _View) -> str:
    """The message at a field, at the section above it that has no field of its own, or at an item of its list."""
    if path in view.errors:
        return view.errors[path]
    parent, _point, last = path.rpartition(".")
    if last in ("kind", "name") and parent in view.errors:
        return view.errors[parent]
    return next((text for place, text in view.errors.items() if _list_of(place) == path), "")


def _list_of(path: str) -> str:
    """The list that a path lies in; the path itself where it lies in none."""
    return re.split(r"\.\d+(?:\.|$)", path)[0]


def _home(path: str, known: set[str]) -> str | None:
    return next(
        (field for field in (path, f"{path}.kind", f"{path}.name", _list_of(path)) if field in known), None
    )


def _said(path: str, text: str) -> str:
    found = entry(path) if path else None
    return f"{_(found.label)}: {text}" if found else f"{path}: {text}" if path else text
