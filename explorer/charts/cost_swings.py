"""The tornado of a token's price: each input of the money alone, from the low to the high end of its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table
from explorer.wording import translated
from simcore.units import dimension_of, printed_text

Row = Mapping[str, Any]


def tornado(result: Result | None) -> Chart | None:
    """Widest on top; the light half is the input's low end, the dark half its high end."""
    rows = style.rows(result, "cost_swings")
    if not rows:
        return None
    metric = str(rows[0]["metric"])
    words = {
        "input": wording.in_text(_name(rows[0])),
        "metric": wording.label(metric),
        "low": style.number(min(_ends(rows[0])), metric),
        "high": style.number(max(_ends(rows[0])), metric),
    }
    title = _("%(metric)s depends most on %(input)s: %(low)s to %(high)s") % words
    return Chart(
        slug="cost-swings",
        title=title,
        axis=_("%(metric)s, with one input at a time at the low and the high end of its range") % words,
        summary=title,
        source=_("Closed form; ranges of the price books, else assumptions"),
        draw="plot",
        body=_figure(rows, metric),
        table=_table(rows, metric),
        wide=True,
        height=72 + 44 * len(rows),
    )


def _ends(row: Row) -> tuple[float, float]:
    return float(row["at_low"]), float(row["at_high"])


def _name(row: Row) -> str:
    path = str(row["path"])
    return _("Utilisation") if path == "utilisation_fraction" else wording.label(path)


def _printed(row: Row, end: str) -> str:
    return printed_text(float(row[end]), dimension_of(str(row["path"])))


def _figure(rows: Sequence[Row], metric: str) -> dict[str, Any]:
    names = [_name(row) for row in rows][::-1]
    ends = (
        ("low", "at_low", "var(--seq-2)", _("low end")),
        ("high", "at_high", "var(--seq-4)", _("high end")),
    )
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "base": [float(row["base_value"]) for row in rows][::-1],
            "x": [float(row[at]) - float(row["base_value"]) for row in rows][::-1],
            "name": label,
            "marker": {"color": colour},
            "customdata": [[_printed(row, end), str(style.number(float(row[at]), metric))] for row in rows][
                ::-1
            ],
            "hovertemplate": "%{y}: %{customdata[0]} → %{customdata[1]}<extra></extra>",
        }
        for end, at, colour, label in ends
    ]
    return style.figure(
        data,
        x=style.axis(nticks=5, tickformat="~s", ticksuffix=" USD"),
        y=style.axis(showgrid=False),
        barmode="overlay",
        bargap=0.35,
        showlegend=True,
        legend=style.LEGEND,
        margin={"l": 48, "r": 16, "t": 40, "b": 36},
    )


def _table(rows: Sequence[Row], metric: str) -> Table:
    return Table(
        columns=(_("Input"), _("Range"), _("How it is known"), _("At the low end"), _("At the high end")),
        words=3,
        rows=tuple(
            (
                Cell(text=_name(row)),
                Cell(text=f"{_printed(row, 'low')} – {_printed(row, 'high')}"),
                Cell(text=translated(row["basis"]), muted=True),
                *(Cell(text=str(style.number(end, metric))) for end in _ends(row)),
            )
            for row in rows
        ),
    )
