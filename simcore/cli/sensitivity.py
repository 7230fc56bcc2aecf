"""`trimtab tornado`, `monte-carlo` and `goal`: what a figure depends on, how sure it is, what a promise takes.

All three are studies of cells, so `--jobs` spreads them over processes. Closed forms unless `--simulate` is given,
or a metric is asked for that only a run has.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from simcore.analysis.cells import CellResult, Depth, evaluate_in_processes
from simcore.analysis.estimate import closed_form_metrics
from simcore.analysis.intervals import interval
from simcore.analysis.ranges import InputRange
from simcore.analysis.sensitivity import default_metric, design_choices, ranges_of
from simcore.analysis.studies import InRounds, Study, parse_study
from simcore.analysis.targets import parse_target, promised
from simcore.analysis.tornado import Tornado, as_interval
from simcore.cli.common import Commands, Given, add_command, given_file, scenario_arguments
from simcore.plan import Plan
from simcore.scenario.overrides import parse_assignment
from simcore.units import dimension_of, printed_text


def register(commands: Commands) -> None:
    tornado = add_command(
        commands, "tornado", _tornado, "each input alone between its ends, widest swing first"
    )
    _common(tornado)
    tornado.add_argument(
        "--path", action="append", default=[], help="an input; its range is the known or assumed one"
    )
    draws = add_command(commands, "monte-carlo", _monte_carlo, "all inputs at once, as intervals of 90 %%")
    _common(draws)
    draws.add_argument("--draws", type=int, default=200, metavar="N", help="how many (default 200)")
    draws.add_argument("--seed", type=int, default=1)
    _targets(draws)
    goal = add_command(commands, "goal", _goal, "the smallest or largest value that keeps a promise")
    _common(goal)
    goal.add_argument("--path", required=True, help="the input that is looked for")
    goal.add_argument("--between", required=True, metavar="INTERVAL", help='where, such as "1 to 64"')
    goal.add_argument("--find", choices=("smallest", "largest"), default="smallest")
    goal.add_argument("--step", type=int, default=1, help="between whole numbers, such as chips of a server")
    _targets(goal)


def _common(parser: argparse.ArgumentParser) -> None:
    scenario_arguments(parser)
    parser.add_argument(
        "--metric", action="append", default=[], help="metric id; default: cost per token, or TCO"
    )
    parser.add_argument(
        "--range",
        action="append",
        default=[],
        metavar="PATH=INTERVAL",
        help='such as economics.pue="1.1 to 1.4"',
    )
    parser.add_argument("--simulate", action="store_true", help="run each point instead of closed forms")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--json", action="store_true", help="all tables as JSON")


def _targets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="BOUND",
        help='such as "serving.ttft_s.p95 <= 200 ms"',
    )
    parser.add_argument("--slo", action="store_true", help="the share of requests that the scenario promised")


def _tornado(options: argparse.Namespace) -> None:
    given = given_file(options.file, options.set)
    planned = given.plan()
    metrics = options.metric or [default_metric(planned)]
    study = Tornado.of(
        _ranges(planned, options),
        metrics,
        depth=_depth(options, planned, metrics),
        hold=design_choices(planned),
    )
    tables = _run(study, given, options.jobs)
    _show(tables, options, lambda: _tornado_lines(tables["tornado"]))


def _monte_carlo(options: argparse.Namespace) -> None:
    given = given_file(options.file, options.set)
    planned = given.plan()
    metrics, targets = options.metric or [default_metric(planned)], _promises(options, planned)
    study = parse_study(
        {
            "kind": "monte_carlo",
            "ranges": {one.path: as_interval(one) for one in _ranges(planned, options)},
            "hold": design_choices(planned),
            "metrics": metrics,
            "targets": targets,
            "draw_count": options.draws,
            "seed": options.seed,
            "depth": _depth(options, planned, [*metrics, *(target["metric"] for target in targets)]),
        }
    )
    tables = _run(study, given, options.jobs)
    _show(tables, options, lambda: _draw_lines(tables))


def _goal(options: argparse.Namespace) -> None:
    given = given_file(options.file, options.set)
    planned, where = given.plan(), interval(options.path, options.between)
    targets = _promises(options, planned)
    study = parse_study(
        {
            "kind": "goal_seek",
            "path": options.path,
            "low": where.low,
            "high": where.high,
            "find": options.find,
            "step": options.step,
            "targets": targets,
            "points_per_round": max(3, options.jobs),
            "depth": _depth(options, planned, [target["metric"] for target in targets]),
        }
    )
    tables = _run(study, given, options.jobs)
    _show(tables, options, lambda: _goal_lines(tables, options.path))


def _ranges(planned: Plan, options: argparse.Namespace) -> list[InputRange]:
    """Intervals that were written, those of paths that were named, else the default ones."""
    written = dict(parse_assignment(text) for text in options.range)
    paths = [*getattr(options, "path", ()), *written]
    return [_as_written(one, written) for one in ranges_of(planned, paths)]


def _as_written(one: InputRange, written: Mapping[str, str]) -> InputRange:
    if one.path not in written:
        return one
    ends = interval(one.path, written[one.path])
    return one.narrowed(ends.low, ends.high)


def _promises(options: argparse.Namespace, planned: Plan) -> list[dict[str, Any]]:
    found = [parse_target(text) for text in options.target]
    if options.slo:
        found.append(promised(planned.scenario))
    return [target.model_dump() for target in found]


def _depth(options: argparse.Namespace, planned: Plan, metrics: Sequence[str]) -> Depth:
    if any(metric.startswith("analysis.") for metric in metrics):
        return "analysed"
    known = closed_form_metrics(planned)
    return (
        "simulated" if options.simulate or any(metric not in known for metric in metrics) else "closed_forms"
    )


def _run(study: Study, given: Given, jobs: int) -> Mapping[str, Any]:
    """All rounds of a study, and what they amount to."""
    results: list[CellResult] = []
    cells = study.cells(given.document)
    while cells:
        results += evaluate_in_processes(
            given.document, cells, jobs=jobs, catalog=given.catalog, traces=given.traces, depth=study.depth,
            keep=study.keeps,
        )  # fmt: skip
        cells = study.next_cells(results) if isinstance(study, InRounds) else []
    return study.summary(given.document, results)


def _show(tables: Mapping[str, Any], options: argparse.Namespace, lines: Any) -> None:
    print(json.dumps(tables) if options.json else "\n".join(lines()))


def _tornado_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for place, row in enumerate(rows):
        metric = row["metric"]
        if not place or rows[place - 1]["metric"] != metric:
            lines += [f"{metric} = {_text(metric, row['base_value'])}"]
            lines += [f"{'swing':>22}  {'at low':>22}  {'at high':>22}  elasticity  input, from low to high"]
        ends = (
            _end(metric, row[f"at_{side}"], beyond=row[f"extrapolated_{side}"]) for side in ("low", "high")
        )
        elasticity = "" if row["elasticity"] is None else f"{row['elasticity']:+.2f}"
        span = f"{_text(row['path'], row['low'])} … {_text(row['path'], row['high'])}"
        lines.append(
            f"{_text(metric, row['swing']):>22}  {'  '.join(f'{end:>22}' for end in ends)}  {elasticity:>10}  "
            f"{row['path']}, {span} ({row['basis']['message']})"
        )
    return lines


def _draw_lines(tables: Mapping[str, Any]) -> list[str]:
    lines = []
    for row in tables["distribution"]:
        metric = row["metric"]
        p5, p50, p95, mean, error = (
            _text(metric, row[k]) for k in ("p5", "p50", "p95", "mean", "standard_error")
        )
        lines.append(f"{metric}: {p5} … {p50} … {p95} (5, 50, 95 %), mean {mean} ± {error}")
        lines.append(
            f"  {row['draw_count']} draws, {row['failed_count']} cannot be built, "
            f"{row['extrapolated_count']} beyond what was measured"
        )
        lines += [
            f"  {one['correlation']:+.2f}  {one['path']}"
            for one in tables["rank_correlations"]
            if one["metric"] == metric
        ]
    lines += [
        f"{row['target']}: {row['fraction']:.1%} ± {row['standard_error']:.1%}" for row in tables["chances"]
    ]
    return lines


def _goal_lines(tables: Mapping[str, Any], path: str) -> list[str]:
    [found] = tables["goal"]
    lines = [found["message"]["message"]]
    for row in tables["goal_trace"]:
        metrics = [key for key in row if "." in key]
        got = "  ".join(f"{key} {_text(key, row[key])}" for key in metrics if row[key] is not None)
        error = row["error"]["message"] if row["error"] else ""
        lines.append(f"{_text(path, row['value']):>22}  {'met' if row['met'] else 'not':>3}  {got}{error}")
    return lines


def _end(metric: str, value: float | None, *, beyond: bool) -> str:
    return "cannot be" if value is None else f"{_text(metric, value)}{'*' if beyond else ''}"


def _text(name: str, value: float | str) -> str:
    return value if isinstance(value, str) else printed_text(value, dimension_of(name), digits=4)
