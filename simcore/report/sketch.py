"""The pictures of a memo as static SVG, without a browser: bars, shares of a whole, and swings around a base.

Positions are per cent of the width and texts have a size of their own, so that a picture is as legible on a phone as
on paper. The same picture stands in the page and in the PDF: `palette` says how a colour is written, as a variable of
the page's style sheet (light and dark) or as the light one itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

Palette = Callable[[str], str]
FONT: Final = "font-family:var(--sans)"
PRINT_FONT: Final = "font-family:'Noto Sans CJK SC','Noto Sans','DejaVu Sans'"
REACH: Final = 74.0  # how far the longest bar goes, in per cent: its number stands behind it
ROW: Final = 50
PRINT_WIDTH: Final = 620
_LIGHT: Final = {
    "ink": "#1c1f22",
    "ink-2": "#565b61",
    "hair": "#e3e0d7",
    "hair-2": "#bdb9ae",
    "accent": "#00646f",
    "compute": "#38308c",
    "hbm": "#c2841c",
    "scaleup": "#2f9d8e",
    "scaleout": "#3579bb",
    "host": "#8a3577",
    "overhead": "#8a3577",
    "bubble": "#bdb9ae",
    "queue": "#70747a",
    "failure": "#c5371f",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    label: str
    value: float
    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One value for each scenario, from zero."""

    rows: tuple[Bar, ...]

    @property
    def height(self) -> int:
        return ROW * len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    key: str
    label: str
    fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """A whole in parts for each scenario; `legend` names the keys."""

    rows: tuple[tuple[str, tuple[Part, ...]], ...]
    legend: tuple[Part, ...]

    @property
    def height(self) -> int:
        return ROW * len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swung:
    label: str
    low: float
    high: float
    low_text: str
    high_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Swings:
    """How far one result moves between the ends of each input."""

    base: float
    rows: tuple[Swung, ...]

    @property
    def height(self) -> int:
        return (ROW + 18) * len(self.rows)


Picture = Bars | Shares | Swings


def on_page(key: str) -> str:
    """The colour as the page's style sheet has it."""
    return f"var(--{key})"


def on_paper(key: str) -> str:
    """The light colour itself."""
    return _LIGHT[key]


def svg(picture: Picture, *, summary: str, palette: Palette = on_page) -> str:
    """The picture as one `<svg>`; everything that a person wrote is escaped."""
    paper = palette is on_paper
    width = str(PRINT_WIDTH) if paper else "100%"
    marks = "".join(_MARKS[type(picture)](picture, palette))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{picture.height}" role="img" '
        f'aria-label="{escape(summary)}" style="{PRINT_FONT if paper else FONT};font-size:14px">{marks}</svg>'
    )


def _bars(picture: Bars, palette: Palette) -> Iterator[str]:
    longest = max((abs(row.value) for row in picture.rows), default=0.0) or 1.0
    for index, row in enumerate(picture.rows):
        top, width = index * ROW, abs(row.value) / longest * REACH
        yield _text(row.label, 0.0, top + 14, palette("ink" if row.strong else "ink-2"))
        yield _rect(0.0, width, top + 21, palette("accent" if row.strong else "hair-2"), title=row.text)
        yield _text(row.text, width, top + 36, palette("ink"), shift=8, strong=row.strong)


def _shares(picture: Shares, palette: Palette) -> Iterator[str]:
    for index, (name, parts) in enumerate(picture.rows):
        top, left = index * ROW, 0.0
        yield _text(name, 0.0, top + 14, palette("ink-2"))
        for part in parts:
            width = part.fraction * 100
            yield _rect(left, width, top + 21, palette(part.key), title=f"{part.label} {part.fraction:.0%}")
            left += width


def _swings(picture: Swings, palette: Palette) -> Iterator[str]:
    ends = [value for row in picture.rows for value in (row.low, row.high)] + [picture.base]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return (value - low) / span * 100

    row_height = ROW + 18
    for index, row in enumerate(picture.rows):
        top = index * row_height
        left, right = sorted((place(row.low), place(row.high)))
        yield _text(row.label, 0.0, top + 14, palette("ink"))
        yield _rect(left, right - left, top + 21, palette("hair-2"), title=f"{row.low_text}, {row.high_text}")
        least, most = (row.low_text, row.high_text) if row.low <= row.high else (row.high_text, row.low_text)
        yield _text(f"{least} – {most}", 0.0, top + 57, palette("ink-2"))
    at = place(picture.base)
    for index in range(len(picture.rows)):
        top = index * row_height
        yield (
            f'<line x1="{at:.2f}%" x2="{at:.2f}%" y1="{top + 18}" y2="{top + 42}" '
            f'style="stroke:{palette("ink")};stroke-width:1.5"/>'
        )


def _rect(left: float, width: float, top: int, color: str, *, title: str) -> str:
    return (
        f'<rect x="{left:.2f}%" y="{top}" width="{max(width, 0.2):.2f}%" height="20" style="fill:{color}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _text(text: str, left: float, top: int, color: str, *, shift: int = 0, strong: bool = False) -> str:
    weight = ";font-weight:600" if strong else ""
    return f'<text x="{left:.2f}%" dx="{shift}" y="{top}" style="fill:{color}{weight}">{escape(text)}</text>'


_MARKS: Final[dict[type, Callable[..., Iterator[str]]]] = {Bars: _bars, Shares: _shares, Swings: _swings}


def legend_of(rows: Sequence[tuple[str, tuple[Part, ...]]]) -> tuple[Part, ...]:
    """Every part that some row has, once."""
    return tuple({part.key: part for _, parts in rows for part in parts if part.fraction > 0.0005}.values())
