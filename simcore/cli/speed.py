"""`trimtab bench` and `warm`: speed, measured as ratios within one run, and the machine code cached before."""

from __future__ import annotations

import argparse
import json
from typing import Final

from simcore.cli.common import Commands, add_command

_BENCHES: Final = (
    "serving",
    "edit",
    "plan",
    "cluster",
    "disagg",
    "fabric",
    "flows",
    "life",
    "slices",
    "sweep",
    "search",
)


def register(commands: Commands) -> None:
    bench = add_command(commands, "bench", _bench, "measure speed, as ratios within one run")
    bench.add_argument("what", nargs="?", choices=_BENCHES, default="serving")
    bench.add_argument("--json", action="store_true")

    add_command(commands, "warm", _warm, "compile and cache the machine code")


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
