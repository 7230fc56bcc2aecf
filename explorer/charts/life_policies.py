"""What would help a cluster's life: spare units, places that are wired anew, and restarts of less than a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.life import causes
from explorer.charts.style import LEGEND, Chart, Result, Table

Row = Mapping[str, Any]
_RECOVERED: Final = 0.8  # of what spares can bring back: "most"


def spares(result: Result | None) -> Chart | None:
    """How much of their time jobs work, against spare units on top of what they need."""
    rows = style.rows(result, "life_spares")
    if not rows:
        return None
    kept = [float(row["job_time_fraction"]) for row in rows]
    owned = [float(row["goodput_fraction"]) for row in rows]
    counts = [f"{int(row['spare_count'])}" for row in rows]
    data = [
        style.line(
            counts, values, name=name, color=color, line={"dash": dash}, mode="lines+markers",
            marker={"color": color, "symbol": symbol, "size": 7},
            hovertemplate="%{x} · %{y:.1%}<extra>%{fullData.name}</extra>",
        )
        for values, name, color, dash, symbol in (
            (kept, _("of the chips that the jobs need"), "var(--compute)", "solid", "circle"),
            (owned, _("of all chips, spares included"), "var(--queue)", "2px,3px", "square-open"),
        )
    ]  # fmt: skip
    return Chart(
        slug="life-spares",
        title=_spares_title(counts, kept, owned),
        axis=_("Share of chip time that is useful, against spare cubes or servers on top of the jobs' own"),
        summary=_("Useful chip time by spares: %(parts)s.")
        % {
            "parts": ", ".join(
                f"{count}: {style.percent(share)}" for count, share in zip(counts, kept, strict=True)
            )
        },
        source=_("Simulated, the same failures for each number of spares"),
        draw="plot",
        body=style.figure(
            data,
            x=style.axis(type="category"),
            y=style.axis(range=[0, 1.02], tickformat=".0%", dtick=0.25),
            showlegend=True,
            legend=LEGEND,
            margin={"l": 48, "r": 16, "t": 56, "b": 36},
        ),
        table=_spares_table(rows),
    )


def _spares_title(counts: Sequence[str], kept: Sequence[float], owned: Sequence[float]) -> str:
    most = max(kept)
    if most - kept[0] < 0.005:
        return _("Spares bring nothing: no job waits for a healthy unit")
    enough = next(i for i, share in enumerate(kept) if share - kept[0] >= _RECOVERED * (most - kept[0]))
    best = max(range(len(owned)), key=lambda i: owned[i])
    return _(
        "%(count)s spares bring jobs from %(before)s to %(after)s of their time; over all chips %(best)s pay best"
    ) % {
        "count": counts[enough],
        "before": style.percent(kept[0]),
        "after": style.percent(kept[enough]),
        "best": counts[best],
    }


def _spares_table(rows: Sequence[Row]) -> Table:
    return Table(
        columns=(_("Spares"), _("Chips owned"), _("Of the jobs' chips"), _("Of all chips"), _("Stranded"), _("Swaps")),
        rows=tuple(
            style.text_cells(
                f"{row['spare_count']:,}",
                f"{row['owned_chip_count']:,}",
                style.percent(float(row["job_time_fraction"])),
                style.percent(float(row["goodput_fraction"])),
                style.percent(float(row["stranded_fraction"])),
                f"{row['swap_count']:,}",
            )
            for row in rows
        ),
    )  # fmt: skip


def policies(result: Result | None) -> Chart | None:
    """Fixed and re-wired places, and what restarts after a failure, on the same failures."""
    places = [(_places()[str(row["allocation"])], row) for row in style.rows(result, "life_allocations")]
    scopes = [(_scopes()[str(row["scope"])], row) for row in style.rows(result, "life_scopes")]
    listed = [*places, *scopes]
    if not listed:
        return None
    return Chart(
        slug="life-policies",
        title=_policies_title([row for _name, row in places], [row for _name, row in scopes]),
        axis=_("Share of owned chip time, by policy; what is left is under repair or idle"),
        summary=_("Useful chip time by policy: %(parts)s.")
        % {"parts": ", ".join(f"{name} {_useful(row)}" for name, row in listed)},
        source=_("Simulated, the same failures for each policy"),
        draw="plot",
        body=_policies_figure(listed),
        table=_policies_table(listed),
        wide=True,
        height=90 + 44 * len(listed),
    )


def _places() -> dict[str, str]:
    return {"static": _("fixed places"), "ocs": _("re-wired places")}


def _scopes() -> dict[str, str]:
    return {
        "job": _("all hosts restart"),
        "host": _("the failed one restarts"),
        "peer": _("the failed one, state from a peer"),
    }


def _useful(row: Row) -> str:
    return style.percent(float(row["goodput_fraction"]))


def _policies_title(places: Sequence[Row], scopes: Sequence[Row]) -> str:
    gains = [
        style.percent(float(row["goodput_fraction"]) - float(scopes[0]["goodput_fraction"])) for row in scopes
    ]
    restarts = _("Restarting only what failed brings %(host)s more, with state from a peer %(peer)s") % {
        "host": gains[1],
        "peer": gains[2],
    }
    if not places:
        return restarts
    return _("Re-wiring takes useful time from %(static)s to %(ocs)s. %(restarts)s") % {
        "static": _useful(places[0]),
        "ocs": _useful(places[1]),
        "restarts": restarts,
    }  # fmt: skip


def _policies_figure(listed: Sequence[tuple[str, Row]]) -> dict[str, Any]:
    names = [name for name, _row in listed]
    parts = {
        "goodput": (_("useful work"), "var(--compute)"),
        "rework": (_("work done again"), "var(--failure)"),
        "checkpoint": (_("checkpoints"), "var(--host)"),
        "restart": (_("restarts"), "var(--hbm)"),
        "stranded": (_("waiting for the rest of a slice"), "var(--queue)"),
    }
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "x": [float(row[f"{key}_fraction"]) for _name, row in listed],
            "name": name,
            "marker": {"color": color},
            "hovertemplate": "%{x:.2%}<extra>%{fullData.name}</extra>",
        }
        for key, (name, color) in parts.items()
    ]
    return style.figure(
        data,
        x=style.axis(range=[0, 1.02], tickformat=".0%", dtick=0.5),
        y=style.axis(autorange="reversed", showgrid=False),
        barmode="stack",
        bargap=0.35,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 48, "r": 16, "t": 56, "b": 36},
    )


def _policies_table(listed: Sequence[tuple[str, Row]]) -> Table:
    lost = ("rework", "checkpoint", "restart", "stranded", "repair", "idle")
    return Table(
        columns=(_("Policy"), _("useful work"), *(causes()[cause] for cause in lost), _("Interruptions")),
        rows=tuple(
            style.text_cells(
                name,
                _useful(row),
                *(style.percent(float(row[f"{cause}_fraction"]), digits=2) for cause in lost),
                f"{row['interruption_count']:,}",
            )
            for name, row in listed
        ),
    )
