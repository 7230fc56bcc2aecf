"""The main job in a browser, from the first page to a link that a stranger opens.

The site runs as a person starts it (`manage.py up`); nothing here touches the database. The pages allow no
inline script, so waiting is for elements, never for evaluated conditions.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, WebSocketRoute

pytestmark = pytest.mark.browser
WAIT_MS = 60_000
TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:17:{second:02d}.{part}000000,{200 + second * 10},{20 + part}\n"
    for second in range(60)
    for part in range(0, 10, 2)
)


@pytest.fixture(autouse=True)
def quiet_console(page: "Page") -> Iterator[None]:
    """No page may complain in the console."""
    said: list[str] = []
    page.on("console", lambda line: said.append(line.text) if line.type == "error" else None)
    yield
    said = [line for line in said if "422" not in line]  # how a refused form answers
    assert not said, said


def finished(page: "Page") -> None:
    """The run that the page follows has ended, and the page knows."""
    page.wait_for_selector('#run[data-status="finished"]', state="attached", timeout=WAIT_MS)


def story(page: "Page", title: str) -> None:
    page.goto("/")
    page.get_by_role("button", name=title).click()
    page.wait_for_selector("#workbench", timeout=WAIT_MS)
    page.wait_for_selector("html[data-live]", state="attached", timeout=WAIT_MS)
    finished(page)


def tile(page: "Page", label: str) -> str:
    """A tile of the delta strip as text on one line."""
    shown = page.locator("#strip > div", has=page.locator("dt", has_text=re.compile(f"^{re.escape(label)}$")))
    shown.wait_for(timeout=WAIT_MS)
    return re.sub(r"\s+", " ", shown.inner_text())


def change(page: "Page", path: str, typed: str) -> None:
    """Type into a field of the outline, leave it, and wait for the answer."""
    page.wait_for_selector("html[data-live]", state="attached", timeout=WAIT_MS)
    before = page.get_attribute("#run", "data-run")
    field = page.locator(f'[name="{path}"]')
    field.evaluate(
        "field => { for (let up = field; up; up = up.parentElement) if (up.tagName === 'DETAILS') up.open = true }"
    )
    if field.evaluate("field => field.tagName") == "SELECT":
        field.select_option(typed)
    else:
        field.fill(typed)
        field.press("Tab")
    page.wait_for_selector(f'#run:not([data-run="{before}"])', state="attached", timeout=WAIT_MS)


def test_s1_removing_the_spine(page: "Page") -> None:
    """1,280 switches and 196,608 transceivers become 256 and 65,536; with 8-GPU servers there are 32 islands."""
    story(page, "Remove the spine")
    page.locator("#strip", has_text="from 1,280").wait_for(timeout=WAIT_MS)
    assert "256" in tile(page, "Switches")
    assert "from 1,280" in tile(page, "Switches")
    assert "65,536" in tile(page, "Transceivers")
    assert "from 196,608" in tile(page, "Transceivers")
    assert "32,768 ≤ 256 × 128 = 32,768" in page.locator(".guard").inner_text()
    change(page, "topology.hb_domain_size", "8")
    page.locator(".guard", has_text="32 islands of 1,024").wait_for(timeout=WAIT_MS)
    assert "32,768 > 8 × 128 = 1,024" in page.locator(".guard").inner_text()
    page.get_by_role("button", name="K = 256").click()
    page.locator("#panel:not(.stale)").wait_for(timeout=WAIT_MS)
    page.locator(".guard", has_text="32,768 ≤ 256 × 128 = 32,768").wait_for(timeout=WAIT_MS)


def test_s2_doubling_hbm_bandwidth(page: "Page") -> None:
    """Decoding gets about 1.3 times faster, not twice, and the share of the all-reduce rises."""
    story(page, "Double the HBM bandwidth")
    page.locator("#chart-where-time-goes", has_text="Baseline").wait_for(timeout=WAIT_MS)
    decode = page.locator(".kpi", has_text="Decode step").inner_text()
    gain = 1 / (1 - float(re.search(r"(\d+(?:\.\d+)?) %", decode)[1]) / 100)  # type: ignore[index]
    assert 1.2 < gain < 1.4, decode
    row = page.locator("#chart-where-time-goes tr", has_text="Scale-up").inner_text().split("\t")
    before, now = (float(cell.removesuffix(" %")) for cell in row[1:3])
    assert now > before
    page.locator("#chart-doublings").wait_for(timeout=WAIT_MS)
    page.locator(".plot[data-drawn]").first.wait_for(timeout=WAIT_MS)


def test_s12_re_wiring_spares_and_restarts(page: "Page") -> None:
    """A fixed place works three tenths of a year, a re-wired one eight; restarting less than the job brings more."""
    story(page, "Fixed or re-wired")
    assert "80.1" in tile(page, "Life goodput")
    assert "from 29.1" in tile(page, "Life goodput")
    spares = page.locator("#chart-life-spares")
    assert "32.4 % to 78.5 %" in re.sub(r"\s+", " ", spares.inner_text())
    change(page, "reliability.life.restart_scope", "host")
    finished(page)
    page.locator("#strip", has_text="83.4").wait_for(timeout=WAIT_MS)


def test_a_pasted_vllm_line_becomes_a_baseline(page: "Page") -> None:
    page.goto("/")
    page.get_by_label("Paste a model id").fill(
        "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --max-num-seqs 96"
    )
    page.get_by_role("button", name="Open the baseline").click()
    page.wait_for_selector("#workbench", timeout=WAIT_MS)
    finished(page)
    assert page.locator('[name="serving.parallelism.tp"]').input_value() == "2"
    assert page.locator('[name="serving.scheduler.max_num_seqs"]').input_value() == "96"
    assert "token/s" in tile(page, "Throughput per chip")


def test_a_paste_that_cannot_be_read_says_why_and_keeps_it(page: "Page") -> None:
    page.goto("/")
    page.get_by_label("Paste a model id").fill("no such model, I think")
    page.get_by_role("button", name="Open the baseline").click()
    page.get_by_role("alert").wait_for()
    assert page.get_by_label("Paste a model id").input_value() == "no such model, I think"


def test_an_edit_moves_the_charts_as_results_stream_in(page: "Page") -> None:
    story(page, "Double the HBM bandwidth")
    before = tile(page, "Throughput per chip")
    began = time.monotonic()
    change(page, "hardware.chip_overrides.hbm_bytes_per_s", "13.4 TB/s")
    finished(page)
    page.locator("#strip:not(.stale)").wait_for(timeout=WAIT_MS)
    assert tile(page, "Throughput per chip") != before
    assert "was 3.35 TB/s" in page.locator("#outline").inner_text()
    assert time.monotonic() - began < WAIT_MS / 1000
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector('[name="hardware.chip_overrides.hbm_bytes_per_s"]', timeout=WAIT_MS)
    page.locator("#strip", has_text=before.split(" ")[3]).wait_for(timeout=WAIT_MS)


def test_until_an_edits_first_slice_the_old_curves_stay_and_the_page_notes_when_it_came(page: "Page") -> None:
    """Nothing is blanked: in every frame the running line is drawn, greyed while it is of the run before."""
    page.goto("/")
    page.get_by_label("Paste a model id").fill("name: Edited\nworkload: {request_count: 10000}\n")
    page.get_by_role("button", name="Open the baseline").click()
    page.wait_for_selector("#workbench", timeout=WAIT_MS)
    page.goto(f"{page.url.rstrip('/')}/serving/")
    finished(page)
    line = page.locator("#plot-over-time .scatterlayer .trace path.js-line").first
    line.wait_for(timeout=WAIT_MS)
    page.evaluate(
        "() => { window.blank = 0; const look = () => { if (!document.querySelector('#plot-over-time .js-line')"
        "?.getAttribute('d')) window.blank += 1; requestAnimationFrame(look); }; look(); }"
    )
    change(page, "workload.request_count", "9000")
    page.wait_for_selector("html[data-first-data]", state="attached", timeout=WAIT_MS)
    finished(page)
    page.locator("#chart-over-time:not(.stale)", has_text="9,000 requests").wait_for(timeout=WAIT_MS)
    noted = page.evaluate("() => ({ ...document.documentElement.dataset })")
    assert int(noted["firstData"]) >= int(noted["edited"])
    assert page.evaluate("() => window.blank") == 0


def test_a_wrong_value_is_told_at_its_field_and_nothing_is_lost(page: "Page") -> None:
    story(page, "Double the HBM bandwidth")
    field = page.locator('[name="hardware.chip_overrides.hbm_bytes_per_s"]')
    field.fill("3 furlongs")
    field.press("Tab")
    page.locator("#f-hardware-chip_overrides-hbm_bytes_per_s-err").wait_for(timeout=WAIT_MS)
    assert field.input_value() == "3 furlongs"
    assert field.get_attribute("aria-invalid") == "true"
    assert "token/s" in tile(page, "Throughput per chip")


def test_a_dropped_socket_comes_back_where_it_was(page: "Page") -> None:
    """The lid closes after the first message; the page asks for what it missed, and the charts catch up."""
    opened: list[str] = []

    def drop_the_first(route: "WebSocketRoute") -> None:
        opened.append(route.url)
        server = route.connect_to_server()
        if len(opened) == 1:

            def one_message_then_gone(message: "str | bytes") -> None:
                route.send(message)
                route.close(code=1001)

            server.on_message(one_message_then_gone)

    story(page, "Double the HBM bandwidth")
    page.route_web_socket(re.compile(r"/ws/runs/"), drop_the_first)
    change(page, "workload.request_count", "1000000")  # long enough that the socket is back before the end
    finished(page)
    page.locator("#panel:not(.stale) #chart-doublings").wait_for(timeout=WAIT_MS)
    assert "1,000,000 requests" in page.locator("#chart-over-time").inner_text()
    asked = [int(address.rsplit("after=", 1)[1]) for address in opened]
    assert len(asked) >= 2
    assert asked[1] > asked[0]


def test_why_opens_the_expression_behind_a_number(page: "Page") -> None:
    story(page, "Double the HBM bandwidth")
    page.locator('.kpi a[data-why="compute.decode_step_s"]').click()
    drawer = page.locator("#why")
    drawer.locator(".tree").wait_for(timeout=WAIT_MS)
    assert "compute.decode_step_s" in drawer.inner_text()
    page.keyboard.press("w")
    drawer.wait_for(state="hidden")


def test_fork_pin_and_compare(page: "Page") -> None:
    story(page, "Double the HBM bandwidth")
    page.get_by_role("link", name="Diff").click()  # a story is compared with its own baseline
    page.locator("#chart-results").wait_for(timeout=WAIT_MS)
    assert "HBM bandwidth" in page.locator("#chart-inputs").inner_text()
    page.go_back()
    page.get_by_role("button", name="Light / dark").wait_for()  # the scripts have come
    page.keyboard.press("f")
    page.locator(".idbar", has_text="fork of").wait_for(timeout=WAIT_MS)
    finished(page)
    change(page, "workload.arrivals.concurrency", "32")
    finished(page)
    page.locator("#strip .d.better, #strip .d.worse").first.wait_for(timeout=WAIT_MS)
    page.get_by_role("button", name="Pin this state").click()
    page.get_by_role("button", name="Unpin").wait_for(timeout=WAIT_MS)
    page.get_by_role("link", name="Diff").click()
    page.locator("#chart-results").wait_for(timeout=WAIT_MS)
    assert "Users" in page.locator("#chart-inputs").inner_text()
    for form in ("CSV", "JSON", "HTML"):
        with page.expect_download() as download:
            page.get_by_role("link", name=form, exact=True).click()
        assert Path(download.value.path()).stat().st_size > 100


def test_results_that_come_while_a_button_is_held_do_not_lose_the_press(page: "Page") -> None:
    story(page, "Double the HBM bandwidth")
    page.keyboard.press("f")
    page.locator(".idbar", has_text="fork of").wait_for(timeout=WAIT_MS)
    finished(page)
    before = page.locator("#strip").inner_text()
    change(page, "workload.arrivals.concurrency", "48")
    page.get_by_role("button", name="Pin this state").hover()
    page.mouse.down()
    finished(page)
    page.wait_for_timeout(500)
    assert page.locator("#strip").inner_text() != before
    page.mouse.up()
    page.get_by_role("button", name="Unpin").wait_for(timeout=10_000)


def test_a_frozen_link_opens_for_a_stranger_and_can_be_revoked(
    page: "Page", browser: "Browser", site: Site
) -> None:
    story(page, "Double the HBM bandwidth")
    page.get_by_role("button", name="Share").click()
    address = page.locator(".banner a").first.get_attribute("href") or ""
    assert "/r/" in address
    stranger = browser.new_context(base_url=site.url).new_page()
    stranger.goto(address)
    stranger.get_by_text("inputs, prices and results stay as they were").wait_for()
    assert "token/s" in stranger.locator("#strip").inner_text()
    stranger.locator(".plot[data-drawn]").first.wait_for(timeout=WAIT_MS)
    page.goto(address)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Revoke").click()
    assert (stranger.goto(address) or stranger).status == 410  # type: ignore[union-attr]
    stranger.get_by_text("no longer shows anything").wait_for()
    stranger.context.close()


def test_an_uploaded_trace_becomes_the_workload(page: "Page", tmp_path: Path) -> None:
    story(page, "Double the HBM bandwidth")
    page.get_by_role("link", name="Upload a request trace").click()
    file = tmp_path / "conversation.csv"
    file.write_text(TRACE)
    page.get_by_label("File").set_input_files(file)
    page.get_by_label("Format").select_option("azure")
    page.get_by_role("button", name="Read it").click()
    page.get_by_text("300 requests read").wait_for(timeout=WAIT_MS)
    finished(page)
    assert page.locator('[name="workload.arrivals.kind"]').input_value() == "trace"
    assert "conversation.csv" in page.locator('[name="workload.arrivals.trace"]').inner_text()


def test_it_works_without_scripts(browser: "Browser", site: Site) -> None:
    """A story, an edit by the Apply button, and numbers that explain themselves by links."""
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")
    page.get_by_role("button", name="Remove the spine").click()
    for _ in range(100):
        if page.locator("#strip", has_text="from 1,280").count():
            break
        page.wait_for_timeout(200)
        page.reload()
    page.locator('[name="topology.hb_domain_size"]').fill("8")
    page.get_by_role("button", name="Apply").click()
    for _ in range(100):
        if page.locator(".guard").count():
            break
        page.wait_for_timeout(200)
        page.reload()
    assert "32 islands" in page.locator(".guard").inner_text()
    page.locator("#strip a.q").first.click()
    assert "fabric.switch_count" in page.locator("main").inner_text()
    context.close()
