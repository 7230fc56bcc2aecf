"""A report as an XLSX workbook: the memo in words, inputs, results, the bill, and the traces.

Numbers are numbers, in SI with the unit in a column of its own, so a reader can compute with them; the formats only
round what is shown. Texts are written as texts: nothing that a person typed becomes a formula or a link.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

import xlsxwriter

from simcore.analysis.compare import flatten
from simcore.errors import Message
from simcore.report.blocks import Items, Memo, Paragraph
from simcore.report.frozen import Report
from simcore.report.language import Language
from simcore.report.memo import memo
from simcore.units import dimension_of
from simcore.why import Term, formula, from_dict, is_plain_number

_OPTIONS: Final = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
_FORMATS: Final = {"fraction": "0.0%", "usd": "#,##0.00", "count": "#,##0"}
_INPUTS: Final = (
    Message(code="report.head", template="Input"),
    Message(code="report.head", template="Path"),
)
_RESULTS: Final = (
    Message(code="report.head", template="Result"),
    Message(code="report.head", template="Metric"),
    Message(code="report.head", template="Unit of the value"),
)
_SCENARIO: Final = Message(code="report.head", template="Scenario")
_TRACES: Final = (
    _SCENARIO,
    Message(code="report.head", template="Name"),
    Message(code="report.head", template="Formula"),
    Message(code="report.head", template="Value"),
    Message(code="report.head", template="Unit of the value"),
    Message(code="report.head", template="Source"),
)
_BILL: Final[Mapping[str, Message]] = {  # what stands over a bill's columns; their units follow from the keys
    "item": Message(code="report.head", template="Item"),
    "label": Message(code="report.head", template="Part"),
    "count": Message(code="report.head", template="Count"),
    "unit_usd": Message(code="report.head", template="Price of one"),
    "total_usd": Message(code="report.head", template="Total"),
    "low_usd": Message(code="report.head", template="Low"),
    "high_usd": Message(code="report.head", template="High"),
    "power_w": Message(code="report.head", template="Power"),
    "priced": Message(code="report.head", template="Priced"),
    "source": Message(code="report.head", template="Source"),
    "group": Message(code="report.head", template="Group"),
}
_BILL_UNITS: Final = {"usd": " (USD)", "w": " (W)"}
TRACE_DEPTH: Final = 8
TRACE_ROWS: Final = 20_000


def as_xlsx(report: Report, language: Language) -> bytes:
    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, _OPTIONS)
    book.set_properties({"title": report.title, "comments": report.question})
    sheets = _Sheets(book, language)
    sheets.summary(memo(report, language))
    sheets.inputs(report)
    sheets.results(report)
    sheets.bill(report)
    sheets.traces(report)
    book.close()
    return out.getvalue()


class _Sheets:
    """One method a sheet; all write through `_row`."""

    def __init__(self, book: Any, language: Language) -> None:
        self.book = book
        self.language = language
        self.head = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        self.wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        self.formats: dict[str, Any] = {}

    def summary(self, written: Memo) -> None:
        sheet = self._sheet(Message(code="report.sheet", template="Summary"), (100,))
        lines = [written.eyebrow, written.title, written.question]
        for block in written.blocks:
            if isinstance(block, Paragraph):
                lines.append(block.text)
            elif isinstance(block, Items):
                lines += block.rows
        for row, text in enumerate(filter(None, lines)):
            sheet.write_string(row, 0, text, self.head if text == written.title else self.wrapped)

    def inputs(self, report: Report) -> None:
        sheet = self._sheet(
            Message(code="report.sheet", template="Inputs"), (36, 44, *(24 for _ in report.columns))
        )
        flat = [flatten(column.document) for column in report.columns]
        self._row(sheet, 0, [*map(self.language.say, _INPUTS), *(column.name for column in report.columns)])
        for row, path in enumerate(dict.fromkeys(path for one in flat for path in one), start=1):
            self._row(sheet, row, [self.language.label(path), path, *(one.get(path) for one in flat)])

    def results(self, report: Report) -> None:
        sheet = self._sheet(
            Message(code="report.sheet", template="Results"), (44, 48, 14, *(24 for _ in report.columns))
        )
        names = map(self.language.say, _RESULTS)
        self._row(sheet, 0, [*names, *(column.name for column in report.columns)])
        metrics = dict.fromkeys(name for column in report.columns for name in column.metrics)
        for row, name in enumerate(metrics, start=1):
            values = [column.metrics.get(name) for column in report.columns]
            self._row(
                sheet, row, [self.language.label(name), name, _unit(name), *values], like=dimension_of(name)
            )

    def bill(self, report: Report) -> None:
        rows = [(column.name, line) for column in report.columns for line in column.tables.get("bill", ())]
        if not rows:
            return
        keys = list(dict.fromkeys(key for _, line in rows for key in line))
        sheet = self._sheet(Message(code="report.sheet", template="Bill"), (32, *(18 for _ in keys)))
        self._row(sheet, 0, [self.language.say(_SCENARIO), *map(self._bill_head, keys)])
        for row, (name, line) in enumerate(rows, start=1):
            self._row(sheet, row, [name, *(self._bill_cell(key, line.get(key)) for key in keys)])

    def _bill_head(self, key: str) -> str:
        head = self.language.say(_BILL[key]) if key in _BILL else key
        return head + _BILL_UNITS.get(key.rpartition("_")[2], "")

    def _bill_cell(self, key: str, value: Any) -> Any:
        """Words in the reader's language; ids and numbers as they are."""
        if not isinstance(value, str) or key == "item":
            return value
        if key == "source":
            return self.language.source(value)
        return self.language.say(Message(code="report.value", template="{value}", params={"value": value}))

    def traces(self, report: Report) -> None:
        sheet = self._sheet(Message(code="report.sheet", template="Traces"), (32, 44, 56, 20, 12, 60))
        self._row(sheet, 0, [self.language.say(head) for head in _TRACES])
        lines = (
            line for column in report.columns for line in _trace_lines(column.name, column.why, self.language)
        )
        for row, line in zip(range(1, TRACE_ROWS), lines, strict=False):
            self._row(sheet, row, line)

    def _sheet(self, title: Message, widths: tuple[int, ...]) -> Any:
        sheet = self.book.add_worksheet(self.language.say(title))
        for index, width in enumerate(widths):
            sheet.set_column(index, index, width)
        sheet.freeze_panes(1, 0)
        return sheet

    def _row(self, sheet: Any, row: int, values: list[Any], *, like: str = "") -> None:
        for index, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int | float):
                text = "" if value is None else str(value)
                sheet.write_string(row, index, text, self.head if row == 0 else self.wrapped)
            else:
                sheet.write_number(row, index, value, self._format(like))

    def _format(self, dimension: str) -> Any:
        shown = _FORMATS.get("usd" if dimension.startswith("usd") else dimension, "#,##0.######")
        if shown not in self.formats:
            self.formats[shown] = self.book.add_format({"num_format": shown, "valign": "top"})
        return self.formats[shown]


def _unit(name: str) -> str:
    return {"": "1", "fraction": "1", "count": "1"}.get(dimension_of(name), dimension_of(name))


def _trace_lines(name: str, why: Mapping[str, Any], language: Language) -> Iterator[list[Any]]:
    for metric, tree in why.items():
        yield from _term_lines(name, from_dict(tree), language, 0, language.label(metric))


def _term_lines(
    name: str, term: Term, language: Language, depth: int, title: str = ""
) -> Iterator[list[Any]]:
    """A named term and those below it, indented."""
    if term.name and not is_plain_number(term):
        shown = "  " * depth + (title or language.term(term.name))
        below = "" if term.op == "leaf" else formula(term)
        yield [
            name,
            shown,
            below,
            term.value,
            term.dimension or "1",
            language.source(term.source) or term.path,
        ]
        depth += 1
    if depth < TRACE_DEPTH:
        for arg in term.args:
            yield from _term_lines(name, arg, language, depth)
