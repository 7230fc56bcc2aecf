"""A memo as PDF, set by typst: charts stay vectors, text can be searched and copied.

Every text that a person wrote goes in as a string literal, never as markup. Chinese needs a font that has it: the
system's is taken, and where there is none that is said, because a page of empty boxes would be worse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import typst

from simcore.errors import InputError
from simcore.report.blocks import Block, Cell, Figure, Folded, Grid, Heading, Items, Memo, Paragraph
from simcore.report.sketch import Shares, on_paper, svg

SANS: Final[tuple[str, ...]] = ("Noto Sans", "Liberation Sans", "DejaVu Sans", "Arial", "Helvetica Neue")
CHINESE: Final[tuple[str, ...]] = (
    "Noto Sans CJK SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "WenQuanYi Micro Hei", "SimSun",
)  # fmt: skip
MONO: Final[tuple[str, ...]] = ("DejaVu Sans Mono",)
_HAN: Final = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")
_PREAMBLE: Final = """#set document(title: {title})
#set page(paper: "a4", margin: (x: 24mm, y: 22mm), footer: context [#set text(8pt, fill: rgb("#565b61")); \
#h(1fr) #counter(page).display("1 / 1", both: true)])
#set text(font: ({fonts}), size: 10pt, lang: {lang}, fill: rgb("#1c1f22"))
#set par(leading: 0.65em, spacing: 0.9em)
#show raw: set text(font: ({mono}), size: 7.5pt)
#let quiet(body) = text(fill: rgb("#565b61"), size: 9pt, body)
"""


def as_pdf(memo: Memo) -> bytes:
    """The memo's pages. A Chinese one on a system without a Chinese font is an InputError that says what to install."""
    source = _source(memo)
    if _HAN.search(source) and not chinese_fonts():
        raise InputError.at(
            "",
            "report.no_font",
            "this memo has Chinese text and no font here has its characters; install one such as {example}, or take "
            "the HTML and print it from a browser",
            example="fonts-noto-cjk",
        )
    made: bytes = typst.compile(source.encode())
    return made


@lru_cache(maxsize=1)
def chinese_fonts() -> tuple[str, ...]:
    """Those of the known families that this system has."""
    return tuple(family for family in CHINESE if family in _families())


@lru_cache(maxsize=1)
def _families() -> frozenset[str]:
    return frozenset(font.family for font in typst.Fonts().fonts())


def _source(memo: Memo) -> str:
    fonts = [family for family in (*SANS, *CHINESE) if family in _families()] or ["New Computer Modern"]
    head = _PREAMBLE.format(
        title=_quoted(memo.title),
        fonts=_list(fonts),
        lang=_quoted(memo.language[:2]),
        mono=_list([*(family for family in MONO if family in _families()), *chinese_fonts(), *fonts]),
    )
    return "\n".join([head, *_title(memo), *(_DRAWN[type(block)](block) for block in memo.blocks)])


def _title(memo: Memo) -> Iterator[str]:
    yield f"#quiet({_quoted(memo.eyebrow)})\n"
    yield f"#text(size: 20pt, {_quoted(memo.title)})\n"
    if memo.question:
        yield f'#text(size: 12pt, fill: rgb("#565b61"), {_quoted(memo.question)})\n'


def _quoted(text: str) -> str:
    """A string literal of typst's."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "")
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _list(names: list[str]) -> str:
    return "".join(f"{_quoted(name)}, " for name in names)


def _heading(block: Heading) -> str:
    """On the page of what follows it."""
    return f"#v(8pt)\n#block(sticky: true, text(size: 14pt, {_quoted(block.text)}))\n"


def _paragraph(block: Paragraph) -> str:
    if block.kind == "verdict":
        edge = 'inset: (left: 10pt), stroke: (left: 1.5pt + rgb("#00646f"))'
        return f"#block({edge}, text(size: 12pt, {_quoted(block.text)}))\n"
    return f"#quiet({_quoted(block.text)})\n" if block.kind == "quiet" else f"#text({_quoted(block.text)})\n"


def _items(block: Items) -> str:
    return f"#text(size: 9pt, list({', '.join(f'text({_quoted(row)})' for row in block.rows)}))\n"


def _grid(block: Grid) -> str:
    columns = len(block.head)
    align = ["left"] * block.words + ["right"] * (columns - block.words)
    head = ", ".join(f"quiet({_quoted(text)})" for text in block.head)
    cells = "".join(f"{_cell(cell)}, " for row in block.rows for cell in row)
    widths = ", ".join(["1.4fr", *["1fr"] * (columns - 1)])
    return (
        f'#table(columns: ({widths}), align: ({", ".join(align)}), stroke: (x: none, y: 0.4pt + rgb("#bdb9ae")), '
        f"inset: (x: 3pt, y: 5pt), table.header({head}), {cells})\n"
    )


def _cell(cell: Cell) -> str:
    if not cell.change:
        return f"text({_quoted(cell.text)})"
    color = {"better": "#1a5aa8", "worse": "#a8430a"}.get(cell.verdict, "#565b61")
    change = f"{cell.arrow} {cell.change}".strip()
    return f"text({_quoted(cell.text)}) + linebreak() + text(size: 9pt, fill: rgb({_quoted(color)}), {_quoted(change)})"


def _figure(block: Figure) -> str:
    drawn = svg(block.picture, summary=block.title, palette=on_paper)
    parts = [
        f"text(size: 11pt, {_quoted(block.title)})",
        f"quiet({_quoted(block.axis)})",
        f'image(bytes({_quoted(drawn)}), format: "svg", width: 100%)',
    ]
    if isinstance(block.picture, Shares):
        parts.append(f"quiet({_legend(block.picture)})")
    if block.source:
        parts.append(f"quiet({_quoted(block.source)})")
    return f"#block(breakable: false, above: 18pt, stack(spacing: 7pt, {', '.join(parts)}))\n"


def _legend(picture: Shares) -> str:
    return " + ".join(_key(on_paper(part.key), part.label) for part in picture.legend)


def _key(color: str, label: str) -> str:
    swatch = f"box(width: 7pt, height: 7pt, fill: rgb({_quoted(color)}))"
    return f"{swatch} + h(4pt) + {_quoted(label)} + h(12pt)"


def _folded(block: Folded) -> str:
    return f"#v(6pt)\n#text(size: 10pt, {_quoted(block.title)})\n#raw({_quoted(block.text)}, block: true)\n"


_DRAWN: Final[dict[type[Block], Callable[[Any], str]]] = {
    Heading: _heading,
    Paragraph: _paragraph,
    Items: _items,
    Grid: _grid,
    Figure: _figure,
    Folded: _folded,
}
