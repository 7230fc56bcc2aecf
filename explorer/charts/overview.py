"""Overview: where an iteration's time goes, and what each resource would bring if it were doubled."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _

from explorer import wording
from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Segment, StackBar, Table

_SMALL_FRACTION = 0.002  # of the widest bar: below this a segment is left to the table


def where_time_goes(result: Result | None, baseline: Result | None = None) -> Chart | None:
    """Wall clock per iteration by what it waited for, now and in the baseline."""
    now = _parts(result)
    if not now:
        return None
    before = _parts(baseline)
    scale = max(sum(now.values()), sum(before.values())) if before else sum(now.values())
    bars = [_stack(_("Baseline"), before, scale)] if before else []
    bars.append(_stack(_("Now"), now, scale))
    return Chart(
        slug="where-time-goes",
        title=_time_title(now, before, trains=style.kind_of_work(result) == "training"),
        axis=_("Wall clock per iteration by what it waited for"),
        summary=_time_summary(now, before),
        source=_("Simulated; kernels as calibrated for this chip"),
        draw="stack",
        body=tuple(bars),
        table=_time_table(result, baseline),
        open_table=True,
        wide=True,
    )


def _parts(result: Result | None) -> dict[str, float]:
    """Seconds per iteration by resource, largest contributors in the fixed order of resources; idle left out."""
    seconds: dict[str, float] = {}
    for row in style.rows(result, "where_time_goes"):
        value = row.get("s_per_iteration")
        if row.get("resource") != "queue" and isinstance(value, int | float) and value > 0:
            seconds[str(row["resource"])] = float(value)
    return dict(sorted(seconds.items(), key=lambda item: _order(item[0])))


def _order(resource: str) -> int:
    return style.RESOURCES.index(resource) if resource in style.RESOURCES else len(style.RESOURCES)


def _stack(name: str, parts: Mapping[str, float], scale: float) -> StackBar:
    left = 0.0
    segments = []
    total = sum(parts.values())
    for resource, seconds in parts.items():
        width = seconds / scale * 96 if scale else 0.0
        if width >= _SMALL_FRACTION * 96:
            segments.append(_segment(resource, seconds, left, width))
        left += width
    return StackBar(name=name, total=str(style.number(total, "step_s")), width=left, segments=tuple(segments))


def _segment(resource: str, seconds: float, left: float, width: float) -> Segment:
    return Segment(
        resource=resource,
        label=wording.resource(resource),
        left=round(left, 3),
        width=round(width, 3),
        text=str(style.number(seconds, "step_s")) if width > 9 else "",
        on="on-d" if resource in style.DARK_MARKS else "on-l",
        hatched=resource in style.HATCHED,
    )


def _time_title(now: Mapping[str, float], before: Mapping[str, float], *, trains: bool) -> str:
    largest = max(now, key=lambda name: now[name])
    total = sum(now.values())
    share = style.percent(now[largest] / total, digits=0)
    words = {
        "resource": wording.resource_in_text(largest),
        "share": share,
        "total": style.number(total, "step_s"),
    }
    if not before:
        if trains:
            return _("A training step takes %(total)s, and %(share)s of it is %(resource)s") % words
        return _("An iteration takes %(total)s, and %(share)s of it is %(resource)s") % words
    words["before"] = style.number(sum(before.values()), "step_s")
    change = abs(total / sum(before.values()) - 1)
    if change < 0.005:
        return _("An iteration still takes %(total)s, and %(share)s of it is %(resource)s") % words
    if total < sum(before.values()):
        return _("An iteration falls from %(before)s to %(total)s; %(share)s of it is %(resource)s") % words
    return _("An iteration rises from %(before)s to %(total)s; %(share)s of it is %(resource)s") % words


def _time_summary(now: Mapping[str, float], before: Mapping[str, float]) -> str:
    def told(parts: Mapping[str, float]) -> str:
        return ", ".join(
            f"{wording.resource(name)} {style.number(value, 'step_s')}" for name, value in parts.items()
        )

    text = _("Time per iteration by resource. Now: %(parts)s.") % {"parts": told(now)}
    return text + " " + _("Baseline: %(parts)s.") % {"parts": told(before)} if before else text


def _time_table(result: Result | None, baseline: Result | None) -> Table:
    now, before = _fractions(result), _fractions(baseline)
    names = [name for name in style.RESOURCES if now.get(name, 0.0) > 5e-4 or before.get(name, 0.0) > 5e-4]
    compared = (_("Baseline"), _("Now"), _("Change")) if before else (_("Now"),)
    return Table(
        columns=(_("Share of wall clock, idle included"), *compared),
        rows=tuple(_time_row(name, now, before) for name in names),
    )


def _fractions(result: Result | None) -> dict[str, float]:
    return {str(row["resource"]): float(row["fraction"]) for row in style.rows(result, "where_time_goes")}


def _time_row(name: str, now: Mapping[str, float], before: Mapping[str, float]) -> tuple[Cell, ...]:
    first = Cell(text=wording.resource(name), key=name)
    here = Cell(text=style.percent(now.get(name, 0.0)))
    if not before:
        return (first, here)
    change = round((now.get(name, 0.0) - before.get(name, 0.0)) * 100, 1)
    text = _("%(points)s pt") % {"points": f"{change:+.1f}".replace("-", "−") if change else "0.0"}
    return (first, Cell(text=style.percent(before.get(name, 0.0)), muted=True), here, Cell(text=text))
