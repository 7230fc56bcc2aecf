"""`trimtab import`: models, traces and measurements from the files of other tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simcore import importing
from simcore.catalog import default_catalog
from simcore.cli.common import Commands, add_command, write_file
from simcore.workload.trace_formats import NAMES


def register(commands: Commands) -> None:
    _import_arguments(add_command(commands, "import", _import, "read the files of other tools"))


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
        write_file(options.output, text)
    else:
        sys.stdout.write(text)


def _quant_config(options: argparse.Namespace, file: Path) -> bytes | None:
    if options.kind != "hf":
        return None
    if options.quant_config:
        return importing.read_file(Path(options.quant_config))
    return importing.beside(file) if options.file != "-" else None
