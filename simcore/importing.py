"""`trimtab import`: files of other tools become a scenario, rows of measurements, or a trace's summary.

Pure but for reading the named file: bytes in, text and warnings out. What a file does not say is left empty
and can be given beside it; what it says wrongly is an InputError that names the field.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simcore.catalog import Catalog
from simcore.catalog.huggingface import architecture_from_config
from simcore.errors import InputError, Message
from simcore.measurements import (
    TOOLS,
    CollectiveMeasurement,
    ServingMeasurement,
    as_csv,
    read_nccl_tests,
    read_serving,
)
from simcore.measurements.nodes import MAX_BYTES
from simcore.scenario import Scenario, load_document
from simcore.scenario.checkpoints import QUANT_CONFIG_NAME, with_quantization
from simcore.scenario.documents import dump_document
from simcore.scenario.imports import document_from_text
from simcore.workload.arrivals import TraceFormat
from simcore.workload.length_tables import LengthTable, read_lengths
from simcore.workload.summary import TraceSummary, summarise
from simcore.workload.trace_formats import detect_format
from simcore.workload.traces import MAX_BYTES as MAX_TRACE_BYTES
from simcore.workload.traces import read_trace

KINDS: Final = ("hf", "vllm-args", *TOOLS, "nccl-tests", "trace", "lengths")
MAX_FILE_BYTES: Final = max(MAX_BYTES, MAX_TRACE_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came out: text for a file, the same as JSON values, and what was not understood."""

    text: str
    values: Any
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the caller says beside the file, for what the file leaves out."""

    name: str = ""
    quant_config: bytes | None = None
    model: str = ""
    gpu: str = ""
    tp: int | None = None
    operation: str | None = None
    trace_format: TraceFormat | None = None


def import_bytes(kind: str, raw: bytes, catalog: Catalog, given: Given, *, path: str = "") -> Imported:
    """The contents of a file of one of `KINDS`."""
    if kind == "hf":
        return _hugging_face(raw, given, path)
    if kind == "vllm-args":
        return _vllm_arguments(raw, catalog, path)
    if kind == "nccl-tests":
        return _measured(read_nccl_tests(raw, operation=given.operation, path=path))
    if kind == "trace":
        return _trace(raw, given.trace_format, path)
    if kind == "lengths":
        return _lengths(raw, given, path)
    return _measured(read_serving(kind, raw, path=path, model=given.model, gpu=given.gpu, tp=given.tp))


def read_file(file: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Up to one byte more than is allowed, so that the reader can say that it is too much."""
    try:
        with file.open("rb") as handle:
            return handle.read(max_bytes + 1)
    except OSError as error:
        raise InputError.at(
            str(file),
            "file.unreadable",
            "the file cannot be read ({reason}); check its name",
            reason=error.strerror or "it is no file",
        ) from None


def beside(file: Path) -> bytes | None:
    """The `hf_quant_config.json` beside a config.json, or `X_hf_quant_config.json` beside `X_config.json`."""
    names = (file.name.removesuffix("config.json") + QUANT_CONFIG_NAME, QUANT_CONFIG_NAME)
    found = (file.with_name(name) for name in names)
    return next((read_file(other) for other in found if other.is_file() and other != file), None)


# ---- scenarios ---------------------------------------------------------------------------------------


def _hugging_face(raw: bytes, given: Given, path: str) -> Imported:
    config = load_document(raw, path=path)
    quant = None
    if given.quant_config is not None:
        quant = load_document(given.quant_config, path=QUANT_CONFIG_NAME)
    config = with_quantization(config, quant)
    name = given.name or str(config.get("_name_or_path") or config.get("model_type") or "config.json")[:200]
    _, messages = architecture_from_config(config, name=name)
    return _scenario({"name": name, "model": {"name": name, "config": config}}, messages)


def _vllm_arguments(raw: bytes, catalog: Catalog, path: str) -> Imported:
    return _scenario(*document_from_text(_text(raw, path), catalog))


def _lengths(raw: bytes, given: Given, path: str) -> Imported:
    """A scenario with the lengths of a table, or of a trace in any of its formats."""
    form = given.trace_format or detect_format(raw[:4096])
    if form is None:
        table = read_lengths(_text(raw, path), path)
    else:
        trace = read_trace(raw, format=form, path=path)
        table = LengthTable(
            input_tokens=trace.input_tokens.tolist(), output_tokens=trace.output_tokens.tolist()
        )
    kept, messages = table.kept()
    lengths = {
        "kind": "empirical",
        "input_tokens": kept.input_tokens,
        "output_tokens": kept.output_tokens,
    }
    name = given.name or Path(path).stem or "lengths"
    return _scenario({"name": name[:200], "workload": {"lengths": lengths}}, messages)


def _text(raw: bytes, path: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.at(
            path,
            "document.not_text",
            "byte {position} is not UTF-8 text; save the file as UTF-8",
            position=error.start,
        ) from None


def _scenario(document: dict[str, Any], messages: Sequence[Message]) -> Imported:
    Scenario.parse(document)
    return Imported(text=dump_document(document), values=document, warnings=tuple(messages))


# ---- measurements ------------------------------------------------------------------------------------


def _measured(rows: Sequence[ServingMeasurement] | Sequence[CollectiveMeasurement]) -> Imported:
    return Imported(text=as_csv(rows), values=[row.as_row() for row in rows])


def _trace(raw: bytes, form: TraceFormat | None, path: str) -> Imported:
    found = form or detect_format(raw[:4096])
    if found is None:
        raise InputError.at(
            path,
            "trace.format",
            "the first line looks like none of mooncake, azure, burstgpt, csv; say which with --format",
        )
    table = read_trace(raw, format=found, path=path)
    summary = summarise(table)
    values = {"format": found, **summary.as_dict()}
    return Imported(text=_summary_text(found, summary), values=values, warnings=table.skipped_rows)


def _summary_text(form: str, summary: TraceSummary) -> str:
    lines = [f"{'format':<20}{form}"]
    for name, value in summary.as_dict().items():
        if isinstance(value, dict):
            shown = ", ".join(f"{key} {figure:,.4g}" for key, figure in value.items())
        elif isinstance(value, str):
            shown = value
        else:
            shown = "too few rows to say" if value is None else f"{value:,.6g}"
        lines.append(f"{name:<20}{shown}")
    return "\n".join(lines) + "\n"


def as_json(imported: Imported) -> str:
    return json.dumps(imported.values, indent=2) + "\n"
