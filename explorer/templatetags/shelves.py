"""What the library, the help and the methods page show of the core's tables: catalog, glossary, published numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, fields
from functools import cache
from typing import Any, Final

from django import template
from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from simcore.catalog import PriceBook, default_catalog
from simcore.glossary import ENTRIES
from simcore.scenario.stories import stories
from simcore.validation import FactRow, evaluate_all, order
from simcore.validation.accuracy import AccuracyRow, accuracy

register = template.Library()

_SOURCE_DOTS: Final = {
    "vendor": "ds", "paper": "cal", "measured": "cal", "estimate": "def", "assumption": "def", "user": "you",
}  # fmt: skip
_SHELF_COLUMNS: Final = {
    "chips": ("bf16_flop_per_s", "hbm_bytes", "hbm_bytes_per_s", "scaleup_bytes_per_s", "tdp_w"),
    "servers": (
        "chips_per_server",
        "scaleup_domain_chip_count",
        "nic_count",
        "nic_bytes_per_s",
        "host_power_w",
    ),
    "scaleup_domains": (
        "chip_count",
        "links_per_chip",
        "switch_count",
        "switch_port_count",
        "link_bytes_per_s",
    ),
    "switches": ("radix", "port_bytes_per_s", "power_w"),
    "optics": ("medium", "port_bytes_per_s", "power_w", "reach_m"),
    "optical_switches": ("port_count", "usable_port_count", "power_w", "reconfiguration_s"),
    "models": ("layers", "hidden", "heads", "kv_heads", "experts", "vocab", "max_position"),
    "price_books": ("dated",),
}


@register.filter
def kind_label(kind: str) -> str:
    """A shelf of the catalog."""
    names = {
        "chips": _("Chips"),
        "servers": _("Servers"),
        "scaleup_domains": _("Scale-up domains"),
        "switches": _("Switches"),
        "optics": _("Optics"),
        "optical_switches": _("Optical switches"),
        "models": _("Models"),
        "price_books": _("Price books"),
    }
    return names.get(kind, kind)


@register.simple_tag
def glossary_terms() -> list[dict[str, str]]:
    """Every entry of the glossary in the reader's language, by label."""
    listed = [
        {
            "key": one.key,
            "label": wording.term(one.label),
            "help": wording.term(one.help),
            "symbol": one.symbol,
        }
        for one in ENTRIES.values()
    ]
    return sorted(listed, key=lambda one: one["label"].lower())


@register.simple_tag
def told(slug: str) -> dict[str, Any]:
    """What a story says to look at, and its sources; nothing where the story is no longer told."""
    found = stories().get(slug)
    if found is None:
        return {}
    sources = [{**source, "dot": _SOURCE_DOTS.get(source["kind"], "def")} for source in found.sources]
    return {"look_at": [wording.term(text) for text in found.look_at], "sources": sources}


@register.simple_tag
def published_numbers() -> list[FactRow]:
    """Every published number beside the program's answer; computed once per process."""
    return _fact_rows()


@cache
def _fact_rows() -> list[FactRow]:
    return evaluate_all()


@register.filter
def passed_count(rows: Sequence[FactRow]) -> int:
    return sum(row.passed for row in rows)


@register.simple_tag
def accuracy_rows() -> list[AccuracyRow]:
    """How close each shipped calibration comes, chip by chip."""
    return _accuracy_rows()


@cache
def _accuracy_rows() -> list[AccuracyRow]:
    return accuracy(default_catalog())


@register.simple_tag
def loop_orders() -> dict[str, Any]:
    """Whether measured loops with prefill and decode apart are in order: what was found beside its target."""
    rows = [
        {
            "label": wording.label(f"serving.{phase}_s"),
            "cells": list(zip(astuple(found), astuple(order.TARGETS[phase]), strict=True)),
        }
        for phase, found in order.FOUND.items()
    ]
    return {"rows": rows, "row_count": order.ROW_COUNT, "configuration_count": order.CONFIGURATION_COUNT}


@register.filter
def share(fraction: float) -> str:
    """0.0562 -> 5.6 %; a dash where it is not known."""
    return style.percent(fraction) if math.isfinite(fraction) else "–"


@register.filter
def span(row: AccuracyRow) -> str:
    """Between what multiples of the prediction nine of ten measurements lie."""
    if not math.isfinite(row.p5_ratio):
        return "–"
    return f"×{row.p5_ratio:.2f} – ×{row.p95_ratio:.2f}"


@register.simple_tag
def catalog_table(kind: str, entries: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The shelf as a table: the figures that most entries have, each with the dot of its source."""
    columns = _SHELF_COLUMNS.get(kind, ())
    rows = [
        {"slug": slug, "name": entity.name, "cells": [_figure_cell(entity, name) for name in columns]}
        for slug, entity in entries
    ]
    return {"columns": columns, "rows": rows}


@register.simple_tag
def entry_rows(entity: Any) -> list[dict[str, Any]]:
    """Every figure of a catalog entry, or every price of a book, with its source."""
    if isinstance(entity, PriceBook):
        return [_price_row(item, price) for item, price in entity.prices.items()]
    hidden = {"slug", "name", "figures", "source", "sources", "default_topology", "also_known_as"}
    names = [field.name for field in fields(entity) if field.name not in hidden]
    return [row for name in names if (row := _figure_row(entity, name)) is not None]


def _figure_cell(entity: Any, name: str) -> dict[str, str]:
    found = getattr(entity, "figures", {}).get(name)
    return {
        "shown": _printed_figure(getattr(entity, name, None), name),
        "dot": _SOURCE_DOTS.get(found.source.kind, "def") if found else "",
        "title": found.source.title if found else "",
    }


def _printed_figure(value: object, name: str) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if name == "year":
        return str(value)
    if isinstance(value, int | float):
        return str(style.number(float(value), name, digits=4))
    return str(value)


def _figure_row(entity: Any, name: str) -> dict[str, Any] | None:
    value = getattr(entity, name)
    if value is None or value in ("", 0, False):
        return None
    found = entity.figures.get(name)
    shape = getattr(entity, "source", None)  # of what is no figure: counts, names, which server it comes in
    source = found.source if found else shape
    return {
        "label": wording.label(name),
        "shown": _printed_figure(value, name),
        "source": source,
        "dot": _SOURCE_DOTS.get(source.kind, "def") if source else "",
        "note": found.note if found else "",
    }


def _price_row(item: str, price: Any) -> dict[str, Any]:
    span = [str(style.number(value, "x_usd")) for value in (price.low_usd, price.mid_usd, price.high_usd)]
    return {
        "label": item,
        "shown": " – ".join(dict.fromkeys(span)),
        "source": price.source,
        "dot": _SOURCE_DOTS.get(price.source.kind, "def"),
        "note": price.note,
    }
