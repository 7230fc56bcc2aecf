"""What a memo is made of: a handful of blocks in plain words, which each format draws in its own way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simcore.report.sketch import Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """`verdict` is the recommendation, `quiet` what stands at the edge."""

    text: str
    kind: Literal["verdict", "plain", "quiet"] = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """`verdict` is the direction of `change`: a filled arrow is better, a hollow one worse."""

    text: str
    change: str = ""
    verdict: Literal["better", "worse", ""] = ""
    rises: bool = False

    @property
    def arrow(self) -> str:
        """Up or down, filled where it is for the better."""
        if not self.verdict:
            return ""
        return ("▲" if self.rises else "▼") if self.verdict == "better" else ("△" if self.rises else "▽")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table: the first `words` columns are text, the rest numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture under the sentence that it shows."""

    title: str
    axis: str
    picture: Picture
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Fixed-width text that a page keeps shut until it is asked for."""

    title: str
    text: str


Block = Heading | Paragraph | Items | Grid | Figure | Folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """A decision memo in one language."""

    language: str
    eyebrow: str
    title: str
    question: str
    blocks: tuple[Block, ...]
    better: str = "better"  # how the arrows are read aloud
    worse: str = "worse"
