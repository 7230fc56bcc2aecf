"""`@remembered`: a pure function keeps its last results, for arguments that are compared by value or by identity.

A plan evaluates the same operators of the same model on the same chip whatever else a person edits. Catalog
entries are frozen but hold mappings, which have no hash, so they are told apart by identity; the key holds
them, so that an identity cannot be given to another object while the key lives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class _ByIdentity:
    itself: Any

    def __hash__(self) -> int:
        return id(self.itself)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.itself is other.itself


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Keep the last 256 results. The function must be pure, and what it returns must not be changed."""

    @lru_cache(maxsize=256)
    def kept(*keys: Any, **named: Any) -> R:
        return function(*map(_opened, keys), **{name: _opened(key) for name, key in named.items()})

    @wraps(function)
    def looked_up(*args: P.args, **named: P.kwargs) -> R:
        return kept(*map(_key, args), **{name: _key(value) for name, value in named.items()})

    return looked_up


def _key(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return _ByIdentity(value)
    return value


def _opened(key: Any) -> Any:
    return key.itself if isinstance(key, _ByIdentity) else key
