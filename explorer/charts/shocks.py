"""The shock test on the Reliability page: goodput through the shocks, and what each ability to re-arrange bought.

Goodput is requests that meet the SLO where requests are served, and tokens that count where a model is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import LEGEND, Bar, Cell, Chart, Result, Table

KPIS: Final = (
    "reliability.shock.lost_goodput_fraction",
    "reliability.shock.dip_fraction",
    "reliability.shock.recovery_s",
)
ABILITIES: Final = ("physical", "data", "task")
_MARKS: Final = {"physical": "scaleout", "data": "hbm", "task": "compute"}
_LOST: Final = "lost_goodput_fraction"
_SERVED: Final = frozenset({"load", "prompt_length", "model_swap"})  # nothing that a training job feels


def _trains(result: Result | None) -> bool:
    return bool((result or {}).get("inputs", {}).get("workload", {}).get("kind") == "training")


def words(result: Result | None) -> dict[str, str]:
    """The abilities, by what they are for what runs."""
    if _trains(result):
        return {
            "physical": _("re-wire to a spare"),
            "data": _("keep state elsewhere"),
            "task": _("shrink the job"),
        }
    return {
        "physical": _("re-wire to a spare"),
        "data": _("keep KV elsewhere"),
        "task": _("re-route requests"),
    }


def _events() -> dict[str, str]:
    return {
        "host_failure": _("hosts fail"),
        "cube_failure": _("cubes fail"),
        "link_failure": _("links fail"),
        "switch_failure": _("switches fail"),
        "drain": _("maintenance"),
        "model_swap": _("weights are swapped"),
        "load": _("load burst"),
        "prompt_length": _("longer prompts"),
    }


def goodput(result: Result | None) -> Chart | None:
    """Goodput over time: without the shocks, with all abilities, with each alone, and with none."""
    columns = style.series(result, "shock_goodput")
    if not columns.get("time_s"):
        return None
    return Chart(
        slug="shocks",
        title=_title(result),
        axis=_axis(result),
        summary=_summary(result),
        source=_source(result),
        draw="plot",
        body=_figure(result, columns),
        table=_goodput_table(result, columns),
        wide=True,
        height=340,
    )


def _axis(result: Result | None) -> str:
    if _trains(result):
        return _("Trained tokens that count, per second, over seconds from the start of the timeline")
    return _("Requests that meet the SLO, per second of arrival, over seconds of the run")


def _source(result: Result | None) -> str:
    return (
        _("Closed form: work that is lost is an expected value, nothing is simulated")
        if _trains(result)
        else style.simulated(result)
    )


def _title(result: Result | None) -> str:
    lost = style.metric(result, KPIS[0]) or 0.0
    rows = style.rows(result, "shock_abilities")
    bare = float(rows[0][_LOST]) if rows else lost
    if len(rows) < 2 or bare - lost < style.SAME_RATIO:
        return _("The shocks cost %(lost)s of the goodput") % {"lost": style.percent(lost, digits=2)}
    return _("The shocks cost %(lost)s of the goodput; without any ability to re-arrange, %(bare)s") % {
        "lost": style.percent(lost, digits=2),
        "bare": style.percent(bare, digits=2),
    }


def _summary(result: Result | None) -> str:
    recovery_s = style.metric(result, KPIS[2]) or 0.0
    dip = style.metric(result, KPIS[1]) or 0.0
    if recovery_s == 0:
        return _("At worst %(dip)s of the goodput of a slice of time is missing, which is within 5 %%.") % {
            "dip": style.percent(dip)
        }
    return _(
        "At worst %(dip)s of the goodput is missing; it is back for good %(time)s after the first shock."
    ) % {
        "dip": style.percent(dip),
        "time": style.number(recovery_s, "recovery_s"),
    }


def _shocks(result: Result | None) -> Sequence[Mapping[str, Any]]:
    """Those that what runs can feel."""
    found = (result or {}).get("inputs", {}).get("reliability", {}).get("shocks", ())
    return [one for one in found if not (_trains(result) and one["kind"] in _SERVED)]


def _curves(
    result: Result | None, columns: Mapping[str, Sequence[float]]
) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Column, name, colour and stroke of the lines: the calm run, all abilities, none, and each by itself."""
    named = words(result)
    tried = [name for name in columns if name not in ("time_s", "steady")]
    whole = max(tried, key=lambda name: name.count("+"))
    found = [("steady", _("without the shocks"), "var(--ink-2)", {"dash": "4px,3px", "width": 1.5})]
    if "none" in tried and whole != "none":
        found.append(("none", _("no ability"), "var(--failure)", {"width": 2}))
    found += [
        (name, named[name], f"var(--{_MARKS[name]})", {"width": 1.5, "dash": "2px,3px"})
        for name in ABILITIES
        if name in tried and name != whole
    ]
    label = _("with the shocks") if whole == "none" else _("all abilities that are on")
    return [*found, (whole, label, "var(--accent)", {"width": 2.5})]


def _figure(result: Result | None, columns: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    shocks, recovery_s = _shocks(result), style.metric(result, KPIS[2]) or 0.0
    time_s, curves = columns["time_s"], _curves(result, columns)
    steps = {"shape": "hvh"} if _trains(result) else {}
    data = [
        style.line(
            time_s, columns[column], name=name, color=color, line=stroke | steps,
            hovertemplate="%{x:,.0f} s · %{y:,.1f}/s<extra>%{fullData.name}</extra>",
        )
        for column, name, color, stroke in curves
    ]  # fmt: skip
    whole, steady = columns[curves[-1][0]], columns["steady"]
    kept = [have / calm if calm else 1.0 for have, calm in zip(whole, steady, strict=True)]
    lowest = min(range(len(kept)), key=kept.__getitem__)
    begins = sorted({float(one["at_s"]) for one in shocks})
    notes = [_at(one, _names(shocks, one)) for one in begins]
    if kept[lowest] < 1 - style.SAME_RATIO:
        dip = style.percent(style.metric(result, KPIS[1]) or 0.0)
        above = whole[lowest] < max(steady) / 5  # below is the axis
        notes.append(_label(time_s[lowest], whole[lowest], _("dip %(dip)s") % {"dip": dip}, above=above))
    lines = [_upright(one, "var(--failure)", "solid") for one in begins]
    if recovery_s and begins:
        back_s = begins[0] + recovery_s
        lines.append(_upright(back_s, "var(--accent)", "dot"))
        notes.append(_at(back_s, _("recovered"), level=0.4))
    return style.figure(
        data,
        x=style.axis(ticksuffix=" s", tickformat=",", rangemode="tozero", showgrid=False),
        y=style.axis(rangemode="tozero", nticks=5, tickformat=","),
        shapes=lines,
        annotations=notes,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 48, "r": 16, "t": 64, "b": 36},
    )


def _names(shocks: Sequence[Mapping[str, Any]], at_s: float) -> str:
    """What happens at an instant, in words."""
    return ", ".join(
        dict.fromkeys(_events()[str(one["kind"])] for one in shocks if float(one["at_s"]) == at_s)
    )


def _upright(at_s: float, color: str, dash: str) -> dict[str, Any]:
    return {
        "type": "line", "xref": "x", "yref": "paper", "x0": at_s, "x1": at_s, "y0": 0, "y1": 1,
        "line": {"color": color, "width": 1, "dash": dash},
    }  # fmt: skip


def _at(at_s: float, text: str, level: float = 0.98) -> dict[str, Any]:
    return style.direct_label(text, x=at_s, y=level, yref="paper", xanchor="left", yanchor="top", xshift=4)


def _label(at_s: float, value: float, text: str, *, above: bool) -> dict[str, Any]:
    side = "bottom" if above else "top"
    return style.direct_label(text, x=at_s, y=value, xanchor="left", yanchor=side, xshift=4)


def _goodput_table(result: Result | None, columns: Mapping[str, Sequence[float]]) -> Table:
    curves = _curves(result, columns)
    return Table(
        columns=(_("Time"), *(name for _column, name, *_rest in curves)),
        rows=tuple(
            style.text_cells(
                str(style.number(columns["time_s"][i], "time_s")),
                *(f"{columns[column][i]:,.1f}" for column, *_rest in curves),
            )
            for i in style.thinned(columns["time_s"], keep=40)
        ),
    )


def bought(result: Result | None) -> Chart | None:
    """What each ability saves of the lost goodput, and what every set of them comes to."""
    rows = style.rows(result, "shock_bought")
    shares = {str(row["ability"]): float(row[_LOST]) for row in rows}
    if not shares:
        return None
    best = max(shares, key=lambda name: shares[name])
    title = _("No ability buys anything back of these shocks")
    if shares[best] >= style.SAME_RATIO:
        title = _("%(ability)s buys most back: %(share)s of the goodput") % {
            "ability": _sentence(words(result)[best]),
            "share": style.percent(shares[best], digits=2),
        }
    named = words(result)
    told = ", ".join(f"{named[name]} {style.percent(share, digits=2)}" for name, share in shares.items())
    return Chart(
        slug="shock-abilities",
        title=title,
        axis=_("Goodput that an ability saves, in the mean over all orders in which they could be added"),
        summary=_("Saved of the goodput: %(parts)s.") % {"parts": told},
        source=_source(result),
        draw="bars",
        body=tuple(_bars(shares, named)),
        table=_sets(style.rows(result, "shock_abilities"), named),
        open_table=True,
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _bars(shares: Mapping[str, float], named: Mapping[str, str]) -> list[Bar]:
    widest = max(max(shares.values()), 1e-12)
    return [
        Bar(
            label=named[name],
            resource=_MARKS[name],
            text=style.percent(share, digits=2),
            left=44.0,
            width=max(0.4, max(0.0, share) / widest * 38.0),
            hatched=False,
        )
        for name, share in sorted(shares.items(), key=lambda pair: -pair[1])
    ]


def _sets(rows: Sequence[Mapping[str, Any]], named: Mapping[str, str]) -> Table:
    """Every set of abilities, with what it loses."""
    return Table(
        columns=(_("Abilities"), _("Lost goodput"), _("Dip"), _("Recovery")),
        rows=tuple(
            (
                Cell(text=" + ".join(named[name] for name in ABILITIES if row[name]) or _("no ability")),
                *style.text_cells(
                    style.percent(float(row[_LOST]), digits=2),
                    style.percent(float(row["dip_fraction"])),
                    str(style.number(float(row["recovery_s"]), "recovery_s")),
                ),
            )
            for row in rows
        ),
    )
