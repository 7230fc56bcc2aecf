"""How numbers, changes, sources and messages are written on every page.

A number is large and its unit grey; a change carries an arrow whose direction is the change's and whose
fill says better or worse; a source is a dot whose shape says where the value comes from; a message of the
core is translated and then filled with its params.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from django import template
from django.conf import settings
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import memory, style
from explorer.charts.style import Chart, Delta, Nearest, Number, Panel
from explorer.wording import translated
from simcore.errors import Message
from simcore.scenario.stories import stories
from simcore.units import dimension_of, printed

register = template.Library()

_UP: Final = "M5 0 10 9H0Z"
_DOWN: Final = "M0 0H10L5 9Z"


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
def message(said: Message | Mapping[str, Any]) -> str:
    """A message of the core in the reader's language."""
    return translated(said)


@register.filter
def message_before_changes(said: Mapping[str, Any]) -> str:
    """A message whose suggested changes stand below it as buttons."""
    params = said.get("params") or {}
    if not params.get("nearest"):
        return translated(said)
    return translated({**said, "params": {**params, "changes": _("see below")}})


@register.simple_tag
def nearest(
    messages: Sequence[Mapping[str, Any]], document: Mapping[str, Any] | None = None
) -> list[Nearest]:
    """The changes that would make an infeasible scenario fit."""
    owned = ((document or {}).get("hardware") or {}).get("chip_count")
    return memory.nearest(messages, owned if isinstance(owned, int) else None)


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
def why_url(context: Mapping[str, Any], metric: str, *, of_baseline: bool = False) -> str:
    """The address of a number's derivation, where the page shows a run; "" elsewhere."""
    run = context.get("baseline_run" if of_baseline else "run")
    if not metric or run is None:
        return ""
    try:
        return reverse("why", args=[run.pk, metric])
    except NoReverseMatch:
        return ""


@register.simple_tag(takes_context=True)
def graph_url(context: Mapping[str, Any], chart: Any, *, node: str = "", suffix: str = "") -> str:
    """The address of a part of the fabric that a chart shows, or of its graph as a file; "" where the page shows
    neither a run nor a link."""
    link, of_baseline = context.get("link"), chart.slug == "topology-baseline"
    run = context.get("baseline_run" if of_baseline else "run")
    if not (node or suffix) or (link is not None and of_baseline):
        return ""
    if link is not None:
        name, key = ("link_graph", link.token)
    elif run is not None:
        name, key = ("graph", str(run.pk))
    else:
        return ""
    return reverse(name, args=[key, node]) if node else reverse(f"{name}_file", args=[key, suffix])


@register.simple_tag(takes_context=True)
def here(context: Mapping[str, Any], *names: str) -> SafeString:
    """`aria-current` for the navigation entry of the page that is shown."""
    request = context.get("request")
    match = getattr(request, "resolver_match", None)
    if match is not None and match.url_name in names:
        return mark_safe(' aria-current="page"')
    return mark_safe("")


@register.filter
def sweep_kind(kind: str) -> str:
    """What a sweep was asked for."""
    names = {
        "grid": _("grid"),
        "tornado": _("tornado"),
        "monte_carlo": _("Monte Carlo"),
        "goal_seek": _("goal seek"),
        "search": _("search"),
    }
    return names.get(kind, kind)


@register.filter
def tab_label(tab: str) -> str:
    """A tab's name."""
    names = {
        "overview": _("Overview"),
        "fabric": _("Fabric"),
        "memory": _("Memory and KV"),
        "serving": _("Serving"),
        "iteration": _("Iteration"),
        "reliability": _("Reliability"),
        "cost": _("Cost and energy"),
    }
    return names.get(tab, tab)


@register.filter
def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@register.filter
def is_hatched(resource: str) -> bool:
    """Whether a resource's mark carries a hatch beside its colour."""
    return resource in style.HATCHED


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
def said(english: str) -> str:
    """A sentence of the core in the reader's language; `translate` would look for it with each % doubled."""
    return wording.term(english)


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
def format_name(suffix: str) -> str:
    """csv -> CSV, graphml -> GraphML."""
    return {"csv": "CSV", "parquet": "Parquet", "graphml": "GraphML", "dot": "DOT"}.get(suffix, suffix)


@register.filter
def thousands(value: int) -> str:
    return f"{value:,}"


@register.filter
def words(text: str) -> list[str]:
    return text.split()


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
