"""The quotient topology as a picture of tiers.

It never draws the real graph: each row of boxes stands for a tier, with its count at the right and the links
between two tiers in words. Positions are per cent across and pixels down, so text keeps its size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Chart, Result, Table
from simcore.fabric.graph import FULL_GRAPH_LIMIT

_DRAWN: Final = {"core": 6, "spine": 12, "leaf": 12, "rail": 6, "ocs": 6, "chip": 24, "server": 24}
_ROW_PX: Final = 98
FORMATS: Final = ("graphml", "dot")  # in which the graph can be taken away


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    left: float
    top: float
    width: float
    height: float
    css: str
    node: str = ""  # what the box opens: an address in the fabric's graph
    said: str = ""  # what it is, for who does not see it
    quiet: bool = False  # one of several boxes that open the same: not a stop of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    x1: float
    x2: float
    y1: float
    y2: float
    css: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    x: float
    y: float
    text: str
    css: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG of boxes, wires and words."""

    height: int
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    words: tuple[Words, ...]
    opens: tuple[tuple[str, str], ...] = ()  # layers that can be looked into: address and name


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tier of the picture, top first."""

    node: str
    kind: str
    label: str
    count: int
    drawn: int
    top: float
    links_down: int = 0
    links_among: int = 0

    @property
    def told(self) -> str:
        """Switches of a direct network reach each other without a tier above."""
        if not self.links_among:
            return self.label
        return _("%(tier)s, %(count)s links among them") % {
            "tier": self.label,
            "count": f"{self.links_among:,}",
        }


def picture(result: Result | None, *, slug: str = "topology", other: Result | None = None) -> Chart | None:
    """Tiers of the fabric, each box standing for many; tiers that only the other one has are dashed."""
    graph = (result or {}).get("tables", {}).get("quotient_graph") or {}
    nodes = [node for node in graph.get("nodes", ()) if int(node.get("count") or 0) > 0]
    if not nodes:
        return None
    rows = _rows(nodes, graph.get("edges", ()), _removed(nodes, other))
    told = ", ".join(f"{row.label} {row.count:,}" for row in rows)
    return Chart(
        slug=slug,
        title=_title(result, rows),
        axis=_("Each box stands for many, counts at the right"),
        summary=_("Tiers from the top: %(tiers)s.") % {"tiers": told},
        source=_("Closed form"),
        draw="topology",
        body=_picture(rows),
        table=_table(rows),
        download="graph",
        formats=(*FORMATS, *(["full"] if sum(row.count for row in rows) <= FULL_GRAPH_LIMIT else [])),
    )


def _removed(nodes: Sequence[Mapping[str, Any]], other: Result | None) -> list[Mapping[str, Any]]:
    graph = (other or {}).get("tables", {}).get("quotient_graph") or {}
    here = {str(node["kind"]) for node in nodes}
    lost = [node for node in graph.get("nodes", ()) if node["kind"] not in here | {"chip", "server"}]
    taken = {int(node.get("tier") or 0) for node in nodes}
    return [{**node, "count": 0} for node in lost if int(node.get("tier") or 0) not in taken]


def _rows(
    nodes: Sequence[Mapping[str, Any]],
    edges: Sequence[Mapping[str, Any]],
    removed: Sequence[Mapping[str, Any]],
) -> list[Row]:
    """Tiers from the top; where servers are given beside chips, the chips are the row and servers its marks."""
    kinds = {str(node["kind"]) for node in nodes}
    listed = [node for node in nodes if not (node["kind"] == "server" and "chip" in kinds)]
    ordered = sorted([*listed, *removed], key=lambda node: (_depth(node), -int(node["count"])))
    below = _links_by_upper_end([edge for edge in edges if edge["source"] != edge["target"]])
    among = _links_by_upper_end([edge for edge in edges if edge["source"] == edge["target"]])
    rows = []
    for index, node in enumerate(ordered):
        kind, count = str(node["kind"]), int(node["count"])
        rows.append(
            Row(
                node=str(node.get("id", kind)),
                kind=kind,
                label=_tier_label(kind, node, nodes),
                count=count,
                drawn=min(_DRAWN.get(kind, 12), count) if count else _DRAWN.get(kind, 12),
                top=26.0 + index * _ROW_PX,
                links_down=below.get(str(node.get("id", kind)), 0),
                links_among=among.get(str(node.get("id", kind)), 0),
            )
        )
    return rows


def _tier_label(kind: str, node: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> str:
    """What a row stands for; chips say how their scale-up domains cut them."""
    names = {
        "core": _("Core switches"),
        "spine": _("Spine switches"),
        "leaf": _("Leaf switches"),
        "rail": _("Rail switches"),
        "switch": _("Switches"),
        "ocs": _("Optical circuit switches"),
        "server": _("Servers"),
    }
    if kind != "chip":
        return names.get(kind) or wording.term(str(node.get("label") or kind))
    domains = next((int(one["count"]) for one in nodes if one["kind"] == "server"), 0)
    if domains < 2:
        return _("Chips")
    size = -(-int(node["count"]) // domains)
    return _("Chips, %(domains)s scale-up domains of %(size)s") % {
        "domains": f"{domains:,}",
        "size": f"{size:,}",
    }


def _depth(node: Mapping[str, Any]) -> float:
    """Rows from the top; chips and servers always at the bottom."""
    if node["kind"] in ("chip", "server"):
        return 100.0
    return -float(node.get("tier") or 0)


def _links_by_upper_end(edges: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """An edge runs from the lower to the upper tier, and scale-up is not the fabric."""
    found: dict[str, int] = {}
    for edge in edges:
        if edge.get("medium") != "scaleup":
            key = str(edge["target"])
            found[key] = found.get(key, 0) + int(edge["link_count"])
    return found


def _picture(rows: Sequence[Row]) -> Picture:
    boxes: list[Box] = []
    wires: list[Wire] = []
    words: list[Words] = []
    for index, row in enumerate(rows):
        line = row.top + 42 if row.kind in ("chip", "server") else row.top - 10
        words += [
            Words(x=2.3, y=line, text=row.told, css="halo"),
            Words(x=97.7, y=line, text=f"{row.count:,}", css="cnt end halo"),
        ]
        boxes += _boxes(row)
        if index + 1 < len(rows) and row.count:
            wires += _wires(row, rows[index + 1])
            if row.links_down:
                text = _("%(count)s links") % {"count": f"{row.links_down:,}"}
                level = rows[index + 1].top - 10 if row.kind == "rail" else row.top + 48
                words.append(Words(x=50, y=level, text=text, css="mid halo"))
    return Picture(
        height=int(rows[-1].top + 48),
        boxes=tuple(boxes),
        wires=tuple(wires),
        words=tuple(words),
        opens=tuple((row.node, row.label) for row in rows if row.count),
    )


def _centres(row: Row) -> list[float]:
    return [round(4 + (index + 0.5) * 92 / row.drawn, 2) for index in range(row.drawn)]


def _boxes(row: Row) -> list[Box]:
    """Every box of a row opens the whole tier; the first is the stop for the keyboard."""
    is_chip = row.kind in ("chip", "server")
    css = "gpu" if is_chip else "swt" if row.count else "ghost"
    half, height = (0.8, 12.0) if is_chip else (1.7, 14.0)
    return [
        Box(
            left=x - half,
            top=row.top,
            width=2 * half,
            height=height,
            css=css,
            node=row.node if row.count else "",
            said=f"{row.label}: {row.count:,}",
            quiet=index > 0,
        )
        for index, x in enumerate(_centres(row))
    ]


def _wires(upper: Row, lower: Row) -> list[Wire]:
    if not lower.count:
        return []
    if upper.kind == "rail":
        return _rail_wires(upper, lower)
    return _tree_wires(upper, lower) if lower.kind in ("chip", "server") else _full_wires(upper, lower)


def _full_wires(upper: Row, lower: Row) -> list[Wire]:
    """Every switch reaches every switch: two rails between the rows say so without a thousand lines."""
    bottom, top = upper.top + 14, lower.top
    middle = (bottom + top) / 2
    ups, downs = _centres(upper), _centres(lower)
    left, right = min(ups + downs), max(ups + downs)
    return [
        *(Wire(x1=x, x2=x, y1=bottom, y2=middle - 2, css="wire") for x in ups),
        Wire(x1=left, x2=right, y1=middle - 2, y2=middle - 2, css="wire"),
        Wire(x1=left, x2=right, y1=middle + 3, y2=middle + 3, css="wire"),
        *(Wire(x1=x, x2=x, y1=middle + 3, y2=top, css="wire") for x in downs),
    ]


def _tree_wires(upper: Row, lower: Row) -> list[Wire]:
    """Each leaf holds the chips below it."""
    bottom, top = upper.top + 14, lower.top
    bend = top - 22
    wires = []
    chips = _centres(lower)
    parents = _centres(upper)
    for index, x in enumerate(parents):
        share = [c for place, c in enumerate(chips) if place * len(parents) // len(chips) == index]
        wires.append(Wire(x1=x, x2=x, y1=bottom, y2=bend, css="wire on"))
        if share:
            wires.append(Wire(x1=min([x, *share]), x2=max([x, *share]), y1=bend, y2=bend, css="wire on"))
        wires += [Wire(x1=c, x2=c, y1=bend, y2=top, css="wire on") for c in share]
    return wires


def _rail_wires(upper: Row, lower: Row) -> list[Wire]:
    """A rail switch joins the chips of one index in every scale-up domain; the bar below is a domain."""
    wires = []
    chips, rails = _centres(lower), _centres(upper)
    step = 40.0 / max(len(rails), 1)
    for index, x in enumerate(rails):
        level = upper.top + 22 + index * step
        mine = chips[index :: len(rails)]
        wires.append(Wire(x1=x, x2=x, y1=upper.top + 14, y2=level, css="wire on"))
        if mine:
            wires.append(Wire(x1=min([x, *mine]), x2=max([x, *mine]), y1=level, y2=level, css="wire on"))
        wires += [Wire(x1=c, x2=c, y1=level, y2=lower.top, css="wire on") for c in mine]
    for start in range(0, len(chips), len(rails)):
        domain = chips[start : start + len(rails)]
        wires.append(
            Wire(x1=domain[0] - 1, x2=domain[-1] + 1, y1=lower.top + 20, y2=lower.top + 20, css="wire up")
        )
    return wires


def _title(result: Result | None, rows: Sequence[Row]) -> str:
    switches = style.metric(result, "fabric.switch_count") or 0
    chips = sum(row.count for row in rows if row.kind in ("chip", "server"))
    tiers = sum(1 for row in rows if row.count and row.kind not in ("chip", "server"))
    words = {"switches": f"{switches:,.0f}", "chips": f"{chips:,}", "tiers": tiers}
    if not tiers:
        return _("The scale-up domain holds all %(chips)s chips: no switch is needed") % words
    if any(row.kind == "rail" for row in rows) and tiers == 1:
        return (
            _("Rail-only: %(switches)s switches join %(chips)s chips, and nothing stands above them") % words
        )
    if tiers == 1:
        return _("One tier of %(switches)s switches joins %(chips)s chips") % words
    return _("%(tiers)s tiers of %(switches)s switches join %(chips)s chips") % words


def _table(rows: Sequence[Row]) -> Table:
    return Table(
        columns=(_("Tier"), _("Count"), _("Links below")),
        rows=tuple(
            style.text_cells(row.told, f"{row.count:,}", f"{row.links_down:,}" if row.links_down else "–")
            for row in rows
        ),
    )
