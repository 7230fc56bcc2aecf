"""`trimtab validate` and `calibrate`: published numbers checked, efficiency parameters fitted to measured rows."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from simcore.catalog import default_catalog
from simcore.cli.common import Commands, add_command, write_file


def register(commands: Commands) -> None:
    calibration = add_command(commands, "calibrate", _calibrate, "fit efficiency parameters to measured rows")
    calibration.add_argument(
        "rows", nargs="+", metavar="ROWS.csv", help="measured kernels, collectives or steps"
    )
    calibration.add_argument("--chip", required=True, metavar="SLUG", help="which chip they were measured on")
    calibration.add_argument(
        "--prefer", default="vllm", metavar="SOURCE", help="which source where several measured one kernel"
    )
    calibration.add_argument(
        "--steps-like",
        default="",
        metavar="SLUG",
        help="chip whose overheads stand in for steps not measured",
    )
    calibration.add_argument("--note", default="", help="whose rows, under which licence; kept with each fit")
    calibration.add_argument("--name", default="", help="what to call it; default: the chip's, fitted")
    calibration.add_argument("--by", default="", metavar="WHO", help="whose fit it is; Why says so")
    calibration.add_argument(
        "-o", "--output", metavar="FILE", help="write it there; a scenario's hardware.calibration may name it"
    )
    calibration.add_argument("--json", action="store_true")

    validate = add_command(commands, "validate", _validate, "check every published number")
    validate.add_argument("--json", action="store_true")
    validate.add_argument(
        "--data",
        metavar="DIR",
        help="instead, compare the fitted kernels with the measured rows in this folder",
    )


def _validate(options: argparse.Namespace) -> int:
    from simcore.validation.accuracy import accuracy
    from simcore.validation.facts import evaluate_all
    from simcore.validation.order import order_lines

    if options.data:
        return _validate_kernels(Path(options.data), as_json=options.json)
    rows = evaluate_all()
    if options.json:
        print(json.dumps([row.as_dict() for row in rows], indent=2))
    else:
        for row in rows:
            print(row.as_line())
        print("\nrows fitted and held out, mean error of those held out, target")
        for regime in accuracy(default_catalog()):
            print(regime.as_line())
        print(
            "\nprefill and decode apart: loops in the measured order among users, over all, in pairs; target"
        )
        print("\n".join(order_lines()))
    met = sum(row.passed for row in rows)
    surprises = [row for row in rows if row.is_surprise]
    known = len(rows) - met - sum(not row.passed for row in surprises)
    print(f"{met} of {len(rows)} published numbers met, {known} known deviations", file=sys.stderr)
    return 1 if surprises else 0


def _validate_kernels(data: Path, *, as_json: bool) -> int:
    from simcore.validation.kernel_targets import kernel_targets, targets_text

    rows = kernel_targets(default_catalog(), data)
    print(json.dumps([asdict(row) for row in rows], indent=2) if as_json else targets_text(rows))
    return 1 if any(not row.is_met and not row.cause for row in rows) else 0


def _calibrate(options: argparse.Namespace) -> None:
    from simcore.validation.calibrate import calibrate
    from simcore.validation.calibration_file import calibration_text, outcome_dict, outcome_text
    from simcore.validation.own_fit import own

    catalog = default_catalog()
    chip = catalog.chip(options.chip, path="--chip")
    outcome = calibrate(
        [Path(file) for file in options.rows],
        chip,
        catalog,
        fitted_on=datetime.now(UTC).date().isoformat(),
        prefer=options.prefer,
        steps_like=options.steps_like,
        note=options.note,
    )
    print(json.dumps(outcome_dict(outcome), indent=2) if options.json else outcome_text(outcome))
    if options.output:
        fitted = outcome.calibration
        if options.name or options.by:
            name = options.name or fitted.name
            fitted = own(outcome, catalog.calibration_for(chip), name=name, chip=chip, by=options.by)
        write_file(options.output, calibration_text(replace(fitted, chip=chip.slug)))
