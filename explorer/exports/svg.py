"""A plot as static SVG: the lines of a chart's figure, drawn without a browser, for files that must need nothing.

Reads the part of a plotly figure that `charts.style` writes: lines (also stepped), a linear or logarithmic x axis,
a linear y axis, ticks with texts. Colours stay CSS variables, so a page around it decides on light or dark.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

WIDTH: Final = 880
HEIGHT: Final = 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 12, 32
TICKS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From a value to a place between `start` and `end`, in pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float | None:
        """None where a logarithm has no place for the value."""
        if self.log and value <= 0:
            return None
        share = ((math.log10(value) if self.log else value) - self.low) / ((self.high - self.low) or 1.0)
        return self.start + share * (self.end - self.start)


def line_plot(figure: Mapping[str, Any], *, summary: str) -> str:
    """The figure as one `<svg>`; everything that a person wrote is escaped."""
    lines, layout = figure["data"], figure["layout"]
    x = _scale(layout["xaxis"], [v for line in lines for v in line["x"]], LEFT, WIDTH - RIGHT)
    y = _scale(layout["yaxis"], [v for line in lines for v in line["y"]], HEIGHT - BOTTOM, TOP)
    parts = [*_x_ticks(layout["xaxis"], x), *_y_ticks(layout["yaxis"], y)]
    parts += [_path(line, x, y) for line in lines]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(summary)}" class="art">'
        + "".join(parts)
        + f"</svg>{_legend(lines)}"
    )


def _scale(axis: Mapping[str, Any], values: Sequence[float | None], start: float, end: float) -> Scale:
    log = axis.get("type") == "log"
    known = [math.log10(v) if log else v for v in values if v is not None and (v > 0 or not log)] or [
        0.0,
        1.0,
    ]
    low, high = axis.get("range") or (min(known), max(known))
    return Scale(low=low, high=high, start=start, end=end, log=log)


def _x_ticks(axis: Mapping[str, Any], scale: Scale) -> list[str]:
    drawn = []
    for value, text in _ticks(axis, scale):
        place = scale.at(value)
        if place is not None and scale.start - 1 <= place <= scale.end + 1:
            drawn.append(
                f'<line class="grid" x1="{place:.1f}" x2="{place:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
                f'<text class="mid" x="{place:.1f}" y="{HEIGHT - 8}">{escape(text)}</text>'
            )
    return drawn


def _y_ticks(axis: Mapping[str, Any], scale: Scale) -> list[str]:
    drawn = []
    for value, text in _ticks(axis, scale):
        place = scale.at(value)
        if place is not None and scale.end - 1 <= place <= scale.start + 1:
            drawn.append(
                f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place:.1f}" y2="{place:.1f}"/>'
                f'<text class="end" x="{LEFT - 8}" y="{place + 5:.1f}">{escape(text)}</text>'
            )
    return drawn


def _ticks(axis: Mapping[str, Any], scale: Scale) -> list[tuple[float, str]]:
    """The axis' own ticks, or a few even ones."""
    if axis.get("tickvals"):
        return [
            (float(value), str(text)) for value, text in zip(axis["tickvals"], axis["ticktext"], strict=True)
        ]
    step = axis.get("dtick") or (scale.high - scale.low) / TICKS or 1.0
    count = int((scale.high - scale.low) / step + 1e-9)
    values = [scale.low + step * index for index in range(count + 1)]
    if scale.log:
        values = [10**value for value in values]
    as_percent = str(axis.get("tickformat", "")).endswith("%")
    return [(value, f"{value:.0%}" if as_percent else f"{value:.4g}") for value in values]


def _path(line: Mapping[str, Any], x: Scale, y: Scale) -> str:
    style = line["line"]
    points = [
        (across, up)
        for a, b in zip(line["x"], line["y"], strict=True)
        if a is not None and b is not None
        for across, up in [(x.at(a), y.at(b))]
        if across is not None and up is not None
    ]
    if not points:
        return ""
    stepped = style.get("shape") == "hv"
    steps = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    steps += [
        f"H{across:.1f}V{up:.1f}" if stepped else f"L{across:.1f},{up:.1f}" for across, up in points[1:]
    ]
    dash = str(style.get("dash", "solid")).replace("px", "")
    dashed = f";stroke-dasharray:{escape(dash)}" if dash != "solid" else ""
    return (
        f'<path d="{"".join(steps)}" style="fill:none;stroke:{escape(style["color"])};'
        f'stroke-width:{style.get("width", 2)}{dashed}"/>'
    )


def _legend(lines: Sequence[Mapping[str, Any]]) -> str:
    marks = []
    for line in lines:
        style = line["line"]
        drawn = "solid" if style.get("dash", "solid") == "solid" else "dashed"
        mark = f'<span class="mark" style="border-top:2px {drawn} {escape(style["color"])}"></span>'
        marks.append(f"<li>{mark} {escape(str(line['name']))}</li>")
    return f'<ul class="legend">{"".join(marks)}</ul>'
