"""The pictures of a memo: the result that decides, where chip time or money goes, and which inputs move it most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from simcore import glossary
from simcore.errors import Message
from simcore.report.blocks import Figure
from simcore.report.deciding import deciding, percent, stands
from simcore.report.frozen import Report
from simcore.report.language import Language
from simcore.report.sketch import Bar, Bars, Part, Shares, Swings, Swung, legend_of
from simcore.units import dimension_of, printed_text

SWINGS: Final = 5
BARS: Final = 2  # pictures of single results where nothing says where the time goes


def pictures(report: Report, language: Language) -> Iterator[Figure]:
    """At most three, each only where its figures exist."""
    shares = _where_time_goes(report, language)
    told = _telling(report)
    for metric in told[: 1 if shares else BARS]:
        yield _result(report, metric, language)
    if shares:
        yield shares
    swings = _sensitivities(report, language)
    if swings:
        yield swings


def _telling(report: Report) -> list[str]:
    """What the best scenario gains, then what it loses, then whatever else decides."""
    best = max(stands(report), key=lambda one: one.weight)
    told = [change.metric for change in (*best.gains[:1], *best.losses[:1])]
    return list(dict.fromkeys([*told, *(change.metric for change in best.gains), *deciding(report)]))


def _result(report: Report, metric: str, language: Language) -> Figure:
    rows = [(column, value) for column in report.columns if (value := column.number(metric)) is not None]
    chosen = report.choice or 0
    bars = tuple(
        Bar(
            label=column.name,
            value=value,
            text=_printed(metric, value),
            strong=column is report.columns[chosen]
            if report.choice is not None
            else column is not report.baseline,
        )
        for column, value in rows
    )
    return Figure(
        title=_title(report, metric, language), axis=language.label(metric), picture=Bars(rows=bars)
    )


def _title(report: Report, metric: str, language: Language) -> str:
    """The finding: the largest change of this metric, or that there is none."""
    before = report.baseline.number(metric)
    changes = [
        (column, value / before - 1)
        for column in report.columns[1:]
        if before and (value := column.number(metric)) is not None
    ]
    label = glossary.label(metric)
    column, ratio = max(changes, key=lambda one: abs(one[1]), default=(report.baseline, 0.0))
    if abs(ratio) < 0.0005:
        return language.say(
            Message(code="report.equal", template="{what} is the same in all", params={"what": label})
        )
    return language.say(
        Message(
            code="report.largest",
            template="{what} {change} with {name}",
            params={"what": label, "change": percent(ratio), "name": column.name},
        )
    )


def _where_time_goes(report: Report, language: Language) -> Figure | None:
    rows = tuple(
        (column.name, tuple(_parts(column.tables["where_time_goes"], language)))
        for column in report.columns
        if column.tables.get("where_time_goes")
    )
    if len(rows) < len(report.columns):
        return None
    _, parts = rows[-1]
    largest = max(parts, key=lambda part: part.fraction)
    title = Message(
        code="report.largest_part",
        template="{what} takes most of the chip time with {name}: {share}",
        params={
            "what": glossary.resource_label(largest.key),
            "share": f"{largest.fraction:.0%}",
            "name": rows[-1][0],
        },
    )
    axis = Message(code="report.axis", template="Share of owned chip time; all parts together are 100 %")
    return Figure(
        title=language.say(title), axis=language.say(axis), picture=Shares(rows=rows, legend=legend_of(rows))
    )


def _parts(table: list[Mapping[str, Any]], language: Language) -> Iterator[Part]:
    for row in table:
        if row["fraction"] > 0:
            name = Message(
                code="report.word",
                template="{what}",
                params={"what": glossary.resource_label(row["resource"])},
            )
            yield Part(key=row["resource"], label=language.say(name), fraction=float(row["fraction"]))


def _sensitivities(report: Report, language: Language) -> Figure | None:
    rows = [row for row in report.sensitivities if None not in (row["at_low"], row["at_high"])][:SWINGS]
    if not rows:
        return None
    metric = str(rows[0]["metric"])
    swings = tuple(_swung(row, metric, language) for row in rows)
    title = Message(
        code="report.moves_most",
        template="Of single inputs, {input} moves {what} most",
        params={"input": glossary.label(str(rows[0]["path"])), "what": glossary.label(metric)},
    )
    axis = Message(
        code="report.one_at_a_time",
        template="One input at a time, between the ends named; the line is the memo's own value",
    )
    return Figure(
        title=language.say(title),
        axis=language.say(axis),
        picture=Swings(base=float(rows[0]["base_value"]), rows=swings),
        source=language.label(metric),
    )


def _swung(row: Mapping[str, Any], metric: str, language: Language) -> Swung:
    path = str(row["path"])
    ends = f"{_printed(path, row['low'])} – {_printed(path, row['high'])}"
    return Swung(
        label=f"{language.label(path)}: {ends}",
        low=float(row["at_low"]),
        high=float(row["at_high"]),
        low_text=_printed(metric, row["at_low"]),
        high_text=_printed(metric, row["at_high"]),
    )


def _printed(name: str, value: float) -> str:
    return printed_text(float(value), dimension_of(name), digits=3).replace("-", "−")
