"""The bottleneck budget as bars: what each resource would bring if it were doubled, and at most; more in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Bar, Cell, Chart, Result, Table
from simcore.analysis.bottleneck import cheapest

_MARKS: Final = {
    "hbm_bandwidth": "hbm",
    "hbm_capacity": "hbm",
    "latency": "overhead",
    "scheduler": "queue",
    "external_io": "external",
}
_ZERO, _WIDEST = 34.0, 38.0  # per cent of the plot's width
_SUM, _WHOLE = "analysis.doublings.sum_ratio", "analysis.doublings.together_ratio"
_RATES: Final = ("saturating_request_per_s", "saturating_token_per_s")


def doublings(result: Result | None) -> Chart | None:
    """What the saturated throughput gains when one resource is doubled, and when there is no end of it."""
    rows = sorted(style.rows(result, "doublings"), key=lambda row: -float(row["gain_ratio"]))
    if not rows:
        return None
    gains = [(str(row["resource"]), float(row["gain_ratio"]) - 1.0) for row in rows]
    bounded = all("limit_ratio" in row for row in rows)
    return Chart(
        slug="doublings",
        title=_title(gains, result),
        axis=_axis(rows, bounded=bounded),
        summary=_("Gain from doubling each resource: %(parts)s.")
        % {
            "parts": ", ".join(
                f"{wording.resource(name)} {style.percent(gain, signed=True)}" for name, gain in gains
            )
        },
        source=_("Closed form at saturation, same mix of requests"),
        draw="bars",
        body=tuple(_bars(rows)),
        table=_table(rows),
        wide=bounded,
    )


def _axis(rows: Sequence[Mapping[str, Any]], *, bounded: bool) -> str:
    """What the bars are, and where a unit of gain is cheapest."""
    text = (
        _("Gain in capacity if one resource is doubled; outlined: with no end of it")
        if bounded
        else _("Gain in capacity if one resource is doubled")
    )
    said = [wording.capitalised(wording.translated(message)) for message in cheapest(rows)]
    return _("%(text)s. %(more)s") % {"text": text, "more": said[0]} if said else text


def _title(gains: Sequence[tuple[str, float]], result: Result | None) -> str:
    name, gain = gains[0]
    words: dict[str, Any] = {
        "resource": wording.resource(name),
        "gain": style.percent(gain, digits=0, signed=True),
    }
    if gain < 0.005:
        return _("Doubling any one resource brings nothing")
    singles, whole = style.metric(result, _SUM), style.metric(result, _WHOLE)
    if singles is not None and whole is not None:
        words["sum"], words["whole"] = (
            style.percent(ratio - 1.0, digits=0, signed=True) for ratio in (singles, whole)
        )
        return (
            _(
                "%(resource)s is the best next doubling: %(gain)s; all at once bring %(whole)s, not the sum, %(sum)s"
            )
            % words
        )
    if len(gains) > 1 and gains[1][1] > 0.01:
        words["second"] = wording.resource_in_text(gains[1][0])
        return _("%(resource)s is the best next doubling: %(gain)s, then %(second)s") % words
    return _("%(resource)s is the only doubling that pays: %(gain)s") % words


def _bars(rows: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """The outline of a bar ends at most three times as far as the longest doubling."""
    gains = [float(row["gain_ratio"]) - 1.0 for row in rows]
    limits = [float(row.get("limit_ratio") or row["gain_ratio"]) - 1.0 for row in rows]
    longest = max(*map(abs, gains), 0.01)
    widest = max(longest, min(max(limits), 3 * longest))
    return [
        Bar(
            label=wording.resource(str(row["resource"])),
            resource=_mark(str(row["resource"])),
            text=style.percent(gain, digits=0 if gain >= 0.095 else 1, signed=True),
            left=_ZERO,
            width=max(0.4, gain / widest * _WIDEST),
            reach=min(1.0, limit / widest) * _WIDEST if "limit_ratio" in row else 0.0,
            hatched=_mark(str(row["resource"])) in style.HATCHED,
        )
        for row, gain, limit in zip(rows, gains, limits, strict=True)
    ]


def _mark(name: str) -> str:
    """The colour of a resource: `hbm_bandwidth` and `hbm_capacity` are the HBM's, launches those of the host."""
    return _MARKS.get(name, name)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    headers = {
        "limit_ratio": _("No end of it"),
        "tpot_ratio": _("TPOT"),
        "ttft_ratio": _("TTFT alone"),
        "step_ratio": _("Training step"),
        "used_fraction": _("In use"),
        "saturating_request_per_s": _("Full at"),
        "saturating_token_per_s": _("Full at"),
        "percent_usd_per_year": _("1 % costs a year"),
    }
    shown = [name for name in headers if any(name in row for row in rows)]
    if not any(row.get("percent_usd_per_year") for row in rows):
        shown = [name for name in shown if name != "percent_usd_per_year"]
    return Table(
        columns=(_("Doubled"), _("Capacity"), *(headers[name] for name in shown), _("Then bound by")),
        rows=tuple(_cells(row, shown) for row in rows),
    )


def _cells(row: Mapping[str, Any], shown: Sequence[str]) -> tuple[Cell, ...]:
    resource = str(row["resource"])
    return (
        Cell(text=wording.resource(resource), key=_mark(resource)),
        Cell(
            text=style.percent(float(row["gain_ratio"]) - 1.0, signed=True),
            metric=f"analysis.doubling.{resource}.gain_ratio",
        ),
        *(_cell(row, name) for name in shown),
        Cell(text=wording.resource(str(row.get("next_bottleneck") or ""))),
    )


def _cell(row: Mapping[str, Any], name: str) -> Cell:
    value, resource = row.get(name), row["resource"]
    if name in _RATES and value is None:
        return Cell(text=_("never here"), muted=True)
    if not isinstance(value, int | float):
        return Cell(text="–", muted=True)
    if name in _RATES:
        shown = style.number(float(value), name)
        return Cell(text=shown.text, unit=shown.unit, metric=f"analysis.saturation.{resource}.{name}")
    if name == "percent_usd_per_year":
        shown = style.number(float(value), name)
        return Cell(text=shown.text, unit=shown.unit, metric=f"analysis.gain_price.{resource}.{name}")
    if name == "used_fraction":
        return Cell(text=style.percent(float(value)), metric=f"analysis.used.{resource}.used_fraction")
    text = style.percent(float(value) - 1.0, signed=True)
    why = f"analysis.without_limit.{resource}.gain_ratio" if name == "limit_ratio" else ""
    return Cell(text=text, metric=why)
