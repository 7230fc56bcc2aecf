"""`trimtab compare`: 2 to 5 scenarios beside each other, against a baseline, in the six formats of a report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from simcore.analysis.compare import Comparison, compare
from simcore.analysis.layer_words import sentences
from simcore.analysis.layers import attribution
from simcore.analysis.paired import paired
from simcore.analysis.paired import told as told_pairs
from simcore.cli.common import Commands, Given, add_command, given_file, plan_near, write_bytes
from simcore.cli.report import form_of, made_report
from simcore.errors import InputError, Message
from simcore.plan import Plan
from simcore.report import render
from simcore.report.comparison import FORMATS
from simcore.report.formats import CONTENT_TYPES, render_report
from simcore.simulate import Result, simulate


def register(commands: Commands) -> None:
    comparison = add_command(commands, "compare", _compare, "compare 2 to 5 scenarios")
    comparison.add_argument("files", nargs="+", metavar="FILE")
    comparison.add_argument(
        "--baseline", metavar="FILE", help="which of them is the baseline (default: the first)"
    )
    comparison.add_argument(
        "--attribution", action="store_true", help="which layer earned the gain, by running every subset"
    )
    comparison.add_argument(
        "--format", choices=sorted(CONTENT_TYPES), help="default: by the ending of the output, else md"
    )
    comparison.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")


def _compare(options: argparse.Namespace) -> None:
    files = list(options.files)
    if options.baseline:
        if options.baseline not in files:
            raise InputError.at(
                "--baseline",
                "compare.baseline",
                "got {got!r}; it must be one of the files",
                got=options.baseline,
            )
        files.insert(0, files.pop(files.index(options.baseline)))
    given = [given_file(file, []) for file in files]
    form = form_of(options)
    if form in FORMATS:
        write_bytes(options.output, render(_compared(given, options.attribution), form).encode())
    else:  # a workbook and pages are those of the memo
        report = made_report(given, attributed=options.attribution)
        write_bytes(options.output, render_report(report, form))


def _compared(given: Sequence[Given], attributed: bool) -> Comparison:
    plans = [one.plan() for one in given]
    results = [simulate(one) for one in plans]
    for one, result in zip(plans, results, strict=True):
        for warning in result.warnings:
            print(f"warning: {one.scenario.name}: {warning}", file=sys.stderr)
    comparison = compare(
        [one.scenario for one in plans],
        [result.metrics for result in results],
        [[warning.as_dict() for warning in result.warnings] for result in results],
    )
    return _with_attributions(comparison, given, plans, results) if attributed else comparison


def _with_attributions(
    comparison: Comparison, given: Sequence[Given], plans: Sequence[Plan], results: Sequence[Result]
) -> Comparison:
    """What the layers of each further file earned against the first; the runs that are there are used."""
    known = {one.digest: result.metrics for one, result in zip(plans, results, strict=True)}
    found = [
        attribution(
            plans[0].scenario,
            one.scenario,
            planner=partial(plan_near, base=own.base),
            recall=known.get,
        )
        for own, one in zip(given[1:], plans[1:], strict=True)
    ]
    told = [
        f"{one.scenario.name}: {message.text}"
        for one, attributed in zip(plans[1:], found, strict=True)
        for message in sentences(attributed)
    ]
    told += [
        f"{one.scenario.name}: {message.text}"
        for one, result in zip(plans[1:], results[1:], strict=True)
        for message in _paired(results[0], result)
    ]
    return replace(comparison, attributions=tuple(one.as_dict() for one in found), sentences=tuple(told))


def _paired(before: Result, after: Result) -> Sequence[Message]:
    """What became of the same requests, where both served some."""
    if before.records is None or after.records is None:
        return ()
    return told_pairs(paired(before.records, after.records))
