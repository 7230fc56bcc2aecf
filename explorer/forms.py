"""The scenario form, derived from the schema: nothing about a field is written here a second time.

`outline` walks the pydantic classes of `Scenario`: sections are its fields, the fields of a section are the
leaves below it, named by their scenario path; unions show the fields of the kind that is chosen. Labels,
help and units come from `simcore.glossary` and the field's suffix, choices from literals and the catalog,
defaults from the schema or the datasheet. Values are shown as they were typed. `changes` reads a posted form
back: it keeps what differs from what was shown, so that a form posted whole, without JavaScript, sets no
default, and gives a newly chosen kind a value for each key that it cannot do without.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from explorer.wording import plain_name, translated
from simcore.catalog import Catalog, Chip, default_catalog, overridable_figures, override_chip
from simcore.errors import InputError, Message
from simcore.glossary import entry
from simcore.scenario import Scenario
from simcore.units import UNITS, dimension_of, printed

Dot = Literal["ds", "cal", "def", "you"]
SECTIONS: Final = (
    "hardware", "topology", "model", "workload", "serving", "training", "reliability", "economics", "run",
)  # fmt: skip
OPEN: Final = frozenset({"hardware", "topology", "model", "workload", "serving", "training"})
_OVERRIDES: Final = "hardware.chip_overrides"
_CATALOG_CHOICES: Final = {
    "hardware.chip": "chips",
    "hardware.server": "servers",
    "model.name": "models",
    "topology.price_book": "price_books",
    "economics.price_book": "price_books",
}
# Not for a form: files of the command line, lists, and what an upload sets by itself.
_HIDDEN: Final = frozenset(
    {
        "hardware.pools", "model.config", "serving.parallelism.dp", "serving.parallelism.cp",
        "workload.arrivals.path",
        "workload.arrivals.columns",
        "workload.arrivals.window", "workload.lengths.input_tokens[]", "workload.lengths.output_tokens[]",
    }
)  # fmt: skip
# Shown behind "More": what most people leave alone.
_RARE: Final = frozenset(
    {
        "hbm_visible_bytes", "l2_bytes", "sram_bytes_per_core", "pcie_bytes_per_s", "tdp_w", "fp8_flop_per_s",
        "int8_flop_per_s", "fp4_flop_per_s", "transceiver_convention", "cp", "ep",
        "num_gpu_blocks_override", "kv_cache_memory_bytes", "time_scale", "input_cv", "output_cv",
        "attainment_fraction", "engine",
    }
)  # fmt: skip
# What a kind starts with where its keys have no default in the schema.
_STARTS: Final = {
    "request_per_s": "8", "concurrency": "64", "input_tokens": "1024", "output_tokens": "256",
    "input_mean_tokens": "1024", "output_mean_tokens": "256", "cv": "2",
}  # fmt: skip
# Kinds that no form can fill in: a trace must be uploaded, lists of lengths come with a document.
_NEED_DATA: Final = frozenset({"trace", "empirical"})
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

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(field for section in self.sections for field in section.fields)

    @property
    def valid(self) -> bool:
        return not self.messages and not any(field.error for field in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaf:
    """A place of the schema where a person writes a value."""

    path: str
    info: FieldInfo | None
    kinds: tuple[str, ...] = ()  # where the leaf is the discriminator of a union


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What one rendering of the form is made from."""

    document: Mapping[str, Any]
    baseline: Mapping[str, Any] | None
    draft: Mapping[str, Mapping[str, str]]
    errors: Mapping[str, str]
    traces: Sequence[tuple[str, str]]
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
            self.typed("hardware.chip") or shown(_default(_info("hardware.chip", {})))
        )


def outline(
    document: Mapping[str, Any],
    *,
    baseline: Mapping[str, Any] | None = None,
    draft: Mapping[str, Mapping[str, str]] | None = None,
    errors: Mapping[str, Message] | None = None,
    traces: Sequence[tuple[str, str]] = (),
) -> Outline:
    """The form of a document. `draft` is what was typed and refused, `errors` the messages by path."""
    told = {path: str(one.get("message", "")) for path, one in (draft or {}).items()}
    told |= {path: translated(message) for path, message in (errors or {}).items()}
    view = _View(
        document=document,
        baseline=baseline,
        draft=draft or {},
        errors={path: text for path, text in told.items() if text},
        traces=traces,
        catalog=default_catalog(),
    )
    sections = tuple(_section(key, view) for key in SECTIONS)
    known = {field.path for section in sections for field in section.fields}
    homeless = tuple(_said(path, text) for path, text in view.errors.items() if _home(path, known) is None)
    return Outline(sections=sections, messages=homeless)


def changes(document: Mapping[str, Any], posted: Mapping[str, str]) -> dict[str, str]:
    """Paths whose posted text differs from what the form showed; a new kind brings what it cannot do without."""
    found: dict[str, str] = {}
    for path, text in posted.items():
        if path.partition(".")[0] not in SECTIONS:
            continue
        typed = text.strip()
        if typed != shown(at(document, path)) and not _is_shown_default(document, path, typed):
            found[path] = typed
    kinds = [path for path in found if path.endswith(".kind")]
    stale = tuple(path.removesuffix("kind") for path in kinds)
    kept = {path: typed for path, typed in found.items() if path in kinds or not path.startswith(stale)}
    for path in kinds:
        kept = _starts(path, found[path]) | kept
    return _unwritten_kinds(document, kept) | kept


def at(document: Mapping[str, Any] | None, path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    here: Any = document
    for key in path.split("."):
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def shown(value: Any) -> str:
    """A document's value as text, as it was typed."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if value.is_integer() or abs(value) >= 1e-4 else repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    return str(value)


def _unwritten_kinds(document: Mapping[str, Any], found: Mapping[str, str]) -> dict[str, str]:
    """A key of a union that the document leaves at its default needs the default's kind and keys written out."""
    added: dict[str, str] = {}
    for path in found:
        section = path.rpartition(".")[0]
        default = at(_defaults(), section)
        kind = f"{section}.kind"
        if (
            isinstance(default, Mapping)
            and "kind" in default
            and at(document, kind) is None
            and kind not in found
        ):
            added[kind] = shown(default["kind"])
            added |= {f"{section}.{key}": shown(default[key]) for key in _required(section, added[kind])}
    return added


@cache
def _defaults() -> Mapping[str, Any]:
    """The smallest scenario with every default written out."""
    return Scenario(name="default").model_dump()


# --- walking the schema -------------------------------------------------------------------------------------


def _leaves(section: str, view: _View) -> Iterator[_Leaf]:
    info = Scenario.model_fields[section]
    kind = view.typed("workload.kind") or shown(at(_defaults(), "workload.kind"))
    if section in ("serving", "training") and section != kind:
        return  # no knob of work that is not done does anything
    if kind != "serving" and section == "workload":
        yield _Leaf(path="workload.kind", info=_info("workload.kind", {}))
        return
    yield from _below(section, info, view)


def _below(path: str, info: FieldInfo, view: _View) -> Iterator[_Leaf]:
    """Leaves under a field: itself, those of its class, or those of the chosen class of a union."""
    if path in _HIDDEN or (_is_list(info.annotation) and path + "[]" in _HIDDEN):
        return
    classes = _classes(info.annotation)
    if path == _OVERRIDES:
        yield from (_Leaf(path=f"{path}.{name}", info=None) for name in overridable_figures())
    elif not classes:
        if not _is_settled(info):
            yield _Leaf(path=path, info=info)
    elif len(classes) == 1:
        yield from _of_class(path, classes[0], view)
    else:
        yield _Leaf(path=f"{path}.kind", info=info, kinds=tuple(_kind(one) for one in classes))
        chosen = view.typed(f"{path}.kind") or _default_kind(info)
        yield from (
            leaf
            for one in classes
            if _kind(one) == chosen
            for leaf in _of_class(path, one, view)
            if leaf.path != f"{path}.kind"
        )


def _of_class(path: str, model: type[BaseModel], view: _View) -> Iterator[_Leaf]:
    for name, info in model.model_fields.items():
        yield from _below(f"{path}.{name}", info, view)


def _classes(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in _members(annotation) for found in _classes(argument)]


def _members(annotation: Any) -> tuple[Any, ...]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return typing.get_args(annotation)[:1]
    return typing.get_args(annotation) if origin in (typing.Union, types.UnionType) else ()


def _is_list(annotation: Any) -> bool:
    if typing.get_origin(annotation) in (list, tuple):
        return True
    return bool(_members(annotation)) and all(_is_list(one) for one in _members(annotation))


def _is_settled(info: FieldInfo) -> bool:
    """A literal with one value, and a list that must stay empty, leave nothing to choose."""
    if typing.get_origin(info.annotation) is Literal:
        return len(typing.get_args(info.annotation)) == 1
    return _is_list(info.annotation) or typing.get_origin(info.annotation) is dict


def _kind(model: type[BaseModel]) -> str:
    return str(model.model_fields["kind"].default)


def _default(info: FieldInfo | None) -> Any:
    if info is None or info.is_required():
        return None
    return info.get_default(call_default_factory=True, validated_data={})


def _default_kind(info: FieldInfo) -> str:
    return str(getattr(_default(info), "kind", "") or "")


def _info(path: str, document: Mapping[str, Any]) -> FieldInfo | None:
    """The schema's field at a path, under the kinds that the document chose."""
    candidates: list[type[BaseModel]] = [Scenario]
    info = None
    for key in path.split("."):
        found = [model.model_fields[key] for model in candidates if key in model.model_fields]
        if not found:
            return None
        info = found[0]
        candidates = [one for each in found for one in _classes(each.annotation)]
    return info


def _is_shown_default(document: Mapping[str, Any], path: str, typed: str) -> bool:
    """A select always posts: its default, where the document says nothing, is no change."""
    if at(document, path) is not None:
        return False
    if path.endswith(".kind"):
        info = _info(path.removesuffix(".kind"), document)
        return typed == (_default_kind(info) if info else "")
    return typed in ("", shown(_default(_info(path, document))))


def _starts(path: str, kind: str) -> dict[str, str]:
    section = path.removesuffix(".kind")
    return {f"{section}.{name}": _STARTS[name] for name in _required(section, kind) if name in _STARTS}


def _required(section: str, kind: str) -> list[str]:
    """Keys of a kind that have no default in its class."""
    info = _info(section, {})
    for model in _classes(info.annotation) if info else []:
        if model.model_fields.get("kind") and _kind(model) == kind:
            return [name for name, each in model.model_fields.items() if each.is_required()]
    return []


# --- one section, one field ---------------------------------------------------------------------------------


def _section(key: str, view: _View) -> Section:
    fields = tuple(_field(leaf, view) for leaf in _leaves(key, view))
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
        return _("1 change") if changed == 1 else _("%(count)s changes") % {"count": changed}
    text = {
        "topology": view.typed("topology.kind") or _("the server's own"),
        "model": view.typed("model.name"),
        "workload": view.typed("workload.arrivals.kind"),
        "run": _("seed %(seed)s") % {"seed": view.typed("run.seed") or "1"},
    }.get(key, "")
    return _choice_text(text) if text else ""


def _field(leaf: _Leaf, view: _View) -> Field:
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
        rare=name in _RARE and not typed and not _error(path, view),
        step="x2"
        if path.startswith(_OVERRIDES) and name.endswith(("_per_s", "hbm_bytes")) and not typed
        else "",
    )


def _meant(typed: str, default: str, choices: Sequence[tuple[str, str]]) -> str:
    """An empty field means its default, so naming the default is no change."""
    if choices:
        return typed or choices[0][0]
    return typed or default


def _selected(leaf: _Leaf) -> str:
    if leaf.kinds:
        return _default_kind(leaf.info) if leaf.info else ""
    return shown(_default(leaf.info))


def _choices(leaf: _Leaf, view: _View) -> tuple[tuple[str, str], ...]:
    if leaf.kinds:
        own = (("", _("the server's own")),) if leaf.info and not _default_kind(leaf.info) else ()
        usable = [
            kind for kind in leaf.kinds if kind != "trace" or view.traces or view.typed(leaf.path) == kind
        ]
        return (*own, *((kind, _choice_text(kind)) for kind in usable))
    shelf = _CATALOG_CHOICES.get(leaf.path)
    if shelf:
        return _catalog_choices(leaf, shelf, view)
    if leaf.path == "workload.arrivals.trace":
        return (("", _("upload one below")), *view.traces)
    options = _literals(leaf.info.annotation) if leaf.info else ()
    return tuple((shown(option), _choice_text(shown(option))) for option in options)


def _catalog_choices(leaf: _Leaf, shelf: str, view: _View) -> tuple[tuple[str, str], ...]:
    entries: Mapping[str, Any] = getattr(view.catalog, shelf)
    default = shown(_default(leaf.info))
    listed = [(slug, str(entries[slug].name)) for slug in entries]
    own = [(default, _choice_text(default))] if default and default not in entries else []
    typed = view.typed(leaf.path)
    foreign = [(typed, typed)] if typed and typed not in entries and typed != default else []
    return (*own, *foreign, *sorted(listed, key=lambda pair: pair[1].lower()))


def _literals(annotation: Any) -> tuple[Any, ...]:
    """The values of a literal; none where a number may be written as well."""
    if typing.get_origin(annotation) is Literal:
        return typing.get_args(annotation)
    if annotation is bool:
        return (True, False)
    members = _members(annotation)
    if members and all(one is type(None) or _literals(one) for one in members):
        return tuple(option for one in members if one is not type(None) for option in _literals(one))
    return ()


def _choice_text(option: str) -> str:
    """`rail_only` -> "rail-only", translated."""
    if option in ("true", "false"):
        return _("yes") if option == "true" else _("no")
    return _(option.replace("_", " ")) if option else ""


def _placeholder(leaf: _Leaf, view: _View) -> tuple[str, str]:
    """The default as people write it, and the unit that an empty field stands in."""
    if leaf.kinds:
        return "", ""
    name = leaf.path.rsplit(".", 1)[-1]
    dimension = dimension_of(name)
    if leaf.path.startswith(_OVERRIDES):
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


def _default_at(leaf: _Leaf, view: _View) -> Any:
    """What an empty field means: the default scenario's value where the kinds agree, else the class's."""
    section = leaf.path.rpartition(".")[0]
    kind = at(_defaults(), f"{section}.kind")
    same = kind is None or (view.typed(f"{section}.kind") or kind) == kind
    value = at(_defaults(), leaf.path) if same else None
    return _default(leaf.info) if value is None else value


def _dot(leaf: _Leaf, view: _View, typed: str) -> tuple[Dot, str]:
    """Where the value comes from, as a shape and in words."""
    if leaf.path.startswith(_OVERRIDES):
        if typed:
            return "you", _("yours")
        chip = view.chip
        figure = chip.figures.get(leaf.path.rsplit(".", 1)[-1]) if chip else None
        if figure is None:
            return "def", _("assumption")
        return _DOTS.get(figure.source.kind, "def"), f"{figure.source.title}: {figure.printed}"
    if leaf.path in _CATALOG_CHOICES and leaf.path != "hardware.server":
        return "ds", _("catalog")
    return ("you", _("yours")) if typed else ("def", _("default"))


def _note(
    leaf: _Leaf, view: _View, before: str, *, changed: bool, choices: Sequence[tuple[str, str]], default: str
) -> str:
    """What an override comes to, and what the baseline has."""
    typed = view.typed(leaf.path)
    parts = []
    if leaf.path.startswith(_OVERRIDES) and typed[:1] in ("x", "×", "*"):
        parts.append(_resolved(leaf.path, view, typed))
    if changed:
        was = dict(choices).get(before, before) if choices else before or default
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


# --- errors find their field --------------------------------------------------------------------------------


def _error(path: str, view: _View) -> str:
    """The message at a field, or at the section above it that has no field of its own."""
    if path in view.errors:
        return view.errors[path]
    parent, _point, last = path.rpartition(".")
    return view.errors.get(parent, "") if last in ("kind", "name") else ""


def _home(path: str, known: set[str]) -> str | None:
    return next((field for field in (path, f"{path}.kind", f"{path}.name") if field in known), None)


def _said(path: str, text: str) -> str:
    found = entry(path) if path else None
    return f"{_(found.label)}: {text}" if found else f"{path}: {text}" if path else text
