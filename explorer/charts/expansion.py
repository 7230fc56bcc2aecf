"""A part of the fabric's graph as a picture: rows of vertices by layer, orthogonal wires between neighbouring rows.

Vertices that are all joined to each other share one bus; where not every pair is joined, each upper vertex has a
track of its own, and beyond `_TRACKS` of these they share a bus, which is dashed. Nothing crosses a box.
Positions are per cent across and pixels down, as in `topology.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import networkx as nx
from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.network_bill import tier_label
from explorer.charts.style import Chart, Table
from explorer.charts.topology import Box, Picture, Wire, Words

_TRACKS: Final = 24
_TRACK_PX: Final = 6.0
_BOX_PX: Final = 14.0
_LEFT, _WIDE = 17.0, 75.0  # boxes stand between the names of rows and their counts
_NAMES_PX: Final = 540.0  # what names of boxes may take of the narrowest picture that shows them
_LETTER_PX: Final = 8.5
_FIRST_PX: Final = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """Vertices of one layer, from the left."""

    names: tuple[str, ...]
    kind: str
    beside: bool  # further members of the opened layer

    def centre(self, name: str) -> float:
        return round(_LEFT + (self.names.index(name) + 0.5) * _WIDE / len(self.names), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bundle:
    """Wires that share a horizontal track."""

    uppers: tuple[float, ...]
    lowers: tuple[float, ...]
    whole: bool  # every pair is joined

    @property
    def left(self) -> float:
        return min(*self.uppers, *self.lowers)

    @property
    def right(self) -> float:
        return max(*self.uppers, *self.lowers)


def picture(graph: nx.Graph[Any]) -> Chart:
    """What `simcore.fabric.expansion.expanded` found."""
    rows = _rows(graph)
    opened = next(row for row in rows if graph.nodes[row.names[0]]["opened"])
    title = _title(graph, opened)
    body, dashed = _picture(graph, rows)
    axis = _("Open a box to see what is in it; a single device shows its ports")
    if dashed:
        axis = _("Open a box to see what is in it; along a dashed line not every pair is joined")
    return Chart(
        slug="expansion",
        title=title,
        axis=axis,
        summary=title,
        source=_("The cables of the network on which loads are counted"),
        draw="topology",
        body=body,
        table=_table(graph, rows),
        wide=True,
    )


def name_of(graph: nx.Graph[Any], node: str) -> str:
    """A vertex in words: `Leaf switches 64–127`, `Rail switch 17`, `Chip (0, 3, 1)`."""
    return _name(graph.nodes[node], graph.graph["shape"])


def crumb(address: str) -> str:
    """A step of the way to what is opened, from its address."""
    layer, _dot, rest = address.partition(".")
    first, _dash, last = rest.partition(".")[0].partition("-")
    numbers = f"{int(first):,}–{int(last):,}" if last else f"{int(first):,}" if first else ""
    named = one_label if first and not last else layer_label
    return f"{named(layer)} {numbers}".rstrip()


def layer_label(layer: str) -> str:
    """Many of a layer."""
    names = {
        "server": _("Scale-up domains"),
        "leaf": _("Leaf switches"),
        "spine": _("Spine switches"),
        "core": _("Core switches"),
        "rail": _("Rail switches"),
        "ocs": _("Optical circuit switches"),
        "switch": _("Switches"),
    }
    return names.get(layer) or tier_label(layer)


def one_label(layer: str) -> str:
    """One of a layer."""
    names = {
        "server": _("Scale-up domain"),
        "chip": _("Chip"),
        "leaf": _("Leaf switch"),
        "spine": _("Spine switch"),
        "core": _("Core switch"),
        "rail": _("Rail switch"),
        "ocs": _("Optical circuit switch"),
        "switch": _("Switch"),
    }
    return names.get(layer) or tier_label(layer)


def _rows(graph: nx.Graph[Any]) -> list[_Row]:
    levels = sorted({(data["row"], data["kind"]) for _name, data in graph.nodes(data=True)}, reverse=True)
    found = []
    for level, kind in levels:
        mine = [name for name, data in graph.nodes(data=True) if (data["row"], data["kind"]) == (level, kind)]
        mine.sort(key=lambda name: graph.nodes[name]["order"])
        found.append(_Row(names=tuple(mine), kind=kind, beside=level != int(level)))
    return found


def _title(graph: nx.Graph[Any], opened: _Row) -> str:
    address = str(graph.graph["node"])
    if len(opened.names) > 1:
        words = {"what": crumb(address), "count": len(opened.names)}
        if all(graph.nodes[name]["count"] == 1 for name in opened.names):
            return _("%(what)s, one by one: %(count)s") % words
        return _("%(what)s in %(count)s parts") % words
    only = opened.names[0]
    links = sum(data["link_count"] for _a, _b, data in graph.edges(only, data=True))
    words = {"what": name_of(graph, only), "links": f"{links:,}", "count": f"{graph.degree(only):,}"}
    return _("%(what)s: %(links)s links to %(count)s neighbours") % words


# --- the picture --------------------------------------------------------------------------------------------


def _picture(graph: nx.Graph[Any], rows: Sequence[_Row]) -> tuple[Picture, bool]:
    boxes: list[Box] = []
    wires: list[Wire] = []
    words: list[Words] = []
    top, dashed = _FIRST_PX, False
    for index, row in enumerate(rows):
        bundles = _bundles(graph, row, rows[index + 1]) if index + 1 < len(rows) else []
        tracks = _tracks(bundles)
        within = _within(graph, row, top)
        boxes += [_box(graph, row, name, top) for name in row.names]
        words += _labels(graph, row, top)
        wires += within
        start = top + _BOX_PX + (30 if len(row.names) > 1 else 12) + (14 if within else 0)
        below = start + (max(tracks, default=0) + 1) * _TRACK_PX + 14
        for bundle, track in zip(bundles, tracks, strict=True):
            wires += _wires(bundle, start + track * _TRACK_PX, top + _BOX_PX, below)
            dashed |= not bundle.whole
        top = below
    height = int(top - 14 + _TRACK_PX)
    return Picture(height=height, boxes=tuple(boxes), wires=tuple(wires), words=tuple(words)), dashed


def _box(graph: nx.Graph[Any], row: _Row, name: str, top: float) -> Box:
    data = graph.nodes[name]
    width = round(min(3.4, 0.7 * _WIDE / len(row.names)), 2)
    css = "gpu" if row.kind == "chip" else "swt"
    css += " many" if data["count"] > 1 else ""
    css += " opened" if data["opened"] else ""
    links = sum(edge["link_count"] for _a, _b, edge in graph.edges(name, data=True))
    said = _("%(what)s: %(count)s, %(links)s links here") % {
        "what": name_of(graph, name),
        "count": f"{data['count']:,}",
        "links": f"{links:,}",
    }
    here = data["opened"] and len(row.names) == 1
    return Box(
        left=round(row.centre(name) - width / 2, 2),
        top=top,
        width=width,
        height=_BOX_PX,
        css=css,
        node=name if data["opens"] and not here else "",
        said=said,
    )


def _labels(graph: nx.Graph[Any], row: _Row, top: float) -> list[Words]:
    """What the row is and how many it stands for; the names of as many boxes as there is room for."""
    count = sum(graph.nodes[name]["count"] for name in row.names)
    label = layer_label(row.kind)
    if row.beside:
        label = _("%(layer)s beside") % {"layer": label}
    found = [
        Words(x=0, y=top + 12, text=label, css=""),
        Words(x=100, y=top + 12, text=f"{count:,}", css="cnt end"),
    ]
    if len(row.names) > 1:
        texts = [_numbers(graph.nodes[name], graph.graph["shape"]) for name in row.names]
        room = max(map(len, texts)) * _LETTER_PX + 12
        every = math.ceil(len(texts) * room / _NAMES_PX)
        found += [
            Words(x=row.centre(name), y=top + _BOX_PX + 18, text=text, css="mid halo sm")
            for name, text in list(zip(row.names, texts, strict=True))[::every]
        ]
    return found


def _bundles(graph: nx.Graph[Any], upper: _Row, lower: _Row) -> list[_Bundle]:
    """Groups of joined vertices. One in which not every pair is joined is a bundle per upper vertex, unless these
    would take more tracks than a reader can follow."""
    between: nx.Graph[Any] = nx.Graph()
    lowers = set(lower.names)
    for name in upper.names:
        between.add_edges_from((name, other) for other in graph[name] if other in lowers)
    groups, fine = [], []
    for part in nx.connected_components(between):
        tops = [name for name in upper.names if name in part]
        bottoms = [name for name in lower.names if name in part]
        whole = between.subgraph(part).number_of_edges() == len(tops) * len(bottoms)
        group = _bundle(upper, lower, tops, bottoms, whole=whole)
        groups.append(group)
        fine += (
            [group]
            if whole
            else [
                _bundle(
                    upper, lower, [top], [one for one in bottoms if between.has_edge(top, one)], whole=True
                )
                for top in tops
            ]
        )
    fine.sort(key=lambda bundle: bundle.left)
    if max(_tracks(fine), default=0) < _TRACKS:
        return fine
    return sorted(groups, key=lambda bundle: bundle.left)


def _bundle(upper: _Row, lower: _Row, tops: Sequence[str], bottoms: Sequence[str], *, whole: bool) -> _Bundle:
    return _Bundle(
        uppers=tuple(upper.centre(name) for name in tops),
        lowers=tuple(lower.centre(name) for name in bottoms),
        whole=whole,
    )


def _tracks(bundles: Sequence[_Bundle]) -> list[int]:
    """The first track on which a bundle overlaps no other."""
    ends: list[float] = []
    found = []
    for bundle in bundles:
        free = next((track for track, end in enumerate(ends) if end < bundle.left - 0.2), len(ends))
        ends[free:] = [bundle.right, *ends[free + 1 :]]
        found.append(free)
    return found


def _wires(bundle: _Bundle, level: float, top: float, bottom: float) -> list[Wire]:
    css = "wire on" if bundle.whole else "wire on part"
    return [
        *(Wire(x1=x, x2=x, y1=top, y2=level, css=css) for x in bundle.uppers),
        Wire(x1=bundle.left, x2=bundle.right, y1=level, y2=level, css=css),
        *(Wire(x1=x, x2=x, y1=level, y2=bottom, css=css) for x in bundle.lowers),
    ]


def _within(graph: nx.Graph[Any], row: _Row, top: float) -> list[Wire]:
    """Cables inside a row: neighbours directly, all others over one line below the boxes."""
    mine = graph.subgraph(row.names)
    wires: list[Wire] = []
    far: set[str] = set()
    for a, b in mine.edges:
        left, right = sorted((row.names.index(a), row.names.index(b)))
        if right == left + 1:
            x1, x2 = row.centre(row.names[left]), row.centre(row.names[right])
            wires.append(Wire(x1=x1, x2=x2, y1=top + _BOX_PX / 2, y2=top + _BOX_PX / 2, css="wire up thin"))
        else:
            far |= {a, b}
    if far:
        level = top + _BOX_PX + 8
        places = sorted(row.centre(name) for name in far)
        wires += [Wire(x1=x, x2=x, y1=top + _BOX_PX, y2=level, css="wire up thin") for x in places]
        wires.append(Wire(x1=places[0], x2=places[-1], y1=level, y2=level, css="wire up thin"))
    return wires


# --- words --------------------------------------------------------------------------------------------------


def _name(data: Mapping[str, Any], shape: Sequence[int]) -> str:
    named = one_label if data["count"] == 1 else layer_label
    return f"{named(data['kind'])} {_numbers(data, shape)}"


def _numbers(data: Mapping[str, Any], shape: Sequence[int]) -> str:
    """First to last; on a lattice the place of a single chip."""
    first, last = int(data["first"]), int(data["last"])
    if first == last:
        return str(_place(first, shape)) if shape and data["kind"] == "chip" else f"{first:,}"
    if data["count"] == last - first + 1:
        return f"{first:,}–{last:,}"
    return _("%(count)s of %(first)s–%(last)s") % {
        "count": f"{int(data['count']):,}",
        "first": f"{first:,}",
        "last": f"{last:,}",
    }


def _place(chip: int, shape: Sequence[int]) -> tuple[int, ...]:
    found = []
    for size in reversed(shape):
        chip, place = divmod(chip, size)
        found.append(place)
    return tuple(reversed(found))


def _table(graph: nx.Graph[Any], rows: Sequence[_Row]) -> Table:
    listed = [name for row in rows for name in row.names]
    return Table(
        columns=(_("Part"), _("Members"), _("Neighbours here"), _("Links here")),
        rows=tuple(
            style.text_cells(
                name_of(graph, name),
                f"{int(graph.nodes[name]['count']):,}",
                f"{graph.degree(name):,}",
                f"{sum(data['link_count'] for _a, _b, data in graph.edges(name, data=True)):,}",
            )
            for name in listed
        ),
    )
