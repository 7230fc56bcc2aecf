"""What a search comes to once its best and its frontier were planned and simulated: rows, a recommendation, sentences.

Each verified row holds the closed form and the simulation side by side, their ratio, and whether the SLO is kept by as
many requests as it asks for. Recommended is the best, by the simulated objective, of those that keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simcore.analysis.cells import Cell, CellResult
from simcore.analysis.search.closed import Found
from simcore.analysis.search.rows import overrides, row
from simcore.analysis.search.spec import MOST_IS_BEST
from simcore.errors import Message, Phrases
from simcore.units import dimension_of, printed_text

Row = dict[str, Any]
SIMULATED: Final[Mapping[str, str]] = {
    "usd_per_million_tokens": "cost.usd_per_million_tokens",
    "usd_per_million_output_tokens": "cost.usd_per_million_output_tokens",
    "ttft_s": "serving.ttft_s.mean",
    "tpot_s": "serving.tpot_s.mean",
    "output_token_per_s_per_chip": "serving.output_token_per_s_per_chip",
    "joule_per_token": "cost.joule_per_token",
    "tco_usd_per_year": "cost.tco_usd_per_year",
}
BESIDE: Final = ("serving.ttft_s.p95", "serving.tpot_s.p95", "serving.slo_attainment_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The rows of a search and what they say. `recommended` is one of `rows`; None: nothing keeps the limits."""

    candidate_count: int
    feasible_count: int
    rows: tuple[Row, ...]  # verified ones first, then the rest of the frontier
    by_chip: tuple[Row, ...]
    relaxations: tuple[Row, ...]
    recommended: Row | None
    messages: tuple[Message, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "candidate_count": self.candidate_count,
            "feasible_count": self.feasible_count,
            "recommended": self.recommended,
            "rows": list(self.rows),
            "by_chip": list(self.by_chip),
            "relaxations": list(self.relaxations),
            "messages": [message.as_dict() for message in self.messages],
        }


def cells_of(found: Found) -> list[Cell]:
    """What is planned and simulated."""
    return [
        Cell(index=index, overrides=overrides(found.candidates, place, found.scenario, found.search))
        for index, place in enumerate(found.verified)
    ]


def answer(found: Found, results: Sequence[CellResult]) -> Answer:
    """The search's rows with what their cells came to."""
    attainment = found.scenario.workload.slo.attainment_fraction
    simulated = {one.index: one for one in results}
    rows = [
        {"index": index} | _row(found, place) | _verified(found, place, simulated.get(index), attainment)
        for index, place in enumerate(found.verified)
    ]
    rows += [_row(found, int(place)) for place in found.frontier if int(place) not in set(found.verified)]
    kept = [one for one in rows if one.get("keeps_slo")] if found.best is not None else []
    sign = -1.0 if found.search.objective in MOST_IS_BEST else 1.0
    recommended = min(kept, key=lambda one: sign * one["objective_simulated"], default=None)
    moved = [
        {
            "limit": one.limit,
            "asked": one.asked,
            "needed": one.needed,
            "ratio": one.ratio,
            **_row(found, one.place),
        }
        for one in found.relaxations
    ]
    chips = [
        {"chip": chip} | ({} if place is None else _row(found, place))
        for chip, place in found.by_chip.items()
    ]
    return Answer(
        candidate_count=len(found.candidates),
        feasible_count=int(found.feasible.sum()),
        rows=tuple(rows),
        by_chip=tuple(chips),
        relaxations=tuple(moved),
        recommended=recommended,
        messages=tuple(_messages(found, rows, moved, recommended)),
    )


def _row(found: Found, place: int) -> Row:
    own = row(found.candidates, place, found.limits)
    objective = float(found.candidates.figures[found.search.objective][place])
    return own | {
        "objective": objective,
        "on_frontier": bool((found.frontier == place).any()),
        "overrides": overrides(found.candidates, place, found.scenario, found.search),
    }


def _verified(found: Found, place: int, result: CellResult | None, attainment: float) -> Row:
    """What the simulation says beside the closed forms."""
    if result is None:
        return {}
    if result.errors:
        return {"errors": [str(error["message"]) for error in result.errors], "keeps_slo": False}
    figures, metrics = found.candidates.figures, result.metrics
    said: Row = {"simulated": {}, "ratio": {}}
    for name, metric in SIMULATED.items():
        expected, got = float(figures[name][place]), metrics.get(metric)
        if isinstance(got, int | float):
            said["simulated"][name] = got
            said["ratio"][name] = got / expected if expected else None
    said |= {name: metrics[name] for name in BESIDE if name in metrics}
    kept = metrics.get("serving.slo_attainment_fraction", 0.0)
    objective = found.search.objective
    said["objective_simulated"] = said["simulated"].get(objective, float(figures[objective][place]))
    said["keeps_slo"] = isinstance(kept, int | float) and kept >= attainment
    return said


def _messages(
    found: Found, rows: Sequence[Row], moved: Sequence[Row], recommended: Row | None
) -> list[Message]:
    if found.best is None:
        return [*_in_the_way(found, moved)]
    if recommended is None:
        return [_none_keeps(found, rows[0])] if rows and "simulated" in rows[0] else []
    objective = found.search.objective
    said = [
        Message(
            code="search.recommended",
            template="{design}: {objective}, simulated, and {share:.1%} of requests keep the SLO",
            params={
                "design": design_text(recommended),
                "objective": objective_text(objective, recommended["objective_simulated"]),
                "share": recommended["serving.slo_attainment_fraction"],
            },
        )
    ]
    first = rows[0]
    if first is not recommended and not first.get("keeps_slo"):
        said.append(
            Message(
                code="search.first_fails",
                template="{design} is best by closed forms, but of its requests {share:.1%} keep the SLO when they are "
                "simulated",
                params={
                    "design": design_text(first),
                    "share": first.get("serving.slo_attainment_fraction", 0.0),
                },
            )
        )
    return said


def _none_keeps(found: Found, first: Row) -> Message:
    return Message(
        code="search.none_keeps",
        template="the means keep the limits, but of those simulated none keeps the SLO for {asked:.0%} of requests; "
        "the closest is {design} with {share:.1%}: loosen workload.slo, or allow more chips",
        params={
            "asked": found.scenario.workload.slo.attainment_fraction,
            "design": design_text(first),
            "share": first.get("serving.slo_attainment_fraction", 0.0),
        },
    )


def _in_the_way(found: Found, moved: Sequence[Row]) -> list[Message]:
    """The binding limit and the nearest relaxation; then what each further limit would have to be."""
    if not moved:
        return [_nothing_alone(found)]
    first, *further = (_relaxed(found, one) for one in moved)
    return [
        Message(
            code="search.binding",
            template="{limit} ≤ {asked} binds: the least is {needed}, by {design}; with {limit} ≤ {needed} it comes to "
            "{objective}",
            params=first,
        ),
        *(
            Message(
                code="search.binding_too",
                template="or, all else as asked, {limit} ≤ {needed} instead of {asked}: {design}, {objective}",
                params=params,
            )
            for params in further
        ),
    ]


def _relaxed(found: Found, one: Row) -> dict[str, Any]:
    return {
        "limit": limit_name(one["limit"]),
        "asked": limit_text(one["limit"], one["asked"]),
        "needed": limit_text(one["limit"], one["needed"]),
        "design": design_text(one),
        "objective": objective_text(found.search.objective, one["objective"]),
    }


def _nothing_alone(found: Found) -> Message:
    if found.nearest is None:
        return Message(
            code="search.nothing_fits",
            template="no candidate holds the model and one sequence on {chips:,} chips; allow larger tp or pp, more "
            "chips, or other kinds of chip",
            params={"chips": found.search.max_chips},
        )
    place, needed = found.nearest
    over = Phrases(
        tuple(
            Message(
                code="phrase.overrun",
                template="{limit} {needed} ({asked})",
                params={
                    "limit": limit_name(name),
                    "needed": limit_text(name, value),
                    "asked": limit_text(name, found.limits[name]),
                },
            )
            for name, value in needed.items()
            if value > found.limits[name] * (1 + 1e-9)
        )
    )
    return Message(
        code="search.together",
        template="no single limit is in the way; the nearest is {design} with, against what was asked, {over}",
        params={"design": design_text(_row(found, place)), "over": over},
    )


def design_text(one: Row) -> str:
    """`8 × NVIDIA H200 SXM, TP4 × 2`, with prefill and decode apart `TP2 × 1 → TP4 × 3`."""
    counts = [str(one["replicas"])]
    cuts = one["cut"].split(" → ")
    if one["prefill_replicas"]:
        counts.insert(0, str(one["prefill_replicas"]))
    said = " → ".join(f"{cut} × {count}" for cut, count in zip(cuts, counts, strict=True))
    return f"{one['chip_count']} × {one['chip_name']}, {said}"


def objective_text(objective: str, value: float) -> Phrases:
    """The figure with its unit."""
    shown = {"value": _shown(objective, value)}
    said = {
        "chip_count": Message(code="phrase.chips", template="{value} chips", params=shown),
        "output_token_per_s_per_chip": Message(
            code="phrase.per_chip", template="{value} token/s per chip", params=shown
        ),
        "joule_per_token": Message(code="phrase.joule", template="{value} J per token", params=shown),
        "tco_usd_per_year": Message(code="phrase.per_year", template="{value} per year", params=shown),
        "usd_per_million_tokens": Message(
            code="phrase.per_million", template="{value} per million tokens", params=shown
        ),
        "usd_per_million_output_tokens": Message(
            code="phrase.per_million_out", template="{value} per million output tokens", params=shown
        ),
        "ttft_s": Message(code="phrase.ttft", template="TTFT {value}", params=shown),
        "tpot_s": Message(code="phrase.tpot", template="TPOT {value}", params=shown),
    }
    return Phrases((said[objective],))


def _shown(objective: str, value: float) -> str:
    if "usd_" in objective:
        return f"${value:,.0f}" if objective == "tco_usd_per_year" else f"${value:.3g}"
    return printed_text(value, "s") if objective.endswith("t_s") else f"{value:,.4g}"


def limit_name(limit: str) -> Phrases:
    """What a limit is on."""
    said = {
        "ttft_s": Message(code="phrase.of_ttft", template="TTFT"),
        "tpot_s": Message(code="phrase.of_tpot", template="TPOT"),
        "load_ratio": Message(code="phrase.of_load", template="load over capacity"),
        "chip_count": Message(code="phrase.of_chips", template="chips"),
    }
    return Phrases((said[limit],))


def limit_text(limit: str, value: float) -> str:
    """What a limit is, in its unit."""
    if limit == "chip_count":
        return f"{value:,.0f}"
    return f"{value:.0%}" if limit == "load_ratio" else printed_text(value, dimension_of(limit))
