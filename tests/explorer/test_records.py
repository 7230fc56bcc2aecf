"""Every request of a run, downloaded: simulated again, bounded, and for those alone who may read the run."""

import csv
import io
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import Run
from tests.explorer.conftest import SERVING, run_of
from tests.explorer.test_traces import ROWS, post

pytestmark = pytest.mark.django_db


@pytest.fixture
def served(alice: User, work: Callable[[Run], Run]) -> Run:
    return work(run_of(actions.create_scenario(Viewer(user=alice), SERVING)))


def rows_of(client: Client, run: Run) -> list[dict[str, str]]:
    answer = client.get(f"/runs/{run.pk}/records.csv")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="llama-31-8b-on-one-h100-requests.csv"'
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_the_rows_are_those_of_which_the_metrics_tell(served: Run, as_alice: Client) -> None:
    """Simulated again, they have the very percentiles that the run kept."""
    rows, metrics = rows_of(as_alice, served), served.result_document["metrics"]
    assert len(rows) == 400
    assert {row["status"] for row in rows} == {"finished"}
    for time in ("ttft_s", "tpot_s", "e2e_s"):
        values = [float(row[time]) for row in rows]
        assert np.percentile(values, 99) == pytest.approx(metrics[f"serving.{time}.p99"], rel=1e-12)
        assert np.mean(values) == pytest.approx(metrics[f"serving.{time}.mean"], rel=1e-12)


def test_a_run_on_a_trace_has_its_rows(alice: User, as_alice: Client, work: Callable[[Run], Run]) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    post(as_alice, ROWS, scenario=str(scenario.pk))
    scenario.refresh_from_db()
    rows = rows_of(as_alice, work(run_of(scenario)))
    assert [int(row["input_tokens"]) for row in rows] == [100 + index for index in range(50)]


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="Parquet needs pyarrow, which is not installed")
def test_parquet_holds_the_same(served: Run, as_alice: Client) -> None:
    import pyarrow.parquet

    answer = as_alice.get(f"/runs/{served.pk}/records.parquet")
    table = pyarrow.parquet.read_table(io.BytesIO(answer.content)).to_pydict()
    assert table["ttft_s"] == [float(row["ttft_s"]) for row in rows_of(as_alice, served)]


def test_without_pyarrow_there_is_no_parquet(
    served: Run, as_alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.records.RECORD_FORMATS", ("csv",))
    assert as_alice.get(f"/runs/{served.pk}/records.parquet").status_code == 404


def test_records_are_read_by_who_may_read_the_run(
    served: Run, as_bob: Client, as_charlie: Client, as_nobody: Client
) -> None:
    for stranger in (as_bob, as_charlie, as_nobody):
        assert stranger.get(f"/runs/{served.pk}/records.csv").status_code == 404
    actions.set_visibility(served.revision.scenario, "link")
    assert len(rows_of(as_bob, served)) == 400


def test_a_run_without_requests_or_an_end_has_none(finished: Run, alice: User, as_alice: Client) -> None:
    assert as_alice.get(f"/runs/{finished.pk}/records.csv").status_code == 404
    waiting = run_of(actions.create_scenario(Viewer(user=alice), SERVING))
    assert as_alice.get(f"/runs/{waiting.pk}/records.csv").status_code == 404
    assert as_alice.get(f"/runs/{'-' * 36}/records.csv").status_code == 404


def test_more_than_a_download_simulates_is_explained(served: Run, as_alice: Client, settings: Any) -> None:
    settings.MAX_RECORDS_PER_DOWNLOAD = 399
    page = as_alice.get(f"/runs/{served.pk}/records.csv", follow=True)
    assert "a download simulates up to 399" in page.content.decode()


def test_a_run_that_cannot_be_had_again_says_so(served: Run, as_alice: Client) -> None:
    """As after a new engine, whose digests are others."""
    Run.objects.update(digest="of another engine")
    page = as_alice.get(f"/runs/{served.pk}/records.csv", follow=True)
    assert "run the scenario again" in page.content.decode()


def test_downloads_are_few_a_minute(served: Run, as_alice: Client, settings: Any) -> None:
    settings.RATE_LIMIT_PERCENT = 10
    assert as_alice.get(f"/runs/{served.pk}/records.csv").status_code == 200
    assert as_alice.get(f"/runs/{served.pk}/records.csv").status_code == 429


def test_the_serving_page_offers_them(served: Run, as_alice: Client) -> None:
    page = as_alice.get(f"/s/{served.revision.scenario_id}/serving/").content.decode()
    assert f"/runs/{served.pk}/records.csv" in page
