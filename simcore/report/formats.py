"""A report in each format that it can be taken away in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import Final

from simcore.errors import InputError
from simcore.report.comparison import as_csv as comparison_csv
from simcore.report.comparison import safe_cell
from simcore.report.deciding import recommendation
from simcore.report.frozen import Report
from simcore.report.language import ENGLISH, Language
from simcore.report.memo import memo
from simcore.report.memo_html import page
from simcore.report.memo_markdown import as_markdown
from simcore.report.memo_pdf import as_pdf
from simcore.report.workbook import as_xlsx

CONTENT_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "pdf": "application/pdf",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
}


def render_report(report: Report, form: str, language: Language = ENGLISH) -> bytes:
    """The report as a file; an unknown format is an InputError that lists them."""
    try:
        write = _WRITERS[form]
    except KeyError:
        raise InputError.at(
            "--format", "format.unknown", "got {got!r}; choose one of {allowed}", got=form,
            allowed=", ".join(_WRITERS),
        ) from None  # fmt: skip
    return write(report, language)


def _csv(report: Report, language: Language) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["title", safe_cell(report.title)])
    writer.writerow(["question", safe_cell(report.question)])
    for message in recommendation(report):
        writer.writerow(["recommendation", safe_cell(language.say(message))])
    return (out.getvalue() + comparison_csv(report.comparison)).encode()


def _json(report: Report, language: Language) -> bytes:
    return (json.dumps(report.as_dict(), ensure_ascii=False) + "\n").encode()


_WRITERS: Final[Mapping[str, Callable[[Report, Language], bytes]]] = {
    "html": lambda report, language: page(memo(report, language)).encode(),
    "pdf": lambda report, language: as_pdf(memo(report, language)),
    "xlsx": as_xlsx,
    "csv": _csv,
    "json": _json,
    "md": lambda report, language: as_markdown(memo(report, language)).encode(),
}
