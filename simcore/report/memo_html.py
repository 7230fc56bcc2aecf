"""A memo as HTML: the article alone for a page that has a frame, or a file that needs nothing but itself.

The file runs no script: appendices open and close, figures tell their values under the pointer, and light or dark is
chosen by two radio buttons that the style sheet reads.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import Any, Final

from simcore.report.blocks import Block, Cell, Figure, Folded, Grid, Heading, Items, Memo, Paragraph
from simcore.report.sketch import Shares, svg

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def article(memo: Memo) -> str:
    """The memo as one `<article>`; everything that a person wrote is escaped."""
    question = f'<p class="question">{escape(memo.question)}</p>' if memo.question else ""
    body = "".join(_DRAWN[type(block)](block, memo) for block in memo.blocks)
    return (
        f'<article class="sheet" lang="{memo.language}"><p class="eyebrow">{escape(memo.eyebrow)}</p>'
        f"<h1>{escape(memo.title)}</h1>{question}{body}</article>"
    )


def page(memo: Memo) -> str:
    """The memo as a file."""
    return (
        f'<!doctype html><html lang="{memo.language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>{escape(memo.title)}</title>'
        f'<style>{style()}</style></head><body class="alone">'
        f'<form class="theme">{_choice("light", "☀")}{_choice("dark", "☾")}</form>'
        f"<main>{article(memo)}</main></body></html>\n"
    )


def _choice(theme: str, sign: str) -> str:
    return f'<label><input type="radio" name="theme" id="{theme}" aria-label="{theme}">{sign}</label>'


def style() -> str:
    """The style sheets of the file: its own tokens, and that of the article."""
    folder = files("simcore.report") / "style"
    return "".join((folder / name).read_text(encoding="utf-8") for name in ("alone.css", "report.css"))


def _heading(block: Heading, memo: Memo) -> str:
    return f"<h2>{escape(block.text)}</h2>"


def _paragraph(block: Paragraph, memo: Memo) -> str:
    return f'<p class="{block.kind}">{escape(block.text)}</p>'


def _items(block: Items, memo: Memo) -> str:
    return '<ol class="grounds">' + "".join(f"<li>{escape(row)}</li>" for row in block.rows) + "</ol>"


def _grid(block: Grid, memo: Memo) -> str:
    def line(tag: str, cells: list[str]) -> str:
        marks = ["" if index < block.words else ' class="n"' for index in range(len(cells))]
        return "<tr>" + "".join(f"<{tag}{m}>{c}</{tag}>" for m, c in zip(marks, cells, strict=True)) + "</tr>"

    head = line("th", [escape(text) for text in block.head])
    rows = "".join(line("td", [_cell(cell, memo) for cell in row]) for row in block.rows)
    return (
        f'<div class="scroll-x" tabindex="0"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
    )


def _cell(cell: Cell, memo: Memo) -> str:
    if not cell.change:
        return escape(cell.text)
    spoken = {"better": memo.better, "worse": memo.worse}.get(cell.verdict, "")
    said = f'<span class="sr">, {escape(spoken)}</span>' if spoken else ""
    arrow = f'<span aria-hidden="true">{cell.arrow}</span> ' if cell.arrow else ""
    return f'{escape(cell.text)} <span class="d {cell.verdict}">{arrow}{escape(cell.change)}{said}</span>'


def _figure(block: Figure, memo: Memo) -> str:
    legend = ""
    if isinstance(block.picture, Shares):
        keys = "".join(
            f'<li><span class="swatch" style="background:var(--{part.key})"></span>{escape(part.label)}</li>'
            for part in block.picture.legend
        )
        legend = f'<ul class="legend">{keys}</ul>'
    source = f'<p class="axis-note">{escape(block.source)}</p>' if block.source else ""
    return (
        f'<figure class="chart"><figcaption><h3 class="finding">{escape(block.title)}</h3>'
        f'<p class="axis-note">{escape(block.axis)}</p></figcaption>'
        f"{svg(block.picture, summary=block.title)}{legend}{source}</figure>"
    )


def _folded(block: Folded, memo: Memo) -> str:
    return f'<details><summary>{escape(block.title)}</summary><pre tabindex="0">{escape(block.text)}</pre></details>'


_DRAWN: Final[dict[type[Block], Callable[[Any, Memo], str]]] = {
    Heading: _heading,
    Paragraph: _paragraph,
    Items: _items,
    Grid: _grid,
    Figure: _figure,
    Folded: _folded,
}
