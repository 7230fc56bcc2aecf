"""`trimtab sweep`: every combination of values on some axes, a row for each as soon as it is there.

Rows come as CSV, JSON lines or a table; those of several processes come in the order in which chunks are done, and
carry their index. A table is printed at the end, in order, with the best cell of each metric asked for.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from simcore import glossary
from simcore.analysis.cells import Cell, CellResult, evaluate_in_processes
from simcore.analysis.grid import Grid, best_rows, error_text, parse_axis
from simcore.cli.common import Commands, add_command, given_file, scenario_arguments
from simcore.units import dimension_of, printed_text

METRICS = (
    "serving.output_token_per_s",
    "serving.output_token_per_s_per_chip",
    "serving.ttft_s.p95",
    "serving.tpot_s.p50",
    "cost.usd_per_million_tokens",
)


def register(commands: Commands) -> None:
    sweep = add_command(commands, "sweep", _sweep, "vary inputs over a grid, in parallel")
    scenario_arguments(sweep)
    sweep.add_argument(
        "--axis",
        action="append",
        required=True,
        metavar="PATH=VALUES",
        help="values with commas between, or lo..hi:n, or lo..hi:nlog; repeat for more axes",
    )
    sweep.add_argument("--metrics", default=",".join(METRICS), metavar="ID,ID", help="which, or `all`")
    sweep.add_argument("--depth", choices=("closed_forms", "simulated", "analysed"), default="simulated")
    sweep.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: one per core)")
    sweep.add_argument("--format", choices=("table", "csv", "jsonl"), default="table")


def _sweep(options: argparse.Namespace) -> None:
    given = given_file(options.file, options.set)
    metrics = () if options.metrics == "all" else tuple(filter(None, options.metrics.split(",")))
    grid = Grid(axes=tuple(parse_axis(text) for text in options.axis), metrics=metrics, depth=options.depth)
    cells = grid.cells(given.document)
    results = evaluate_in_processes(
        given.document,
        cells,
        jobs=options.jobs or os.cpu_count() or 1,
        catalog=given.catalog,
        traces=given.traces,
        depth=options.depth,
        keep=grid.keeps,
    )
    {"table": _table, "csv": _csv, "jsonl": _jsonl}[options.format](
        grid, cells, _counted(results, len(cells))
    )


def _counted(results: Iterator[CellResult], count: int) -> Iterator[CellResult]:
    """The results, with a count on a terminal's stderr as they pass."""
    shown = sys.stderr.isatty()
    for done, result in enumerate(results, start=1):
        if shown:
            print(f"\r{done:,} of {count:,}", end="", file=sys.stderr, flush=True)
        yield result
    if shown:
        print("\r" + " " * 30 + "\r", end="", file=sys.stderr)


def _csv(grid: Grid, cells: Sequence[Cell], results: Iterator[CellResult]) -> None:
    paths = [axis.path for axis in grid.axes]
    writer: Any = None
    for result in results:
        row = _row(cells[result.index], result)
        if writer is None:
            names = grid.metrics or tuple(result.metrics)
            writer = csv.DictWriter(
                sys.stdout, ["index", *paths, *names, "error"], extrasaction="ignore", lineterminator="\n"
            )
            writer.writeheader()
        writer.writerow(row)
        sys.stdout.flush()


def _jsonl(grid: Grid, cells: Sequence[Cell], results: Iterator[CellResult]) -> None:
    for result in results:
        line = {
            "index": result.index,
            "overrides": dict(cells[result.index].overrides),
            "metrics": dict(result.metrics),
            "errors": list(result.errors),
        }
        print(json.dumps(line), flush=True)


def _table(grid: Grid, cells: Sequence[Cell], results: Iterator[CellResult]) -> None:
    ordered = sorted(results, key=lambda one: one.index)
    names = grid.metrics or tuple(dict.fromkeys(name for one in ordered for name in one.metrics))
    head = [*(axis.path.rpartition(".")[2] for axis in grid.axes), *map(glossary.label, names)]
    rows = [_texts(cells[one.index], one, names) for one in ordered]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row, result in zip([head, *rows], [None, *ordered], strict=True):
        line = "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        print(line + (f"  {error_text(result)}" if result is not None and result.errors else ""))
    for best in best_rows(ordered):
        where = ", ".join(f"{path}={value}" for path, value in cells[best["index"]].overrides.items())
        text = printed_text(best["value"], dimension_of(best["metric"]), digits=4)
        print(f"best {glossary.label(best['metric'])}: {text} at {where}")


def _texts(cell: Cell, result: CellResult, names: Sequence[str]) -> list[str]:
    values = [result.metrics.get(name, "–") for name in names]
    return [
        *(str(value) for value in cell.overrides.values()),
        *(
            value if isinstance(value, str) else printed_text(value, dimension_of(name), digits=4)
            for name, value in zip(names, values, strict=True)
        ),
    ]


def _row(cell: Cell, result: CellResult) -> dict[str, Any]:
    return {"index": result.index, **cell.overrides, **result.metrics, "error": error_text(result)}
