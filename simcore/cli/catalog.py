"""`trimtab catalog`: what the catalog holds, each figure with its source."""

from __future__ import annotations

import argparse
import json
from typing import Final

from simcore.catalog import Catalog, default_catalog
from simcore.catalog.types import Calibration, Price, Source
from simcore.cli.common import Commands, add_command
from simcore.errors import InputError
from simcore.units import printed_text

_SHELVES: Final[dict[str, str]] = {
    "chips": "chips",
    "servers": "servers",
    "scaleup-domains": "scaleup_domains",
    "switches": "switches",
    "optics": "optics",
    "optical-switches": "optical_switches",
    "models": "models",
    "prices": "price_books",
    "calibrations": "calibrations",
}


def register(commands: Commands) -> None:
    catalog = add_command(commands, "catalog", _catalog, "list the catalog, with sources")
    catalog.add_argument("kind", nargs="?", choices=sorted(_SHELVES), help="chips, models, …")
    catalog.add_argument("slug", nargs="?")
    catalog.add_argument("--json", action="store_true")


def _catalog(options: argparse.Namespace) -> None:
    catalog = default_catalog()
    if options.kind is None:
        slugs = {kind: list(getattr(catalog, shelf)) for kind, shelf in _SHELVES.items()}
        print(
            json.dumps(slugs, indent=2)
            if options.json
            else "\n".join(f"{k}: {', '.join(slugs[k])}" for k in slugs)
        )
        return
    shelf = getattr(catalog, _SHELVES[options.kind])
    if options.slug is None:
        print(
            json.dumps(list(shelf)) if options.json else "\n".join(f"{s:<34}{shelf[s].name}" for s in shelf)
        )
        return
    print(_card(catalog, options.kind, options.slug, as_json=options.json))


def _card(catalog: Catalog, kind: str, slug: str, *, as_json: bool) -> str:
    shelf = getattr(catalog, _SHELVES[kind])
    if slug not in shelf:
        raise InputError.at(
            "SLUG", "catalog.unknown", "got {got!r}; `trimtab catalog {kind}` lists them", got=slug, kind=kind
        )
    item = shelf[slug]
    if kind == "prices":
        rows = {key: (_price_text(price), price.source) for key, price in item.prices.items()}
    elif kind == "calibrations":
        rows = _fit_rows(item)
    else:
        rows = {key: (figure.printed, figure.source) for key, figure in item.figures.items()}
    if as_json:
        plain = {
            name: {"printed": text, "source": source.title, "kind": source.kind, "url": source.url}
            for name, (text, source) in rows.items()
        }
        return json.dumps({"slug": slug, "name": item.name, "figures": plain}, indent=2)
    lines = [f"{item.name}  ({slug})"]
    for name, (text, source) in rows.items():
        mark = " [assumption]" if source.kind == "assumption" else ""
        lines.append(f"  {name:<28}{text:>22}   {source.title}{mark}")
    return "\n".join(lines)


def _price_text(price: Price) -> str:
    return f"{price.mid_usd:,.0f} USD ({price.low_usd:,.0f} to {price.high_usd:,.0f})"


def _fit_rows(fitted: Calibration) -> dict[str, tuple[str, Source]]:
    """One row per fit: share of the peaks that it reaches, and its mean error."""
    tables = {
        "gemm": fitted.gemm,
        "prefill": fitted.attention_prefill,
        "decode": fitted.attention_decode,
    }
    rows = {
        f"{table} {dtype}": (
            f"{fit.compute_fraction:.0%} FLOP/s, {fit.memory_fraction:.0%} HBM, ±{fit.mape_fraction:.0%}",
            fit.source,
        )
        for table, by_dtype in tables.items()
        for dtype, fit in by_dtype.items()
    }
    for (operation, ranks), collective in fitted.collectives.items():
        text = printed_text(collective.bus_bytes_per_s, "bytes_per_s", digits=3)
        rows[f"{operation} × {ranks}"] = (f"{text}, ±{collective.mape_fraction:.0%}", collective.source)
    return rows
