"""The decision memo: a verdict that follows from the figures, and a file that opens as the same scenarios."""

import io
import json
import re
import zipfile
from typing import Any

import pytest

from simcore import Scenario, analyse, plan, simulate
from simcore.errors import InputError
from simcore.report import memo_pdf
from simcore.report.blocks import Grid, Paragraph
from simcore.report.deciding import recommendation, stands
from simcore.report.formats import CONTENT_TYPES, render_report
from simcore.report.frozen import Column, Report
from simcore.report.making import attribution_of, made_column, sensitivities_of
from simcore.report.memo import memo
from simcore.report.reading import is_report, scenario_documents
from simcore.scenario.stories import stories
from simcore.why import as_dict


def column(name: str = "a", *, kind: str = "serving", **metrics: Any) -> Column:
    """A column of made-up figures."""
    document = {
        "name": name,
        "workload": {"kind": kind, "slo": {"ttft_s": 1}},
        "model": {"name": "llama-3.1-8b"},
    }
    result = {"digest": name, "seed": 1, "engine_version": "1", "metrics": metrics}
    return made_column(document, result, {})


COST, SPEED = "cost.usd_per_million_output_tokens", "serving.output_token_per_s_per_chip"


def report(*columns: Column, choice: int | None = None) -> Report:
    return Report(title="T", question="Q?", made_on="2026-12-01", columns=columns, choice=choice)


def told(one: Report) -> str:
    return recommendation(one)[0].text


@pytest.fixture(scope="module")
def fabric() -> Report:
    """Story S1 as a report."""
    story = stories()["s1-rail-only"]
    columns = []
    for document in (story.baseline, story.variant):
        planned = plan(Scenario.parse(document))
        result = simulate(planned)
        result = result.with_findings(analyse(planned, result))
        why = {name: as_dict(term) for name, term in result.why.items()}
        columns.append(made_column(document, result.as_dict(), why))
    return Report(
        title='Keep the "spine" <b>?',
        question="=1+1",
        made_on="2026-12-01T10:00:00+00:00",
        columns=tuple(columns),
        sensitivities=sensitivities_of(columns, None),
        attribution=attribution_of(columns, None),
    )


def test_what_only_improves_is_recommended() -> None:
    one = report(column("a", **{COST: 1.0, SPEED: 100.0}), column("b", **{COST: 0.8, SPEED: 100.0}))
    assert told(one) == "Choose b: Per million output tokens −20%. Nothing that decides gets worse."


def test_a_trade_is_said_as_one() -> None:
    one = report(column("a", **{COST: 1.0, SPEED: 100.0}), column("b", **{COST: 0.8, SPEED: 50.0}))
    assert stands(one)[0].standing == "trade"
    assert "Worse: Throughput per chip −50%" in told(one)


def test_two_percent_of_what_was_drawn_is_noise() -> None:
    one = report(column("a", **{SPEED: 100.0}), column("b", **{SPEED: 101.9}))
    assert told(one).startswith("No difference beyond the noise")
    assert (
        stands(report(column("a", **{SPEED: 100.0}), column("b", **{SPEED: 102.1})))[0].standing == "better"
    )


def test_cheaper_that_misses_its_promise_is_not_recommended() -> None:
    kept = {"serving.slo_attainment_fraction": 0.99, COST: 1.0}
    missed = {"serving.slo_attainment_fraction": 0.60, COST: 0.5}
    text = told(report(column("a", **kept), column("b", **missed)))
    assert text.startswith(
        "Keep a. b brings Per million output tokens −50%, but it misses its SLO, with 60.0%"
    )


def test_a_choice_that_the_figures_do_not_carry_is_said() -> None:
    columns = (column("a", **{COST: 1.0}), column("b", **{COST: 2.0}))
    assert told(report(*columns, choice=1)).startswith(
        "The author prefers b, and these figures do not carry that."
    )
    assert told(report(*columns, choice=0)).startswith("Keep a: b is better in nothing")
    swapped = report(columns[1], columns[0], choice=0)
    assert told(swapped).startswith("The author keeps b, though the figures speak for a")


def test_different_work_is_not_judged() -> None:
    one = report(column("a", **{COST: 1.0}), column("b", kind="training", **{"training.step_s": 1.0}))
    assert "different work" in told(one)


def test_the_best_of_three_is_named_first_and_the_others_after() -> None:
    base, worse = column("a", **{COST: 1.0}), column("c", **{COST: 1.5})
    texts = [message.text for message in recommendation(report(base, worse, column("b", **{COST: 0.5})))]
    assert texts[0].startswith("Choose b")
    assert texts[1].startswith("Keep a: c")


def test_a_guard_rail_stands_beside_the_verdict(fabric: Report) -> None:
    assert any("holds only as long as: one rail tier joins" in one.text for one in recommendation(fabric))


def test_every_number_of_the_tables_is_in_a_result(fabric: Report) -> None:
    known = {
        f"{value:.3g}"
        for one in fabric.columns
        for value in one.metrics.values()
        if not isinstance(value, str)
    }
    tables = [block for block in memo(fabric).blocks if isinstance(block, Grid)]
    switches = next(row for row in tables[1].rows if row[0].text == "Switches")
    assert [cell.text for cell in switches[1:]] == ["1,280", "256"]
    assert {f"{float(cell.text.replace(',', '')):.3g}" for cell in switches[1:]} <= known


def test_json_opens_as_the_same_scenarios(fabric: Report) -> None:
    text = render_report(fabric, "json").decode()
    assert is_report(text)
    again = [plan(Scenario.parse(document)).digest for document in scenario_documents(text)]
    assert again == [one.digest for one in fabric.columns]
    assert Report.from_dict(json.loads(text)).as_dict() == json.loads(json.dumps(fabric.as_dict()))


@pytest.mark.parametrize(
    "text", ['{"kind": "trimtab.report"}', '{"kind": "trimtab.report", "scenarios": [1]}', "{"]
)
def test_half_a_report_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no whole report"):
        scenario_documents(text)


def test_an_unknown_format_is_refused(fabric: Report) -> None:
    with pytest.raises(InputError, match="choose one of html, pdf"):
        render_report(fabric, "doc")


def test_html_escapes_what_people_wrote_and_runs_nothing(fabric: Report) -> None:
    page = render_report(fabric, "html").decode()
    assert "<b>?" not in page
    assert "&lt;b&gt;?" in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=", page)
    assert page.count("<svg") == 3


def test_pdf_has_pages_and_vectors(fabric: Report) -> None:
    made = render_report(fabric, "pdf")
    assert made.startswith(b"%PDF")
    assert int(re.findall(rb"/Type/Pages/Count (\d+)", made)[0]) > 1
    assert b"/Subtype/Image" not in made  # charts are no pictures of pixels


def test_chinese_without_a_font_says_what_to_install(fabric: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo_pdf, "chinese_fonts", tuple)
    chinese = Report(**{**_fields(fabric), "title": "要脊层吗"})
    with pytest.raises(InputError, match="fonts-noto-cjk"):
        render_report(chinese, "pdf")


@pytest.mark.skipif(not memo_pdf.chinese_fonts(), reason="no font with Chinese characters on this system")
def test_chinese_is_set_where_a_font_has_it(fabric: Report) -> None:
    assert render_report(Report(**{**_fields(fabric), "title": "要脊层吗"}), "pdf").startswith(b"%PDF")


def _fields(one: Report) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Report.__dataclass_fields__}


def test_xlsx_keeps_numbers_as_numbers_and_texts_as_texts(fabric: Report) -> None:
    with zipfile.ZipFile(io.BytesIO(render_report(fabric, "xlsx"))) as book:
        names = re.findall(r'<sheet name="([^"]+)"', book.read("xl/workbook.xml").decode())
        sheets = [book.read(f"xl/worksheets/sheet{index}.xml").decode() for index in range(1, len(names) + 1)]
    assert names == ["Summary", "Inputs", "Results", "Bill", "Traces"]
    assert "<v>196608</v>" in sheets[2]
    assert not any("<f>" in sheet for sheet in sheets)  # "=1+1" stays a text


def test_csv_cells_that_look_like_formulas_are_kept_from_running(fabric: Report) -> None:
    assert "question,'=1+1\n" in render_report(fabric, "csv").decode()


def test_markdown_says_it_all(fabric: Report) -> None:
    text = render_report(fabric, "md").decode()
    for part in ("## What changes", "| Switches | 1,280 | 256 ▼ −80% |", "Assumed:", "tiers: 1", "seed 1"):
        assert part in text


def test_the_verdict_stands_first(fabric: Report) -> None:
    first = memo(fabric).blocks[0]
    assert isinstance(first, Paragraph)
    assert first.kind == "verdict"


def test_every_format_has_a_type() -> None:
    assert set(CONTENT_TYPES) == {"html", "pdf", "xlsx", "csv", "json", "md"}
