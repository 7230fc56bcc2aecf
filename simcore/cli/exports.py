"""`trimtab trace`, `graph` and `command`: what of a scenario other tools read."""

from __future__ import annotations

import argparse
import json
import sys

from simcore.cli.common import Commands, add_command, plan_file, scenario_arguments, write_file
from simcore.errors import InputError
from simcore.fabric import full_graph, quotient_graph
from simcore.fabric.expansion import expanded
from simcore.report import graph_file
from simcore.report.engine_command import vllm_command
from simcore.report.training_trace import iteration_trace


def register(commands: Commands) -> None:
    trace = add_command(commands, "trace", _trace, "one iteration as a Chrome trace")
    scenario_arguments(trace)
    trace.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")

    graph = add_command(commands, "graph", _graph, "the fabric as a graph, for other tools")
    scenario_arguments(graph)
    graph.add_argument("--format", choices=sorted(graph_file.WRITERS), default="graphml")
    which = graph.add_mutually_exclusive_group()
    which.add_argument("--quotient", action="store_true", help="layers with their counts (the default)")
    which.add_argument("--full", action="store_true", help="every chip and switch, below 5,000 of them")
    which.add_argument("--node", metavar="NODE", help="what is around one part, such as leaf.0-63 or leaf.7")
    graph.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")

    command = add_command(commands, "command", _vllm_command, "print the `vllm serve` line of a scenario")
    scenario_arguments(command)


def _trace(options: argparse.Namespace) -> None:
    planned = plan_file(options.file, options.set)
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
        write_file(options.output, text)
    else:
        sys.stdout.write(text)


def _graph(options: argparse.Namespace) -> None:
    fabric = plan_file(options.file, options.set).fabric
    if options.node:
        graph = expanded(fabric, options.node)
    else:
        graph = full_graph(fabric) if options.full else quotient_graph(fabric)
    text = graph_file.WRITERS[options.format](graph)
    if options.output:
        write_file(options.output, text)
    else:
        sys.stdout.write(text)


def _vllm_command(options: argparse.Namespace) -> None:
    sys.stdout.write(vllm_command(plan_file(options.file, options.set)))
