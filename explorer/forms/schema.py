"""The scenario's schema as places where a person writes a value.

`leaves` walks the pydantic classes of `Scenario` below a section, under the kinds that are chosen. The other
functions read documents and the schema by dotted path.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from simcore.catalog import overridable_figures
from simcore.scenario import Scenario

Typed = Callable[[str], str]  # what the form shows at a path, "" where nothing was typed
SECTIONS: Final = (
    "hardware", "topology", "model", "workload", "serving", "training", "reliability", "economics", "run",
)  # fmt: skip
OVERRIDES: Final = "hardware.chip_overrides"
# Not for a form: files of the command line, lists, and what an upload sets by itself.
_HIDDEN: Final = frozenset(
    {
        "hardware.pools", "topology.degraded", "model.config", "serving.parallelism.cp", "reliability.jobs",
        "workload.arrivals.path",
        "workload.arrivals.columns",
        "workload.arrivals.window", "workload.lengths.input_tokens[]", "workload.lengths.output_tokens[]",
    }
)  # fmt: skip


_WRITTEN_LISTS: Final = frozenset({"reliability.shocks"})  # lists that a person writes out, as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A place of the schema where a person writes a value."""

    path: str
    info: FieldInfo | None
    kinds: tuple[str, ...] = ()  # where the leaf is the discriminator of a union


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
    if isinstance(value, Mapping):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    return str(value)


@cache
def defaults() -> Mapping[str, Any]:
    """The smallest scenario with every default written out."""
    return Scenario(name="default").model_dump()


def leaves(section: str, typed: Typed) -> Iterator[Leaf]:
    info = Scenario.model_fields[section]
    kind = typed("workload.kind") or shown(at(defaults(), "workload.kind"))
    if section in ("serving", "training") and section != kind:
        return  # no knob of work that is not done does anything
    if kind != "serving" and section == "workload":
        yield Leaf(path="workload.kind", info=field_at("workload.kind", {}))
        return
    yield from _below(section, info, typed)


def _below(path: str, info: FieldInfo, typed: Typed) -> Iterator[Leaf]:
    """Leaves under a field: itself, those of its class, or those of the chosen class of a union."""
    if path in _HIDDEN or (_is_list(info.annotation) and path + "[]" in _HIDDEN):
        return
    classes = classes_of(info.annotation)
    if path in _WRITTEN_LISTS:
        yield Leaf(path=path, info=info)
        return
    if path == OVERRIDES:
        yield from (Leaf(path=f"{path}.{name}", info=None) for name in overridable_figures())
    elif not classes:
        if not _is_settled(info):
            yield Leaf(path=path, info=info)
    elif len(classes) == 1:
        yield from _of_class(path, classes[0], typed)
    else:
        yield Leaf(path=f"{path}.kind", info=info, kinds=tuple(kind_of(one) for one in classes))
        chosen = typed(f"{path}.kind") or default_kind(info)
        yield from (
            leaf
            for one in classes
            if kind_of(one) == chosen
            for leaf in _of_class(path, one, typed)
            if leaf.path != f"{path}.kind"
        )


def _of_class(path: str, model: type[BaseModel], typed: Typed) -> Iterator[Leaf]:
    for name, info in model.model_fields.items():
        yield from _below(f"{path}.{name}", info, typed)


def classes_of(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in _members(annotation) for found in classes_of(argument)]


def _members(annotation: Any) -> tuple[Any, ...]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return typing.get_args(annotation)[:1]
    return typing.get_args(annotation) if origin in (typing.Union, types.UnionType) else ()


def literals(annotation: Any) -> tuple[Any, ...]:
    """The values of a literal; none where a number may be written as well."""
    if typing.get_origin(annotation) is Literal:
        return typing.get_args(annotation)
    if annotation is bool:
        return (True, False)
    members = _members(annotation)
    if members and all(one is type(None) or literals(one) for one in members):
        return tuple(option for one in members if one is not type(None) for option in literals(one))
    return ()


def _is_list(annotation: Any) -> bool:
    if typing.get_origin(annotation) in (list, tuple):
        return True
    return bool(_members(annotation)) and all(_is_list(one) for one in _members(annotation))


def _is_settled(info: FieldInfo) -> bool:
    """A literal with one value, and a list that must stay empty, leave nothing to choose."""
    if typing.get_origin(info.annotation) is Literal:
        return len(typing.get_args(info.annotation)) == 1
    return _is_list(info.annotation) or typing.get_origin(info.annotation) is dict


def kind_of(model: type[BaseModel]) -> str:
    return str(model.model_fields["kind"].default)


def default_of(info: FieldInfo | None) -> Any:
    if info is None or info.is_required():
        return None
    return info.get_default(call_default_factory=True, validated_data={})


def default_kind(info: FieldInfo) -> str:
    return str(getattr(default_of(info), "kind", "") or "")


def field_at(path: str, document: Mapping[str, Any]) -> FieldInfo | None:
    """The schema's field at a path, under the kinds that the document chose."""
    candidates: list[type[BaseModel]] = [Scenario]
    info = None
    for key in path.split("."):
        found = [model.model_fields[key] for model in candidates if key in model.model_fields]
        if not found:
            return None
        info = found[0]
        candidates = [one for each in found for one in classes_of(each.annotation)]
    return info


def required_keys(section: str, kind: str) -> list[str]:
    """Keys of a kind that have no default in its class."""
    info = field_at(section, {})
    for model in classes_of(info.annotation) if info else []:
        if model.model_fields.get("kind") and kind_of(model) == kind:
            return [name for name, each in model.model_fields.items() if each.is_required()]
    return []
