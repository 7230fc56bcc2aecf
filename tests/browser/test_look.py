"""How pages stand on small screens, in the dark, in Chinese, and for who does not use a mouse or eyes."""

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.test_main_job import WAIT_MS, finished, story
from tests.conftest import Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
PAGES = (
    "/",
    "/c/",
    "/library/",
    "/library/chips/nvidia-h100-sxm/",
    "/traces/",
    "/calibrate/",
    "/help/",
    "/methods/",
    "/accounts/login/",
)


def test_no_page_scrolls_sideways_on_a_phone(browser: "Browser", site: Site) -> None:
    context = browser.new_context(base_url=site.url, viewport={"width": 390, "height": 844})
    page = context.new_page()
    addresses = [*PAGES]
    for title in ("Remove the spine", "Double the HBM bandwidth"):
        story(page, title)
        own = page.url.split("/s/")[1][:36]
        addresses += [
            f"/s/{own}/{tab}" for tab in ("", "fabric/", "memory/", "serving/", "iteration/", "reliability/")
        ]
    for address in addresses:
        page.goto(address)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{address} is {width} px wide"
    context.close()


def test_charts_follow_the_theme(page: "Page") -> None:
    story(page, "Double the HBM bandwidth")
    plot = page.locator("#plot-over-time[data-drawn]")
    plot.wait_for(timeout=WAIT_MS)
    line = plot.locator(".scatterlayer path.js-line").first
    light = line.get_attribute("style")
    page.get_by_role("button", name="Light / dark").click()
    page.wait_for_timeout(500)
    assert line.get_attribute("style") != light
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_the_page_speaks_chinese(page: "Page") -> None:
    page.goto("/")
    page.get_by_role("button", name="中文").click()
    page.locator('html[lang="zh-hans"]').wait_for(state="attached")
    assert re.search(r"[\u4e00-\u9fff]{4}", page.locator("h1").inner_text())
    page.locator("button.story").nth(1).click()
    page.wait_for_selector("#workbench", timeout=WAIT_MS)
    finished(page)
    assert re.search(r"[\u4e00-\u9fff]{4}", page.locator("#outline").inner_text())
    assert re.search(r"[\u4e00-\u9fff]{2}", page.locator("#panel .headline").inner_text())


def test_keys_work_and_are_listed(page: "Page") -> None:
    story(page, "Double the HBM bandwidth")
    page.get_by_role("button", name="Light / dark").wait_for()  # the scripts have come
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.form?.id") == "outline"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: "Browser", site: Site, theme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(base_url=site.url, color_scheme=theme, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    story(page, "Double the HBM bandwidth")
    page.locator(".plot[data-drawn]").first.wait_for(timeout=WAIT_MS)
    workbench = page.url
    for address in (workbench, f"{workbench}fabric/", "/", "/library/", "/accounts/signup/"):
        page.goto(address)
        found = Axe().run(page).response["violations"]
        serious = [
            (one["id"], [node["html"][:120] for node in one["nodes"]][:3])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert not serious, (address, serious)
    context.close()
