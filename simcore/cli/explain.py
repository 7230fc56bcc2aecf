"""`trimtab explain`: the expression tree of one number, as text, JSON or LaTeX."""

from __future__ import annotations

import argparse
import difflib
import json

from simcore import why
from simcore.analysis import analyse
from simcore.cli.common import Commands, add_command, plan_file, scenario_arguments
from simcore.errors import InputError
from simcore.simulate import Result, simulate


def register(commands: Commands) -> None:
    explain = add_command(commands, "explain", _explain, "print how one number was computed")
    scenario_arguments(explain)
    explain.add_argument("metric", help="metric id, for example compute.decode_step_s")
    form = explain.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--latex", action="store_true")


def _explain(options: argparse.Namespace) -> None:
    planned = plan_file(options.file, options.set)
    # Power, and what is paid for it, follows the utilisation that a run finds.
    term = None if options.metric.startswith("cost.") else planned.why.get(options.metric)
    if term is None:
        result = simulate(planned)
        result = result.with_findings(analyse(planned, result))
        term = result.why.get(options.metric)
        if term is None:
            raise no_such_metric(options.metric, result)
    if options.json:
        print(json.dumps(why.as_dict(term), indent=2))
    else:
        print(why.as_latex(term) if options.latex else why.as_text(term))


def no_such_metric(metric: str, result: Result) -> InputError:
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
