"""Comparisons as text: the same content in every form, and nothing in them that runs."""

import csv
import io
import json
from html.parser import HTMLParser

import pytest

from simcore.analysis.compare import Cell, Comparison, InputRow, MetricRow, compare
from simcore.errors import InputError
from simcore.report import render
from simcore.report.comparison import FORMATS, safe_cell
from simcore.scenario.stories import story

HOSTILE = '=HYPERLINK("http://x")|<script>alert(1)</script>&\n# heading'


def comparison(name=HOSTILE):
    base = Cell(value=2.0, change_ratio=0.0, verdict="same")
    return Comparison(
        names=("base", name),
        inputs=(
            InputRow(path="model.name", label="Model name", values=("a", name)),
            InputRow(path="topology.tiers", label="Tiers", values=(None, [1, 2])),
        ),
        equal_input_count=40,
        metrics=(
            MetricRow(
                metric="serving.ttft_s.p95",
                label="TTFT p95",
                cells=(base, Cell(value=1.0, change_ratio=-0.5, verdict="better")),
            ),
            MetricRow(
                metric="serving.regime",
                label="Regime",
                cells=(
                    Cell(value="stable", change_ratio=None, verdict="same"),
                    Cell(value=None, change_ratio=None, verdict="absent"),
                ),
            ),
        ),
        comparable=True,
    )


@pytest.fixture(scope="module")
def real(planner):
    changed = {"hardware.chip_overrides.hbm_bytes_per_s": "x2"}
    plans, results = [planner.plan(), planner.plan(changed)], [planner.result(), planner.result(changed)]
    return compare([one.scenario for one in plans], [one.metrics for one in results])


def table(text):
    return list(csv.reader(io.StringIO(text)))


def test_json_reads_back_as_the_comparison(real):
    assert json.loads(render(real, "json")) == json.loads(json.dumps(real.as_dict()))


def test_csv_has_a_row_per_input_and_metric_in_si(real):
    rows = table(render(real, "csv"))
    assert rows[0] == ["kind", "id", "label", "small", "small"]
    assert ["input", "hardware.chip_overrides.hbm_bytes_per_s", "HBM bandwidth", "—", "x2"] in rows
    values = {row[1]: row[3:] for row in rows if row[0] == "metric"}
    assert set(values) == {row.metric for row in real.metrics}
    cells = next(row.cells for row in real.metrics if row.metric == "serving.tpot_s.mean")
    assert [float(value) for value in values["serving.tpot_s.mean"]] == [cell.value for cell in cells]


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_what_a_saving_rests_on_is_said_in_every_form(planner, form):
    told = story("s1-rail-only")
    plans = [planner.plan(base=dict(document)) for document in (told.baseline, told.variant)]
    warnings = [[warning.as_dict() for warning in one.warnings] for one in plans]
    compared = compare([one.scenario for one in plans], [one.metrics for one in plans], warnings)
    assert "hb_domain_size × radix chips: 256 × 128 = 32,768" in render(compared, form).replace("\\", "")


@pytest.mark.parametrize("form", ["md", "html"])
def test_people_read_units_and_which_way_is_better(form):
    text = render(comparison("other"), form)
    assert "1 s (-50.0% ▲ better)" in text
    assert "TTFT p95" in text
    assert "2 inputs differ, 40 are equal." in text


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_that_begins_like_a_formula_cannot_run_in_a_spreadsheet(start):
    assert safe_cell(f"{start}1+1") == f"'{start}1+1"


@pytest.mark.parametrize("value", ["plain", -3.5, 7, True])
def test_numbers_and_plain_texts_stay_as_they_are(value):
    assert safe_cell(value) == value


def test_no_cell_of_a_hostile_csv_begins_like_a_formula():
    cells = [cell for row in table(render(comparison(), "csv")) for cell in row]
    assert any("HYPERLINK" in cell for cell in cells)
    assert not [
        cell
        for cell in cells
        if cell[:1] in "=+-@\t\r" and cell and not cell.lstrip("-").replace(".", "").isdigit()
    ]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_html_escapes_what_users_wrote_and_asks_for_nothing_outside():
    text = render(comparison(), "html")
    parser = Tags()
    parser.feed(text)
    tags = {tag for tag, _ in parser.found}
    assert "script" not in tags
    assert "&lt;script&gt;" in text
    assert not [
        attributes for _, attributes in parser.found if {"src", "href", "onerror"} & attributes.keys()
    ]
    assert tags <= {"html", "meta", "title", "style", "h1", "p", "table", "tr", "th", "td"}


def test_markdown_keeps_one_line_per_row_and_runs_no_html():
    text = render(comparison(), "md")
    assert "<script>" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in rows[:4]}) == 1
    assert [line for line in text.splitlines() if line.startswith("# ")] == [text.splitlines()[0]]


def test_a_change_without_an_effect_is_said(planner):
    scenarios = [planner.plan().scenario, planner.plan({"economics.labour_usd_per_hour": 1}).scenario]
    text = render(compare(scenarios, [{"fabric.tiers": 1}, {"fabric.tiers": 1}]), "md")
    assert "1 input differs" in text
    assert "No result differs" in text


def test_an_unknown_format_names_the_known_ones(real):
    with pytest.raises(InputError, match=r"got 'docx'; choose one of .*html"):
        render(real, "docx")


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_comparison_gives_the_same_text(real, form):
    assert render(real, form) == render(real, form)
