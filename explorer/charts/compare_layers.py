"""Three-layer attribution as pictures: what each layer earned, and what every subset of the changes came to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts.style import Bar, Cell, Chart, Note, Panel, Table
from explorer.wording import capitalised, in_text, translated
from simcore.analysis.layer_words import TOGETHER_RATIO, factor
from simcore.analysis.layers import LAYERS

LABEL_WIDTH: Final = 34.0  # per cent of the picture, left of the bars
REACH: Final = 50.0  # of the longest bar; the rest is for its number
Found = Mapping[str, Any]  # of `Attribution.as_dict`


def panel(found: Found, sentences: Sequence[Mapping[str, Any]]) -> Panel:
    """The finding, what goes with it, and two pictures where there is something to divide."""
    said = [translated(row) for row in sentences]
    charts = [_earned(found), _combinations(found)] if len(found["layers"]) > 1 else []
    if len(found["layers"]) < 2 and any(one["error"] for one in found["combinations"]):
        charts = [_combinations(found)]
    return Panel(
        tab="compare",
        headline=capitalised(said[0]),
        notes=tuple(Note(text=capitalised(text)) for text in said[1:]),
        charts=tuple(charts),
    )


def layer_name(layer: str) -> str:
    names = {
        "physical": _("Physical"),
        "data": _("Data"),
        "task": _("Task"),
        "demand": _("Demand"),
    }
    return names[layer]


def _measure(found: Found) -> str:
    return _(found["label"])


def _earned(found: Found) -> Chart:
    """Fair shares as bars in logarithms, then what exists only together."""
    rows = [(layer_name(one["layer"]), one["earned_ratio"], one["alone_ratio"]) for one in found["layers"]]
    most = max((abs(math.log(ratio)) for _name, ratio, _alone in rows), default=0.0) or 1.0
    low = min((math.log(ratio) for _name, ratio, _alone in rows), default=0.0)
    back = REACH * max(0.0, -low) / most / 2
    bars = tuple(_ratio_bar(name, ratio, most=most, zero=LABEL_WIDTH + back) for name, ratio, _alone in rows)
    top = max(found["layers"], key=lambda one: abs(math.log(one["earned_ratio"])))
    title = _("%(layer)s earned ×%(earned)s of ×%(whole)s") % {
        "layer": layer_name(top["layer"]),
        "earned": factor(top["earned_ratio"]),
        "whole": factor(found["whole_ratio"]),
    }
    return Chart(
        slug="layers",
        title=title,
        axis=_("Factor on the %(measure)s; the factors multiply to the whole") % {"measure": _measure(found)},
        summary=", ".join(f"{name} ×{factor(ratio)}" for name, ratio, _alone in rows),
        source=_("Fair shares (Shapley) over every order of changing the layers"),
        draw="bars",
        body=bars,
        table=Table(
            columns=(_("Layer"), _("Earned"), _("Alone")),
            rows=(
                *(_factors(name, ratio, alone) for name, ratio, alone in rows),
                *(
                    (
                        Cell(text=_("%(layers)s together") % {"layers": _names(one["layers"])}, muted=True),
                        Cell(text=""),
                        Cell(text=f"×{factor(one['ratio'])}"),
                    )
                    for one in found["together"]
                ),
            ),
            total=_factors(_("Whole"), found["whole_ratio"], found["whole_ratio"]),
        ),
    )


def _ratio_bar(name: str, ratio: float, *, most: float, zero: float) -> Bar:
    """From the line of ×1 to the right for a gain, to the left for a loss."""
    size = abs(math.log(ratio)) / most * REACH / (1 if ratio >= 1 else 2)
    return Bar(
        label=name,
        resource="ink" if ratio >= 1 else "loss",
        text=f"×{factor(ratio)}",
        left=zero if ratio >= 1 else zero - size,
        width=size,
        hatched=ratio < 1,
    )


def _factors(name: str, earned: float, alone: float) -> tuple[Cell, ...]:
    return (Cell(text=name), Cell(text=f"×{factor(earned)}"), Cell(text=f"×{factor(alone)}"))


def _combinations(found: Found) -> Chart:
    """Every subset of the changed layers, the baseline first."""
    rows = found["combinations"]
    bars = _worth_bars(found)
    return Chart(
        slug="combinations",
        title=_combinations_title(found),
        axis=_("%(measure)s against the baseline, by which layers changed")
        % {"measure": capitalised(_measure(found))},
        summary="; ".join(f"{bar.label} {bar.text}" for bar in bars),
        source=_("%(count)s runs with one seed") % {"count": len(rows)},
        draw="bars",
        body=bars,
        table=Table(
            columns=(_("Changed"), capitalised(_measure(found)), _("Against the baseline")),
            rows=tuple(
                (
                    Cell(text=bar.label),
                    Cell(text="–" if one["worth"] is None else f"{one['worth']:.4g}"),
                    Cell(text=bar.text),
                )
                for bar, one in zip(bars, rows, strict=True)
            ),
        ),
    )


def _combinations_title(found: Found) -> str:
    blocked = [one for one in found["combinations"] if one["error"]]
    if blocked:
        return _("%(layers)s alone cannot be built") % {"layers": _names(blocked[0]["layers"]) or _("None")}
    beyond = found["beyond_ratio"]
    if beyond > TOGETHER_RATIO:
        return _("The changes need each other: ×%(beyond)s exists only together") % {"beyond": factor(beyond)}
    if beyond < 1 / TOGETHER_RATIO:
        return _("The changes overlap: together they bring ×%(beyond)s of what each brings alone") % {
            "beyond": factor(beyond)
        }
    return _("Each change stands for itself")


def _worth_bars(found: Found) -> tuple[Bar, ...]:
    rows = found["combinations"]
    most = max((one["worth"] for one in rows if one["worth"]), default=1.0)
    return tuple(
        Bar(
            label=_names(one["layers"]) or _("None"),
            resource="ink" if one is rows[-1] else "hair2",
            text=_worth_text(one["worth"], rows[0]["worth"]),
            left=LABEL_WIDTH,
            width=REACH * (one["worth"] or 0.0) / most,
            hatched=False,
        )
        for one in rows
    )


def _worth_text(worth: float | None, base: float | None) -> str:
    if worth is None:
        return _("cannot be built")
    return f"×{factor(worth / base)}" if base else f"{worth:.3g}"


def _names(layers: Sequence[str]) -> str:
    """In the order of the layers, as a label that fits a phone: Physical, data; all three are All."""
    if len(layers) == len(LAYERS):
        return _("All layers")
    return capitalised(", ".join(in_text(layer_name(layer)) for layer in layers))
