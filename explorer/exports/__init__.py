"""What leaves the site as a file: comparisons (html, csv, md; `explorer/reports.py` has more) and scenarios (yaml)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from explorer.exports.entries import BASELINE, Entry, Said, comparison_of
from explorer.exports.page import comparison_page
from simcore.errors import InputError
from simcore.report import render
from simcore.scenario import dump_document

__all__ = ["BASELINE", "FORMATS", "Entry", "Said", "comparison_of", "render_comparison", "scenario_yaml"]

FORMATS: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
}


def render_comparison(entries: Sequence[Entry], suffix: str, *, said: Sequence[Said] = ()) -> str:
    """The comparison as text in one of FORMATS, with what is `said` of its columns."""
    comparison = comparison_of(entries)
    if comparison is None:
        raise InputError.at(
            "",
            "export.not_ready",
            "a comparison needs two or more scenarios with a result each; wait for their runs",
        )
    if suffix == "html":
        return comparison_page(entries, said)
    told = tuple(f"{one.name}: {one.message['message']}" for one in said)
    return render(replace(comparison, sentences=told), suffix)


def scenario_yaml(document: Mapping[str, Any]) -> str:
    """The document as it was typed, in YAML: `trimtab run` reads it, and so does Home."""
    return dump_document(document)
