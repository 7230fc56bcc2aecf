"""Uploading request traces and running on them."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import SavedScenario, TraceUpload
from tests.explorer.conftest import SERVING, run_of

pytestmark = pytest.mark.django_db

HEAD = b"timestamp_s,input_tokens,output_tokens\n"
ROWS = HEAD + b"".join(b"%d,%d,%d\n" % (index, 100 + index, 20) for index in range(50))
AZURE = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
    b"2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
)
MOONCAKE = b'{"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": [0, 1]}\n'


def post(client: Client, content: bytes, **form: str) -> Any:
    file = SimpleUploadedFile("trace.csv", content)
    return client.post("/traces/", {"file": file, "format": "csv"} | form)


@pytest.mark.parametrize(
    ("content", "trace_format", "rows"), [(ROWS, "csv", 50), (AZURE, "azure", 2), (MOONCAKE, "mooncake", 1)]
)
def test_a_trace_is_read(content: bytes, trace_format: str, rows: int, as_alice: Client) -> None:
    assert post(as_alice, content, format=trace_format).status_code == 302
    upload = TraceUpload.objects.get()
    assert (upload.row_count, upload.format, upload.name) == (rows, trace_format, "trace.csv")
    assert len(upload.table().timestamp_s) == rows


def test_block_hashes_of_prompts_are_kept(as_alice: Client) -> None:
    """Only whether two hashes are equal counts, so they are kept as small numbers."""
    rows = [[2**60, 2**61], [2**60, 7], None]
    lines = [
        json.dumps(
            {"timestamp": place, "input_length": 1024, "output_length": 5}
            | ({"hash_ids": ids} if ids else {})
        )
        for place, ids in enumerate(rows)
    ]
    assert post(as_alice, "\n".join(lines).encode(), format="mooncake").status_code == 302
    table = TraceUpload.objects.get().table()
    assert table.block_offsets is not None
    assert table.block_hashes is not None
    assert table.block_offsets.tolist() == [0, 2, 4, 4]
    first, second, third, fourth = table.block_hashes.tolist()
    assert first == third
    assert len({first, second, fourth}) == 3
    assert post(as_alice, ROWS).status_code == 302
    assert TraceUpload.objects.get(format="csv").table().block_hashes is None


def test_columns_may_have_other_names(as_alice: Client) -> None:
    content = b"when,asked,answered\n0,10,5\n1,20,5\n"
    columns = {"timestamp_s": "when", "input_tokens": "asked", "output_tokens": "answered"}
    assert post(as_alice, content, **columns).status_code == 302
    assert TraceUpload.objects.get().table().input_tokens.tolist() == [10, 20]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (HEAD + b"0,10,5\n1,many,5\n", "line 3"),
        (HEAD + b"0,10,5\n1,-4,5\n", "line 3"),
        (HEAD + b"0,10,5\nnan,4,5\n", "line 3"),
        (HEAD, ""),
        (b"", ""),
        (b"\x00\xff\xfe", ""),
        (b"a,b\n1,2\n", ""),
        (b"timestamp_s,input_tokens,output_tokens,prompt\n0,1,1,my secret\n", "prompt"),
    ],
)
def test_a_broken_trace_is_explained(content: bytes, said: str, as_alice: Client) -> None:
    answer = post(as_alice, content)
    assert answer.status_code == 422
    assert answer.context["errors"]
    assert said in answer.content.decode()
    assert TraceUpload.objects.count() == 0


@pytest.mark.parametrize("trace_format", ["excel", "", "csv; drop table"])
def test_a_format_that_is_none_is_explained(trace_format: str, as_alice: Client) -> None:
    assert post(as_alice, ROWS, format=trace_format).status_code == 422


def test_a_refusal_names_lines_counts_the_rest_and_keeps_what_was_typed(as_alice: Client) -> None:
    """What was uploaded before stays, and so does the form: format, names of columns, and the scenario."""
    post(as_alice, ROWS)
    answer = post(
        as_alice, b"when,input_tokens,output_tokens\n" + b"0,x,5\n" * 9, timestamp_s="when", scenario="abc"
    )
    page = answer.content.decode()
    assert answer.status_code == 422
    assert [message.params.get("line") for message in answer.context["errors"]] == [2, 3, 4, 5, 6, None]
    assert "4 more cells like these" in page
    assert 'name="timestamp_s" placeholder="timestamp_s" value="when"' in page
    assert 'name="scenario" value="abc"' in page
    assert TraceUpload.objects.count() == 1


def test_a_refusal_is_told_in_chinese(as_alice: Client) -> None:
    as_alice.cookies["django_language"] = "zh-hans"
    page = post(as_alice, HEAD + b"0,many,5\n").content.decode()
    assert "第 2 行" in page
    assert "whole number" not in page


def test_no_file_is_explained(as_alice: Client) -> None:
    assert as_alice.post("/traces/", {"format": "csv"}).status_code == 422


def test_a_trace_has_a_size(as_alice: Client, settings: Any) -> None:
    settings.MAX_TRACE_BYTES = 100
    assert "100" in post(as_alice, ROWS).content.decode()
    settings.MAX_TRACE_BYTES, settings.MAX_TRACE_ROWS = 10_000, 10
    assert "10" in post(as_alice, ROWS).content.decode()
    assert TraceUpload.objects.count() == 0


def test_after_an_upload_its_summary_stands_there(as_alice: Client) -> None:
    """Fifty requests in forty-nine seconds, one a second: as regular as can be, and without hashes."""
    answer = post(as_alice, ROWS)
    upload = TraceUpload.objects.get()
    assert answer["Location"] == f"/traces/{upload.sha256}/"
    page = as_alice.get(answer["Location"])
    text = page.content.decode()
    assert page.context["panel"].headline == "50 requests in 49 s, a rate of 60 a minute"
    assert "more regular than a Poisson process" in text
    assert "no block hashes" in text
    assert {chart.slug for chart in page.context["panel"].charts} == {"arrivals", "lengths", "length-figures"}


def test_prompts_that_share_blocks_are_told(as_alice: Client) -> None:
    rows = [
        {"timestamp": at, "input_length": 512, "output_length": 5, "hash_ids": [at // 3000]}
        for at in range(0, 6000, 1000)
    ]
    answer = post(as_alice, "\n".join(map(json.dumps, rows)).encode(), format="mooncake")
    assert "66.7 % of the prompt tokens" in as_alice.get(answer["Location"]).content.decode()


def test_rows_left_out_are_counted_and_named_by_line(alice: User, as_alice: Client, work: Any) -> None:
    content = HEAD + b"0,10,5\n" + b"1,10,0\n" * 30 + b"2,10,5\n"
    answer = post(as_alice, content)
    page = as_alice.get(answer["Location"]).content.decode()
    assert "30 of 32 rows did no work" in page
    assert "line 3 has 10 tokens in and 0 out" in page
    assert "and 10 more like these" in page
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    actions.use_trace(Viewer(user=alice), scenario, TraceUpload.objects.get())
    said = [row["message"] for row in work(run_of(scenario)).result_document["warnings"]]
    assert "30 rows have no token in or out and were skipped, the first on line 3" in said


def test_an_upload_from_before_there_were_summaries_is_summarised_when_it_is_looked_at(
    as_alice: Client,
) -> None:
    post(as_alice, HEAD + b"0,10,5\n1,10,0\n2,10,5\n")
    old = {
        "template": "row {row} did no work",
        "params": {"row": 2},
        "code": "trace.row_skipped",
        "path": "file",
    }
    TraceUpload.objects.update(summary={}, skipped=[old | {"message": "row 2 did no work"}])
    upload = TraceUpload.objects.get()
    assert "2 requests" in as_alice.get(f"/traces/{upload.sha256}/").content.decode()
    assert upload.table().skipped_count == 0


def test_a_trace_runs_in_a_scenario_that_is_chosen_or_new(
    alice: User, as_alice: Client, as_bob: Client
) -> None:
    post(as_alice, ROWS)
    address = f"/traces/{TraceUpload.objects.get().sha256}/use/"
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    assert as_alice.post(address, {"scenario": str(scenario.pk)})["Location"] == f"/s/{scenario.pk}/serving/"
    scenario.refresh_from_db()
    assert scenario.document["workload"]["arrivals"]["kind"] == "trace"
    assert as_alice.post(address, {"scenario": ""}).status_code == 302
    made = SavedScenario.objects.exclude(pk=scenario.pk).get()
    assert made.name == "trace.csv"
    assert made.document["workload"]["arrivals"]["trace"] == TraceUpload.objects.get().sha256


def test_a_trace_does_not_run_in_the_scenario_of_another(bob: User, as_alice: Client) -> None:
    post(as_alice, ROWS)
    theirs = actions.create_scenario(Viewer(user=bob), SERVING)
    address = f"/traces/{TraceUpload.objects.get().sha256}/use/"
    assert as_alice.post(address, {"scenario": str(theirs.pk)}).status_code == 404


def test_the_workbench_leads_to_what_its_trace_is_like(alice: User, as_alice: Client) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    answer = post(as_alice, ROWS, scenario=str(scenario.pk))
    page = as_alice.get(answer["Location"]).content.decode()
    assert page.count(f"/traces/{TraceUpload.objects.get().sha256}/") == 3  # said, as a link, and in the form


def test_the_same_file_again_is_the_same_trace(as_alice: Client) -> None:
    post(as_alice, ROWS)
    post(as_alice, ROWS)
    assert TraceUpload.objects.count() == 1


def test_a_scenario_runs_on_an_uploaded_trace(alice: User, as_alice: Client, work: Any) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    answer = post(as_alice, ROWS, scenario=str(scenario.pk))
    assert answer["Location"] == f"/s/{scenario.pk}/serving/"
    scenario.refresh_from_db()
    assert scenario.document["workload"]["arrivals"]["trace"] == TraceUpload.objects.get().sha256
    run = work(run_of(scenario))
    assert run.status == "finished", run.messages
    assert run.result_document["metrics"]["serving.completed_count"] == 50


def test_a_trace_can_be_cut_and_stretched(alice: User, as_alice: Client, work: Any) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    post(as_alice, ROWS, scenario=str(scenario.pk))
    scenario.refresh_from_db()
    cut = {"workload.arrivals.limit": "20", "workload.arrivals.time_scale": "0.5"}
    assert not actions.edit(Viewer(user=alice), scenario, cut).errors
    run = work(run_of(scenario))
    assert run.result_document["metrics"]["serving.completed_count"] == 20


def test_a_fork_does_not_read_the_traces_of_another(
    alice: User, as_alice: Client, as_bob: Client, work: Any
) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    post(as_alice, ROWS, scenario=str(scenario.pk))
    scenario.refresh_from_db()
    actions.set_visibility(scenario, "public")
    page = as_bob.post(f"/s/{scenario.pk}/fork/", follow=True)
    assert "none of your uploads" in page.content.decode()
    assert SavedScenario.objects.count() == 1


def test_a_trace_with_more_rows_than_a_run_may_have_says_what_to_set(
    alice: User, as_alice: Client, settings: Any
) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    settings.MAX_REQUESTS_PER_RUN = 30
    post(as_alice, ROWS)
    outcome = actions.use_trace(Viewer(user=alice), scenario, TraceUpload.objects.get())
    assert outcome.errors


def test_the_azure_conversation_trace_is_read(shared: Path, as_alice: Client) -> None:
    content = (shared / "data" / "traces" / "azure2023_conv.csv").read_bytes()
    assert post(as_alice, content).status_code == 302
    assert TraceUpload.objects.get().row_count == 19_366
