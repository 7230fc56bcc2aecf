"""The finding in words: what one change did, against its baseline, and what binds now.

Works on two Result documents (as stored or streamed) and the rows of inputs that differ. The headline
names the change and its largest effect; where one chip figure was multiplied it says what the factor
promised and what it brought. The second sentence says who waits for what now, and what the next doubling
would bring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from simcore import glossary
from simcore.analysis.compare import InputRow
from simcore.errors import Message
from simcore.units import dimension_of, printed_text, quantity

Document = Mapping[str, Any]
# What a reader cares about, with the words for more and for less of it.
_EFFECTS: Final = (
    ("compute.decode_step_s", "decoding", "faster", "slower"),
    ("serving.capacity_request_per_s", "capacity", "higher", "lower"),
    ("compute.prefill_step_s", "prefill", "faster", "slower"),
    ("serving.ttft_s.p95", "TTFT p95", "shorter", "longer"),
)
NOTICEABLE: Final = 0.01
OVERRIDES: Final = "hardware.chip_overrides."


def headline(baseline: Document, current: Document, changed: Sequence[InputRow]) -> list[Message]:
    """One or two sentences on `current` against `baseline`; empty where nothing differs."""
    if not changed:
        return []
    if "serving.capacity_request_per_s" in current["metrics"]:
        return [_serving(baseline, current, changed), *_who_waits(baseline, current)]
    return [_wiring(baseline, current, changed)]


def change_text(changed: Sequence[InputRow]) -> str:
    """The change in a few words: `HBM bandwidth ×2`, `Fabric: rail_only`, `3 inputs`."""
    if len(changed) > 1:
        kinds = [row for row in changed if row.path.endswith(".kind")]
        if len(kinds) != 1:
            return f"{len(changed)} changes"
        changed = kinds
    row = changed[0]
    factor = _factor(row)
    if factor is not None:
        return f"{row.label} ×{factor:g}"
    before, after = row.values[0], row.values[-1]
    return (
        f"{row.label} {_shown(before)} → {_shown(after)}"
        if before is not None
        else f"{row.label} {_shown(after)}"
    )


def _shown(value: Any) -> str:
    return "auto" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)


def _factor(row: InputRow) -> float | None:
    after = row.values[-1]
    if row.path.startswith(OVERRIDES) and isinstance(after, str) and after[:1] in "x×":
        return quantity(after[1:], "")
    return None


def _serving(baseline: Document, current: Document, changed: Sequence[InputRow]) -> Message:
    effects = [(abs(speedup - 1), speedup, *words) for speedup, words in _speedups(baseline, current)]
    change, factor = change_text(changed), _factor(changed[0]) if len(changed) == 1 else None
    size, speedup, what, faster, slower = max(effects, default=(0.0, 1.0, "", "", ""))
    if size < NOTICEABLE:
        return Message(
            code="headline.nothing",
            template="{change} changes next to nothing here",
            params={"change": change},
        )
    params = {
        "change": change,
        "what": what,
        "gain": f"{abs(speedup - 1):.0%}",
        "how": faster if speedup > 1 else slower,
    }
    if factor is not None and speedup > 1:
        return Message(
            code="headline.factor",
            template="{change} makes {what} {gain} {how}, not {promised}",
            params=params | {"promised": f"{factor - 1:.0%}"},
        )
    return Message(code="headline.change", template="{change} makes {what} {gain} {how}", params=params)


def _speedups(baseline: Document, current: Document) -> list[tuple[float, tuple[str, str, str]]]:
    """How many times as fast (or as much) each effect got: a time by its fall, a rate by its rise."""
    found = []
    for metric, what, faster, slower in _EFFECTS:
        before, after = baseline["metrics"].get(metric), current["metrics"].get(metric)
        if not before or not after:
            continue
        speedup = before / after if dimension_of(metric) == "s" else after / before
        found.append((speedup, (what, faster, slower)))
    return found


def _who_waits(baseline: Document, current: Document) -> list[Message]:
    """The share that grew most, and the next doubling."""
    before, after = _shares(baseline), _shares(current)
    grown = max(after, key=lambda name: after[name] - before.get(name, 0.0), default="")
    if not grown or after[grown] - before.get(grown, 0.0) < NOTICEABLE:
        return []
    params: dict[str, Any] = {
        "resource": glossary.resource_label(grown),
        "now": f"{after[grown]:.0%}",
        "then": f"{before.get(grown, 0.0):.0%}",
    }
    best = max(current["tables"].get("doublings", ()), key=lambda row: row["gain_ratio"], default=None)
    if best is None:
        return [
            Message(
                code="headline.share",
                template="{resource} now takes {now} of the working time, up from {then}",
                params=params,
            )
        ]
    return [
        Message(
            code="headline.share_and_next",
            template="{resource} now takes {now} of the working time, up from {then}; the next doubling that "
            "brings most is {next}, {gain} more capacity",
            params=params
            | {"next": glossary.resource_label(best["resource"]), "gain": f"{best['gain_ratio'] - 1:.0%}"},
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
    parts = ", ".join(
        f"{glossary.label(metric)} {_printed(metric, before[metric])} → {_printed(metric, after[metric])}"
        for metric in moved[:2]
    )
    islands = int(after.get("fabric.island_count", 1))
    if islands > 1:
        return Message(
            code="headline.wiring_islands",
            template="{change}: {parts}, but in {islands} islands",
            params={"change": change_text(changed), "parts": parts, "islands": islands},
        )
    return Message(
        code="headline.wiring",
        template="{change}: {parts}",
        params={"change": change_text(changed), "parts": parts},
    )


def _printed(metric: str, value: float) -> str:
    return printed_text(value, dimension_of(metric))
