"""Story S1 on the Fabric tab: the figures, what they rest on, and the graph opened with the keyboard."""

from typing import TYPE_CHECKING

import pytest

from tests.browser.test_main_job import WAIT_MS, finished, story, tile

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_the_saving_its_condition_and_both_ways_out(page: "Page") -> None:
    story(page, "Remove the spine")
    assert "256" in tile(page, "Switches")
    assert "N ≤ K × k: 32,768 ≤ 256 × 128" in tile(page, "Switches")
    assert "65,536" in tile(page, "Transceivers")
    assert "66.7 to 80.0 %" in page.locator("#chart-fabric-counts tr.total").inner_text()
    field = page.locator('#outline [name="topology.hb_domain_size"]').first
    field.fill("8")
    field.press("Enter")
    page.locator(".guard:not(.holds)").wait_for(timeout=WAIT_MS)
    finished(page)
    assert "32 islands of 1,024" in page.locator(".guard").inner_text()
    page.get_by_role("button", name="as many tiers as it needs").click()
    page.locator(".guard").wait_for(state="detached", timeout=WAIT_MS)
    finished(page)
    assert "768" in tile(page, "Switches")
    assert "131,072" in tile(page, "Transceivers")


def test_a_tier_opens_down_to_one_switch_with_the_keyboard(page: "Page") -> None:
    story(page, "Remove the spine")
    inside = page.locator("#expansion")
    page.locator('#chart-topology a.node[href$="/graph/rail/"]').first.focus()
    page.keyboard.press("Enter")
    inside.get_by_text("Rail switches in 16 parts").wait_for(timeout=WAIT_MS)
    for step, title in (("rail.16-31", "one by one: 16"), ("rail.17", "128 links to 128 neighbours")):
        inside.locator(f'a.node[href$="/graph/{step}/"]').focus()
        page.keyboard.press("Enter")
        inside.get_by_text(title).wait_for(timeout=WAIT_MS)
    assert page.url.endswith("/fabric/"), "it opened in its place"
    inside.get_by_role("link", name="Rail switches", exact=True).click()
    inside.get_by_text("Rail switches in 16 parts").wait_for(timeout=WAIT_MS)
