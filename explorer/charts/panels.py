"""Which charts stand on which tab, under which headline.

`panel(tab, result, baseline=…)` takes a Result document, or what a running simulation has said so far, and
leaves out what is not there yet. `strip` is the row of deltas on top, `comparison_panel` the compare page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import (
    circuits,
    class_curves,
    collectives,
    compare,
    cost,
    cost_offers,
    cost_swings,
    cost_year,
    doublings,
    fabric,
    faults,
    iteration,
    kv_map,
    latency_cdf,
    life,
    life_policies,
    link_loads,
    memory,
    network_bill,
    offload,
    overview,
    reliability,
    replicas,
    serving,
    serving_classes,
    serving_precision,
    shocks,
    style,
    taxes,
    topology,
    traffic,
    training_iteration,
    wiring,
)
from explorer.charts.style import Chart, Note, Panel, Result, Strip, Tile
from explorer.wording import translated
from simcore.analysis.headline import headline

TABS: Final = ("overview", "fabric", "memory", "serving", "iteration", "reliability", "cost")
STRIP: Final = (
    "serving.tpot_s.mean",
    "serving.output_token_per_s_per_chip",
    "serving.ttft_s.p95",
    "serving.slo_attainment_fraction",
    "cost.power_w",
    "cost.usd_per_million_output_tokens",
    "cost.capex_usd",
)
HEADLINES: Final = (
    "training.token_per_s",
    "serving.output_token_per_s_per_chip",
    "serving.tpot_s.mean",
    "serving.ttft_s.p95",
    "fabric.switch_count",
    "fabric.transceiver_count",
    "fabric.island_count",
    "reliability.slice_goodput_fraction.mean",
    "reliability.static_goodput_fraction.mean",
    "reliability.life.goodput_fraction",
    "cost.capex_usd",
)
OVERVIEW_KPIS: Final = (
    "analysis.effective_utilisation_fraction",
    "analysis.friction_ratio",
    "analysis.fault_visibility",
    "serving.offered_load_ratio",
    "compute.decode_step_s",
)
SERVING_KPIS: Final = (
    "serving.request_per_s",
    "serving.output_token_per_s",
    "serving.slo_goodput_request_per_s",
    "serving.offered_load_ratio",
    "serving.preemption_count",
    "serving.replica_count",
    "serving.autoscaling.used_fraction",
)


TRAINING: Final = (
    "training.token_per_s",
    "training.step_s",
    "training.mfu_fraction",
    "training.days",
    "cost.power_w",
    "cost.usd_per_million_tokens",
    "training.memory_bytes_per_chip",
)
TRAINING_KPIS: Final = (
    "analysis.effective_utilisation_fraction",
    "analysis.friction_ratio",
    "analysis.fault_visibility",
    "training.bubble_fraction",
    "training.exposed_communication_fraction",
)
FABRIC_KPIS: Final = (
    "fabric.bisection_bytes_per_s",
    "reliability.goodput_fraction",
    "cost.capex_usd",
    "cost.tco_usd_per_year",
    "cost.power_w",
)
FABRIC_STRIP: Final = (
    "reliability.life.goodput_fraction",
    "reliability.life.utilisation_fraction",
    "fabric.switch_count",
    "fabric.transceiver_count",
    "fabric.island_count",
    "reliability.slice_goodput_fraction.mean",
    "reliability.static_goodput_fraction.mean",
    "fabric.fabric_capex_usd",
    "fabric.diameter_hops",
    "cost.power_w",
    "cost.capex_usd",
)
# Remarks that the model makes in passing; all other warnings stand out.
REMARKS: Final = frozenset(
    {
        "autoscaling.owned", "calibration.class_default", "chips.idle", "cost.unpriced", "fabric.guard_rail",
        "fabric.none_needed", "input.no_effect", "pipeline.lanes", "reliability.small_job",
    }
)  # fmt: skip


def strip(result: Result | None, baseline: Result | None = None, *, baseline_name: str = "") -> Strip:
    """At most six metrics that the result has, with their change since the baseline."""
    names = {"none": FABRIC_STRIP, "training": TRAINING}.get(style.kind_of_work(result), STRIP)
    tiles = style.tiles(names, result, baseline)[:6]
    if rests_on := fabric.guard(result):
        told = f"{rests_on.equation}: {rests_on.numbers}"
        tiles = tuple(replace(one, sub=told) if one.metric == "fabric.switch_count" else one for one in tiles)
    return Strip(tiles=tiles, baseline_name=baseline_name)


def panel(tab: str, result: Result | None, *, baseline: Result | None = None) -> Panel:
    """One tab's headline, numbers and charts."""
    build = {
        "overview": _overview,
        "fabric": _fabric,
        "memory": _memory,
        "serving": _serving,
        "iteration": _iteration,
        "reliability": _reliability,
        "cost": _cost,
    }[tab]
    return build(result, baseline)


def _present(*charts: Chart | None) -> tuple[Chart, ...]:
    return tuple(chart for chart in charts if chart is not None)


def _overview(result: Result | None, baseline: Result | None) -> Panel:
    kind = style.kind_of_work(result)
    fabric_only = kind == "none"
    title, lede = _finding(result, baseline)
    charts = _present(
        overview.where_time_goes(result, baseline),
        doublings.doublings(result),
        taxes.losses(result),
        latency_cdf.cdf("ttft", result, baseline),
        serving.over_time(result, baseline) if kind == "serving" else None,
        topology.picture(result, other=baseline) if fabric_only else None,
        fabric.counts(result, baseline) if fabric_only else None,
        reliability.slice_goodput(result) if fabric_only else None,
        taxes.taxes(result),
        cost.bill(result),
    )
    return Panel(
        tab="overview",
        headline=title,
        lede=lede,
        guard=fabric.guard(result),
        notes=_notes(result),
        kpis=_kpis(
            {"none": FABRIC_KPIS, "training": TRAINING_KPIS}.get(kind, OVERVIEW_KPIS), result, baseline
        ),
        charts=charts,
        extra={"taxes": taxes.tax_bars(result)},
    )


def _fabric(result: Result | None, baseline: Result | None) -> Panel:
    before = topology.picture(baseline, slug="topology-baseline") if _differs(result, baseline) else None
    return Panel(
        tab="fabric",
        headline=_fabric_headline(result, baseline),
        guard=fabric.guard(result),
        notes=_notes(result, "topology", "fabric", "hardware"),
        charts=_present(
            before,
            topology.picture(result, other=baseline),
            fabric.counts(result, baseline),
            wiring.domains(result),
            wiring.ports(result),
            fabric.hops(result),
            wiring.scaleup(result),
            *traffic.charts(result),
            link_loads.histogram(result),
            link_loads.hottest(result),
            network_bill.bill(result),
            wiring.operations(result),
            collectives.collectives(result),
            cost.bill(result),
        ),
    )


def _differs(result: Result | None, baseline: Result | None) -> bool:
    table = "quotient_graph"
    graphs = [(one or {}).get("tables", {}).get(table) for one in (result, baseline)]
    return graphs[1] is not None and graphs[0] != graphs[1]


def _memory(result: Result | None, baseline: Result | None) -> Panel:
    chart = memory.waterfall(result)
    return Panel(
        tab="memory",
        headline=memory.headline(result),
        notes=_notes(result, "serving.kv", "serving.max_model_len", "model", "memory"),
        kpis=_kpis(memory.KPIS, result, baseline),
        charts=_present(
            chart,
            memory.kv_parts(result, baseline),
            kv_map.kv_map(result),
            memory.movement(result),
            offload.tiers(result),
            offload.break_even(result),
            memory.capacity(result, baseline),
        ),
    )


def _serving(result: Result | None, baseline: Result | None) -> Panel:
    if style.kind_of_work(result) != "serving":
        return Panel(tab="serving", headline=_("This scenario serves no requests"))
    return Panel(
        tab="serving",
        headline=_regime_headline(result),
        notes=_notes(result, "workload", "serving"),
        kpis=_kpis(SERVING_KPIS, result, baseline),
        charts=_present(
            serving.over_time(result, baseline),
            replicas.over_time(result),
            latency_cdf.cdf("ttft", result, baseline),
            latency_cdf.cdf("itl", result, baseline),
            latency_cdf.cdf("tpot", result, baseline),
            latency_cdf.cdf("e2e", result, baseline),
            serving.percentiles(result, baseline),
            serving_classes.attainment(result, baseline),
            serving_classes.times(result, baseline),
            class_curves.over_time(result, baseline),
            serving_precision.replications(result),
            serving_precision.steady_state(result),
        ),
    )


def _iteration(result: Result | None, baseline: Result | None) -> Panel:
    if training_iteration.pipeline(result):
        return Panel(
            tab="iteration",
            headline=training_iteration.headline(result),
            notes=_notes(result, "training", "calibration"),
            kpis=_kpis(training_iteration.KPIS, result, baseline),
            charts=_present(
                iteration.roofline(result), iteration.split(result), training_iteration.gantt(result)
            ),
        )
    return Panel(
        tab="iteration",
        headline=iteration.headline(result),
        notes=_notes(result, "serving", "calibration") if iteration.rows(result) else (),
        kpis=_kpis(iteration.KPIS, result, baseline) if iteration.rows(result) else (),
        charts=_present(iteration.roofline(result), iteration.split(result), iteration.gantt(result)),
    )


def _reliability(result: Result | None, baseline: Result | None) -> Panel:
    return Panel(
        tab="reliability",
        headline=reliability.headline(result),
        notes=(*reliability.quantisation(result), *_notes(result, "reliability")),
        kpis=_kpis((*shocks.KPIS, *life.KPIS, *reliability.KPIS, *faults.KPIS), result, baseline),
        charts=_present(
            shocks.goodput(result),
            shocks.bought(result),
            life.timeline(result),
            life.chip_time(result),
            life_policies.spares(result),
            life_policies.policies(result),
            reliability.slice_goodput(result),
            reliability.grid(result),
            reliability.spares(result),
            circuits.cubes(result),
            circuits.switches(result),
            faults.blast_radius(result),
            faults.suspects(result),
            faults.causes(result),
            life.events(result),
        ),
    )


def _cost(result: Result | None, baseline: Result | None) -> Panel:
    charts = _present(
        cost_year.year(result),
        cost_offers.break_even(result),
        cost_swings.tornado(result),
        cost_offers.token_prices(result, baseline),
        taxes.taxes(result),
        cost_year.energy(result),
        cost_year.capital(result),
        cost.bill(result),
    )
    met = next((chart for chart in charts if chart.slug == "break-even"), None)
    return Panel(
        tab="cost",
        headline=met.title if met else charts[0].title if charts else _("Cost and energy"),
        notes=_notes(result, "economics", "topology.price_book"),
        kpis=_kpis(cost.KPIS, result, baseline),
        charts=charts,
    )


def comparison_panel(
    documents: Sequence[Mapping[str, Any]], results: Sequence[Result | None], names: Sequence[str]
) -> Panel:
    """The compare page: input diff and result diff side by side, then distributions."""
    table = compare.results(results, names)
    return Panel(
        tab="compare",
        headline=_comparison_headline(results) or (table.title if table else _("Compare scenarios")),
        guard=next((found for one in results if (found := fabric.guard(one))), None),
        charts=_present(
            compare.inputs(documents, names),
            table,
            compare.tradeoffs(results, names),
            *(compare.overlaid_cdf(which, results, names) for which in ("ttft", "tpot", "e2e")),
        ),
    )


# --- words --------------------------------------------------------------------------------------------------


def _kpis(names: Sequence[str], result: Result | None, baseline: Result | None) -> tuple[Tile, ...]:
    return style.tiles(names, result, baseline)


def _finding(result: Result | None, baseline: Result | None) -> tuple[str, str]:
    """The claim of the page and the paragraph below it: what changed, else the first finding."""
    findings = [_sentence(translated(row)) for row in style.rows(result, "findings")]
    told = _told(result, baseline)
    if told:
        return told[0].rstrip(".。"), " ".join(told[1:] or findings[:2])
    changed = change_headline(result, baseline)
    if changed:
        return changed, " ".join(findings[:3])
    if findings:
        return findings[0].rstrip(".。"), " ".join(findings[1:4])
    if style.kind_of_work(result) == "none":
        return _fabric_headline(result, None), ""
    return _regime_headline(result), ""


def _comparison_headline(results: Sequence[Result | None]) -> str:
    if not compare.comparable(results):
        return _("These do different work: they stand side by side, and no change is counted")
    if len(results) != 2:
        return ""
    told = _told(results[1], results[0])
    return told[0].rstrip(".。") if told else change_headline(results[1], results[0])


def _told(result: Result | None, baseline: Result | None) -> list[str]:
    """What the analysis says of the change, where both runs are whole."""
    if result is None or baseline is None or "inputs" not in result or "inputs" not in baseline:
        return []
    return [_sentence(translated(message)) for message in headline(baseline, result)]


def _sentence(text: str) -> str:
    ended = text.endswith((".", "。", "!", "?"))
    return wording.capitalised(text) if ended else _("%(text)s.") % {"text": wording.capitalised(text)}


def change_headline(result: Result | None, baseline: Result | None) -> str:
    """The first headline metric that differs from the baseline, with what binds now."""
    for name in HEADLINES:
        value = style.metric(result, name)
        change = style.delta(value, style.metric(baseline, name), name)
        if value is None or change is None or not change.arrow:
            continue
        words = {
            "what": wording.label(name),
            "before": change.before,
            "now": style.number(value, name),
            "change": change.text,
        }
        claim = _("%(what)s: %(change)s down, from %(before)s to %(now)s") % words
        if change.arrow == "up":
            claim = _("%(what)s: %(change)s up, from %(before)s to %(now)s") % words
        binding = (result or {}).get("metrics", {}).get("analysis.bottleneck")
        if not binding:
            return claim
        return _("%(claim)s; %(resource)s binds now") % {
            "claim": claim,
            "resource": wording.resource_in_text(str(binding)),
        }
    return ""


def _regime_headline(result: Result | None) -> str:
    regime = str((result or {}).get("metrics", {}).get("serving.regime") or "")
    ratio = style.metric(result, "serving.offered_load_ratio")
    words = {"ratio": f"{ratio:.2f}" if ratio is not None else ""}
    if regime and ratio is None:
        return _("Closed loop: users wait for each other, so the load follows the capacity")
    if regime == "overloaded":
        return _("Overloaded: ρ = %(ratio)s, the queue never empties") % words
    if regime == "near_saturation":
        return _("Near saturation: ρ = %(ratio)s, small changes move the tail a lot") % words
    if ratio is not None:
        return _("Stable: the offered load is %(ratio)s of capacity") % words
    return _("Simulating")


def _fabric_headline(result: Result | None, baseline: Result | None) -> str:
    chart = fabric.counts(result, baseline)
    return chart.title if chart else _("Fabric")


def _notes(result: Result | None, *prefixes: str) -> tuple[Note, ...]:
    """Warnings of the result; with prefixes, only those at these paths."""
    found = (result or {}).get("warnings") or ()
    return tuple(
        Note(
            text=_remark(row),
            kind="plain" if row.get("code") in REMARKS else "warn",
            code=str(row.get("code", "")),
        )
        for row in found
        if row.get("code") not in ("fabric.islands", "fabric.guard_rail")  # the guard rail says it
        if not prefixes or not row.get("path") or str(row["path"]).startswith(prefixes)
    )


def _remark(row: Mapping[str, Any]) -> str:
    """A warning as a sentence; one that is about a single input begins with that input's name."""
    text = translated(row)
    if row.get("code") == "input.no_effect":
        return _sentence(f"{wording.label(str(row['path']))}: {text}")
    return _sentence(text)
