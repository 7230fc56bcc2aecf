"""The `trimtab` command: run, explain and compare scenarios, look into the catalog, validate, benchmark.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 2 bad input (a message, never a
traceback), 3 infeasible (the binding constraint and the nearest change that fits). A new command is one module
with `register(commands)` and one name here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from simcore.cli import (
    boundaries,
    catalog,
    compare,
    explain,
    exports,
    imports,
    matrix,
    report,
    run,
    search,
    sensitivity,
    speed,
    sweep,
    validate,
)
from simcore.errors import InfeasibleError, TrimtabError

_GROUPS: Final = (
    run,
    explain,
    exports,
    compare,
    report,
    sweep,
    search,
    imports,
    speed,
    catalog,
    validate,
    matrix,
    boundaries,
    sensitivity,
)


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
    for group in _GROUPS:
        group.register(commands)
    return parser


def _say_error(head: str, error: TrimtabError) -> None:
    for message in error.messages:
        print(f"{head}: {message}", file=sys.stderr)
