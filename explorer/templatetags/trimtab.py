"""How numbers, changes, sources and messages are written on every page.

A number is large and its unit grey; a change carries an arrow whose direction is the change's and whose
fill says better or worse; a source is a dot whose shape says where the value comes from; a message of the
core is translated and then filled with its params.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import cache
from typing import Any, Final

from django import template
from django.conf import settings
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Chart, Delta, Number, Panel
from explorer.wording import translated
from simcore.catalog import PriceBook
from simcore.errors import Message
from simcore.glossary import ENTRIES
from simcore.scenario.stories import stories
from simcore.units import UNITS, dimension_of, printed
from simcore.validation import Fact, FactRow, evaluate_all

register = template.Library()

_UP: Final = "M5 0 10 9H0Z"
_DOWN: Final = "M0 0H10L5 9Z"
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
    "switches": ("radix", "port_bytes_per_s", "power_w"),
    "optics": ("medium", "port_bytes_per_s", "power_w", "reach_m"),
    "optical_switches": ("port_count", "usable_port_count", "power_w", "reconfiguration_s"),
    "models": ("layers", "hidden", "heads", "kv_heads", "experts", "vocab", "max_position"),
    "price_books": ("dated",),
}
_LEAF_DOTS: Final = {
    "input": "you",
    "catalog": "ds",
    "calibrated": "cal",
    "assumption": "def",
    "constant": "",
    "simulated": "sim",
    "derived": "",
}


@register.filter
def quantity(value: float | None, name: str) -> SafeString:
    """A value in the unit of its name's suffix: `{{ 0.00823|quantity:"step_s" }}`."""
    if value is None:
        return mark_safe("–")
    return number(
        Number(text=printed(value, dimension_of(name))[0], unit=printed(value, dimension_of(name))[1])
    )


@register.filter
def in_dimension(value: float | None, dimension: str) -> SafeString:
    """A value whose dimension is known: `{{ node.value|in_dimension:node.dimension }}`."""
    if value is None:
        return mark_safe("–")
    text, unit = printed(value, dimension, digits=4)
    return number(Number(text=text.replace("-", "−"), unit=unit))


@register.filter
def number(value: Number) -> SafeString:
    """A printed number with its unit in grey."""
    if not value.unit:
        return format_html("{}", value.text)
    return format_html('{} <span class="unit">{}</span>', value.text, value.unit)


@register.filter
def percent(fraction: float | None) -> str:
    """0.146 -> 14.6 %. The only place where a fraction becomes per cent."""
    return "–" if fraction is None else style.percent(float(fraction))


@register.simple_tag
def change(delta: Delta | None, *, origin: bool = True) -> SafeString:
    """The change with its arrow, and unless told otherwise the value that it is measured from."""
    if delta is None:
        return mark_safe("")
    arrow = mark_safe("")
    if delta.arrow:
        path = _UP if delta.arrow == "up" else _DOWN
        arrow = format_html('<svg viewBox="0 0 10 9" aria-hidden="true"><path d="{}"/></svg>', path)
    spoken = {"better": _("better"), "worse": _("worse")}.get(delta.quality, "")
    direction = {"up": _("up"), "down": _("down")}.get(delta.arrow, "")
    said = ", ".join(part for part in (direction, spoken) if part)
    aside = format_html('<span class="sr">, {}</span>', said) if said else mark_safe("")
    shown = format_html('<span class="d {}">{}{}{}</span>', delta.quality, arrow, delta.text, aside)
    if not origin or not delta.arrow:
        return shown
    words = _("from %(value)s") % {"value": delta.before.text}
    return format_html('{} <span class="from">{}</span>', shown, words)


@register.simple_tag
def dot(kind: str, title: str = "") -> SafeString:
    """Where a value comes from: ds datasheet, cal calibrated, def assumption, you yours, sim simulated."""
    return format_html('<i class="dot {}" title="{}"></i>', kind, title)


@register.filter
def leaf_dot(kind: str) -> str:
    """The dot of a Why leaf's kind."""
    return _LEAF_DOTS.get(kind, "")


@register.filter
def message(said: Message | Mapping[str, Any]) -> str:
    """A message of the core in the reader's language."""
    return translated(said)


@register.filter
def label(name: str) -> str:
    """A field's or metric's label in the reader's language."""
    return wording.label(name)


@register.filter
def help_text(name: str) -> str:
    return wording.help_text(name)


@register.simple_tag
def figure_json(chart: Chart) -> SafeString:
    """A plotly figure as a data block beside its plot."""
    return json_script(chart.body, f"figure-{chart.slug}")


@register.simple_tag(takes_context=True)
def why_url(context: Mapping[str, Any], metric: str) -> str:
    """The address of a number's derivation, where the page shows a run; "" elsewhere."""
    run = context.get("run")
    if not metric or run is None:
        return ""
    try:
        return reverse("why", args=[run.pk, metric])
    except NoReverseMatch:
        return ""


@register.simple_tag(takes_context=True)
def here(context: Mapping[str, Any], *names: str) -> SafeString:
    """`aria-current` for the navigation entry of the page that is shown."""
    request = context.get("request")
    match = getattr(request, "resolver_match", None)
    if match is not None and match.url_name in names:
        return mark_safe(' aria-current="page"')
    return mark_safe("")


@register.filter
def tab_label(tab: str) -> str:
    """A tab's name."""
    names = {
        "overview": _("Overview"),
        "fabric": _("Fabric"),
        "memory": _("Memory and KV"),
        "serving": _("Serving"),
        "reliability": _("Reliability"),
    }
    return names.get(tab, tab)


@register.filter
def kind_label(kind: str) -> str:
    """A shelf of the catalog."""
    names = {
        "chips": _("Chips"),
        "servers": _("Servers"),
        "switches": _("Switches"),
        "optics": _("Optics"),
        "optical_switches": _("Optical switches"),
        "models": _("Models"),
        "price_books": _("Price books"),
    }
    return names.get(kind, kind)


@register.filter
def node_name(node: Mapping[str, Any]) -> str:
    """A Why node's name in words: the glossary's label, or its own name."""
    name = str(node.get("name") or "")
    if not name:
        return formula_words(str(node.get("formula") or node.get("text") or ""))
    return wording.label(name)


@register.filter
def is_open(level: int) -> bool:
    """The first level of a derivation is open, deeper ones fold."""
    return level < 1


@register.filter
def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@register.filter
def is_hatched(resource: str) -> bool:
    """Whether a resource's mark carries a hatch beside its colour."""
    return resource in style.HATCHED


@register.filter
def formula_words(formula: str) -> str:
    """A formula with its names as words, without the units that its numbers carry."""
    return re.sub(r"_(s|bytes|flop|count|fraction|tokens)(?=\b|_per_)", "", formula).replace("_", " ")


@register.filter
def seconds_until(start: datetime, end: datetime) -> str:
    """The time between two instants, printed."""
    return str(style.number((end - start).total_seconds(), "elapsed_s"))


@register.filter
def status_label(value: str) -> str:
    """A run's state or a scenario's visibility in words."""
    names = {
        "queued": _("waiting"),
        "running": _("simulating"),
        "lost": _("started again"),
        "finished": _("finished"),
        "failed": _("no result"),
        "cancelled": _("stopped"),
        "private": _("only you"),
        "link": _("who has the address"),
        "public": _("everyone, in the library"),
    }
    return names.get(value, value)


@register.filter
def story_title(slug: str) -> str:
    """A story's title; its slug where the story is no longer told."""
    found = stories().get(slug)
    return wording.term(found.title) if found else slug


@register.filter
def tight(text: str) -> str:
    """Numbers keep their unit on the same line."""
    return re.sub(r"(\d) (%|GPUs?\b)", "\\1\u00a0\\2", text)


@register.filter
def thousands(value: int) -> str:
    return f"{value:,}"


@register.filter
def words(text: str) -> list[str]:
    return text.split()


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
def published_numbers() -> list[FactRow]:
    """Every published number beside the program's answer; computed once per process."""
    return _fact_rows()


@cache
def _fact_rows() -> list[FactRow]:
    return sorted(evaluate_all(), key=lambda row: (row.fact.topic, row.fact.id))


@register.filter
def passed_count(rows: Sequence[FactRow]) -> int:
    return sum(row.passed for row in rows)


@register.filter
def fact_number(value: float, fact: Fact) -> str:
    """A fact's number in its unit; counts whole, others to six digits."""
    if not math.isfinite(value):
        return "–"
    if fact.unit in UNITS:
        return str(
            Number(text=printed(value, fact.unit, digits=4)[0], unit=printed(value, fact.unit, digits=4)[1])
        )
    number_text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"
    return f"{number_text} {fact.unit}".rstrip()


@register.simple_tag
def unseen_charts(panel: Panel, panels: Sequence[Panel]) -> Panel:
    """The panel without the charts, notes and guard that an earlier panel of the page has shown."""
    earlier = panels[: panels.index(panel)]
    seen = {chart.slug for one in earlier for chart in one.charts}
    notes = {note.text for one in earlier for note in one.notes}
    return replace(
        panel,
        charts=tuple(chart for chart in panel.charts if chart.slug not in seen),
        notes=tuple(note for note in panel.notes if note.text not in notes),
        guard=None if any(one.guard for one in earlier) else panel.guard,
    )


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


@register.simple_tag
def url_if(name: str, *args: object) -> str:
    """An address, or "" where this site has no such page."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


@register.simple_tag
def plotly_url() -> str:
    """plotly.js as the installed package ships it; the version in the address lets browsers keep it for ever."""
    import plotly
    from django.templatetags.static import static

    return f"{static('plotly/plotly.min.js')}?v={plotly.__version__}"


@register.simple_tag
def other_language(current: str) -> tuple[str, str]:
    """Code and own name of the language to switch to."""
    return next((code, name) for code, name in settings.LANGUAGES if code != current)
