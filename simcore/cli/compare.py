"""`trimtab compare`: 2 to 5 scenarios beside each other, against a baseline."""

from __future__ import annotations

import argparse
import sys

from simcore.analysis.compare import compare
from simcore.cli.common import Commands, add_command, plan_file, write_file
from simcore.errors import InputError
from simcore.report import render
from simcore.report.comparison import FORMATS
from simcore.simulate import simulate


def register(commands: Commands) -> None:
    comparison = add_command(commands, "compare", _compare, "compare 2 to 5 scenarios")
    comparison.add_argument("files", nargs="+", metavar="FILE")
    comparison.add_argument(
        "--baseline", metavar="FILE", help="which of them is the baseline (default: the first)"
    )
    comparison.add_argument(
        "--attribution", action="store_true", help="which layer earned the gain, by running every subset"
    )
    comparison.add_argument("--format", choices=sorted(FORMATS), default="md")
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
    plans = [plan_file(file, []) for file in files]
    results = [simulate(one) for one in plans]
    for one, result in zip(plans, results, strict=True):
        for warning in result.warnings:
            print(f"warning: {one.scenario.name}: {warning}", file=sys.stderr)
    comparison = compare(
        [one.scenario for one in plans],
        [result.metrics for result in results],
        [[warning.as_dict() for warning in result.warnings] for result in results],
    )
    text = render(comparison, options.format)
    if options.output:
        write_file(options.output, text)
    else:
        sys.stdout.write(text)
