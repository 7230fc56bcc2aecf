"""A trace that was uploaded, as a page: rates and bursts, lengths, what its prompts share, what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Cell, Chart, Note, Number, Panel, Table, Tile
from simcore.workload.traces import LISTED_ROWS

Described = Mapping[str, Any]  # `figures` of a TraceSummary, `series` of its curves
MARKS: Final = ("mean", "p50", "p95", "p99", "max")
ALIKE: Final = 0.1  # a variation so near to 1 is called Poisson's
ROUNDED: Final = 0.25  # share of gaps without length above which the recorder's rounding shows, where the
STEP: Final = 0.1  # least other gap is this part of the mean: a bursty process has some far below
WAVES: Final = 2.0  # times the variance of counts that independent gaps would give
MINUTE_S: Final = 60.0


def panel(described: Described) -> Panel:
    """Figures, what they mean in words, and two pictures."""
    figures = described["figures"]
    return Panel(
        tab="trace",
        headline=_headline(figures),
        lede=" ".join((burstiness(figures), *waves(figures), prefixes(figures))),
        notes=_left_out(figures),
        kpis=_tiles(figures),
        extra={"more": max(0, figures["skipped_count"] - LISTED_ROWS)},
        charts=(arrivals(described), lengths(described), _length_table(figures)),
    )


def _headline(figures: Mapping[str, Any]) -> str:
    words = {
        "count": f"{figures['row_count']:,}",
        "span": style.number(figures["span_s"], "span_s"),
        "rate": _rate(figures["mean_request_per_s"]),
        "peak": f"{figures['peak_minute_count']:,}",
    }
    if figures["mean_request_per_s"] is None:
        return _("%(count)s requests at one instant") % words
    if figures["span_s"] < MINUTE_S:
        return _("%(count)s requests in %(span)s, a rate of %(rate)s a minute") % words
    return (
        _("%(count)s requests in %(span)s: %(rate)s a minute on average, at most %(peak)s within one") % words
    )


def _rate(request_per_s: float | None) -> str:
    per_min = (request_per_s or 0.0) * MINUTE_S
    return f"{per_min:,.0f}" if per_min >= 100 else f"{per_min:.3g}"


def burstiness(figures: Mapping[str, Any]) -> str:
    """How gaps between arrivals vary, beside Poisson and the Gamma process that varies as much."""
    cv = figures["gap_cv_ratio"]
    if cv is None:
        return _("There are too few requests to say how bursty they are.")
    coarse = figures["least_gap_s"] * figures["mean_request_per_s"] > STEP
    if coarse and figures["tied_gap_fraction"] > ROUNDED:
        return _(
            "%(tied)s of the gaps between arrivals have no length: the recorder rounds its instants, and the "
            "variation of the gaps (CV %(cv)s) is mostly that of its rounding."
        ) % {"tied": style.percent(figures["tied_gap_fraction"], digits=0), "cv": f"{cv:.2f}"}
    words = {"cv": f"{cv:.2f}", "shape": f"{1 / max(cv, 1e-3) ** 2:.3g}"}
    if abs(cv - 1) <= ALIKE:
        return (
            _(
                "Arrivals are as random as a Poisson process: the gaps between them have CV %(cv)s, Poisson's 1."
            )
            % words
        )
    if cv > 1:
        return (
            _(
                "Arrivals are bursty: the gaps between them have CV %(cv)s, where Poisson has 1; a Gamma process with "
                "cv = %(cv)s (shape %(shape)s) is as bursty."
            )
            % words
        )
    return (
        _(
            "Arrivals are more regular than a Poisson process: the gaps between them have CV %(cv)s, where Poisson has "
            "1; a Gamma process with cv = %(cv)s (shape %(shape)s) is as regular."
        )
        % words
    )


def waves(figures: Mapping[str, Any]) -> tuple[str, ...]:
    """Whether the rate itself moves. Of independent gaps alone, counts vary CV² times as much as Poisson's."""
    ratio = figures["dispersion_ratio"]
    if ratio is None or ratio < WAVES * max(1.0, figures["gap_cv_ratio"] ** 2):
        return ()
    text = _(
        "Counted by sixtieths of the span, arrivals vary %(ratio)s times as much as Poisson's, more than such gaps "
        "explain: the rate itself comes in waves."
    )
    return (text % {"ratio": f"{ratio:.3g}"},)


def prefixes(figures: Mapping[str, Any]) -> str:
    """What a prefix cache could hit, where the trace tells."""
    share = figures["shared_prompt_fraction"]
    if share is None:
        return _("The file has no block hashes, so nothing is known of prefixes that its prompts share.")
    return _(
        "%(share)s of the prompt tokens lie in blocks that appeared before: the most that a prefix cache can hit."
    ) % {"share": style.percent(share)}


def _left_out(figures: Mapping[str, Any]) -> tuple[Note, ...]:
    count = figures["skipped_count"]
    if not count:
        return ()
    text = _("%(count)s of %(total)s rows did no work, without a token in or out, and were left out")
    words = {"count": f"{count:,}", "total": f"{count + figures['row_count']:,}"}
    return (Note(text=text % words, kind="warn", code="trace.row_skipped"),)


def _tiles(figures: Mapping[str, Any]) -> tuple[Tile, ...]:
    cv, shared = figures["gap_cv_ratio"], figures["shared_prompt_fraction"]
    per_min = "/min"
    return (
        _tile(_("Mean rate"), _rate(figures["mean_request_per_s"]), per_min),
        _tile(_("Busiest minute"), f"{figures['peak_minute_count']:,}", per_min),
        _tile(_("Mean prompt"), f"{figures['input_tokens']['mean']:,.0f}", _("tokens")),
        _tile(_("Mean answer"), f"{figures['output_tokens']['mean']:,.0f}", _("tokens")),
        _tile(_("CV of gaps"), "–" if cv is None else f"{cv:.2f}"),
        _tile(_("Shared prefixes"), "–" if shared is None else style.percent(shared)),
    )


def _tile(label: str, text: str, unit: str = "") -> Tile:
    return Tile(metric="", label=label, help="", number=Number(text=text, unit=unit))


def arrivals(described: Described) -> Chart:
    """Requests per minute over the span."""
    figures, columns = described["figures"], described["series"]["arrivals"]
    time_s, per_min = columns["time_s"], columns["request_per_min"]
    unit, divisor = _unit_of(figures["span_s"])
    most = max(per_min)
    words = {
        "least": f"{min(per_min):,.0f}",
        "most": f"{most:,.0f}",
        "rate": _rate(figures["mean_request_per_s"]),
    }
    line = style.line(
        [value / divisor for value in time_s], per_min, name=_("requests per minute"), fill="tozeroy",
        fillcolor="var(--ground-2)", line={"shape": "hv"},
        hovertemplate="%{x:.4~g} " + unit + " · %{y:,.0f} /min<extra></extra>",
    )  # fmt: skip
    picked = style.thinned(time_s)
    return Chart(
        slug="arrivals",
        title=_("Arrivals range from %(least)s to %(most)s a minute") % words,
        axis=_(
            "Requests per minute, by a hundred-and-twentieth of the span, over time since the first request"
        ),
        summary=_("Between %(least)s and %(most)s requests a minute arrive, %(rate)s on average.") % words,
        source=_("As recorded"),
        draw="plot",
        body=style.figure(
            [line],
            x=style.axis(ticksuffix=f" {unit}", rangemode="tozero", showgrid=False, nticks=6),
            y=style.axis(rangemode="tozero", nticks=5, ticksuffix=" /min"),
        ),
        table=Table(
            columns=(_("Time"), _("Requests per minute")),
            rows=tuple(
                style.text_cells(str(style.number(time_s[i], "time_s")), f"{per_min[i]:,.1f}") for i in picked
            ),
        ),
    )


def _unit_of(span_s: float) -> tuple[str, float]:
    """In which unit of time a span is drawn, and the seconds of one."""
    if span_s < 10 * MINUTE_S:
        return "s", 1.0
    return ("min", MINUTE_S) if span_s < 10 * 3600 else ("h", 3600.0)


def lengths(described: Described) -> Chart:
    """Share of requests whose prompt, and whose answer, is at most x tokens long."""
    figures, columns = described["figures"], described["series"]["lengths"]
    fractions = columns["fraction"]
    drawn = (
        (_("prompt"), columns["input_tokens"], "var(--ink)", "solid"),
        (_("answer"), columns["output_tokens"], "var(--hbm)", "5px,4px"),
    )
    data = [
        style.line(
            values, fractions, name=name, color=color, line={"dash": dash},
            hovertemplate="%{x:,.0f} · %{y:.0%}<extra>%{fullData.name}</extra>",
        )
        for name, values, color, dash in drawn
    ]  # fmt: skip
    words = {
        "prompt": f"{figures['input_tokens']['p50']:,.0f}",
        "longest": f"{figures['input_tokens']['p99']:,.0f}",
        "answer": f"{figures['output_tokens']['p50']:,.0f}",
        "slowest": f"{figures['output_tokens']['p99']:,.0f}",
    }
    everything = [value for _name, values, *_rest in drawn for value in values]
    return Chart(
        slug="lengths",
        title=_("Half of the prompts have up to %(prompt)s tokens, half of the answers up to %(answer)s")
        % words,
        axis=_("Share of requests whose prompt or answer is at most x tokens long, log scale"),
        summary=_(
            "Cumulative distribution of lengths: prompts p50 %(prompt)s and p99 %(longest)s tokens, answers p50 "
            "%(answer)s and p99 %(slowest)s."
        )
        % words,
        source=_("As recorded"),
        draw="plot",
        body=style.figure(
            data,
            x=style.log_axis(everything, "length"),
            y=style.axis(range=[0, 1.02], tickformat=".0%", dtick=0.25),
            showlegend=True,
            legend=style.LEGEND,
            margin={"l": 48, "r": 16, "t": 48, "b": 36},
        ),
        table=_quantiles(fractions, columns),
    )


def _quantiles(fractions: Sequence[float], columns: Mapping[str, Sequence[float]]) -> Table:
    return Table(
        columns=(_("Share at most"), _("Prompt tokens"), _("Answer tokens")),
        rows=tuple(
            style.text_cells(
                style.percent(fractions[i]),
                *(f"{columns[name][i]:,.0f}" for name in ("input_tokens", "output_tokens")),
            )
            for i in style.thinned(fractions)
        ),
    )


def _length_table(figures: Mapping[str, Any]) -> Chart:
    names = ((_("Prompt"), "input_tokens"), (_("Answer"), "output_tokens"))
    rows = tuple(
        (Cell(text=label, muted=True), *(Cell(text=f"{figures[name][mark]:,.0f}") for mark in MARKS))
        for label, name in names
    )
    return Chart(
        slug="length-figures",
        title=_("Lengths of prompts and answers"),
        axis=_("Tokens, over the requests that were kept"),
        summary=_("Mean and percentiles of the lengths of prompts and answers."),
        source=_("As recorded"),
        draw="table",
        table=Table(columns=(_("Tokens"), _("mean"), *MARKS[1:-1], _("max")), rows=rows),
        wide=True,
    )
