"""The network's bill by tier and medium, under the three ways to count optical modules: bars, and the lines below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Segment, StackBar, Table

Row = Mapping[str, Any]
_WIDTH: Final = 92.0
_NARROW: Final = 11.0  # per cent of the plot below which a part is left without its text
# What is bought, darkest first: switches, then links by how far they reach.
_SHADES: Final = {
    "": "seq-5",
    "optical_500m": "seq-4",
    "optical_100m": "seq-3",
    "optical_30m": "seq-2",
    "copper": "seq-1",
}
# The ramp runs the other way in the dark: its light end takes the ink of the page there.
_INK: Final = {"seq-5": "on-d", "seq-4": "on-d", "seq-2": "strong", "seq-1": "strong"}
_PARTS: Final = ("switch", "ocs", "cable", "module", "fibre")


def bill(result: Result | None) -> Chart | None:
    """One bar per convention, the scenario's own first; modules are counted where nothing has a price."""
    listed = style.rows(result, "bill_by_tier")
    if not listed:
        return None
    conventions = list(dict.fromkeys(str(row["convention"]) for row in listed))
    by = {name: [row for row in listed if row["convention"] == name] for name in conventions}
    totals = {name: sum(_usd(row) for row in rows) for name, rows in by.items()}
    widest = max(totals.values()) or 1.0
    return Chart(
        slug="network-bill",
        title=_title(totals, by),
        axis=_("Price of the network by tier and medium; reach by layer is an assumption"),
        summary=_title(totals, by),
        source=_("Price book of the fabric"),
        draw="stack",
        body=tuple(_bar(name, by[name], totals[name], widest) for name in conventions),
        table=_table(by),
        open_table=True,
        wide=True,
    )


def _usd(row: Row) -> float:
    return float(row["total_usd"] or 0.0)


def _title(totals: Mapping[str, float], by: Mapping[str, Sequence[Row]]) -> str:
    own = next(iter(totals))
    whole = [total for name, total in totals.items() if not _is_partial(by[name])]
    words = {
        "total": style.number(totals[own], "total_usd"),
        "share": style.percent(_optics(by[own]) / totals[own], digits=0) if totals[own] else "",
    }
    if not totals[own]:
        return _("The network has no price in this book")
    if _is_partial(by[own]):
        return _("The priced part of the network costs %(total)s") % words
    if len(whole) < 2:
        return _("The network costs %(total)s, %(share)s of it for links") % words
    words |= {"low": style.number(min(whole), "total_usd"), "high": style.number(max(whole), "total_usd")}
    return (
        _(
            "The network costs %(total)s, %(share)s of it for links; counted in another way it is "
            "%(low)s to %(high)s"
        )
        % words
    )


def _is_partial(rows: Sequence[Row]) -> bool:
    """Something on the bill has no price."""
    return any(row["total_usd"] is None for row in rows)


def _total(total: float, rows: Sequence[Row]) -> str:
    shown = style.number(total, "total_usd") if total else _("unpriced")
    return _("%(amount)s, partial") % {"amount": shown} if total and _is_partial(rows) else str(shown)


def _optics(rows: Sequence[Row]) -> float:
    return sum(_usd(row) for row in rows if row["item"] not in ("switch", "ocs"))


def _bar(convention: str, rows: Sequence[Row], total: float, widest: float) -> StackBar:
    left, segments = 0.0, []
    for row in rows:
        width = _usd(row) / widest * _WIDTH
        if width > 0:
            segments.append(_segment(row, left, width))
        left += width
    return StackBar(
        name=wording.capitalised(convention_label(convention)),
        total=_total(total, rows),
        width=_WIDTH,  # totals stand below each other, clear of the names
        segments=tuple(segments),
    )


def _segment(row: Row, left: float, width: float) -> Segment:
    shade = _SHADES.get(str(row["medium"]), "seq-3")
    amount = str(style.number(_usd(row), "total_usd"))
    return Segment(
        resource=shade,
        label=f"{_line(row)}: {amount}",
        left=round(left, 3),
        width=round(width, 3),
        text=tier_label(str(row["tier"])) if width > _NARROW else "",
        on=_INK.get(shade, "on-l"),
        hatched=False,
    )


def tier_label(tier: str) -> str:
    """A tier's name, short."""
    names = {
        "leaf": _("Leaf"),
        "spine": _("Spine"),
        "core": _("Core"),
        "rail": _("Rail"),
        "ocs": _("Optical switches"),
        "chip": _("Chip"),
        "switch": _("Switch"),
        "local": _("Local links"),
        "global": _("Global links"),
        "between": _("Between switches"),
    }
    if tier.startswith("dimension "):
        return _("Dimension %(number)s") % {"number": tier.removeprefix("dimension ")}
    return names.get(tier) or wording.capitalised(tier.replace("_", " "))


def medium_label(medium: str) -> str:
    names = {
        "copper": _("copper"),
        "optical_30m": _("optical up to 30 m, where active cables reach"),
        "optical_100m": _("optical up to 100 m"),
        "optical_500m": _("optical up to 500 m"),
    }
    return names.get(medium, medium)


def _line(row: Row) -> str:
    """`Leaf: switches`, `Spine: modules, optical up to 100 m`."""
    items = {
        "switch": _("switches"),
        "ocs": _("optical circuit switches"),
        "cable": _("cables"),
        "module": _("modules"),
        "fibre": _("fibres"),
    }
    words = {"tier": tier_label(str(row["tier"])), "item": items[str(row["item"])]}
    if not row["medium"]:
        return _("%(tier)s: %(item)s") % words
    words["medium"] = medium_label(str(row["medium"]))
    return _("%(tier)s: %(item)s, %(medium)s") % words


def _table(by: Mapping[str, Sequence[Row]]) -> Table:
    """Lines by tier, one column per convention, the power of the scenario's own at the right."""
    found = {name: {_key(row): row for row in rows} for name, rows in by.items()}
    keys = list(dict.fromkeys(key for rows in found.values() for key in rows))
    tiers = list(dict.fromkeys(tier for tier, _item, _medium in keys))
    keys.sort(key=lambda key: (tiers.index(key[0]), _PARTS.index(key[1])))
    own = next(iter(found))
    any_row = {key: next(rows[key] for rows in found.values() if key in rows) for key in keys}
    rows = tuple(
        (
            Cell(text=_line(any_row[key]), muted=True, key=_SHADES.get(key[2], "seq-3")),
            *(_amount(found[name].get(key)) for name in found),
            _watts(found[own].get(key)),
        )
        for key in keys
    )
    total = (
        Cell(text=_("Total")),
        *(Cell(text=_total(sum(map(_usd, one)), one)) for one in by.values()),
        Cell(text=str(style.number(sum(float(row["power_w"]) for row in by[own]), "power_w"))),
    )
    heads = tuple(wording.capitalised(convention_label(name)) for name in found)
    return Table(columns=(_("Tier and item"), *heads, _("Power")), rows=rows, total=total)


def convention_label(convention: str) -> str:
    """A way to count transceivers, in few words."""
    names = {
        "both_ends": _("both ends optical"),
        "copper_first_hop": _("copper first hop"),
        "twin_port": _("twin-port modules"),
    }
    return names.get(convention, convention)


def _key(row: Row) -> tuple[str, str, str]:
    return str(row["tier"]), str(row["item"]), str(row["medium"])


def _amount(row: Row | None) -> Cell:
    """How many, and what they cost together."""
    if row is None:
        return Cell(text="–", muted=True)
    count = f"{int(row['count']):,}"
    if row["total_usd"] is None:
        return Cell(text=count, unit=_("unpriced"))
    if not row["total_usd"]:
        return Cell(text=count, unit=_("priced with the switch"))
    return Cell(text=count, unit=str(style.number(_usd(row), "total_usd")))


def _watts(row: Row | None) -> Cell:
    power = float(row["power_w"]) if row else 0.0
    return Cell(text=str(style.number(power, "power_w"))) if power else Cell(text="–", muted=True)
