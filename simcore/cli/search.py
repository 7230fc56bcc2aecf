"""`trimtab search`: the best configuration within limits, the frontier around it, or what is in the way.

Each verified design comes as a row; the recommended one also as `--set` lines for the scenario and as the `vllm serve`
line that runs it. Exit code 3 where nothing is feasible.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from typing import Any, get_args

from simcore.cli.common import Commands, Given, add_command, given_file, scenario_arguments


def register(commands: Commands) -> None:
    from simcore.analysis.search.spec import Objective

    parser = add_command(commands, "search", _search, "find the best configuration within limits")
    scenario_arguments(parser)
    parser.add_argument("--objective", choices=get_args(Objective), default="usd_per_million_tokens")
    parser.add_argument("--max-chips", type=int, default=64, metavar="N")
    parser.add_argument("--chips", metavar="SLUG,SLUG", help="kinds of chip (default: ten of the catalog)")
    parser.add_argument("--fabrics", metavar="KIND,KIND", help="kinds of fabric (default: the server's own)")
    parser.add_argument(
        "--schedulers", metavar="KIND,KIND", help="chunked_prefill, continuous, disaggregated"
    )
    parser.add_argument("--weights", metavar="DTYPE,DTYPE", help="formats of weights, such as auto,fp8")
    parser.add_argument(
        "--rate", choices=("held", "free"), default="held", help="the scenario's, or the best"
    )
    parser.add_argument("--ttft", type=float, metavar="S", help="limit (default: the scenario's SLO)")
    parser.add_argument("--tpot", type=float, metavar="S", help="limit (default: the scenario's SLO)")
    parser.add_argument("--verify", type=int, default=8, metavar="N", help="designs to plan and simulate")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: one per core)")
    parser.add_argument("--json", action="store_true")


def _search(options: argparse.Namespace) -> int:
    from simcore.analysis.cells import evaluate_in_processes
    from simcore.analysis.search import answer, cells_of, closed_forms
    from simcore.report.search import search_text

    given = given_file(options.file, options.set)
    found = closed_forms(given.document, _wanted(options), catalog=given.catalog(), traces=given.traces)
    results = evaluate_in_processes(
        given.document,
        cells_of(found),
        jobs=options.jobs or os.cpu_count() or 1,
        catalog=given.catalog,
        traces=given.traces,
    )
    told = answer(found, list(results))
    if options.json:
        print(json.dumps(told.as_dict()))
    else:
        print(search_text(told))
        if told.recommended is not None:
            print(_ready(given, told.recommended["overrides"]))
    return 0 if found.best is not None else 3


def _wanted(options: argparse.Namespace) -> Any:
    from simcore.analysis.search import Search
    from simcore.analysis.studies import parse_study

    lists = {
        "chips": options.chips,
        "fabrics": options.fabrics,
        "schedulers": options.schedulers,
        "weights_dtypes": options.weights,
    }
    spec = {
        "kind": "search",
        "objective": options.objective,
        "max_chips": options.max_chips,
        "rate": options.rate,
        "ttft_s": options.ttft,
        "tpot_s": options.tpot,
        "verified": options.verify,
        **{name: tuple(filter(None, text.split(","))) for name, text in lists.items() if text},
    }
    found = parse_study(spec)
    assert isinstance(found, Search), "kind says so"
    return found


def _ready(given: Given, overrides: Mapping[str, Any]) -> str:
    """The recommended design, ready to paste."""
    from simcore.errors import InputError
    from simcore.plan import plan
    from simcore.report.engine_command import vllm_command
    from simcore.report.search import set_lines
    from simcore.scenario import Scenario, apply_overrides

    lines = ["", "as overrides:", *(f"  {line}" for line in set_lines(overrides))]
    document, _ = apply_overrides(given.document, overrides)
    planned = plan(Scenario.parse(document), given.catalog(), given.traces)
    try:
        lines += ["", "as a command:", vllm_command(planned).rstrip()]
    except InputError as error:
        lines += ["", str(error.message)]
    return "\n".join(lines)
