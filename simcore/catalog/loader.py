"""From YAML files to catalog entities: one file per entry, one conversion, no figure without a source.

`data/<kind>/<slug>.yaml` holds what a source prints. Floats stand under `figures:` as
`{value: 3.35 TB/s, source: datasheet, note: …}` and are converted once, against the dimension that the
field's suffix names; counts, names and shapes stand under `shape:` with one `source`. Every source that
is named must stand in the file's `sources:` map; an unknown key, a missing field or a figure without a
source is an InputError with the file's path. Shelves are lazy: a file is parsed when its entry is first
asked for and kept for the life of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from simcore.catalog.kernels import (
    DecodeKernel,
    ExpertKernel,
    FitRecord,
    GemmKernel,
    Kernels,
    PrefillKernel,
    Residuals,
)
from simcore.catalog.loader_shape import checked
from simcore.catalog.types import (
    Calibration,
    Chip,
    CollectiveFit,
    Efficiency,
    Entity,
    Figure,
    LlmArchitecture,
    Optic,
    OpticalSwitch,
    Price,
    PriceBook,
    ScaleupDomain,
    Server,
    Source,
    SourceKind,
    StepOverhead,
    StepRange,
    Switch,
)
from simcore.errors import InputError
from simcore.units import UNITS, dimension_of, quantity

DATA = Path(__file__).parent / "data"
ENTITY_KINDS: Mapping[str, type[Entity]] = {
    "chips": Chip,
    "servers": Server,
    "scaleup_domains": ScaleupDomain,
    "switches": Switch,
    "optics": Optic,
    "optical_switches": OpticalSwitch,
    "models": LlmArchitecture,
}
# Fields whose suffix names no dimension of its own.
_DIMENSIONS: Mapping[str, str] = {"sqrt_s_per_sqrt_byte": "s", "reach_m": "m", "sram_bytes_per_core": "bytes"}
_KERNELS: Mapping[str, type[FitRecord]] = {
    "gemm": GemmKernel,
    "experts": ExpertKernel,
    "attention_prefill": PrefillKernel,
    "attention_decode": DecodeKernel,
    "latent_prefill": PrefillKernel,
    "latent_decode": DecodeKernel,
}
_CALIBRATION_KEYS = {
    "name",
    "chip",
    "is_class_default",
    "fitted_on",
    "collectives",
    "step_overhead",
    "engine_overheads",
    "step_range",
    "kernels",
    "residuals",
    "sources",
}
_NOT_IN_FILE = {"slug", "name", "figures", "source"}
_YamlLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
E_ = TypeVar("E_", bound=Entity)
Document = dict[str, Any]


def read_document(text: str, path: str) -> Document:
    """YAML text as a mapping; safe tags only."""
    try:
        document = yaml.load(text, Loader=_YamlLoader)
    except yaml.YAMLError as error:
        line = str(error).splitlines()[0]
        raise InputError.at(
            path, "file.unreadable", "this is not valid YAML: {reason}", reason=line
        ) from None
    if not isinstance(document, dict):
        raise InputError.at(path, "file.unreadable", "the file must hold keys and values, not a bare value")
    return document


def load_entity(cls: type[E_], text: str, *, slug: str, path: str) -> E_:
    """One entry of `cls` from the text of its file."""
    document = read_document(text, path)
    _refuse_unknown(document, {"name", "shape", "figures", "sources"}, path)
    sources = _sources(document, path)
    known = {item.name: item for item in fields(cls) if item.name not in _NOT_IN_FILE}
    kinds = field_types(cls)  # type: ignore[arg-type]  # mypy: a class is not seen as hashable
    figures = {
        name: _figure(name, entry, sources, f"{path}: figures.{name}")
        for name, entry in _mapping(document, "figures", path).items()
        if _check_known(name, {n for n in known if is_float(kinds[n])}, f"{path}: figures")
    }
    shape = dict(_mapping(document, "shape", path))
    source = _source(shape.pop("source", None), sources, f"{path}: shape") if shape else None
    for name, value in list(shape.items()):
        _check_known(name, {n for n in known if not is_float(kinds[n])}, f"{path}: shape")
        shape[name] = checked(value, kinds[name], f"{path}: shape.{name}")
    _require(known, {*figures, *shape}, path)
    values = {name: figure.value for name, figure in figures.items()}
    name = _name(document, path)
    return cls(slug=slug, name=name, figures=figures, source=source, **values, **shape)


def load_price_book(text: str, *, slug: str, path: str) -> PriceBook:
    """Prices by item key; `mid_usd` is required, `low_usd` and `high_usd` default to it."""
    document = read_document(text, path)
    _refuse_unknown(document, {"name", "dated", "prices", "sources"}, path)
    sources = _sources(document, path)
    prices = {
        item: _price(entry, sources, f"{path}: prices.{item}")
        for item, entry in _mapping(document, "prices", path).items()
    }
    dated = str(document.get("dated", ""))
    if not dated:
        raise InputError.at(path, "key.missing", "a price book needs `dated`, the date its prices hold for")
    return PriceBook(slug=slug, name=_name(document, path), dated=dated, prices=prices)


def load_calibration(text: str, *, slug: str, path: str) -> Calibration:
    """Fitted constants of one chip; each fit names its source."""
    document = read_document(text, path)
    tables = ("gemm", "attention_prefill", "attention_decode")
    _refuse_unknown(document, {*_CALIBRATION_KEYS, *tables}, path)
    sources = _sources(document, path)
    step_range = document.get("step_range")
    efficiencies: dict[str, Any] = {
        table: {
            dtype: _record(Efficiency, entry, sources, f"{path}: {table}.{dtype}")
            for dtype, entry in _mapping(document, table, path).items()
        }
        for table in tables
    }
    collectives = {
        (operation, int(ranks)): _record(
            CollectiveFit, entry, sources, f"{path}: collectives.{operation}.{ranks}"
        )
        for operation, by_ranks in _mapping(document, "collectives", path).items()
        for ranks, entry in by_ranks.items()
    }
    return Calibration(
        slug=slug,
        name=_name(document, path),
        collectives=collectives,
        step_overhead=_record(StepOverhead, document.get("step_overhead"), sources, f"{path}: step_overhead"),
        is_class_default=document.get("is_class_default") is True,
        kernels=_kernels(document, sources, path),
        engine_overheads={
            engine: _record(StepOverhead, entry, sources, f"{path}: engine_overheads.{engine}")
            for engine, entry in _mapping(document, "engine_overheads", path).items()
        },
        residuals={
            regime: _whole(_record(Residuals, entry, sources, f"{path}: residuals.{regime}"))
            for regime, entry in _mapping(document, "residuals", path).items()
        },
        step_range=StepRange(**{name: float(value) for name, value in step_range.items()})
        if isinstance(step_range, dict)
        else None,
        fitted_on=str(document.get("fitted_on", "")),
        chip=str(document.get("chip", "")),
        **efficiencies,
    )


def _kernels(document: Document, sources: Mapping[str, Source], path: str) -> Kernels:
    """Kernel fits by operator class and dtype."""
    section = _mapping(document, "kernels", path)
    _refuse_unknown(section, set(_KERNELS), f"{path}: kernels")
    found: dict[str, Any] = {
        name: {
            dtype: _whole(_record(cls, entry, sources, f"{path}: kernels.{name}.{dtype}"))
            for dtype, entry in section.get(name, {}).items()
        }
        for name, cls in _KERNELS.items()
    }
    return Kernels(**found)


def _whole(record: Any) -> Any:
    """Counts and exponents as whole numbers."""
    kinds = field_types(type(record))  # type: ignore[arg-type]  # mypy: a class is not seen as hashable
    return replace(record, **{n: int(getattr(record, n)) for n, kind in kinds.items() if kind is int})


def _sources(document: Document, path: str) -> dict[str, Source]:
    found: dict[str, Source] = {}
    for key, entry in _mapping(document, "sources", path).items():
        where = f"{path}: sources.{key}"
        if not isinstance(entry, dict):
            raise InputError.at(where, "source.missing", "a source is {{title: …, kind: …}}")
        _refuse_unknown(entry, {"title", "kind", "url", "read_on", "note"}, where)
        allowed = get_args(SourceKind)
        if not entry.get("title") or entry.get("kind") not in allowed:
            raise InputError.at(
                where,
                "source.incomplete",
                "a source needs a title and a kind, one of {allowed}; got kind {got!r}",
                allowed=", ".join(allowed),
                got=entry.get("kind"),
            )
        found[key] = Source(**{name: str(value) for name, value in entry.items()})  # type: ignore[arg-type]
    return found


def _source(key: object, sources: Mapping[str, Source], path: str) -> Source:
    if not isinstance(key, str) or key not in sources:
        raise InputError.at(
            path,
            "source.missing",
            "no source, no load: `source` must name one of {allowed}; got {got!r}",
            allowed=", ".join(sources) or "the file's sources, which are missing",
            got=key,
        )
    return sources[key]


def _figure(name: str, entry: object, sources: Mapping[str, Source], path: str) -> Figure:
    if not isinstance(entry, dict):
        raise InputError.at(
            path, "figure.form", "a figure is {{value: …, source: …}}; got {got!r}", got=entry
        )
    _refuse_unknown(entry, {"value", "source", "note"}, path)
    source = _source(entry.get("source"), sources, path)
    return Figure(
        value=figure_value(name, entry.get("value"), path),
        printed=str(entry["value"]),
        source=source,
        note=str(entry.get("note", "")),
    )


def dimension_of_figure(name: str) -> str:
    return _DIMENSIONS.get(name) or dimension_of(name)


def figure_value(name: str, value: object, path: str) -> float:
    """The figure in SI. A field with a dimension takes a text with its unit, never a bare number."""
    dimension = dimension_of_figure(name)
    if dimension == "m":
        value = value.removesuffix("m").strip() if isinstance(value, str) else value
    elif dimension in UNITS and dimension != "fraction" and not isinstance(value, str):
        raise InputError.at(
            path, "unit.missing", "got {got!r} without a unit; print it as its source does", got=value
        )
    number = quantity(value, dimension, path=path)
    if number < 0:
        raise InputError.at(path, "number.negative", "got {got}; a figure is not negative", got=str(value))
    return number


def _price(entry: object, sources: Mapping[str, Source], path: str) -> Price:
    if not isinstance(entry, dict):
        raise InputError.at(
            path, "figure.form", "a price is {{mid_usd: …, source: …}}; got {got!r}", got=entry
        )
    spread = {"low_usd": entry.get("mid_usd"), "high_usd": entry.get("mid_usd"), **entry}
    price: Price = _record(Price, spread, sources, path)
    if not price.low_usd <= price.mid_usd <= price.high_usd:
        raise InputError.at(path, "price.order", "low, mid and high must rise in this order")
    return price


def _record(cls: Any, entry: object, sources: Mapping[str, Source], path: str) -> Any:
    """A flat record of figures that share one source."""
    if not isinstance(entry, dict):
        raise InputError.at(path, "key.missing", "this entry is missing; add it with its source")
    known: dict[str, Field[Any]] = {item.name: item for item in fields(cls) if item.name != "source"}
    _refuse_unknown(entry, {"source", *known}, path)
    source = _source(entry.get("source"), sources, path)
    values: dict[str, Any] = {
        name: str(value) if name == "note" else figure_value(name, value, f"{path}.{name}")
        for name, value in entry.items()
        if name != "source"
    }
    _require(known, set(values), path)
    return cls(source=source, **values)


def _mapping(document: Document, key: str, path: str) -> Document:
    found = document.get(key) or {}
    if not isinstance(found, dict):
        raise InputError.at(f"{path}: {key}", "value.wrong", "keys and values are needed here")
    return found


def _name(document: Document, path: str) -> str:
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise InputError.at(path, "key.missing", "`name` is required: what people call this entry")
    return name


def _refuse_unknown(entry: Document, known: set[str], path: str) -> None:
    for key in entry:
        _check_known(str(key), known, path)


def _check_known(key: str, known: set[str], path: str) -> bool:
    if key not in known:
        raise InputError.at(
            f"{path}.{key}" if ": " in path else f"{path}: {key}",
            "key.unknown",
            "unknown key; allowed here: {allowed}",
            allowed=", ".join(sorted(known)),
        )
    return True


def _require(known: Mapping[str, Field[Any]], given: set[str], path: str) -> None:
    needed = [n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING]
    missing = [name for name in needed if name not in given]
    if missing:
        raise InputError.at(path, "key.missing", "missing: {names}", names=", ".join(missing))


@cache
def field_types(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def is_float(kind: Any) -> bool:
    return kind is float or (get_origin(kind) in (Union, UnionType) and float in get_args(kind))


T = TypeVar("T")


class Shelf(Mapping[str, T]):
    """The entries of one kind, by slug: file names are listed at once, files are read when asked for."""

    def __init__(self, folder: Path, load: Callable[[str, str, str], T]) -> None:
        self._paths = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
        self._label = folder.name
        self._load = load
        self._loaded: dict[str, T] = {}

    def __getitem__(self, slug: str) -> T:
        if slug not in self._loaded:
            text = self._paths[slug].read_text(encoding="utf-8")
            self._loaded[slug] = self._load(text, slug, f"{self._label}/{slug}.yaml")
        return self._loaded[slug]

    def __iter__(self) -> Any:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, slug: object) -> bool:
        return slug in self._paths


def entity_shelf(cls: type[E_], folder: Path) -> Shelf[E_]:
    return Shelf(folder, lambda text, slug, path: load_entity(cls, text, slug=slug, path=path))


def price_shelf(folder: Path) -> Shelf[PriceBook]:
    return Shelf(folder, lambda text, slug, path: load_price_book(text, slug=slug, path=path))


def calibration_shelf(folder: Path) -> Shelf[Calibration]:
    return Shelf(folder, lambda text, slug, path: load_calibration(text, slug=slug, path=path))
