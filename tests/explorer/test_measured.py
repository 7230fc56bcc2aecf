"""A benchmark's result laid over a run: figures side by side, percentiles on the curves, and clear refusals."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import translation

from explorer import actions
from explorer.access import Viewer
from explorer.charts import measured
from explorer.models import Run
from explorer.views import measured as view
from simcore.measurements import read_serving
from tests.explorer import documents
from tests.explorer.conftest import SERVING, run_of


def benchmark(result: dict[str, Any], **others: Any) -> dict[str, Any]:
    """What `vllm bench serve` would have written of the simulated system, each time twice as long."""
    metrics = result["metrics"]
    rate = metrics["serving.request_per_s"]
    return {
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "completed": 100,
        "request_throughput": rate,
        "mean_ttft_ms": 2e3 * metrics["serving.ttft_s.mean"],
        "median_ttft_ms": 2e3 * metrics["serving.ttft_s.p50"],
        "p99_ttft_ms": 2e3 * metrics["serving.ttft_s.p99"],
        **others,
    }


def simulated() -> dict[str, Any]:
    document = documents.serving()
    document["metrics"]["serving.request_per_s"] = 8.0
    return document


def points(document: dict[str, Any], *more: dict[str, Any]) -> Any:
    return read_serving("vllm-bench", json.dumps([document, *more]).encode())


def test_it_sets_each_figure_beside_the_simulated_one() -> None:
    result = simulated()
    panel = measured.panel(result, points(benchmark(result)))
    assert "TTFT" in panel.headline
    assert "−50" in panel.headline
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in panel.charts[0].table.rows}
    errors = {texts[-1] for name, texts in rows.items() if name.startswith("TTFT")}
    assert len(errors) == 1
    assert panel.notes == ()


def test_it_marks_the_measured_percentiles_on_the_simulated_curve() -> None:
    result = simulated()
    panel = measured.panel(result, points(benchmark(result)))
    curve = next(chart for chart in panel.charts if chart.slug == "measured-ttft")
    line, marks = curve.body["data"]
    assert line["x"] == result["series"]["ttft_cdf"]["ttft_s"]
    assert marks["y"] == [0.5, 0.99]
    assert marks["x"][0] == pytest.approx(2 * result["metrics"]["serving.ttft_s.p50"])
    assert not any(chart.slug == "measured-tpot" for chart in panel.charts)  # the file has none


def test_it_says_where_the_benchmark_had_another_load_and_which_point_it_took() -> None:
    result = simulated()
    one = benchmark(result)
    other = one | {"request_throughput": 10 * one["request_throughput"]}
    panel = measured.panel(result, points(other, one))
    assert "the nearest of 2 load points" in panel.lede
    assert panel.notes == ()
    (note,) = measured.panel(result, points(other)).notes
    assert note.text.startswith("Request rate: ")
    with translation.override("zh-hans"):
        (note,) = measured.panel(result, points(other)).notes
        assert "基准测试" in note.text


def upload(tool: str, content: str | bytes) -> dict[str, Any]:
    raw = content.encode() if isinstance(content, str) else content
    return {"tool": tool, "file": SimpleUploadedFile("bench.json", raw)}


@pytest.fixture
def served(alice: User, work: Callable[[Run], Run]) -> Run:
    """Alice's run of what serves."""
    return work(run_of(actions.create_scenario(Viewer(user=alice), SERVING)))


def test_it_reads_an_uploaded_file_and_keeps_nothing(served: Run, as_alice: Client) -> None:
    path = f"/runs/{served.pk}/measured/"
    assert b'id="overlay"' not in as_alice.get(path).content
    document = benchmark(served.result_document or {}, mean_tpot_ms=9.0)
    page = as_alice.post(path, upload("vllm-bench", json.dumps(document)))
    assert page.status_code == 200
    assert b'id="overlay"' in page.content
    assert "Simulated against measured" in page.content.decode()
    tab = as_alice.get(f"/s/{served.revision.scenario_id}/serving/").content.decode()
    assert path in tab


@pytest.mark.parametrize(
    ("tool", "content", "says"),
    [
        ("vllm-bench", "{", "line 1"),
        ("vllm-bench", "{}", "<code>completed</code>: missing"),
        ("guidellm", '{"benchmarks": []}', "<code>benchmarks</code>"),
        ("k6", "{}", "choose the tool"),
        ("llm-d", b"\xff\xfe", "is not UTF-8 text"),
        ("aiperf", b" " * (view.MAX_BYTES + 1), "larger than 2,097,152 bytes"),
    ],
)
def test_it_says_what_is_wrong_with_a_file(
    tool: str, content: str | bytes, says: str, served: Run, as_alice: Client
) -> None:
    page = as_alice.post(f"/runs/{served.pk}/measured/", upload(tool, content))
    assert page.status_code == 422
    assert says in page.content.decode()


def test_it_has_nothing_to_lay_over_what_serves_nothing(finished: Run, as_alice: Client) -> None:
    path = f"/runs/{finished.pk}/measured/"
    assert "serves no requests" in as_alice.get(path).content.decode()
    assert as_alice.post(path, upload("vllm-bench", "{}")).status_code == 422
