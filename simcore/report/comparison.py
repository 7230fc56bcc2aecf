"""A comparison as Markdown, CSV, JSON or one static, self-contained HTML page.

Numbers are printed with their units for people (md, html) and in SI for programs (csv, json). CSV cells
that a spreadsheet would run as a formula are quoted with an apostrophe.
"""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from simcore.analysis.compare import Cell, Comparison
from simcore.errors import InputError
from simcore.units import dimension_of, printed_text

_ARROWS: Final = {"better": "▲ better", "worse": "▽ worse", "changed": "changed", "same": "", "absent": ""}


def render(comparison: Comparison, form: str) -> str:
    """The comparison in one of the formats; an unknown one is an InputError that lists them."""
    try:
        return FORMATS[form](comparison)
    except KeyError:
        raise InputError.at(
            "--format",
            "format.unknown",
            "got {got!r}; choose one of {allowed}",
            got=form,
            allowed=", ".join(FORMATS),
        ) from None


def as_json(comparison: Comparison) -> str:
    return json.dumps(comparison.as_dict(), indent=2, ensure_ascii=False) + "\n"


def as_csv(comparison: Comparison) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "id", "label", *map(safe_cell, comparison.names)])
    for row in comparison.inputs:
        writer.writerow(["input", row.path, row.label, *(safe_cell(value) for value in row.values)])
    for text in comparison.conditions:
        writer.writerow(["condition", "", safe_cell(text)])
    for text in comparison.sentences:
        writer.writerow(["attribution", "", safe_cell(text)])
    for metric in comparison.metrics:
        writer.writerow(
            ["metric", metric.metric, metric.label, *(safe_cell(cell.value) for cell in metric.cells)]
        )
    return out.getvalue()


def as_markdown(comparison: Comparison) -> str:
    inputs = [[row.label, row.path, *map(_text, row.values)] for row in comparison.inputs]
    metrics = [
        [row.label, *(_cell_text(row.metric, cell) for cell in row.cells)] for row in comparison.metrics
    ]
    return (
        f"# {markdown_text(' against '.join(comparison.names))}\n\n"
        f"{_what_differs(comparison)}\n\n"
        + "".join(f"> {markdown_text(text)}\n\n" for text in comparison.conditions)
        + "".join(f"- {markdown_text(text)}\n" for text in comparison.sentences)
        + ("\n" if comparison.sentences else "")
        + markdown_table(["Input", "Path", *comparison.names], inputs)
        + "\n"
        + markdown_table(["Result", *comparison.names], metrics)
    )


def _what_differs(comparison: Comparison) -> str:
    """How many inputs differ, and whether that made any difference."""
    count = len(comparison.inputs)
    differ = "1 input differs" if count == 1 else f"{count} inputs differ"
    counted = f"{differ}, {comparison.equal_input_count} are equal."
    same = all(cell.verdict == "same" for row in comparison.metrics for cell in row.cells)
    return f"{counted} No result differs: what was changed has no effect here." if count and same else counted


def as_html(comparison: Comparison) -> str:
    inputs = [[row.label, row.path, *map(_text, row.values)] for row in comparison.inputs]
    metrics = [
        [row.label, *(_cell_text(row.metric, cell) for cell in row.cells)] for row in comparison.metrics
    ]
    title = html.escape(" against ".join(comparison.names))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{html.escape(_what_differs(comparison))}</p>"
        + "".join(f"<p><b>{html.escape(text)}</b></p>" for text in comparison.conditions)
        + "".join(f"<p>{html.escape(text)}</p>" for text in comparison.sentences)
        + _html_table(["Input", "Path", *comparison.names], inputs)
        + _html_table(["Result", *comparison.names], metrics)
        + "</html>\n"
    )


FORMATS: Final[Mapping[str, Callable[[Comparison], str]]] = {
    "md": as_markdown,
    "csv": as_csv,
    "json": as_json,
    "html": as_html,
}
_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:16px/1.5 sans-serif;max-width:70rem;margin:3rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:2rem 0;width:100%}th,td{border-bottom:1px solid #8884;padding:.4rem;"
    "text-align:left;font-variant-numeric:tabular-nums}"
)


def safe_cell(value: Any) -> Any:
    """Text that begins like a formula is kept from running in a spreadsheet."""
    text = _text(value) if isinstance(value, list | dict) or value is None else value
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _text(value: Any) -> str:
    if value is None:
        return "—"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _cell_text(metric: str, cell: Cell) -> str:
    if cell.value is None:
        return "—"
    if isinstance(cell.value, str):
        return cell.value
    text = printed_text(cell.value, dimension_of(metric), digits=4)
    if not cell.change_ratio:
        return text
    return f"{text} ({cell.change_ratio:+.1%} {_ARROWS[cell.verdict]})".replace(" )", ")")


def markdown_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [[markdown_text(cell) for cell in line] for line in (head, *rows)]
    lines.insert(1, ["---"] * len(head))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def markdown_text(text: str) -> str:
    """Text in one table cell: no line ends, no bars, and no HTML that a viewer would run."""
    for mark, written in (("\\", "\\\\"), ("|", "\\|"), ("&", "&amp;"), ("<", "&lt;")):
        text = text.replace(mark, written)
    return " ".join(text.split())


def _html_table(head: list[str], rows: list[list[str]]) -> str:
    def line(tag: str, cells: list[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"
