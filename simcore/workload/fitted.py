"""What was fitted to a real trace, read from a file beside: its parameters, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FOLDER: Final = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The source of a fit."""

    title: str
    url: str
    licence: str
    note: str
    fitted_on: str


_F = TypeVar("_F", bound=Fitted)


def fits(file: str, kind: type[_F]) -> Mapping[str, _F]:
    """The fits of a file by name, in the order in which they are offered."""
    document = yaml.load((_FOLDER / file).read_text(encoding="utf-8"), Loader=_LOADER)
    return {name: _fit(entry, kind) for name, entry in document.items()}


def _fit(entry: Mapping[str, Any], kind: type[_F]) -> _F:
    plain: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    plain["fitted_on"] = str(plain["fitted_on"])
    return kind(**plain)
