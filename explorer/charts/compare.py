"""Compare: inputs that differ, results that differ, and the distributions of all scenarios in one plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.latency_cdf import CDFS, axis_text, shape_of
from explorer.charts.style import Cell, Chart, Result, Table
from simcore.analysis.tradeoff import SERIES as TRADEOFF

DASHES: Final = ("5px,4px", "solid", "solid", "2px,2px", "8px,3px,2px,3px", "12px,3px", "1px,4px")
COLORS: Final = (
    "var(--ink-3)",
    "var(--ink)",
    "var(--accent)",
    "var(--compute)",
    "var(--hbm)",
    "var(--scaleup)",
    "var(--queue)",
)
RESULTS: Final = (
    "serving.output_token_per_s_per_chip",
    "serving.output_token_per_s",
    "serving.request_per_s",
    "serving.ttft_s.p50",
    "serving.ttft_s.p95",
    "serving.tpot_s.p50",
    "serving.tpot_s.p95",
    "serving.e2e_s.p95",
    "serving.slo_attainment_fraction",
    "serving.slo_goodput_request_per_s",
    "serving.offered_load_ratio",
    "serving.mean_batch_size",
    "serving.mfu_fraction",
    "serving.mbu_fraction",
    "compute.decode_step_s",
    "compute.prefill_step_s",
    "memory.kv_token_capacity",
    "analysis.effective_utilisation_fraction",
    "fabric.switch_count",
    "fabric.link_count",
    "fabric.transceiver_count",
    "fabric.island_count",
    "fabric.diameter_hops",
    "fabric.fabric_capex_usd",
    "fabric.fabric_power_w",
    "reliability.slice_goodput_fraction.mean",
    "reliability.static_goodput_fraction.mean",
    "reliability.goodput_fraction",
    "cost.usd_per_million_output_tokens",
    "cost.capex_usd",
    "cost.tco_usd_per_year",
    "cost.power_w",
)


def inputs(documents: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Chart:
    """The scenario paths whose values differ, as typed; the first scenario is the baseline."""
    flat = [_flat(document) for document in documents]
    paths = list(dict.fromkeys(path for one in flat for path in one))
    differing = [path for path in paths if len({one.get(path, "") for one in flat}) > 1]
    rows = tuple(
        (
            Cell(text=wording.label(path), muted=True),
            *(Cell(text=one.get(path, _("default")), muted=index == 0) for index, one in enumerate(flat)),
        )
        for path in differing
    )
    title = _("The inputs are the same")
    if rows:
        title = (
            _("One input differs") if len(rows) == 1 else _("%(count)s inputs differ") % {"count": len(rows)}
        )
    return Chart(
        slug="inputs",
        title=title,
        axis=_("As typed; inputs that are equal are left out"),
        summary=title,
        draw="table",
        table=Table(columns=(_("Input"), *names), rows=rows),
    )


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in document.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        if path in ("name", "description", "schema_version"):
            continue
        if isinstance(value, Mapping) and value:
            found |= _flat(value, path)
        elif value not in (None, {}, []):
            found[path] = str(value)
    return found


def results(documents: Sequence[Result | None], names: Sequence[str]) -> Chart | None:
    """The metrics that differ, with change against the first where there are two."""
    listed = [name for name in RESULTS if any(style.metric(one, name) is not None for one in documents)]
    differing = [name for name in listed if len({_rounded(style.metric(one, name)) for one in documents}) > 1]
    if not listed:
        return None
    pair = len(documents) == 2 and comparable(documents)
    rows = tuple(_result_row(name, documents, pair=pair) for name in differing or listed)
    return Chart(
        slug="results",
        title=_results_title(differing, documents)
        if pair
        else _("%(count)s results differ") % {"count": len(differing)},
        axis=_("Filled arrow: better. Hollow arrow: worse"),
        summary=_("Results of each scenario, change against the first."),
        draw="table",
        table=Table(columns=(_("Result"), *names, *((_("Change"),) if pair else ())), rows=rows),
    )


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def comparable(documents: Sequence[Result | None]) -> bool:
    """Whether all do the same kind of work, so that a change means something."""
    return len({style.kind_of_work(one) for one in documents}) == 1


def _result_row(name: str, documents: Sequence[Result | None], *, pair: bool) -> tuple[Cell, ...]:
    first = style.metric(documents[0], name)
    judged = comparable(documents)
    cells = [Cell(text=wording.label(name), muted=True)]
    for index, one in enumerate(documents):
        value = style.metric(one, name)
        if value is None:
            cells.append(Cell(text="–", muted=True))
            continue
        shown = style.number(value, name)
        change = None if index == 0 or pair or not judged else style.delta(value, first, name)
        cells.append(Cell(text=shown.text, unit=shown.unit, delta=change, muted=index == 0))
    if pair:
        cells.append(Cell(text="", delta=style.delta(style.metric(documents[1], name), first, name)))
    return tuple(cells)


def _results_title(names: Sequence[str], documents: Sequence[Result | None]) -> str:
    deltas = [style.delta(style.metric(documents[1], n), style.metric(documents[0], n), n) for n in names]
    judged = [change for change in deltas if change is not None and change.quality != "same"]
    better = sum(1 for change in judged if change.quality == "better")
    if not judged:
        return _("The results are the same")
    if better == len(judged):
        return _("Every result that differs improves")
    if better == 0:
        return _("Every result that differs gets worse")
    return _("%(better)s results improve, %(worse)s get worse") % {
        "better": better,
        "worse": len(judged) - better,
    }


def overlaid_cdf(which: str, documents: Sequence[Result | None], names: Sequence[str]) -> Chart | None:
    """One distribution of all scenarios; the baseline is grey and dashed."""
    data = []
    for index, (one, name) in enumerate(zip(documents, names, strict=True)):
        curve = style.series(one, f"{which}_cdf")
        if not curve.get(f"{which}_s"):
            continue
        trace = style.line(
            curve[f"{which}_s"], curve["fraction"], name=name, color=COLORS[index % len(COLORS)],
            line={"dash": DASHES[index % len(DASHES)], "shape": shape_of(which)},
            hovertemplate="%{x:.3~s}s · %{y:.1%}<extra>%{fullData.name}</extra>",
        )  # fmt: skip
        data.append(trace)
    if not data:
        return None
    label = wording.label(CDFS[which])
    return Chart(
        slug=f"compare-{which}",
        title=_("%(name)s of every request, scenario by scenario") % {"name": label},
        axis=axis_text(which),
        summary=_("Cumulative distribution of %(name)s for each scenario.") % {"name": label},
        source=_("Simulated"),
        draw="plot",
        body=style.figure(
            data,
            x=style.log_axis([value for trace in data for value in trace["x"]], "x_s"),
            y=style.axis(range=[0, 1.02], tickformat=".0%", dtick=0.25),
            showlegend=True,
            legend=style.LEGEND,
            margin={"l": 48, "r": 16, "t": 48, "b": 36},
        ),
    )


def tradeoffs(documents: Sequence[Result | None], names: Sequence[str]) -> Chart | None:
    """What each scenario gives per chip at each speed of a user, as closed forms; the baseline is grey and dashed."""
    having = [
        (index, name, curve)
        for index, (one, name) in enumerate(zip(documents, names, strict=True))
        if (curve := style.series(one, TRADEOFF))
    ]
    if not having:
        return None
    data = [
        style.line(
            curve["token_per_s_per_user"], curve["token_per_s_per_chip"], name=name,
            color=COLORS[index % len(COLORS)], line={"dash": DASHES[index % len(DASHES)]},
            customdata=curve["batch_sequences"],
            hovertemplate="%{x:,.1f} | %{y:,.0f} (%{customdata:,.0f})<extra>%{fullData.name}</extra>",
        )
        for index, name, curve in having
    ]  # fmt: skip
    most = max(having, key=lambda found: max(found[2]["token_per_s_per_chip"]))
    words = {"name": most[1], "count": f"{max(most[2]['token_per_s_per_chip']):,.0f}"}
    title = _("%(name)s gives the most per chip, %(count)s token/s") % words
    return Chart(
        slug="compare-tradeoff",
        title=title,
        axis=_("Token/s per chip (up) against token/s per user (right), from one sequence to as many as fit"),
        summary=title,
        source=_("Closed forms, without queueing"),
        draw="plot",
        body=style.figure(
            data,
            x=style.axis(rangemode="tozero"),
            y=style.axis(rangemode="tozero"),
            showlegend=True,
            legend=style.LEGEND,
            margin={"l": 48, "r": 16, "t": 48, "b": 36},
        ),
        table=Table(
            columns=(
                _("Scenario"), _("Sequences together"), _("Token/s per user"), _("Token/s per chip"),
            ),
            rows=tuple(
                style.text_cells(name, f"{batch:,.0f}", f"{user:,.1f}", f"{chip:,.0f}")
                for _index, name, curve in having
                for batch, user, chip in list(
                    zip(
                        curve["batch_sequences"], curve["token_per_s_per_user"],
                        curve["token_per_s_per_chip"], strict=True,
                    )
                )[::4]
            ),
        ),
    )  # fmt: skip
