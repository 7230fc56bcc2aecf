"""A plan search: what is recommended, the frontier of tokens per chip against tokens per user, and every verified
design with its simulation beside its closed form.

Points are designs; those with an index were simulated, and pressing one makes it a scenario. Where nothing is feasible
the sentences name the limit that binds, and the table holds what each relaxation would bring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Cell, Chart, Note, Panel, Table
from explorer.wording import capitalised, translated
from simcore.analysis.search.answer import design_text, objective_text
from simcore.catalog import default_catalog
from simcore.errors import Message

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
COMPARED: Final = ("ttft_s", "tpot_s", "output_token_per_s_per_chip", "usd_per_million_tokens")
_SCALE: Final = {"ttft_s": 1e3, "tpot_s": 1e3}


def panel(tables: Tables, *, objective: str) -> Panel:
    """What a finished search came to; `tables` are those of its summary."""
    said = [capitalised(translated(Message.from_dict(one))) for one in tables["messages"]]
    (whole,) = tables["search"]
    counts = {"count": f"{whole['candidate_count']:,}", "feasible": f"{whole['feasible_count']:,}"}
    headline = said[0] if said else _("%(count)s designs tried, %(feasible)s within the limits") % counts
    charts = (_frontier(tables["rows"]), _chips(tables["by_chip"], objective))
    return Panel(
        tab="search",
        headline=headline,
        lede=_("%(count)s designs tried, %(feasible)s within the limits") % counts if said else "",
        notes=tuple(Note(text=text) for text in said[1:]),
        charts=tuple(chart for chart in charts if chart is not None),
    )


def _frontier(designs: Sequence[Row]) -> Chart | None:
    """Token/s per chip against token/s per user."""
    rows = [row for row in designs if row["output_token_per_s_per_user"]]
    if not rows:
        return None
    line = sorted((row for row in rows if row["on_frontier"]), key=lambda row: row["tpot_s"])
    data = [
        _points(line, name=_("frontier, closed form"), mode="lines+markers", color="var(--accent)"),
        _points(
            [row for row in rows if not row["on_frontier"]],
            name=_("other designs, closed form"),
            mode="markers",
            color="var(--ink-3)",
        ),
        _simulated([row for row in rows if "simulated" in row]),
    ]
    return Chart(
        slug="search-frontier",
        title=_("Designs that no other beats in tokens per chip and per user together: %(count)s")
        % {"count": len(line)}
        if line
        else _("The nearest designs, each beyond one of the limits: %(count)s") % {"count": len(rows)},
        axis=_(
            "Token/s per chip (up) against token/s per user, 1 / mean TPOT (right); press a simulated point to make it "
            "a scenario"
        ),
        summary="; ".join(design_text(dict(row)) for row in rows[:4]),
        source=_("Closed form first, then simulated; the share is that of requests which keep the SLO"),
        draw="plot",
        body=style.figure(
            [one for one in data if one["x"]],
            x=style.axis(rangemode="tozero"),
            y=style.axis(rangemode="tozero"),
        ),
        table=_table(rows),
        open_table=True,
        wide=True,
    )


def _points(rows: Sequence[Row], *, name: str, mode: str, color: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": name,
        "mode": mode,
        "x": [row["output_token_per_s_per_user"] for row in rows],
        "y": [row["output_token_per_s_per_chip"] for row in rows],
        "text": [design_text(dict(row)) for row in rows],
        "line": {"color": color, "width": 2},
        "marker": {"size": 8, "color": color},
        "hovertemplate": "%{text}<br>%{y:,.0f} | %{x:,.1f}<extra></extra>",
    }


def _simulated(rows: Sequence[Row]) -> dict[str, Any]:
    having = [row for row in rows if row["simulated"].get("tpot_s")]
    drawn = _points(having, name=_("simulated"), mode="markers", color="var(--ink)")
    return drawn | {
        "x": [1 / row["simulated"]["tpot_s"] for row in having],
        "y": [row["simulated"].get("output_token_per_s_per_chip") for row in having],
        "customdata": [row["index"] for row in having],
        "marker": {"size": 11, "color": "var(--ink)", "symbol": "diamond-open"},
    }


def _table(rows: Sequence[Row]) -> Table:
    return Table(
        columns=(
            _("Design"),
            _("TTFT, ms"),
            _("TPOT, ms"),
            _("Token/s per chip"),
            _("USD per million tokens"),
            _("SLO kept"),
        ),
        rows=tuple(
            (
                Cell(text=design_text(dict(row)), use_index=row.get("index")),
                *(_pair(row, name) for name in COMPARED),
                _kept(row),
            )
            for row in _distinct(rows)
        ),
    )


def _distinct(rows: Sequence[Row]) -> list[Row]:
    """Without points of the frontier that print as a simulated design does: they differ in seats that nobody takes."""
    shown = {_printed(row) for row in rows if "simulated" in row}
    return [row for row in rows if "simulated" in row or _printed(row) not in shown]


def _printed(row: Row) -> tuple[str, ...]:
    return design_text(dict(row)), *(f"{row[name] or 0.0:.2e}" for name in COMPARED)


def _pair(row: Row, name: str) -> Cell:
    """Closed form, then what the simulation says."""
    expected, got = row[name], row.get("simulated", {}).get(name)
    if expected is None:
        return Cell(text="–", muted=True)
    scale = _SCALE.get(name, 1.0)
    text = f"{scale * expected:,.3g}"
    return Cell(text=text if got is None else f"{text} → {scale * got:,.3g}")


def _kept(row: Row) -> Cell:
    kept = row.get("serving.slo_attainment_fraction")
    return Cell(text="–", muted=True) if kept is None else Cell(text=style.percent(kept))


def _chips(best: Sequence[Row], objective: str) -> Chart | None:
    """The best design of each kind of chip."""
    having = [row for row in best if "cut" in row]
    if not having:
        return None
    rows = tuple(
        (
            Cell(text=_chip_name(row)),
            Cell(text=design_text(dict(row)) if "cut" in row else _("none within the limits")),
            Cell(text=_objective(objective, row)),
        )
        for row in best
    )
    return Chart(
        slug="search-chips",
        title=_("Kinds of chip with a design within the limits: %(count)s of %(all)s")
        % {"count": len(having), "all": len(best)},
        axis=_("The best design of each kind of chip, by closed forms"),
        summary="; ".join(design_text(dict(row)) for row in having[:3]),
        draw="table",
        table=Table(columns=(_("Chip"), _("Design"), _("Objective")), rows=rows, words=2),
        wide=True,
    )


def _chip_name(row: Row) -> str:
    """What the catalog calls it, also where no design has it."""
    slug = str(row["chip"])
    return str(row["chip_name"]) if "chip_name" in row else default_catalog().chip(slug, path="chips").name


def _objective(objective: str, row: Row) -> str:
    if "cut" not in row:
        return "–"
    return "; ".join(translated(one) for one in objective_text(objective, row["objective"]).messages)
