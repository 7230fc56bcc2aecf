"""What may be varied in a sweep: every field of the scenario's form, with its label and what stands there now.

Values that were left out are proposed: every option of a field with options, else half, the same and twice the number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from explorer import wording
from explorer.forms.schema import SECTIONS, at, defaults, leaves, literals, shown
from simcore.analysis.grid import axis_values
from simcore.errors import InputError

PROPOSED = ("x0.5", "x1", "x2")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedPath:
    """A path that may be an axis."""

    path: str
    label: str
    now: str


def paths_of(document: Mapping[str, Any]) -> list[VariedPath]:
    """The paths of a scenario's form, under the kinds that it has chosen."""

    def typed(path: str) -> str:
        return shown(at(document, path))

    return [
        VariedPath(
            path=leaf.path,
            label=wording.label(leaf.path),
            now=typed(leaf.path) or shown(at(defaults(), leaf.path)),
        )
        for section in SECTIONS
        for leaf in leaves(section, typed)
    ]


def axis_spec(document: Mapping[str, Any], path: str, text: str) -> dict[str, Any]:
    """An axis as a study takes it."""
    values: list[Any] = list(axis_values(text)) or _proposed(document, path)
    return {"path": path, "values": values}


def _proposed(document: Mapping[str, Any], path: str) -> list[Any]:
    for section in SECTIONS:
        for leaf in leaves(section, lambda each: shown(at(document, each))):
            if leaf.path == path:
                options = leaf.kinds or (literals(leaf.info.annotation) if leaf.info else ())
                return list(options) or _around(document, path)
    return _around(document, path)


def _around(document: Mapping[str, Any], path: str) -> list[Any]:
    """Half, the same and twice a number; of anything else nothing can be proposed."""
    now = at(document, path)
    now = at(defaults(), path) if now is None else now
    if isinstance(now, bool) or not (isinstance(now, int | float) or str(now)[:1].isdigit()):
        raise InputError.at(
            path, "axis.no_values", "there is no number here to halve and double; write values with commas between"
        )  # fmt: skip
    return list(PROPOSED)
