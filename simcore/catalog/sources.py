"""Where a figure was read: every number of the catalog has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SourceKind = Literal["vendor", "paper", "measured", "estimate", "assumption", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a figure was read."""

    title: str
    kind: SourceKind
    url: str = ""
    read_on: str = ""
    note: str = ""
