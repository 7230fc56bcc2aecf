"""A memo as Markdown: tables and words; pictures as the numbers that they draw."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from simcore.report.blocks import Block, Figure, Folded, Grid, Heading, Items, Memo, Paragraph
from simcore.report.comparison import markdown_table, markdown_text
from simcore.report.sketch import Bars, Shares


def as_markdown(memo: Memo) -> str:
    parts = [f"*{markdown_text(memo.eyebrow)}*", f"# {markdown_text(memo.title)}"]
    parts += [markdown_text(memo.question)] if memo.question else []
    parts += [_DRAWN[type(block)](block) for block in memo.blocks]
    return "\n\n".join(parts) + "\n"


def _heading(block: Heading) -> str:
    return f"## {markdown_text(block.text)}"


def _paragraph(block: Paragraph) -> str:
    text = markdown_text(block.text)
    return f"**{text}**" if block.kind == "verdict" else text


def _items(block: Items) -> str:
    return "\n".join(f"- {markdown_text(row)}" for row in block.rows)


def _grid(block: Grid) -> str:
    rows = [
        [" ".join(filter(None, (cell.text, cell.arrow, cell.change))) for cell in row] for row in block.rows
    ]
    return markdown_table(list(block.head), rows).rstrip()


def _figure(block: Figure) -> str:
    title = f"**{markdown_text(block.title)}** ({markdown_text(block.axis)})"
    return f"{title}\n\n" + "\n".join(f"- {markdown_text(line)}" for line in _lines(block))


def _lines(block: Figure) -> list[str]:
    picture = block.picture
    if isinstance(picture, Bars):
        return [f"{row.label}: {row.text}" for row in picture.rows]
    if isinstance(picture, Shares):
        return [
            f"{name}: " + ", ".join(f"{part.label} {part.fraction:.0%}" for part in parts)
            for name, parts in picture.rows
        ]
    return [f"{row.label} → {row.low_text} … {row.high_text}" for row in picture.rows]


def _folded(block: Folded) -> str:
    fence = "`" * max(3, _longest_fence(block.text) + 1)
    return f"### {markdown_text(block.title)}\n\n{fence}\n{block.text.rstrip()}\n{fence}"


def _longest_fence(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


_DRAWN: Final[dict[type[Block], Callable[[Any], str]]] = {
    Heading: _heading,
    Paragraph: _paragraph,
    Items: _items,
    Grid: _grid,
    Figure: _figure,
    Folded: _folded,
}
