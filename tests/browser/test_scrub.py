"""A slider that is dragged simulates all again while it is held, and Undo takes the whole drag back."""

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.test_main_job import WAIT_MS, finished, quiet_console, tile

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser
__all__ = ["quiet_console"]  # a fixture that acts by itself
RATE = "#f-workload-arrivals-request_per_s"


def thumb(slider: "Locator") -> tuple[float, float, float]:
    """Where the thumb is, and how far the slider goes on to its right."""
    box = slider.bounding_box()
    assert box is not None
    along = int(slider.input_value()) / int(slider.get_attribute("max") or 1)
    x = box["x"] + 8 + along * (box["width"] - 16)
    return x, box["y"] + box["height"] / 2, box["x"] + box["width"] - x


def test_dragging_a_slider_gives_new_results_while_it_is_held(page: "Page") -> None:
    page.goto("/")
    page.get_by_label("Paste a model id").fill("name: Dragged\nworkload: {request_count: 2000}\n")
    page.get_by_role("button", name="Open the baseline").click()
    page.wait_for_selector("#workbench", timeout=WAIT_MS)
    page.goto(f"{page.url.rstrip('/')}/serving/")
    page.wait_for_selector("html[data-live]", state="attached", timeout=WAIT_MS)
    finished(page)
    first, before = page.get_attribute("#run", "data-run"), tile(page, "Throughput per chip")
    slider, field = page.locator(f"{RATE}-scrub"), page.locator(RATE)
    slider.scroll_into_view_if_needed()
    x, y, room = thumb(slider)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + room * 0.3, y, steps=20)
    page.wait_for_selector(
        f'#run[data-status="finished"]:not([data-run="{first}"])', state="attached", timeout=WAIT_MS
    )
    page.locator("#strip:not(.stale)").wait_for(timeout=WAIT_MS)
    assert tile(page, "Throughput per chip") != before
    held = field.input_value()
    assert float(held) > 8
    page.mouse.up()
    page.locator("#outline .field", has=field).locator(".dot.you").wait_for(timeout=WAIT_MS)
    assert field.input_value() == held
    page.get_by_role("button", name="Undo").click()
    page.locator("#strip", has_text=re.search(r"[\d,]+", before)[0]).wait_for(timeout=WAIT_MS)  # type: ignore[index]
    assert field.input_value() == ""


def test_arrows_move_a_slider_that_has_the_focus(page: "Page") -> None:
    page.goto("/")
    page.get_by_label("Paste a model id").fill("name: Stepped\nworkload: {request_count: 500}\n")
    page.get_by_role("button", name="Open the baseline").click()
    page.wait_for_selector("html[data-live]", state="attached", timeout=WAIT_MS)
    finished(page)
    first = page.get_attribute("#run", "data-run")
    page.locator("#f-hardware-chip_count-scrub").press("ArrowRight")
    page.wait_for_selector(f'#run:not([data-run="{first}"])', state="attached", timeout=WAIT_MS)
    assert page.locator("#f-hardware-chip_count").input_value() == "16"
    page.locator("#f-hardware-chip_count-scrub:focus").wait_for()  # also where the form is renewed meanwhile
