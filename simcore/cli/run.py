"""`trimtab run`: simulate one scenario, with its findings, its records and a benchmark laid over it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simcore import glossary, importing
from simcore.analysis import analyse
from simcore.cli.common import Commands, add_command, plan_file, scenario_arguments, unwritable
from simcore.errors import InputError
from simcore.measurements import TOOLS, ServingMeasurement, read_serving
from simcore.plan import Plan
from simcore.report import overlay
from simcore.report.records import check_records_path, record_columns, write_records
from simcore.simulate import Result, simulate
from simcore.units import dimension_of, printed_text


def register(commands: Commands) -> None:
    run = add_command(commands, "run", _run, "simulate one scenario")
    scenario_arguments(run)
    run.add_argument("--json", action="store_true", help="print the Result document only")
    run.add_argument("--events", action="store_true", help="stream events as JSON lines")
    run.add_argument("--no-findings", action="store_true", help="skip the doublings")
    run.add_argument("--records", metavar="FILE", help="write one row per request there, as .csv or .parquet")
    run.add_argument(
        "--measured",
        nargs=2,
        metavar=("TOOL", "FILE"),
        help=f"lay a benchmark's result over it; TOOL is one of {', '.join(TOOLS)}",
    )


def _run(options: argparse.Namespace) -> None:
    if options.records:
        check_records_path(options.records)
    points = _measured(*options.measured) if options.measured else ()
    planned = plan_file(options.file, options.set)
    if options.records and planned.serving is None:
        raise InputError.at(
            "workload.kind",
            "records.no_requests",
            "got {got}; only what serves requests has records of them, use serving",
            got=planned.scenario.workload.kind,
        )
    if points and planned.serving is None:
        raise InputError.at(
            "workload.kind",
            "measured.no_requests",
            "got {got}; a serving benchmark is laid over what serves requests, use serving",
            got=planned.scenario.workload.kind,
        )
    progress = sys.stderr.isatty() and not options.events

    def on_event(kind: str, payload: dict[str, Any]) -> None:
        if options.events:
            print(json.dumps({"kind": kind, "payload": payload}), flush=True)
        elif progress and kind == "series" and "progress_fraction" in payload:
            print(f"\r{payload['progress_fraction']:4.0%}", end="", file=sys.stderr, flush=True)

    result = simulate(planned, on_event)
    if options.records:
        _write_records(planned, result, options.records)
    if not options.no_findings:
        result = result.with_findings(analyse(planned, result, on_event))
    if points:
        result = _overlaid(result, points)
    if progress:
        print("\r    \r", end="", file=sys.stderr)
    if options.json:
        print(json.dumps(result.as_dict()))
    elif not options.events:
        print(_summary(result))


def _measured(tool: str, file: str) -> Sequence[ServingMeasurement]:
    """The load points of a benchmark's result file."""
    if tool not in TOOLS:
        raise InputError.at(
            "--measured",
            "measured.tool",
            "got {got!r}; the results of {allowed} are read",
            got=tool,
            allowed=", ".join(TOOLS),
        )
    return read_serving(tool, importing.read_file(Path(file)), path=file)


def _overlaid(result: Result, points: Sequence[ServingMeasurement]) -> Result:
    """The result with `measured`, a row per figure that both have, and what the two did not have in common."""
    point = overlay.nearest(points, result.metrics)
    rows = [pair.as_row() for pair in overlay.pairs(point, result.metrics)]
    return replace(
        result,
        tables={**result.tables, "measured": rows},
        warnings=(*result.warnings, *overlay.unlike(point, result.metrics)),
    )


def _measured_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [f"{'measured':>18}  {'simulated':>16}  {'error':>8}   metric"] if rows else []
    for row in rows:
        metric, dimension = str(row["metric"]), dimension_of(row["metric"])
        texts = [printed_text(row[column], dimension, digits=4) for column in ("measured", "simulated")]
        lines.append(f"{texts[0]:>18}  {texts[1]:>16}  {row['error_fraction']:>+8.1%}   {metric}")
    return lines


def _write_records(planned: Plan, result: Result, file: str) -> None:
    assert planned.serving is not None, "what serves nothing was refused"
    assert result.records is not None, "whatever serves has records"
    columns = record_columns(
        result.records,
        front_end_s=planned.serving.front_end_s,
        classes=[one.name for one in planned.scenario.workload.classes],
        class_of=planned.serving.inputs.requests.class_of,
        turns=planned.serving.inputs.requests.turns,
    )
    try:
        write_records(columns, file)
    except OSError as error:
        raise unwritable("--records", file, error) from None


def _summary(result: Result) -> str:
    lines = [result.scenario, ""]
    width = max(len(glossary.label(metric)) for metric in result.metrics)
    section = ""
    for metric, value in result.metrics.items():
        if (head := metric.partition(".")[0]) != section:
            section = head
            lines.append(f"[{section}]")
        text = value if isinstance(value, str) else printed_text(value, dimension_of(metric), digits=4)
        lines.append(f"  {glossary.label(metric):<{width}}  {text:>16}   {metric}")
    lines += _measured_lines(result.tables.get("measured", ()))
    lines += [f"finding: {finding.text}" for finding in result.findings]
    lines += [f"warning: {warning}" for warning in result.warnings]
    lines.append(f"digest {result.digest[:16]}, seed {result.seed}, engine {result.engine_version}")
    return "\n".join(lines)
