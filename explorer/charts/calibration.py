"""Calibration: predicted against measured before and after a fit, by regime."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Cell, Chart, Panel, Table
from simcore.validation.calibrate import Outcome, Regime

SHOWN: Final = 6  # regimes with a picture of their own


def panel(outcome: Outcome) -> Panel:
    """The report as a page: the regimes, and a picture of each."""
    regimes = outcome.regimes
    drawn = [regime for regime in regimes if len(regime.points_s) > 1]
    return Panel(
        tab="calibrate",
        headline=_headline(regimes),
        charts=(_report(regimes), *(_scatter(at, regime) for at, regime in enumerate(drawn[:SHOWN]))),
    )


def report_panel(report: Mapping[str, Any]) -> Panel:
    """The same of a report that was kept: without the rows there are no pictures."""
    entries: list[dict[str, Any]] = [
        {name: math.nan if value is None else value for name, value in entry.items()}
        for entry in report.get("regimes", ())
    ]
    regimes = [Regime(**entry) for entry in entries]
    return Panel(tab="calibrate", headline=_headline(regimes), charts=(_report(regimes),))


def rejected(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows that were left out, by reason."""
    return [{"reason": reason(text), "count": count} for text, count in report.get("rejected", {}).items()]


def _headline(regimes: Sequence[Regime]) -> str:
    fitted = [regime for regime in regimes if regime.fitted_rows]
    better = [regime for regime in fitted if regime.is_kept and _is_closer(regime)]
    return _("%(better)s of %(total)s regimes come closer to what was measured") % {
        "better": len(better),
        "total": len(fitted),
    }


def _is_closer(regime: Regime) -> bool:
    """By more than a tenth of a point, or known for the first time."""
    before = regime.before_fraction
    return before != before or before - _after(regime) > 1e-3


def _report(regimes: Sequence[Regime]) -> Chart:
    return Chart(
        slug="regimes",
        title=_("Mean error of each regime, before and after"),
        axis=_("Mean of |predicted ÷ measured − 1|; rows held out were not seen by the fit"),
        summary="; ".join(
            f"{regime.name} {_share(regime.before_fraction)} → {_share(_after(regime))}" for regime in regimes
        ),
        source=_("One shape in four is held out, half of the steps"),
        draw="table",
        table=Table(
            columns=(
                _("Regime"),
                _("Source"),
                _("Note"),
                _("Rows fitted"),
                _("Rows held out"),
                _("Before"),
                _("After"),
                _("After, fitted"),
                _("After, held out"),
                _("Median, held out"),
            ),
            words=3,
            rows=tuple(_cells(regime) for regime in regimes),
        ),
        wide=True,
    )


def _after(regime: Regime) -> float:
    """Over all rows, as the error before is; where one part has no rows, over the other."""
    parts = [
        (regime.fitted_rows, regime.fitted_mape_fraction),
        (regime.held_out_rows, regime.held_out_mape_fraction),
    ]
    known = [(rows, error) for rows, error in parts if rows and error == error]
    count = sum(rows for rows, _error in known)
    return sum(rows * error for rows, error in known) / count if count else float("nan")


def _cells(regime: Regime) -> tuple[Cell, ...]:
    note = "" if regime.is_kept else _("not taken: the plain roofline is closer")
    return (
        Cell(text=regime.name),
        Cell(text=regime.source, muted=True),
        Cell(text=note, muted=True),
        Cell(text=f"{regime.fitted_rows:,}"),
        Cell(text=f"{regime.held_out_rows:,}"),
        Cell(text=_share(regime.before_fraction)),
        Cell(text=_share(_after(regime))),
        Cell(text=_share(regime.fitted_mape_fraction)),
        Cell(text=_share(regime.held_out_mape_fraction)),
        Cell(text=_share(regime.held_out_median_fraction)),
    )


def _share(fraction: float) -> str:
    return "–" if fraction != fraction else style.percent(fraction)


def _scatter(at: int, regime: Regime) -> Chart:
    words = {
        "regime": regime.name,
        "before": _share(regime.before_fraction),
        "after": _share(_after(regime)),
    }
    title = _("%(regime)s: mean error %(after)s, %(before)s before") % words
    measured, before, after = ([point[at] for point in regime.points_s] for at in range(3))
    everything = [*measured, *before, *after]
    ends = [min(everything), max(everything)]
    figure = style.figure(
        [
            style.baseline_line(ends, ends, name=_("Predicted = measured")),
            _dots(measured, before, name=_("Before"), color="var(--ink-3)", symbol="circle-open"),
            _dots(measured, after, name=_("After"), color="var(--accent)", symbol="circle"),
        ],
        x=style.log_axis(everything, "measured_s"),
        y=style.log_axis(everything, "predicted_s"),
        showlegend=True,
        legend={"orientation": "h", "y": 1.12, "x": 0},
    )
    return Chart(
        slug=f"fit-{at}",
        title=title,
        axis=_("Predicted time over measured time; open circles before, full after"),
        summary=title,
        source=regime.source,
        draw="plot",
        body=figure,
        table=Table(
            columns=(_("Measured"), _("Before"), _("After")),
            words=0,
            rows=tuple(
                tuple(Cell(text=str(style.number(value, "time_s"))) for value in point)
                for point in regime.points_s
            ),
        ),
    )


def _dots(x: Sequence[float], y: Sequence[float], *, name: str, color: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": list(x),
        "y": list(y),
        "name": name,
        "marker": {"color": color, "size": 6, "symbol": symbol},
    }


def reason(text: str) -> str:
    """Why rows were left out, in the reader's language where it names no value of the file."""
    names = {
        "of another chip": _("of another chip"),
        "a number is missing or unreadable": _("a number is missing or unreadable"),
        "a time or size that is not positive": _("a time or size that is not positive"),
        "faster than the chip's peak": _("faster than the chip's peak"),
        "routing is not balanced": _("routing is not balanced"),
        "head dimension is not 128": _("head dimension is not 128"),
        "prefill after a cached prefix": _("prefill after a cached prefix"),
        "a payload that engines give to the library, not to their own all-reduce": _(
            "a payload that engines give to the library, not to their own all-reduce"
        ),
        "not a dense model that was checked": _("not a dense model that was checked"),
        "a power-capped chip": _("a power-capped chip"),
        "not plain tensor parallelism": _("not plain tensor parallelism"),
        "format, engine or concurrency not recorded": _("format, engine or concurrency not recorded"),
        "more sequences than the KV cache is known to have held": _(
            "more sequences than the KV cache is known to have held"
        ),
    }
    return names.get(text, text)
