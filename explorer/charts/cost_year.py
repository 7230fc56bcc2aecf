"""A year's money as a waterfall, the capital by what it buys, and the power drawn idle, as used and at full load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.cost import item_label
from explorer.charts.style import Cell, Chart, Result, Segment, StackBar, Table

Row = Mapping[str, Any]
_COLOURS: Final = {"compute": "compute", "network": "scaleout", "running": "host"}
_START, _WIDEST, _UNPRICED = 27.0, 50.0, 6.0  # per cent of the plot's width
_NARROW: Final = 11.0
_PARTS: Final = {"chips_w": "compute", "hosts_w": "host", "network_w": "scaleout", "facility_w": "queue"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the waterfall; positions are per cent of the plot's width. `loss` is hatched: it has no price."""

    label: str
    text: str
    kind: str  # use, loss, total
    left: float
    width: float
    css: str = "compute"

    @property
    def end(self) -> float:
        return self.left + self.width


def year(result: Result | None) -> Chart | None:
    """From the first chip to the TCO of a year, line by line; lines without a price are hatched."""
    rows = style.rows(result, "tco")
    if not rows:
        return None
    title = _year_title(rows)
    return Chart(
        slug="tco",
        title=title,
        axis=_("USD per year: purchases over the years of their use, then what runs; hatched: unpriced"),
        summary=title,
        source=_("Closed form at the utilisation of this run; prices of the scenario's books"),
        draw="waterfall",
        body=tuple(_steps(rows)),
        table=_year_table(rows),
        wide=True,
    )


def _usd(row: Row, edge: str = "mid") -> float:
    return float(row[f"{edge}_usd_per_year"] or 0.0)


def _money(value: float) -> str:
    return str(style.number(value, "usd"))


def _year_title(rows: Sequence[Row]) -> str:
    whole = sum(_usd(row) for row in rows)
    largest = max(rows, key=_usd)
    words = {
        "total": _money(whole),
        "item": wording.in_text(item_label(largest)),
        "share": style.percent(_usd(largest) / whole, digits=0) if whole else "",
        "unpriced": sum(not row["priced"] for row in rows),
    }
    if words["unpriced"]:
        return _("The priced part of a year costs %(total)s; %(unpriced)s lines have no price") % words
    return _("A year costs %(total)s, %(share)s of it for: %(item)s") % words


def _steps(rows: Sequence[Row]) -> list[Step]:
    whole = sum(_usd(row) for row in rows) or 1.0
    found, left = [], _START
    for row in rows:
        width = _usd(row) / whole * _WIDEST
        found.append(
            Step(
                label=item_label(row),
                text=_money(_usd(row)) if row["priced"] else _("unpriced"),
                kind="use" if row["priced"] else "loss",
                left=round(left, 3),
                width=round(width, 3) if row["priced"] else _UNPRICED,
                css=_COLOURS[str(row["group"])],
            )
        )
        left += width
    partial = any(not row["priced"] for row in rows)
    text = _("%(amount)s, partial") % {"amount": _money(whole)} if partial else _money(whole)
    return [*found, Step(label=_("TCO"), text=text, kind="total", left=_START, width=_WIDEST)]


def _year_table(rows: Sequence[Row]) -> Table:
    edges = ("low", "mid", "high")
    partial = any(not row["priced"] for row in rows)
    return Table(
        columns=(_("Line"), _("Low"), _("Middle"), _("High")),
        rows=tuple(
            (
                Cell(text=item_label(row), key=_COLOURS[str(row["group"])]),
                *(
                    Cell(text=_money(_usd(row, edge)))
                    if row["priced"]
                    else Cell(text=_("unpriced"), muted=True)
                    for edge in edges
                ),
            )
            for row in rows
        ),
        total=(
            Cell(text=_("Total, partial") if partial else _("Total")),
            *(Cell(text=_money(sum(_usd(row, edge) for row in rows))) for edge in edges),
        ),
    )


# --- what the capital buys ----------------------------------------------------------------------------------


def capital(result: Result | None) -> Chart | None:
    """The bill as one bar: compute beside the network, and the network's share in the title."""
    rows = [row for row in style.rows(result, "bill") if row.get("priced")]
    whole = sum(float(row["total_usd"]) for row in rows)
    if not whole:
        return None
    network = sum(float(row["total_usd"]) for row in rows if row["group"] == "network")
    words = {"share": style.percent(network / whole, digits=0), "total": _money(whole)}
    title = _("No network is bought: the servers hold all chips")
    if network:
        title = _("The network takes %(share)s of the capital of %(total)s") % words
    return Chart(
        slug="capital",
        title=title,
        axis=_("Purchase price of the priced lines; compute first, then the network"),
        summary=title,
        source=_("Price books of the scenario"),
        draw="stack",
        body=(_capital_bar(rows, whole),),
        table=_capital_table(rows, whole),
        wide=True,
    )


def _capital_bar(rows: Sequence[Row], whole: float) -> StackBar:
    left, segments = 0.0, []
    for row in rows:
        width = float(row["total_usd"]) / whole * 96
        colour = _COLOURS[str(row["group"])]
        segments.append(_segment(colour, item_label(row), float(row["total_usd"]), left, width, _money))
        left += width
    return StackBar(name=_("Capital"), total=_money(whole), width=96, segments=tuple(segments))


def _segment(colour: str, name: str, value: float, left: float, width: float, told: Any) -> Segment:
    return Segment(
        resource=colour,
        label=f"{name}: {told(value)}",
        left=round(left, 3),
        width=round(width, 3),
        text=name if width > _NARROW and colour not in style.HATCHED else "",
        on="on-d" if colour in style.DARK_MARKS else "on-l",
        hatched=colour in style.HATCHED,
    )


def _capital_table(rows: Sequence[Row], whole: float) -> Table:
    return Table(
        columns=(_("Item"), _("Price"), _("Share")),
        rows=tuple(
            (
                Cell(text=item_label(row), key=_COLOURS[str(row["group"])]),
                Cell(text=_money(float(row["total_usd"]))),
                Cell(text=style.percent(float(row["total_usd"]) / whole)),
            )
            for row in rows
        ),
    )


# --- energy -------------------------------------------------------------------------------------------------


def energy(result: Result | None) -> Chart | None:
    """Watts by part in three states, and the joules of an output token."""
    rows = style.rows(result, "energy")
    if not rows:
        return None
    by = {str(row["state"]): row for row in rows}
    widest = max(float(row["power_w"]) for row in rows) or 1.0
    title = _("Idle, it draws %(share)s of the power at full load") % {
        "share": style.percent(float(by["idle"]["power_w"]) / widest, digits=0)
    }
    return Chart(
        slug="energy",
        title=title,
        axis=_("Power at the meter, idle, as used in this run, and while kernels run all the time"),
        summary=title,
        source=_("Closed form; idle and loaded chips draw assumed shares of their TDP"),
        draw="stack",
        body=tuple(_state_bar(row, widest) for row in rows),
        table=_energy_table(rows),
        open_table=True,
        wide=True,
    )


def _state_label(state: str) -> str:
    return {"idle": _("Idle"), "typical": _("As used"), "peak": _("Full load")}[state]


def _part_label(part: str) -> str:
    return {
        "chips_w": _("Chips"),
        "hosts_w": _("Hosts"),
        "network_w": _("Fabric"),
        "facility_w": _("Cooling and losses"),
    }[part]


def _watts(value: float) -> str:
    return str(style.number(value, "power_w"))


def _state_bar(row: Row, widest: float) -> StackBar:
    left, segments = 0.0, []
    for part, colour in _PARTS.items():
        width = float(row[part]) / widest * 96
        if width > 0:
            segments.append(_segment(colour, _part_label(part), float(row[part]), left, width, _watts))
        left += width
    return StackBar(
        name=_state_label(str(row["state"])),
        total=_watts(float(row["power_w"])),
        width=left,
        segments=tuple(segments),
    )


def _energy_table(rows: Sequence[Row]) -> Table:
    return Table(
        columns=(
            _("State"),
            _("In use"),
            *map(_part_label, _PARTS),
            _("Power"),
            _("Energy per output token"),
        ),
        rows=tuple(
            (
                Cell(text=_state_label(str(row["state"]))),
                Cell(text=style.percent(float(row["utilisation_fraction"]), digits=0)),
                *(Cell(text=_watts(float(row[part]))) for part in _PARTS),
                Cell(text=_watts(float(row["power_w"])), metric=_POWER[str(row["state"])]),
                _joule(row),
            )
            for row in rows
        ),
    )


_POWER: Final = {"idle": "cost.idle_power_w", "typical": "cost.power_w", "peak": "cost.peak_power_w"}


def _joule(row: Row) -> Cell:
    if row["joule_per_token"] is None:
        return Cell(text="–", muted=True)
    metric = {"typical": "cost.joule_per_token", "peak": "cost.saturated_joule_per_token"}
    shown = style.number(float(row["joule_per_token"]), "joule_per_token")
    return Cell(text=shown.text, unit=shown.unit, metric=metric.get(str(row["state"]), ""))
