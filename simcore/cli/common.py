"""What commands share: how one is declared, how a scenario is read and planned, how a file is written."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from simcore.catalog import Catalog, default_catalog
from simcore.catalog.calibrations import is_file, own_calibration
from simcore.errors import InputError
from simcore.plan import Plan, plan
from simcore.scenario import Scenario, apply_overrides, load_document
from simcore.scenario.overrides import parse_assignment
from simcore.workload.arrivals import Trace
from simcore.workload.traces import TraceTable, read_trace

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

MAX_SCENARIO_FILE_BYTES = 1_000_000


def add_command(
    commands: Commands, name: str, action: Callable[[argparse.Namespace], int | None], does: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=does, description=does)
    parser.set_defaults(command=action)
    return parser


def scenario_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="scenario as YAML or JSON; - reads stdin")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="override one path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A scenario in a file, and where what it names lies; whole enough to be handed to another process."""

    document: dict[str, Any]
    base: Path

    def catalog(self) -> Catalog:
        """The shipped catalog, with the calibration file that the scenario names."""
        name = Scenario.parse(self.document).hardware.calibration
        return _with_calibration(default_catalog(), name, self.base)

    def traces(self, named: Trace) -> TraceTable:
        return _read_trace(named, self.base)

    def plan(self) -> Plan:
        return plan(Scenario.parse(self.document), self.catalog(), traces=self.traces)


def given_file(file: str, assignments: Sequence[str]) -> Given:
    """The scenario in a file, with `--set` over it."""
    document = load_document(read_file(file), path=file)
    for text in assignments:
        document, warnings = apply_overrides(document, dict([parse_assignment(text)]))
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)
    return Given(document=document, base=folder_of(file))


def plan_file(file: str, assignments: Sequence[str]) -> Plan:
    """The plan of the scenario in a file, with `--set` over it; a trace and a calibration may lie beside it."""
    return given_file(file, assignments).plan()


def folder_of(file: str) -> Path:
    return Path() if file == "-" else Path(file).parent


def plan_near(document: Mapping[str, Any], base: Path) -> Plan:
    """The plan of a document whose trace and calibration may lie in a folder."""
    return Given(document=dict(document), base=base).plan()


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


def read_file(file: str, limit: int = MAX_SCENARIO_FILE_BYTES) -> bytes:
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


def write_file(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable("--output", file, error) from None


def write_bytes(file: str | None, content: bytes) -> None:
    """Into a file, or to stdout where none is named."""
    if not file:
        sys.stdout.buffer.write(content)
        return
    try:
        Path(file).write_bytes(content)
    except OSError as error:
        raise unwritable("--output", file, error) from None


def unwritable(option: str, file: str, error: OSError) -> InputError:
    return InputError.at(
        option,
        "file.unwritable",
        "{file} cannot be written ({reason}); choose another place",
        file=file,
        reason=error.strerror,
    )
