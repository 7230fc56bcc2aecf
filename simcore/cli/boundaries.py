"""`trimtab boundaries`: where a design ends as it grows, what may leave its domains, and a job beside it."""

from __future__ import annotations

import argparse
import json
from functools import partial

from simcore.catalog import default_catalog
from simcore.cli.common import (
    Commands,
    add_command,
    folder_of,
    plan_file,
    plan_near,
    scenario_arguments,
)


def register(commands: Commands) -> None:
    parser = add_command(commands, "boundaries", _boundaries, "grow a design until something breaks")
    scenario_arguments(parser)
    parser.add_argument(
        "--other-chip", default="", metavar="SLUG", help="the second kind of chip that is tried"
    )
    parser.add_argument("--beside", metavar="FILE", help="a scenario that shares the fabric")
    parser.add_argument("--stages", action="store_true", help="tax it as it grows, mixes and ages")
    parser.add_argument("--json", action="store_true")


def _boundaries(options: argparse.Namespace) -> None:
    from simcore.analysis.boundaries import boundaries
    from simcore.analysis.colocated import colocated
    from simcore.analysis.crossing import crossing
    from simcore.analysis.stages import stages
    from simcore.report.boundaries import boundaries_text

    planned, catalog = plan_file(options.file, options.set), default_catalog()
    replan = partial(plan_near, base=folder_of(options.file))
    rows = boundaries(planned, catalog, replan, other_chip=options.other_chip)
    share = crossing(planned)
    beside = colocated(planned, plan_file(options.beside, []), catalog) if options.beside else []
    staged = stages(planned, catalog, replan, other_chip=options.other_chip) if options.stages else []
    if options.json:
        document = {
            "boundaries": [row.as_dict() for row in rows],
            "crossing": share.as_dict() if share else None,
            "colocated": [one.as_dict() for one in beside],
            "stages": [one.as_dict() for one in staged],
        }
        print(json.dumps(document))
    else:
        print(boundaries_text(rows, share, beside, staged))
