"""Numbers, changes, sources and messages as pages write them."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.template import Context, Template
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.utils import translation

from explorer import charts
from explorer.charts.style import Delta, Number
from explorer.forms import outline
from tests.explorer import documents

ROOT = Path(__file__).resolve().parent.parent.parent


def render(source: str, **context: Any) -> str:
    return Template("{% load trimtab %}" + source).render(Context(context))


def page(template: str, **context: Any) -> str:
    request = RequestFactory().get("/")
    request.htmx = True  # type: ignore[attr-defined]
    return render_to_string(template, context | {"request": request})


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ('{{ 0.0106|quantity:"step_s" }}', '10.6 <span class="unit">ms</span>'),
        ('{{ 3.35e12|quantity:"hbm_bytes_per_s" }}', '3.35 <span class="unit">TB/s</span>'),
        ('{{ 8|quantity:"chip_count" }}', "8"),
        ('{{ None|quantity:"step_s" }}', "–"),
        ("{{ 0.146|percent }}", "14.6 %"),
        ("{{ 65536|thousands }}", "65,536"),
    ],
)
def test_it_prints_numbers_with_their_unit(source: str, shown: str) -> None:
    assert render(source) == shown


def test_a_better_change_is_filled_and_spoken() -> None:
    change = Delta(text="27 %", quality="better", arrow="up", before=Number(text="322", unit="token/s"))
    shown = render("{% change change %}", change=change)
    assert 'class="d better"' in shown
    assert "up, better" in shown
    assert "from 322" in shown


def test_names_are_escaped_everywhere() -> None:
    evil = '<script>alert("x")</script>'
    result = documents.serving()
    result["warnings"][0] |= {"template": evil, "params": {}}
    shown = page("explorer/_charts.html", panel=charts.panel("overview", result))
    assert "<script>alert" not in shown
    assert "&lt;script&gt;" in shown


def test_figures_travel_as_data_not_as_script() -> None:
    shown = page("explorer/_charts.html", panel=charts.panel("serving", documents.serving()))
    scripts = re.findall(r"<script([^>]*)>", shown)
    assert scripts
    assert all('type="application/json"' in attributes for attributes in scripts)


@pytest.mark.parametrize("tab", charts.TABS)
def test_each_id_stands_once_on_a_tab(tab: str) -> None:
    for result in (documents.serving(), documents.fabric(rail_only=True, islands=32)):
        shown = page("explorer/_charts.html", panel=charts.panel(tab, result))
        ids = re.findall(r'\bid="([^"]+)"', shown)
        assert len(ids) == len(set(ids))


def test_each_picture_and_plot_has_words_for_who_cannot_see_it() -> None:
    shown = page("explorer/_charts.html", panel=charts.panel("overview", documents.serving()))
    for figure in re.findall(r"<figure.*?</figure>", shown, re.DOTALL):
        assert "aria-label" in figure or 'class="sr"' in figure
        assert "<table" in figure


def test_the_form_labels_every_field_and_links_every_error() -> None:
    draft = {"hardware.chip_count": {"typed": "many", "message": "a number is needed"}}
    form = outline({"name": "x"}, draft=draft)
    scenario = SimpleNamespace(pk="0" * 8 + "-0000-0000-0000-" + "0" * 12)
    shown = page("explorer/_outline.html", outline=form, scenario=scenario, tab="overview", can_change=True)
    for field in form.fields:
        assert f'for="{field.html_id}"' in shown
    assert 'aria-describedby="f-hardware-chip_count-err"' in shown
    assert 'value="many"' in shown


def test_pages_are_written_in_the_readers_language() -> None:
    with translation.override("zh-hans"):
        panel = charts.panel("overview", documents.serving())
    assert re.search(r"[\u4e00-\u9fff]", panel.charts[0].title)


def test_no_page_asks_another_host_for_anything() -> None:
    files = [*ROOT.glob("templates/**/*.html"), *ROOT.glob("static/**/*.css"), *ROOT.glob("static/**/*.js")]
    assert files
    for path in files:
        loaded = re.findall(
            r"""(?:src|href|url\(|import|@import)\s*=?\s*["'(]?(https?:)?//""", path.read_text()
        )
        assert not loaded, path


def test_no_page_holds_a_script_of_its_own() -> None:
    for path in ROOT.glob("templates/**/*.html"):
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), path
        assert not re.search(r"\son\w+=", text), path


def test_styles_take_their_colours_from_the_tokens() -> None:
    for path in ROOT.glob("static/css/*.css"):
        if path.name != "tokens.css":
            assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)", path.read_text()), path


def test_text_is_never_smaller_than_fourteen_pixels() -> None:
    for path in ROOT.glob("static/css/*.css"):
        sizes = re.findall(r"font(?:-size)?:[^;]*?\b(\d+(?:\.\d+)?)px", path.read_text())
        assert all(float(size) >= 14 for size in sizes), path


def test_the_page_stays_light_without_plotly() -> None:
    import gzip

    files = [*ROOT.glob("static/css/*.css"), *ROOT.glob("static/js/*.js")]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < 60_000
