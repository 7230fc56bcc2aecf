"""Stories: a baseline, one change, what to look at and the sources, each in one YAML file of `presets/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from simcore.errors import InputError
from simcore.scenario.documents import load_document
from simcore.scenario.overrides import apply_overrides

_FOLDER = Path(__file__).parent / "presets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """`baseline` and `variant` are scenario documents; `overrides` leads from one to the other."""

    slug: str
    number: str
    title: str
    finding: str
    tab: str
    baseline: Mapping[str, Any]
    overrides: Mapping[str, Any]
    variant: Mapping[str, Any]
    look_at: tuple[str, ...]
    sources: tuple[Mapping[str, str], ...]


@lru_cache(maxsize=1)
def stories() -> Mapping[str, Story]:
    """All stories by slug, in the order of their numbers."""
    found = [_read(path) for path in _FOLDER.glob("*.yaml")]
    return {story.slug: story for story in sorted(found, key=lambda story: int(story.number[1:]))}


def story(slug: str) -> Story:
    try:
        return stories()[slug]
    except KeyError:
        raise InputError.at(
            "story", "story.unknown", "no story {got!r}; choose one of {allowed}", got=slug[:60],
            allowed=", ".join(stories()),
        ) from None  # fmt: skip


def _read(path: Path) -> Story:
    data = load_document(path.read_bytes(), path=path.name)
    overrides = data["variant"]["overrides"]
    variant, _ = apply_overrides(data["baseline"], overrides | {"name": data["variant"]["name"]})
    return Story(
        slug=path.stem,
        number=data["number"],
        title=data["title"],
        finding=data["finding"],
        tab=data["tab"],
        baseline=data["baseline"],
        overrides=overrides,
        variant=variant,
        look_at=tuple(data["look_at"]),
        sources=tuple(data["sources"]),
    )
