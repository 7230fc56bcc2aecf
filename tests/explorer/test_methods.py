"""Methods and `trimtab validate` are one table: every published number, and the accuracy of each chip."""

import html
import re

import pytest
from django.test import Client

from explorer.templatetags.shelves import accuracy_rows, published_numbers
from simcore.cli import main

pytestmark = pytest.mark.django_db


def rows_of(table: str) -> list[list[str]]:
    """Cells of a table's rows as text, without headings."""
    rows = [
        re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    ]
    return [
        [html.unescape(re.sub(r"<[^>]+>", " ", cell)).strip() for cell in row] for row in rows if len(row) > 1
    ]


def test_the_page_and_the_command_print_the_same(
    as_nobody: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    page = as_nobody.get("/methods/").content.decode()
    facts, orders, fits = (
        rows_of(table) for table in re.findall(r'<table class="facts">.*?</table>', page, re.DOTALL)
    )
    assert main(["validate"]) == 0
    printed, accuracy, order = capsys.readouterr().out.split("\n\n")
    assert len(facts) == len(published_numbers()) == len(printed.splitlines())
    for (statement, expected, got, error, source), row, line in zip(
        facts, published_numbers(), printed.splitlines(), strict=True
    ):
        assert line == row.as_line()
        assert (expected, got, error) == (row.expected_text, row.got_text, row.error_text)
        assert statement.startswith(row.fact.statement)
        assert source == row.fact.source
        for text in (expected, got, error, row.fact.statement, source):
            assert text in line
    assert len(fits) == len(accuracy_rows())
    assert accuracy.splitlines()[1:] == [row.as_line() for row in accuracy_rows()]
    for (regime, *_, source), row in zip(fits, accuracy_rows(), strict=True):
        assert regime.startswith(row.regime)
        assert source == row.source
    for (name, *cells), line in zip(orders, order.splitlines()[1:], strict=True):
        assert name in ("TPOT", "TTFT")
        found, target = zip(*(re.split(r"\s*≥ ", cell) for cell in cells), strict=True)
        assert line.split() == [name.lower(), *found, "≥", *target]


def test_a_known_deviation_stands_with_its_cause(as_nobody: Client) -> None:
    page = html.unescape(as_nobody.get("/methods/").content.decode())
    missed = [row for row in published_numbers() if not row.passed]
    assert missed
    assert all(row.fact.known_deviation in page for row in missed)
    assert all(row.cause in page for row in accuracy_rows() if row.is_missed)


def test_at_most_a_twentieth_is_a_known_deviation_and_none_of_them_exact() -> None:
    rows = published_numbers()
    missed = [row for row in rows if not row.passed]
    assert len(missed) <= len(rows) / 20
    assert not [row.fact.id for row in missed if row.fact.tolerance == 0]


def test_the_search_stands_beside_aiconfigurators(client: Client) -> None:
    page = client.get("/methods/aiconfigurator/").content.decode()
    assert "669.4" in page
    assert "670.2" in page
    assert "/methods/aiconfigurator/" in client.get("/methods/").content.decode()
