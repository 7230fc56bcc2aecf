"""The `trimtab` command: run, explain and compare scenarios, look into the catalog, validate, benchmark.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 2 bad input (a message, never a
traceback), 3 infeasible (the binding constraint and the nearest change that fits).
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from simcore import glossary, importing, why
from simcore.analysis import analyse
from simcore.analysis.compare import compare
from simcore.catalog import Catalog, default_catalog
from simcore.catalog.calibrations import is_file, own_calibration
from simcore.catalog.types import Calibration, Price, Source
from simcore.errors import InfeasibleError, InputError, TrimtabError
from simcore.fabric import full_graph, quotient_graph
from simcore.fabric.expansion import expanded
from simcore.measurements import TOOLS, ServingMeasurement, read_serving
from simcore.plan import Plan, plan
from simcore.report import graph_file, overlay, render
from simcore.report.comparison import FORMATS
from simcore.report.engine_command import vllm_command
from simcore.report.records import check_records_path, record_columns, write_records
from simcore.report.training_trace import iteration_trace
from simcore.scenario import Scenario, apply_overrides, load_document
from simcore.scenario.overrides import parse_assignment
from simcore.simulate import Result, simulate
from simcore.units import dimension_of, printed_text
from simcore.workload.arrivals import Trace
from simcore.workload.trace_formats import NAMES
from simcore.workload.traces import TraceTable, read_trace

MAX_SCENARIO_FILE_BYTES = 1_000_000
_BENCHES: Final = ("serving", "edit", "plan", "cluster", "disagg", "fabric", "flows", "life", "slices")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options) or 0)
    except InfeasibleError as error:
        _say_error("infeasible", error)
        return 3
    except TrimtabError as error:
        _say_error("error", error)
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trimtab", description="A what-if explorer for AI infrastructure.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = _command(commands, "run", _run, "simulate one scenario")
    _scenario_arguments(run)
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

    explain = _command(commands, "explain", _explain, "print how one number was computed")
    _scenario_arguments(explain)
    explain.add_argument("metric", help="metric id, for example compute.decode_step_s")
    form = explain.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--latex", action="store_true")

    trace = _command(commands, "trace", _trace, "one iteration as a Chrome trace")
    _scenario_arguments(trace)
    trace.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")

    graph = _command(commands, "graph", _graph, "the fabric as a graph, for other tools")
    _scenario_arguments(graph)
    graph.add_argument("--format", choices=sorted(graph_file.WRITERS), default="graphml")
    which = graph.add_mutually_exclusive_group()
    which.add_argument("--quotient", action="store_true", help="layers with their counts (the default)")
    which.add_argument("--full", action="store_true", help="every chip and switch, below 5,000 of them")
    which.add_argument("--node", metavar="NODE", help="what is around one part, such as leaf.0-63 or leaf.7")
    graph.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")

    comparison = _command(commands, "compare", _compare, "compare 2 to 5 scenarios")
    comparison.add_argument("files", nargs="+", metavar="FILE")
    comparison.add_argument(
        "--baseline", metavar="FILE", help="which of them is the baseline (default: the first)"
    )
    comparison.add_argument("--format", choices=sorted(FORMATS), default="md")
    comparison.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")

    _import_arguments(_command(commands, "import", _import, "read the files of other tools"))

    bench = _command(commands, "bench", _bench, "measure speed, as ratios within one run")
    bench.add_argument("what", nargs="?", choices=_BENCHES, default="serving")
    bench.add_argument("--json", action="store_true")

    calibration = _command(commands, "calibrate", _calibrate, "fit efficiency parameters to measured rows")
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

    command = _command(commands, "command", _vllm_command, "print the `vllm serve` line of a scenario")
    _scenario_arguments(command)

    catalog = _command(commands, "catalog", _catalog, "list the catalog, with sources")
    catalog.add_argument("kind", nargs="?", choices=sorted(_SHELVES), help="chips, models, …")
    catalog.add_argument("slug", nargs="?")
    catalog.add_argument("--json", action="store_true")

    validate = _command(commands, "validate", _validate, "check every published number")
    validate.add_argument("--json", action="store_true")
    validate.add_argument(
        "--data",
        metavar="DIR",
        help="instead, compare the fitted kernels with the measured rows in this folder",
    )

    matrix = _command(commands, "matrix", _matrix, "read a measured traffic matrix, rank topologies for it")
    matrix.add_argument("file", metavar="FILE", help="CSV (square table, or source,target,bytes…) or npz")
    matrix.add_argument("--server", default="dgx-h100", metavar="SLUG", help="what the ranks' chips stand in")
    matrix.add_argument("--set", action="append", default=[], metavar="topology.KEY=VALUE")
    matrix.add_argument("--json", action="store_true")

    _command(commands, "warm", _warm, "compile and cache the machine code")
    return parser


def _command(
    commands: Any, name: str, action: Callable[[argparse.Namespace], int | None], does: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=does, description=does)
    parser.set_defaults(command=action)
    return parser


def _scenario_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="scenario as YAML or JSON; - reads stdin")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="override one path")


def _import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=importing.KINDS)
    parser.add_argument("file", metavar="FILE", help="- reads stdin")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")
    parser.add_argument("--json", action="store_true", help="JSON instead of YAML, CSV or text")
    parser.add_argument("--name", default="", help="name of the model, for hf; of the scenario, for lengths")
    parser.add_argument(
        "--quant-config", metavar="FILE", help="for hf; default: the hf_quant_config.json beside the file"
    )
    parser.add_argument("--model", default="", help="for measurements whose file does not name the model")
    parser.add_argument("--gpu", default="", help="for measurements whose file does not name the chip")
    parser.add_argument("--tp", type=int, help="for measurements whose file does not say it")
    parser.add_argument("--operation", help="for nccl-tests that do not print which test they are")
    parser.add_argument(
        "--format", choices=sorted(NAMES), help="for a trace, as lengths too; default: by its first line"
    )


# ---- run, explain, compare --------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> None:
    if options.records:
        check_records_path(options.records)
    points = _measured(*options.measured) if options.measured else ()
    planned = _planned(options.file, options.set)
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
        raise _unwritable("--records", file, error) from None


def _explain(options: argparse.Namespace) -> None:
    planned = _planned(options.file, options.set)
    # Power, and what is paid for it, follows the utilisation that a run finds.
    term = None if options.metric.startswith("cost.") else planned.why.get(options.metric)
    if term is None:
        result = simulate(planned)
        result = result.with_findings(analyse(planned, result))
        term = result.why.get(options.metric)
        if term is None:
            raise _no_such_metric(options.metric, result)
    if options.json:
        print(json.dumps(why.as_dict(term), indent=2))
    else:
        print(why.as_latex(term) if options.latex else why.as_text(term))


def _no_such_metric(metric: str, result: Result) -> InputError:
    if metric in result.metrics:
        return InputError.at(
            "METRIC",
            "metric.word",
            "{got} is the word {word!r}, which has no tree; ask for a number",
            got=metric,
            word=result.metrics[metric],
        )
    return InputError.at(
        "METRIC",
        "metric.unknown",
        "got {got!r}; closest: {closest} (all: `trimtab run FILE`)",
        got=metric,
        closest=", ".join(difflib.get_close_matches(metric, result.why, n=3, cutoff=0.0)),
    )


def _trace(options: argparse.Namespace) -> None:
    planned = _planned(options.file, options.set)
    found = iteration_trace(planned.tables, name=planned.scenario.name)
    if found is None:
        raise InputError.at(
            "workload.kind",
            "trace.no_iteration",
            "got {got}; only what serves requests or trains has an iteration to trace, use serving or training",
            got=planned.scenario.workload.kind,
        )
    text = json.dumps(found) + "\n"
    if options.output:
        _write(options.output, text)
    else:
        sys.stdout.write(text)


def _graph(options: argparse.Namespace) -> None:
    fabric = _planned(options.file, options.set).fabric
    if options.node:
        graph = expanded(fabric, options.node)
    else:
        graph = full_graph(fabric) if options.full else quotient_graph(fabric)
    text = graph_file.WRITERS[options.format](graph)
    if options.output:
        _write(options.output, text)
    else:
        sys.stdout.write(text)


def _vllm_command(options: argparse.Namespace) -> None:
    sys.stdout.write(vllm_command(_planned(options.file, options.set)))


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
    plans = [_planned(file, []) for file in files]
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
        _write(options.output, text)
    else:
        sys.stdout.write(text)


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable("--output", file, error) from None


def _unwritable(option: str, file: str, error: OSError) -> InputError:
    return InputError.at(
        option,
        "file.unwritable",
        "{file} cannot be written ({reason}); choose another place",
        file=file,
        reason=error.strerror,
    )


def _planned(file: str, assignments: Sequence[str]) -> Plan:
    document = load_document(_read(file), path=file)
    for text in assignments:
        document, warnings = apply_overrides(document, dict([parse_assignment(text)]))
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)
    scenario = Scenario.parse(document)
    base = Path() if file == "-" else Path(file).parent
    catalog = _with_calibration(default_catalog(), scenario.hardware.calibration, base)
    return plan(scenario, catalog, traces=lambda named: _read_trace(named, base))


def _with_calibration(catalog: Catalog, name: str, base: Path) -> Catalog:
    """The catalog with the file in it that a scenario names as its calibration, if it names a file."""
    if not is_file(name):
        return catalog
    try:
        text = _near(name, base).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError.at(
            "hardware.calibration",
            "file.unreadable",
            "{file} cannot be read ({reason}); check its name, or write one with `trimtab calibrate … -o`",
            file=name,
            reason=getattr(error, "strerror", None) or "it is not text in UTF-8",
        ) from None
    return replace(catalog, own_calibrations={name: own_calibration(text, slug=Path(name).stem)})


def _near(file: str, base: Path) -> Path:
    """Relative paths count from here, then from the scenario's folder."""
    path = Path(file)
    return path if path.is_absolute() or path.exists() else base / path


def _read_trace(named: Trace, base: Path) -> TraceTable:
    """The trace that a scenario names."""
    if named.path is None:
        raise InputError.at(
            "workload.arrivals.trace",
            "trace.uploaded",
            "uploaded traces live in the web application; name a file with workload.arrivals.path here",
        )
    return read_trace(
        _near(named.path, base),
        format=named.format,
        columns=named.columns,
        time_scale=named.time_scale,
        limit=named.limit,
        window=named.window,
    )


def _read(file: str, limit: int = MAX_SCENARIO_FILE_BYTES) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(limit + 1)
    try:
        with Path(file).open("rb") as handle:
            return handle.read(limit + 1)
    except OSError as error:
        raise InputError.at(
            file,
            "file.unreadable",
            "the file cannot be read ({reason}); check its name",
            reason=error.strerror,
        ) from None


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


# ---- import -----------------------------------------------------------------------------------------


def _import(options: argparse.Namespace) -> None:
    file = Path(options.file)
    given = importing.Given(
        name=options.name,
        quant_config=_quant_config(options, file),
        model=options.model,
        gpu=options.gpu,
        tp=options.tp,
        operation=options.operation,
        trace_format=options.format,
    )
    piped = options.file == "-"
    raw = sys.stdin.buffer.read(importing.MAX_FILE_BYTES + 1) if piped else importing.read_file(file)
    imported = importing.import_bytes(options.kind, raw, default_catalog(), given, path=options.file)
    for warning in imported.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    text = importing.as_json(imported) if options.json else imported.text
    if options.output:
        _write(options.output, text)
    else:
        sys.stdout.write(text)


def _quant_config(options: argparse.Namespace, file: Path) -> bytes | None:
    if options.kind != "hf":
        return None
    if options.quant_config:
        return importing.read_file(Path(options.quant_config))
    return importing.beside(file) if options.file != "-" else None


# ---- catalog, validate, bench, warm -----------------------------------------------------------------

_SHELVES: Final[dict[str, str]] = {
    "chips": "chips",
    "servers": "servers",
    "scaleup-domains": "scaleup_domains",
    "switches": "switches",
    "optics": "optics",
    "optical-switches": "optical_switches",
    "models": "models",
    "prices": "price_books",
    "calibrations": "calibrations",
}


def _catalog(options: argparse.Namespace) -> None:
    catalog = default_catalog()
    if options.kind is None:
        slugs = {kind: list(getattr(catalog, shelf)) for kind, shelf in _SHELVES.items()}
        print(
            json.dumps(slugs, indent=2)
            if options.json
            else "\n".join(f"{k}: {', '.join(slugs[k])}" for k in slugs)
        )
        return
    shelf = getattr(catalog, _SHELVES[options.kind])
    if options.slug is None:
        print(
            json.dumps(list(shelf)) if options.json else "\n".join(f"{s:<34}{shelf[s].name}" for s in shelf)
        )
        return
    print(_card(catalog, options.kind, options.slug, as_json=options.json))


def _card(catalog: Catalog, kind: str, slug: str, *, as_json: bool) -> str:
    shelf = getattr(catalog, _SHELVES[kind])
    if slug not in shelf:
        raise InputError.at(
            "SLUG", "catalog.unknown", "got {got!r}; `trimtab catalog {kind}` lists them", got=slug, kind=kind
        )
    item = shelf[slug]
    if kind == "prices":
        rows = {key: (_price_text(price), price.source) for key, price in item.prices.items()}
    elif kind == "calibrations":
        rows = _fit_rows(item)
    else:
        rows = {key: (figure.printed, figure.source) for key, figure in item.figures.items()}
    if as_json:
        plain = {
            name: {"printed": text, "source": source.title, "kind": source.kind, "url": source.url}
            for name, (text, source) in rows.items()
        }
        return json.dumps({"slug": slug, "name": item.name, "figures": plain}, indent=2)
    lines = [f"{item.name}  ({slug})"]
    for name, (text, source) in rows.items():
        mark = " [assumption]" if source.kind == "assumption" else ""
        lines.append(f"  {name:<28}{text:>22}   {source.title}{mark}")
    return "\n".join(lines)


def _price_text(price: Price) -> str:
    return f"{price.mid_usd:,.0f} USD ({price.low_usd:,.0f} to {price.high_usd:,.0f})"


def _fit_rows(fitted: Calibration) -> dict[str, tuple[str, Source]]:
    """One row per fit: share of the peaks that it reaches, and its mean error."""
    tables = {
        "gemm": fitted.gemm,
        "prefill": fitted.attention_prefill,
        "decode": fitted.attention_decode,
    }
    rows = {
        f"{table} {dtype}": (
            f"{fit.compute_fraction:.0%} FLOP/s, {fit.memory_fraction:.0%} HBM, ±{fit.mape_fraction:.0%}",
            fit.source,
        )
        for table, by_dtype in tables.items()
        for dtype, fit in by_dtype.items()
    }
    for (operation, ranks), collective in fitted.collectives.items():
        text = printed_text(collective.bus_bytes_per_s, "bytes_per_s", digits=3)
        rows[f"{operation} × {ranks}"] = (f"{text}, ±{collective.mape_fraction:.0%}", collective.source)
    return rows


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
        _write(options.output, calibration_text(replace(fitted, chip=chip.slug)))


def _matrix(options: argparse.Namespace) -> None:
    from simcore.analysis.matrix_study import study
    from simcore.measurements.matrix import MAX_BYTES, read_matrix
    from simcore.report.matrix import matrix_text

    document: dict[str, Any] = {"topology": {}}
    for text in options.set:
        document, _ = apply_overrides(document, dict([parse_assignment(text)]))
    matrix = read_matrix(_read(options.file, limit=MAX_BYTES), path=options.file)
    found = study(matrix, default_catalog(), server=options.server, given=document["topology"])
    print(json.dumps(found.as_dict()) if options.json else matrix_text(found))


def _bench(options: argparse.Namespace) -> None:
    from simcore import bench

    measured = bench.run(options.what)
    print(json.dumps(measured, indent=2) if options.json else bench.as_text(options.what, measured))


def _warm(options: argparse.Namespace) -> None:
    from simcore.fabric import warm as fabric
    from simcore.reliability import warm as reliability
    from simcore.serving import warm as serving

    for part in (serving, fabric, reliability):
        part.warm()


def _say_error(head: str, error: TrimtabError) -> None:
    for message in error.messages:
        print(f"{head}: {message}", file=sys.stderr)
