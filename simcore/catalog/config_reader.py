"""Reading a config.json key by key: checked numbers, errors with paths, and a memory of what was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from simcore.errors import InputError

Config = Mapping[str, Any]
Shape = dict[str, Any]
MOST_LAYERS: Final = 10_000
_LARGEST: Final = 10**9


class Reader:
    """A config that remembers which keys were read and speaks in paths."""

    def __init__(self, config: Config, path: str) -> None:
        self.config: dict[str, Any] = dict(config)
        self.path = path
        self.read: set[str] = set()
        self.defaulted: dict[str, object] = {}
        self.remarks: list[str] = []  # what a shape only approximates, for the importer's messages

    def has(self, *keys: str) -> bool:
        return any(self.config.get(key) is not None for key in keys)

    def raw(self, key: str) -> Any:
        self.read.add(key)
        return self.config.get(key)

    def fill(self, defaults: Config) -> None:
        """What the family's config class fills in where its files leave a key out; each use is named."""
        for key, value in defaults.items():
            if not self.has(key):
                self.defaulted[key] = self.config[key] = value

    def rename(self, keys: Mapping[str, str]) -> None:
        """Unusual keys under their usual names; `outer.inner` reads a nested object."""
        for key, usual in keys.items():
            outer, _, inner = key.partition(".")
            value = self.config.get(outer)
            if inner:
                value = value.get(inner) if isinstance(value, Mapping) else None
            if value is not None and not self.has(usual):
                self.config[usual] = value
                self.read.add(outer)

    def number(self, *keys: str, default: int | None = None) -> int:
        """The first of `keys` that is there."""
        for key in keys:
            if self.raw(key) is not None:
                return self._checked(key, self.config[key], minimum=1)
        if default is not None:
            return default
        raise InputError.at(
            f"{self.path}.{keys[0]}",
            "config.missing",
            "this config.json has no {field}, which this family needs; add it or paste the whole file",
            field=" or ".join(keys),
        )

    def count(self, *keys: str) -> int:
        """A number that may be absent, 0 or "auto": the first of `keys` that is there."""
        for key in keys:
            if self.raw(key) not in (None, "auto"):
                return self._checked(key, self.config[key], minimum=0)
        return 0

    def first(self, *keys: str) -> int:
        """A count that some files print once per layer; the largest stands for all."""
        for key in keys:
            value = self.raw(key)
            if isinstance(value, list) and value and len(value) <= MOST_LAYERS:
                return max(self._checked(key, item, minimum=0) for item in value)
            if value is not None:
                return self._checked(key, value, minimum=0)
        return 0

    def flag(self, *keys: str, default: bool = False) -> bool:
        for key in keys:
            value = self.raw(key)
            if value is None:
                continue
            if not isinstance(value, bool):
                raise self.wrong(key, value, "true or false is needed")
            return value
        return default

    def items(self, key: str) -> list[Any]:
        value = self.raw(key)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > MOST_LAYERS:
            raise self.wrong(key, value, "a list is needed")
        return value

    def numbers(self, key: str) -> list[int]:
        """A list of whole numbers of 0 or more."""
        return [self._checked(key, item, minimum=0) for item in self.items(key)]

    def text(self, key: str) -> str:
        value = self.raw(key)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > MOST_LAYERS:
            raise self.wrong(key, value, "a text is needed")
        return value

    def inner(self, key: str) -> Reader | None:
        """A nested object with a reader of its own."""
        value = self.raw(key)
        return Reader(value, f"{self.path}.{key}") if isinstance(value, Mapping) else None

    def wrong(self, key: str, value: object, needed: str) -> InputError:
        return InputError.at(
            f"{self.path}.{key}", "config.wrong", "got {got}; {needed}", got=repr(value)[:60], needed=needed
        )

    def unsupported(self, key: str, what: str) -> InputError:
        return InputError.at(f"{self.path}.{key}", "config.unsupported", "{what}", what=what)

    def _checked(self, key: str, value: object, *, minimum: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= _LARGEST:
            needed = f"a whole number from {minimum} to {_LARGEST:,} is needed"
            raise self.wrong(key, value, needed)
        return value


Part = Callable[[Reader, Shape], Shape]  # fields that one aspect of a config adds to a shape
