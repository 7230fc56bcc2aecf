"""Reading a config.json key by key: checked numbers, errors with paths, and a memory of what was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simcore.errors import InputError

Config = Mapping[str, Any]
MOST_LAYERS: Final = 10_000
_LARGEST: Final = 10**9


class Reader:
    """A config that remembers which keys were read and speaks in paths."""

    def __init__(self, config: Config, path: str) -> None:
        self.config = config
        self.path = path
        self.read: set[str] = set()
        self.defaulted: dict[str, int] = {}

    def has(self, key: str) -> bool:
        return self.config.get(key) is not None

    def raw(self, key: str) -> Any:
        self.read.add(key)
        return self.config.get(key)

    def number(self, *keys: str, default: int | None = None, family_default: int | None = None) -> int:
        """The first of `keys` that is there. A family default is what its config class fills in: it is named."""
        for key in keys:
            if self.raw(key) is not None:
                return self._checked(key, self.config[key], minimum=1)
        if family_default is not None:
            self.defaulted[keys[0]] = family_default
            return family_default
        if default is not None:
            return default
        raise InputError.at(
            f"{self.path}.{keys[0]}",
            "config.missing",
            "this config.json has no {field}, which this family needs; add it or paste the whole file",
            field=" or ".join(keys),
        )

    def count(self, key: str) -> int:
        """A number that may be absent or 0."""
        value = self.raw(key)
        return 0 if value is None else self._checked(key, value, minimum=0)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError.at(
                f"{self.path}.{key}",
                "config.wrong",
                "got {got}; true or false is needed",
                got=repr(value)[:60],
            )
        return value

    def items(self, key: str) -> list[Any]:
        value = self.raw(key)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > MOST_LAYERS:
            raise InputError.at(
                f"{self.path}.{key}", "config.wrong", "got {got}; a list is needed", got=repr(value)[:60]
            )
        return value

    def _checked(self, key: str, value: object, *, minimum: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= _LARGEST:
            raise InputError.at(
                f"{self.path}.{key}",
                "config.wrong",
                "got {got}; a whole number from {low} to {high:,} is needed",
                got=repr(value)[:60],
                low=minimum,
                high=_LARGEST,
            )
        return value
