"""`trimtab report`: 2 to 5 scenarios against a baseline, as a decision memo in six formats."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simcore.analysis.analyse import analyse
from simcore.analysis.compare import MAX_SCENARIOS
from simcore.cli.common import Commands, add_command, plan_file, read_file, unwritable
from simcore.errors import InputError
from simcore.plan import Plan
from simcore.report.formats import CONTENT_TYPES, render_report
from simcore.report.frozen import Column, Report
from simcore.report.making import attribution_of, made_column, sensitivities_of
from simcore.scenario import load_document
from simcore.simulate import Result, simulate
from simcore.why import as_dict


def register(commands: Commands) -> None:
    comparison = add_command(commands, "report", _report, "write a decision memo on 2 to 5 scenarios")
    comparison.add_argument("files", nargs="+", metavar="FILE")
    comparison.add_argument(
        "--baseline", metavar="FILE", help="which of them is the baseline (default: the first)"
    )
    comparison.add_argument(
        "--attribution", action="store_true", help="which layer earned the gain, by running every subset"
    )
    comparison.add_argument(
        "--recommend", metavar="FILE", help="which of them you recommend (default: what the figures say)"
    )
    comparison.add_argument("--title", default="", help="of the memo (default: the names)")
    comparison.add_argument("--question", default="", help="that the memo answers")
    comparison.add_argument(
        "--format", choices=sorted(CONTENT_TYPES), help="default: by the ending of the output, else md"
    )
    comparison.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")


def _report(options: argparse.Namespace) -> None:
    files = _files(options)
    if not 2 <= len(files) <= MAX_SCENARIOS:
        raise InputError.at(
            "report", "compare.count", "got {got} scenarios; compare 2 to {allowed}", got=len(files),
            allowed=MAX_SCENARIOS,
        )  # fmt: skip
    columns = [_column(file) for file in files]
    choice = files.index(_one_of(options.recommend, files, "--recommend")) if options.recommend else None
    report = Report(
        title=options.title or " / ".join(column.name for column in columns),
        question=options.question,
        made_on=datetime.now(UTC).isoformat(timespec="seconds"),
        columns=tuple(columns),
        choice=choice,
        sensitivities=sensitivities_of(columns, choice),
        attribution=attribution_of(columns, choice) if options.attribution else (),
    )
    _write(options.output, render_report(report, _format(options)))


def _files(options: argparse.Namespace) -> list[str]:
    """The scenarios with the baseline first."""
    files = list(options.files)
    if options.baseline:
        files.insert(0, files.pop(files.index(_one_of(options.baseline, files, "--baseline"))))
    return files


def _one_of(file: str, files: list[str], option: str) -> str:
    if file not in files:
        raise InputError.at(option, "compare.baseline", "got {got!r}; it must be one of the files", got=file)
    return file


def _column(file: str) -> Column:
    planned = plan_file(file, [])
    result = _analysed(planned)
    for warning in result.warnings:
        print(f"warning: {planned.scenario.name}: {warning}", file=sys.stderr)
    document: dict[str, Any] = load_document(read_file(file), path=file)
    return made_column(document, result.as_dict(), {name: as_dict(term) for name, term in result.why.items()})


def _analysed(planned: Plan) -> Result:
    result = simulate(planned)
    return result.with_findings(analyse(planned, result))


def _format(options: argparse.Namespace) -> str:
    ending = Path(options.output or "").suffix.removeprefix(".").lower()
    return options.format or (ending if ending in CONTENT_TYPES else "md")


def _write(file: str | None, content: bytes) -> None:
    if not file:
        sys.stdout.buffer.write(content)
        return
    try:
        Path(file).write_bytes(content)
    except OSError as error:
        raise unwritable("--output", file, error) from None
