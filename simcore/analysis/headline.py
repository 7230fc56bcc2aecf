"""The finding in words: what one change did, against its baseline, and what binds now.

Works on two Result documents, as stored or streamed; what differs is read from their inputs. The headline
names the change and its largest effect; where one chip figure was multiplied it says what the factor
promised and what it brought. The second sentence says who waits for what now, and what the next doubling
would bring.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from simcore import glossary
from simcore.analysis.bottleneck import cheapest
from simcore.analysis.compare import InputRow, input_rows
from simcore.errors import Message, Phrases
from simcore.units import dimension_of, printed_text, quantity

Document = Mapping[str, Any]
# What a reader cares about, with the words for better and for worse.
_EFFECTS: Final = (
    ("compute.decode_step_s", "decoding", "faster", "slower"),
    ("serving.capacity_request_per_s", "capacity", "higher", "lower"),
    ("serving.ttft_s.p95", "TTFT p95", "shorter", "longer"),
    ("serving.itl_s.p99", "ITL p99", "shorter", "longer"),
    ("training.token_per_s", "training", "faster", "slower"),
)
NOTICEABLE: Final = 0.02
OVERRIDES: Final = "hardware.chip_overrides."


def headline(baseline: Document, current: Document) -> list[Message]:
    """One or two sentences on `current` against `baseline`; empty where no input differs."""
    documents = (baseline, current)
    rows, _ = input_rows([document["inputs"] for document in documents])
    if not rows:
        return []
    changed = [_named(row, documents) for row in rows]
    if {"serving.capacity_request_per_s", "training.token_per_s"} & current["metrics"].keys():
        return [
            _serving(baseline, current, changed),
            *_who_waits(baseline, current),
            *cheapest(current["tables"].get("doublings", ())),
        ]
    return [_wiring(baseline, current, changed)]


def _named(row: InputRow, documents: Sequence[Document]) -> InputRow:
    """A calibration by the name that its owner gave it, not by its slug or file."""
    if row.path != "hardware.calibration":
        return row
    used = [document.get("tables", {}).get("calibration") for document in documents]
    named = [
        value if value == "auto" or not tables else tables[0]["name"]
        for value, tables in zip(row.values, used, strict=True)
    ]
    return replace(row, values=tuple(named))


def change_text(changed: Sequence[InputRow]) -> Phrases:
    """The change in a few words: `HBM bandwidth ×2`, `Fabric clos → rail_only`, `Changing 3 inputs`."""
    if len(changed) > 1:
        kinds = [row for row in changed if row.path.endswith(".kind")]
        if len(kinds) != 1:
            return _phrase("inputs", template="Changing {count} inputs", count=len(changed))
        changed = kinds
    row = changed[0]
    factor = _factor(row)
    if factor is not None:
        return _phrase("factor", template="{label} ×{factor:g}", label=row.label, factor=factor)
    before, after = row.values[0], _shown(row.values[-1])
    if before is None:
        return _phrase("set", template="{label} {after}", label=row.label, after=after)
    return _phrase(
        "change", template="{label} {before} → {after}", label=row.label, before=_shown(before), after=after
    )


def _phrase(code: str, *, template: str, **params: Any) -> Phrases:
    return Phrases((Message(code=f"phrase.{code}", template=template, params=params),))


def _shown(value: Any) -> str:
    return "auto" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)


def _factor(row: InputRow) -> float | None:
    """How many times the baseline's figure, where both were left as printed or multiplied."""
    if not row.path.startswith(OVERRIDES):
        return None
    before, after = (_times(value) for value in (row.values[0], row.values[-1]))
    return after / before if before and after else None


def _times(override: Any) -> float | None:
    if override is None:
        return 1.0
    return quantity(override[1:], "") if isinstance(override, str) and override[:1] in "x×" else None


def _serving(baseline: Document, current: Document, changed: Sequence[InputRow]) -> Message:
    """The largest effect; where another one went the other way, that one too: a trade has two sides."""
    change, factor = change_text(changed), _factor(changed[0]) if len(changed) == 1 else None
    effects = sorted(_effects(baseline, current), key=lambda effect: -abs(math.log(effect.ratio)))
    if not effects:
        return Message(
            code="headline.nothing",
            template="{change} changes next to nothing here",
            params={"change": change},
        )
    first = effects[0]
    other = next((one for one in effects if (one.ratio > 1) != (first.ratio > 1)), None)
    params: dict[str, Any] = {"change": change, "effect": first.text}
    if factor is not None and factor > 1 and first.ratio > 1:
        return Message(
            code="headline.factor",
            template="{change} makes {effect}, not {promised}",
            params=params | {"promised": f"{factor - 1:.0%}"},
        )
    if other is not None:
        return Message(
            code="headline.trade",
            template="{change} makes {effect}, but {other}",
            params=params | {"other": other.text},
        )
    return Message(code="headline.change", template="{change} makes {effect}", params=params)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How many times as good one thing got, and how that reads."""

    ratio: float
    text: str


def _effects(baseline: Document, current: Document) -> list[Effect]:
    """Noticeable effects; a time got better by its fall, a rate by its rise."""
    found = []
    for metric, what, better, worse in _EFFECTS:
        before, after = baseline["metrics"].get(metric), current["metrics"].get(metric)
        if not before or not after:
            continue
        ratio = before / after if dimension_of(metric) == "s" else after / before
        if abs(ratio - 1) >= NOTICEABLE:
            found.append(Effect(ratio=ratio, text=f"{what} {_size(ratio, better, worse)}"))
    return found


def _size(ratio: float, better: str, worse: str) -> str:
    """`48% faster`, `21% shorter`, `5.2 times longer`: whichever of per cent and factor reads better."""
    word, times = (better, ratio) if ratio > 1 else (worse, 1 / ratio)
    if times >= 2:
        return f"{times:.1f} times {word}"
    shrinks = word in ("shorter", "slower", "lower")
    return f"{1 - 1 / times if shrinks else times - 1:.0%} {word}"


def _who_waits(baseline: Document, current: Document) -> list[Message]:
    """The shares of the working time that grew most, and the next doubling."""
    before, after = _shares(baseline), _shares(current)
    growth = sorted(((share - before.get(name, 0.0), name) for name, share in after.items()), reverse=True)
    shown = [name for grown, name in growth if grown >= max(NOTICEABLE, growth[0][0] / 2)][:2]
    if not shown:
        return []
    shares = ", ".join(
        f"{glossary.resource_label(name)} {after[name]:.0%} ({before.get(name, 0.0):.0%})" for name in shown
    )
    best = max(current["tables"].get("doublings", ()), key=lambda row: row["gain_ratio"], default=None)
    if best is None:
        return [
            Message(
                code="headline.share",
                template="Of the working time, more now goes to {shares}",
                params={"shares": shares},
            )
        ]
    return [
        Message(
            code="headline.share_and_next",
            template="Of the working time, more now goes to {shares}; the next doubling that brings most is {next}, "
            "{gain} more capacity",
            params={
                "shares": shares,
                "next": glossary.resource_label(best["resource"]),
                "gain": f"{best['gain_ratio'] - 1:.0%}",
            },
        )
    ]


def _shares(document: Document) -> dict[str, float]:
    """Shares of the working time, without idleness and failures."""
    rows = document["tables"].get("where_time_goes", ())
    inside = {row["resource"]: row["fraction"] for row in rows if row["resource"] not in ("queue", "failure")}
    whole = sum(inside.values())
    return {name: share / whole for name, share in inside.items()} if whole else {}


def _wiring(baseline: Document, current: Document, changed: Sequence[InputRow]) -> Message:
    before, after = baseline["metrics"], current["metrics"]
    moved = [
        metric
        for metric in (
            "reliability.life.goodput_fraction",
            "fabric.switch_count",
            "fabric.transceiver_count",
            "reliability.slice_goodput_fraction.mean",
            "reliability.static_goodput_fraction.mean",
        )
        if before.get(metric) not in (None, after.get(metric)) and metric in after
    ]
    if not moved:
        return Message(
            code="headline.nothing",
            template="{change} changes next to nothing here",
            params={"change": change_text(changed)},
        )
    parts = Phrases(
        tuple(
            Message(
                code="phrase.change",
                template="{label} {before} → {after}",
                params={
                    "label": glossary.label(metric),
                    "before": _printed(metric, before[metric]),
                    "after": _printed(metric, after[metric]),
                },
            )
            for metric in moved[:2]
        )
    )
    islands = int(after.get("fabric.island_count", 1))
    if islands > 1:
        return Message(
            code="headline.wiring_islands",
            template="{change}: {parts}, but in {islands} islands",
            params={"change": change_text(changed), "parts": parts, "islands": islands},
        )
    held = next((row["params"] for row in current["warnings"] if row["code"] == "fabric.guard_rail"), None)
    if held is not None:
        return Message(
            code="headline.wiring_held",
            template="{change}: {parts}, as long as N ≤ K × k ({chips} ≤ {domain} × {radix})",
            params={
                "change": change_text(changed),
                "parts": parts,
                "chips": f"{held['chip_count']:,}",
                "domain": f"{held['hb_domain_size']:,}",
                "radix": f"{held['radix']:,}",
            },
        )
    return Message(
        code="headline.wiring",
        template="{change}: {parts}",
        params={"change": change_text(changed), "parts": parts},
    )


def _printed(metric: str, value: float) -> str:
    return printed_text(value, dimension_of(metric))
