"""The decision memo: from a frozen report to blocks of words, tables and pictures, in one language.

Question, recommendation, what changes, three pictures, what moves the result most, what all this rests on (by how sure
it is), and the appendix that lets a reader do it again. A section appears only where its figures exist; every number
is one of the report's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from simcore.analysis.compare import verdict
from simcore.errors import Message
from simcore.report import figures
from simcore.report.blocks import Block, Cell, Folded, Grid, Heading, Items, Memo, Paragraph
from simcore.report.deciding import DECIDING, kind_of_work, percent, recommendation
from simcore.report.frozen import Column, Report
from simcore.report.grounds import grounds
from simcore.report.language import ENGLISH, Language
from simcore.report.trace_text import trace_text
from simcore.scenario import dump_document
from simcore.units import dimension_of, printed_text
from simcore.why import from_dict

CHANGES: Final = 12  # inputs that the memo lists before it points to the appendix
BESIDE: Final = (
    "fabric.switch_count",
    "fabric.transceiver_count",
    "fabric.link_count",
    "fabric.island_count",
    "serving.mean_batch_size",
    "serving.mfu_fraction",
    "cost.capex_usd",
    "analysis.effective_utilisation_fraction",
    "analysis.friction_coefficient",
    "analysis.tax.waiting_usd_per_year",
    "analysis.tax.connection_usd_per_year",
    "analysis.tax.understanding_usd_per_year",
    "analysis.tax.change_usd_per_year",
)
SAME: Final = 0.0005


def memo(report: Report, language: Language = ENGLISH) -> Memo:
    """The report as a memo."""
    say = language.say
    return Memo(
        language=language.code,
        eyebrow=say(
            Message(
                code="report.eyebrow",
                template="Decision memo, frozen on {day}",
                params={"day": report.made_on[:10]},
            )
        ),
        title=report.title,
        question=report.question,
        blocks=tuple(_blocks(report, language)),
        better=say(Message(code="report.word", template="better")),
        worse=say(Message(code="report.word", template="worse")),
    )


def _blocks(report: Report, language: Language) -> Iterator[Block]:
    yield from _verdict(report, language)
    yield Heading(text=language.say(Message(code="report.heading", template="What changes")))
    yield _inputs(report, language)
    yield results(report, language)
    yield from _attribution(report, language)
    yield from figures.pictures(report, language)
    yield from _grounds(report, language)
    yield from _appendix(report, language)


def _verdict(report: Report, language: Language) -> Iterator[Block]:
    first, *rest = recommendation(report)
    yield Paragraph(text=language.say(first), kind="verdict")
    for message in rest:
        yield Paragraph(text=language.say(message))


def _attribution(report: Report, language: Language) -> Iterator[Block]:
    """Where the effect comes from, layer by layer, where that was found."""
    if report.attribution:
        yield Heading(text=language.say(Message(code="report.heading", template="Which layer earned it")))
    for row in report.attribution:
        yield Paragraph(text=language.say(Message.from_dict(row)))


def _inputs(report: Report, language: Language) -> Grid:
    rows = report.comparison.inputs
    shown = tuple(
        (
            Cell(text=language.label(row.path)),
            *(Cell(text=_value(row.path, one, language)) for one in row.values),
        )
        for row in rows[:CHANGES]
    )
    head = language.say(Message(code="report.head", template="Input"))
    return Grid(head=(head, *(column.name for column in report.columns)), rows=shown, words=1)


def _value(path: str, value: Any, language: Language) -> str:
    """An input as a person reads it."""
    if value is None:
        return language.say(Message(code="report.value", template="default"))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return _printed(path, float(value))
    return language.say(Message(code="report.value", template="{value}", params={"value": str(value)}))


def _printed(name: str, value: float) -> str:
    return printed_text(value, dimension_of(name), digits=3).replace("-", "−")


def results(report: Report, language: Language) -> Grid:
    """What decides first, then what stands beside it, where the scenarios differ."""
    listed = [*DECIDING.get(kind_of_work(report.baseline), ()), *BESIDE]
    known = [
        name
        for name in dict.fromkeys(listed)
        if any(column.number(name) is not None for column in report.columns)
    ]
    differing = [name for name in known if _differs(report, name)]
    head = language.say(Message(code="report.head", template="Result"))
    return Grid(
        head=(head, *(column.name for column in report.columns)),
        rows=tuple(_result(report, name, language) for name in differing or known[:CHANGES]),
    )


def _differs(report: Report, name: str) -> bool:
    values = [column.number(name) for column in report.columns]
    base = values[0]
    return any(_far(base, value) for value in values[1:])


def _far(base: float | None, value: float | None) -> bool:
    if base is None or value is None:
        return base is not value
    return abs(value - base) > SAME * max(abs(base), abs(value))


def _result(report: Report, name: str, language: Language) -> tuple[Cell, ...]:
    return (
        Cell(text=language.label(name)),
        *(_cell(report.baseline, column, name, language) for column in report.columns),
    )


def _cell(baseline: Column, column: Column, name: str, language: Language) -> Cell:
    value, before = column.number(name), baseline.number(name)
    if value is None:
        return Cell(text="–")
    text = _printed(name, value)
    comparable = kind_of_work(column) == kind_of_work(baseline)
    if column is baseline or not comparable or not before or not _far(before, value):
        return Cell(text=text)
    judged = verdict(name, before, value)
    points = dimension_of(name) == "fraction"
    change = (
        language.say(
            Message(
                code="report.points",
                template="{points} pt",
                params={"points": f"{(value - before) * 100:+.1f}".replace("-", "−")},
            )
        )
        if points
        else percent(value / before - 1)
    )
    return Cell(
        text=text,
        change=change,
        verdict=judged if judged in ("better", "worse") else "",
        rises=value > before,
    )


def _grounds(report: Report, language: Language) -> Iterator[Block]:
    found = grounds(report, language)
    if not found:
        return
    yield Heading(text=language.say(Message(code="report.heading", template="What this rests on")))
    for title, rows in found:
        yield Paragraph(text=title)
        yield Items(rows=rows)


def _appendix(report: Report, language: Language) -> Iterator[Block]:
    yield Heading(text=language.say(Message(code="report.heading", template="To reproduce")))
    yield Paragraph(
        text=language.say(
            Message(
                code="report.frozen",
                template="Inputs, prices, results and traces are frozen with this memo. Engine {engine}. Opening its "
                "JSON makes the same scenarios again.",
                params={"engine": report.baseline.engine_version},
            )
        ),
        kind="quiet",
    )
    if report.permalink:
        yield Paragraph(text=report.permalink, kind="quiet")
    for column in report.columns:
        yield Folded(title=_inputs_title(column, language), text=dump_document(column.document))
    for column in report.columns:
        traces = "\n\n".join(
            trace_text(from_dict(tree), language.label(metric), language)
            for metric, tree in column.why.items()
        )
        if traces:
            yield Folded(title=_why_title(column, language), text=traces)


def _inputs_title(column: Column, language: Language) -> str:
    return language.say(
        Message(
            code="report.inputs",
            template="Inputs of {name}: seed {seed}, digest {digest}",
            params={"name": column.name, "seed": column.seed, "digest": column.digest[:12]},
        )
    )


def _why_title(column: Column, language: Language) -> str:
    return language.say(
        Message(
            code="report.why", template="How the figures of {name} come about", params={"name": column.name}
        )
    )
