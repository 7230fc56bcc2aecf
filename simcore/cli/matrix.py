"""`trimtab matrix`: a measured traffic matrix, and which topology suits it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from simcore.catalog import default_catalog
from simcore.cli.common import Commands, add_command, read_file
from simcore.scenario import apply_overrides
from simcore.scenario.overrides import parse_assignment


def register(commands: Commands) -> None:
    matrix = add_command(
        commands, "matrix", _matrix, "read a measured traffic matrix, rank topologies for it"
    )
    matrix.add_argument("file", metavar="FILE", help="CSV (square table, or source,target,bytes…) or npz")
    matrix.add_argument("--server", default="dgx-h100", metavar="SLUG", help="what the ranks' chips stand in")
    matrix.add_argument("--set", action="append", default=[], metavar="topology.KEY=VALUE")
    matrix.add_argument("--json", action="store_true")


def _matrix(options: argparse.Namespace) -> None:
    from simcore.analysis.matrix_study import study
    from simcore.measurements.matrix import MAX_BYTES, read_matrix
    from simcore.report.matrix import matrix_text

    document: dict[str, Any] = {"topology": {}}
    for text in options.set:
        document, _ = apply_overrides(document, dict([parse_assignment(text)]))
    matrix = read_matrix(read_file(options.file, limit=MAX_BYTES), path=options.file)
    found = study(matrix, default_catalog(), server=options.server, given=document["topology"])
    print(json.dumps(found.as_dict()) if options.json else matrix_text(found))
