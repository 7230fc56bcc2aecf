"""`trimtab report`: 2 to 5 scenarios against a baseline, as a decision memo in six formats."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from simcore.analysis.analyse import analyse
from simcore.analysis.compare import MAX_SCENARIOS
from simcore.cli.common import Commands, Given, add_command, given_file, plan_near, write_bytes
from simcore.errors import InputError
from simcore.report.formats import CONTENT_TYPES, render_report
from simcore.report.frozen import Column, Report
from simcore.report.making import attribution_of, made_column, sensitivities_of
from simcore.simulate import simulate
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
    choice = files.index(_one_of(options.recommend, files, "--recommend")) if options.recommend else None
    report = made_report(
        [given_file(file, []) for file in files],
        title=options.title,
        question=options.question,
        choice=choice,
        attributed=options.attribution,
    )
    write_bytes(options.output, render_report(report, form_of(options)))


def made_report(
    given: Sequence[Given],
    *,
    title: str = "",
    question: str = "",
    choice: int | None = None,
    attributed: bool = False,
) -> Report:
    """Runs the scenarios, the baseline first, and freezes what came of it. `choice` is the one to recommend."""
    if not 2 <= len(given) <= MAX_SCENARIOS:
        raise InputError.at(
            "report", "compare.count", "got {got} scenarios; compare 2 to {allowed}", got=len(given),
            allowed=MAX_SCENARIOS,
        )  # fmt: skip
    columns = tuple(map(_column, given))
    chosen = given[-1 if choice is None else choice]
    planner = partial(plan_near, base=chosen.base)
    return Report(
        title=title or " / ".join(column.name for column in columns),
        question=question,
        made_on=datetime.now(UTC).isoformat(timespec="seconds"),
        columns=columns,
        choice=choice,
        sensitivities=sensitivities_of(columns, choice, catalog=chosen.catalog(), traces=chosen.traces),
        attribution=attribution_of(columns, choice, planner=planner) if attributed else (),
    )


def form_of(options: argparse.Namespace) -> str:
    """The format that was asked for, or that the ending of the output says."""
    ending = Path(options.output or "").suffix.removeprefix(".").lower()
    return options.format or (ending if ending in CONTENT_TYPES else "md")


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


def _column(given: Given) -> Column:
    planned = given.plan()
    result = simulate(planned)
    for warning in result.warnings:
        print(f"warning: {planned.scenario.name}: {warning}", file=sys.stderr)
    found = result.with_findings(analyse(planned, result))
    why = {name: as_dict(term) for name, term in found.why.items()}
    return made_column(given.document, found.as_dict(), why)
