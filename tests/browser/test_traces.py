"""A trace of 20,000 rows in a browser: uploaded, summarised, run, streamed; and a broken one, refused by line."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.browser.test_main_job import WAIT_MS, finished, quiet_console

if TYPE_CHECKING:
    from playwright.sync_api import Page, WebSocket

pytestmark = pytest.mark.browser
ROWS = 20_000
__all__ = ["quiet_console"]  # a fixture that acts by itself


def azure(rows: int = ROWS) -> str:
    """Bursty arrivals over an hour: Gamma gaps of CV 2."""
    draws = np.random.default_rng(1)
    instants = np.cumsum(draws.gamma(0.25, 4.0, rows) * 3600 / rows)
    stamps = np.datetime64("2023-11-16T18:17:03", "us") + (instants * 1e6).astype("timedelta64[us]")
    lengths = zip(draws.integers(50, 2000, rows), draws.integers(2, 200, rows), strict=True)
    lines = [
        f"{str(stamp).replace('T', ' ')}0,{inputs},{outputs}"
        for stamp, (inputs, outputs) in zip(stamps, lengths, strict=True)
    ]
    return "\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines, ""])


def mooncake(rows: int = ROWS) -> str:
    """Each prompt is four blocks, of which the first two are those of the prompt a hundred rows before."""
    lines = [
        {
            "timestamp": row * 180,
            "input_length": 2048,
            "output_length": 50,
            "hash_ids": [row % 100, 100 + row % 100, 1000 + 2 * row, 1001 + 2 * row],
        }
        for row in range(rows)
    ]
    return "\n".join(map(json.dumps, lines))


def upload(page: "Page", path: Path, *, form: str) -> None:
    page.goto("/traces/")
    page.set_input_files("#trace-file", path)
    page.select_option("#trace-format", form)
    page.get_by_role("button", name="Read it").click()


@pytest.mark.parametrize(
    ("form", "content", "said"),
    [
        ("azure", azure, ["Arrivals are bursty", "no block hashes"]),
        ("mooncake", mooncake, ["more regular than a Poisson process", "49.8 % of the prompt tokens"]),
    ],
)
def test_twenty_thousand_rows_are_summarised_run_and_streamed(
    form: str, content: object, said: list[str], page: "Page", tmp_path: Path
) -> None:
    """Slices of the series come over the socket before the run's end does."""
    heard: list[str] = []

    def listen(socket: "WebSocket") -> None:
        socket.on("framereceived", lambda frame: heard.append(json.loads(frame)["kind"]))

    page.on("websocket", listen)
    path = tmp_path / f"trace.{form}"
    path.write_text(content())  # type: ignore[operator]
    upload(page, path, form=form)
    page.locator("#plot-arrivals[data-drawn]").wait_for(timeout=WAIT_MS)
    page.locator("#plot-lengths[data-drawn]").wait_for(timeout=WAIT_MS)
    assert "20,000 requests" in page.locator(".headline").inner_text()
    assert all(sentence in page.locator(".lede").inner_text() for sentence in said)
    page.get_by_role("button", name="Simulate these requests").click()
    page.wait_for_selector("html[data-live]", state="attached", timeout=WAIT_MS)
    finished(page)
    page.locator("#chart-over-time", has_text="20,000 requests").wait_for(timeout=WAIT_MS)
    page.locator("#plot-over-time[data-drawn]").wait_for(timeout=WAIT_MS)
    assert page.locator('[name="workload.arrivals.kind"]').input_value() == "trace"
    assert heard.index("run.series") < heard.index("run.finished")


def test_a_broken_trace_is_refused_by_line(page: "Page", tmp_path: Path) -> None:
    """Which lines, what was got, what is allowed, how many more; and the trace that was kept before is kept."""
    good, broken = tmp_path / "good.csv", tmp_path / "broken.csv"
    good.write_text(azure(50))
    upload(page, good, form="azure")
    page.locator("#chart-arrivals").wait_for(timeout=WAIT_MS)
    broken.write_text(azure(ROWS) + "2023-11-16 19:30:00,many,5\n" * 8 + "2023-11-16 19:30:00,5,-1\n")
    upload(page, broken, form="azure")
    page.get_by_role("alert").first.wait_for(timeout=WAIT_MS)
    told = page.get_by_role("alert").all_inner_texts()
    assert told[0].startswith(
        "line 20002, column 'ContextTokens': got 'many'; a whole number of tokens, 0 or more, is needed"
    )
    assert [re.findall(r"^line (\d+)", text)[0] for text in told[:5]] == [str(20002 + k) for k in range(5)]
    assert told[5].startswith("4 more cells like these")
    assert page.locator("table", has_text="good.csv").count() == 1
    assert page.locator("table", has_text="broken.csv").count() == 0
