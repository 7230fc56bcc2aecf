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
                _refuse_truth_values(cls, name, data[name])
                converted[name] = _in_si(cls, name, data[name])
            except InputError as error:
                reason = PydanticCustomError("quantity", "{reason}", {"reason": error.message.text})
                errors.append(InitErrorDetails(type=reason, loc=(name,), input=data[name]))
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return converted


def _refuse_truth_values(cls: type[BaseModel], name: str, value: Any) -> None:
    """`chip_count: true` is a slip, not one chip."""
    text = str(cls.model_fields[name].annotation)
    takes_numbers = "int" in text or "float" in text
    if (
        isinstance(value, bool)
        and takes_numbers
        and not any(word in text for word in ("bool", "True", "False"))
    ):
        raise InputError.at(
            name, "number.wrong_type", "got {got}; a number is needed", got=str(value).lower()
        )


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
    """One message per field: path, what was got, what is allowed, a next step."""
    found: dict[str, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        found.setdefault(field_path(details["loc"], document, prefix), []).append(details)
    return InputError(*(_message(path, alternatives) for path, alternatives in found.items()))


def field_path(location: tuple[int | str, ...], document: Any = None, prefix: str = "") -> str:
    """`("topology", "rail_only", "radix")` -> `topology.radix`: tags and branches of unions are no user's path."""
    parts, here = [prefix] if prefix else [], document
    for part in location:
        tagged = isinstance(here, Mapping) and part not in here and here.get("kind") == part
        if tagged or str(part).startswith(("function-", "literal[")):
            continue
        if document is not None and not isinstance(here, Mapping | list | tuple):
            break  # below a plain value stand only the branches that were tried on it
        if isinstance(here, list | tuple) and not isinstance(part, int):
            continue
        parts.append(str(part))
        here = _below(here, part)
    return ".".join(parts)


def _below(here: Any, part: int | str) -> Any:
    if isinstance(here, Mapping):
        return here.get(part)
    inside = isinstance(here, list | tuple) and isinstance(part, int) and part < len(here)
    return here[part] if inside else None


def _message(path: str, alternatives: list[ErrorDetails]) -> Message:
    """The problem of one field; a union that refused a value on every branch says what each would take."""
    details = alternatives[0]
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
    allowed = str(context.get("expected", ""))
    if kind == "literal_error" and len(alternatives) == 1 and " or " not in allowed:
        return Message(
            code="value.not_modelled",
            template="got {got}; only {allowed} is modelled",
            params={"got": got, "allowed": allowed},
            path=path,
        )
    return Message(
        code="value.wrong",
        template="got {got}; {reason}",
        params={"got": got, "reason": _reasons(alternatives)},
        path=path,
    )


def _reasons(alternatives: list[ErrorDetails]) -> str:
    first, *others = dict.fromkeys(details["msg"] for details in alternatives)
    reasons = [first[0].lower() + first[1:], *(other.removeprefix("Input should be ") for other in others)]
    return " or ".join(reasons)
