"""Every scheduler on one press, in a browser: the table fills as runs end, and both distributions are drawn."""

from typing import TYPE_CHECKING

import pytest

from simcore.scenario.overrides import union_members
from tests.browser.test_main_job import WAIT_MS, finished, quiet_console

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
__all__ = ["quiet_console"]  # a fixture that acts by itself


def test_one_press_on_the_serving_page_compares_all_schedulers(page: "Page") -> None:
    page.goto("/")
    page.get_by_label("Paste a model id").fill("name: Compared\nworkload: {request_count: 2000}\n")
    page.get_by_role("button", name="Open the baseline").click()
    page.wait_for_selector("#workbench", timeout=WAIT_MS)
    page.goto(f"{page.url.rstrip('/')}/serving/")
    finished(page)
    page.get_by_role("button", name="Compare all schedulers").click()
    page.locator("#plot-compare-itl[data-drawn]").wait_for(timeout=WAIT_MS)
    page.locator("#compared [data-run]").first.wait_for(state="detached", timeout=WAIT_MS)
    rows = page.locator("#chart-schedulers tbody tr")
    assert rows.count() == len(union_members("serving.scheduler"))
    states = page.locator("#chart-schedulers tbody tr td:nth-child(2)").all_inner_texts()
    assert set(states) <= {"finished", "cannot"}
    assert states.count("finished") >= 2
    assert "%" in rows.nth(1).inner_text() or "×" in rows.nth(1).inner_text()
