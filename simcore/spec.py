"""The base of every specification that a user may write: frozen, closed, unit-aware.

A specification is the untrusted half of the program. A float field's dimension is read from its name
(`hbm_bytes_per_s` takes "3.35 TB/s" or 3.35e12), so units are declared once, by naming the field. NaN
and infinity are refused everywhere. `field_path` turns pydantic's location into the path users see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from simcore.errors import InputError, Message
from simcore.units import UNITS, dimension_of, quantity


class Spec(BaseModel):
    """Frozen pydantic model that refuses unknown keys and converts quantities by field name."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, str_max_length=2_000_000, protected_namespaces=()
    )

    @model_validator(mode="before")
    @classmethod
    def _convert_quantities(cls, data: Any) -> Any:
        """Texts with a unit become SI numbers; one that cannot is an error at its own field."""
        if not isinstance(data, dict):
            return data
        converted, errors = dict(data), []
        for name in cls.model_fields.keys() & data.keys():
            try:
                converted[name] = _in_si(cls, name, data[name])
            except InputError as error:
                reason = PydanticCustomError("quantity", "{reason}", {"reason": error.message.text})
                errors.append(InitErrorDetails(type=reason, loc=(name,), input=data[name]))
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return converted


def _in_si(cls: type[BaseModel], name: str, value: Any) -> Any:
    dimension = dimension_of(name)
    is_text = cls.model_fields[name].annotation is str  # such as the name of a column that holds seconds
    if is_text or dimension not in UNITS or not isinstance(value, str) or value in _words(cls, name):
        return value
    number = quantity(value, dimension)
    return int(number) if number.is_integer() and _wants_integer(cls, name) else number


def _words(cls: type[BaseModel], name: str) -> tuple[str, ...]:
    """Words that a quantity field takes instead of a number, such as "auto"."""
    text = str(cls.model_fields[name].annotation)
    return ("auto",) if "'auto'" in text else ()


def _wants_integer(cls: type[BaseModel], name: str) -> bool:
    return "int" in str(cls.model_fields[name].annotation)


def as_input_error(error: ValidationError, *, document: Any = None, prefix: str = "") -> InputError:
    """One message per problem: path, what was got, what is allowed, a next step."""
    details = error.errors(include_url=False)
    return InputError(*(_message(one, field_path(one["loc"], document, prefix)) for one in details))


def field_path(location: tuple[int | str, ...], document: Any = None, prefix: str = "") -> str:
    """`("topology", "rail_only", "radix")` -> `topology.radix`: the tag of a union is not in a user's path."""
    parts, here = [prefix] if prefix else [], document
    for part in location:
        tagged = isinstance(here, Mapping) and part not in here and here.get("kind") == part
        if tagged or str(part).startswith(("function-", "literal[")):
            continue
        parts.append(str(part))
        here = here.get(part) if isinstance(here, Mapping) else None
    return ".".join(parts)


def _message(details: ErrorDetails, path: str) -> Message:
    kind, context = details["type"], details.get("ctx", {})
    got = repr(details.get("input"))[:80]
    if kind == "extra_forbidden":
        return Message(
            code="key.unknown",
            template="unknown key; remove it or check its spelling",
            path=path,
        )
    if kind == "missing":
        return Message(code="key.missing", template="this key is required; add it", path=path)
    if kind in ("value_error", "quantity"):
        reason = str(context.get("error") or context["reason"])
        return Message(code="value.wrong", template="{reason}", params={"reason": reason}, path=path)
    if kind == "union_tag_not_found":
        return Message(
            code="kind.missing", template="kind is missing; say which one it is", path=f"{path}.kind"
        )
    if kind == "union_tag_invalid":
        return Message(
            code="kind.unknown",
            template="unknown kind {got}; choose one of {allowed}",
            params={"got": repr(context.get("tag")), "allowed": str(context.get("expected_tags"))},
            path=f"{path}.kind",
        )
    return Message(
        code="value.wrong",
        template="got {got}; {reason}",
        params={"got": got, "reason": details["msg"][0].lower() + details["msg"][1:]},
        path=path,
    )
