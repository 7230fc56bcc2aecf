"""Making, editing, and going back and forth: nothing that was saved is lost, and values stay as typed."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import Run, SavedScenario
from simcore.errors import InputError
from simcore.scenario.stories import stories, story
from tests.explorer.conftest import DOCUMENT, SERVING, run_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(alice: User) -> Viewer:
    return Viewer(user=alice)


@pytest.fixture
def serving(viewer: Viewer) -> SavedScenario:
    return actions.create_scenario(viewer, SERVING)


# --- beginning ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "meta-llama/Llama-3.1-8B-Instruct",
        "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --max-model-len 32k",
        "name: mine\nhardware: {chip_count: 16}\nworkload: {kind: none}\n",
        '{"name": "mine", "workload": {"kind": "none"}}',
    ],
)
def test_a_scenario_begins_from_what_a_person_has(text: str, as_nobody: Client) -> None:
    answer = as_nobody.post("/start/", {"text": text})
    assert answer.status_code == 302
    assert as_nobody.get(answer["Location"]).status_code == 200
    assert run_of(SavedScenario.objects.get()).status == "queued"


def test_a_scenario_begins_from_a_file(as_nobody: Client) -> None:
    file = SimpleUploadedFile("s.yaml", b"name: from a file\nworkload: {kind: none}\n")
    assert as_nobody.post("/start/", {"file": file}).status_code == 302
    assert SavedScenario.objects.get().name == "from a file"


BAD = {
    "nothing": ("", "nothing was pasted"),
    "unknown model": ("no/such-model", "no model called"),
    "unknown key": ("name: x\ncolour: red\n", "colour"),
    "wrong unit": ("name: x\nworkload: {slo: {ttft_s: 3 GB}}\n", "workload.slo.ttft_s"),
    "nan": ("name: x\nworkload: {slo: {ttft_s: .nan}}\n", "workload.slo.ttft_s"),
    "infinity": ("name: x\nhardware: {chip_overrides: {hbm_bytes_per_s: .inf}}\n", "hbm_bytes_per_s"),
    "negative": ("name: x\nhardware: {chip_count: -8}\n", "hardware.chip_count"),
    "absurd": ("name: x\nhardware: {chip_count: 99999999999}\n", "hardware.chip_count"),
    "bomb": ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchors and aliases"),
    "too deep": ("name: x\na: " + "[" * 100 + "]" * 100, "deep"),
    "not a mapping": ("- a\n- b: c\n", ""),
    "tp": ("name: x\nhardware: {chip_count: 8}\nserving: {parallelism: {tp: 3}}\n", "serving.parallelism"),
    "a path of the server": (
        "name: x\nworkload: {arrivals: {kind: trace, path: /etc/passwd, format: csv}}\n",
        "upload the trace",
    ),
    "a trace that is not there": (
        "name: x\nworkload: {arrivals: {kind: trace, trace: abc, format: csv}}\n",
        "none of your uploads",
    ),
    "nul": ('name: "a\\0b"\nworkload: {kind: none}\n', "a NUL"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_what_cannot_be_read_is_explained_and_kept_in_the_box(case: str, as_nobody: Client) -> None:
    text, expected = BAD[case]
    answer = as_nobody.post("/start/", {"text": text})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert expected in page
    assert SavedScenario.objects.count() == 0
    if case == "unknown key":
        assert "colour: red" in page


def test_a_scenario_that_is_too_large_is_refused(as_nobody: Client, settings: Any) -> None:
    settings.MAX_DOCUMENT_BYTES = 1000
    file = SimpleUploadedFile("s.yaml", b"name: x\ndescription: " + b"y" * 2000)
    answer = as_nobody.post("/start/", {"file": file})
    assert answer.status_code == 422
    assert "1,000" in answer.content.decode()


@pytest.mark.parametrize("slug", list(stories()))
def test_every_story_opens_with_its_baseline(slug: str, as_nobody: Client) -> None:
    answer = as_nobody.post(f"/stories/{slug}/")
    assert answer.status_code == 302
    scenario = SavedScenario.objects.get()
    assert scenario.baseline is not None
    assert scenario.baseline.document["name"] == story(slug).baseline["name"]
    assert scenario.document["name"] == story(slug).variant["name"]
    assert Run.objects.filter(revision__in=(scenario.baseline, scenario.current)).count() == 2
    assert as_nobody.get(answer["Location"]).status_code == 200


def test_the_first_story_comes_out_as_published(viewer: Viewer, work: Any) -> None:
    scenario = actions.create_from_story(viewer, story("s1-rail-only"))
    baseline = actions.latest_run(scenario.baseline)
    assert baseline is not None
    before, after = (work(run).result_document["metrics"] for run in (baseline, run_of(scenario)))
    assert (before["fabric.switch_count"], after["fabric.switch_count"]) == (1280, 256)
    assert (before["fabric.transceiver_count"], after["fabric.transceiver_count"]) == (196_608, 65_536)


def test_a_serving_run_streams_its_series(serving: SavedScenario, work: Any) -> None:
    run = work(run_of(serving))
    assert run.status == "finished", run.messages
    assert run.events.filter(kind="run.series").exists()
    assert run.result_document["metrics"]["serving.completed_count"] == 400


def test_there_is_a_limit_to_how_many_one_keeps(viewer: Viewer, settings: Any) -> None:
    settings.MAX_SCENARIOS_PER_OWNER = 1
    actions.create_scenario(viewer, DOCUMENT)
    with pytest.raises(InputError, match="delete some"):
        actions.create_scenario(viewer, DOCUMENT)


def test_there_is_a_limit_to_how_much_one_simulates_at_once(viewer: Viewer, settings: Any) -> None:
    settings.MAX_ACTIVE_RUNS_PER_OWNER = 1
    first = actions.create_scenario(viewer, DOCUMENT)
    with pytest.raises(InputError, match="under way"):
        actions.create_scenario(viewer, {**DOCUMENT, "run": {"seed": 2}})
    assert SavedScenario.objects.count() == 1
    outcome = actions.edit(viewer, first, {"hardware.chip_count": "128"})
    assert outcome.run is not None, "an edit cancels what it made stale, so it is within the limit"


def test_there_is_a_limit_to_one_run(serving: SavedScenario, viewer: Viewer, settings: Any) -> None:
    settings.MAX_REQUESTS_PER_RUN = 1000
    outcome = actions.edit(viewer, serving, {"workload.request_count": "5000"})
    assert "1,000" in outcome.errors["workload.request_count"].text


def test_there_is_a_limit_to_how_often_one_posts(as_nobody: Client, settings: Any) -> None:
    settings.RATE_LIMIT_PERCENT = 5
    answers = [as_nobody.post("/start/", {"text": ""}).status_code for _ in range(5)]
    assert answers == [422, 422, 422, 429, 429]


# --- editing --------------------------------------------------------------------------------------------------


def test_an_edit_makes_a_revision_and_a_run(scenario: SavedScenario, as_alice: Client) -> None:
    answer = as_alice.post(f"/s/{scenario.pk}/edit/", {"hardware.chip_count": "128", "tab": "fabric"})
    assert answer["Location"] == f"/s/{scenario.pk}/fabric/"
    scenario.refresh_from_db()
    assert scenario.document["hardware"]["chip_count"] == 128
    assert scenario.current is not None
    assert (scenario.current.number, scenario.current.parent) == (2, scenario.revisions.get(number=1))
    assert run_of(scenario).status == "queued"


def test_enter_in_a_field_presses_no_button_that_changes_another(
    scenario: SavedScenario, as_alice: Client
) -> None:
    """The browser presses the form's first button: one without a name sends what is typed and nothing else."""
    page = as_alice.get(f"/s/{scenario.pk}/").content.decode()
    form = page[page.index('<form id="outline"') :]
    first = form[form.index("<button") :]
    assert "name=" not in first[: first.index(">")]


def test_values_stay_as_they_were_typed(serving: SavedScenario, as_alice: Client) -> None:
    typed = {"hardware.chip_overrides.hbm_bytes_per_s": "6.7 TB/s", "workload.slo.ttft_s": "1500 ms"}
    as_alice.post(f"/s/{serving.pk}/edit/", typed)
    serving.refresh_from_db()
    assert serving.document["hardware"]["chip_overrides"]["hbm_bytes_per_s"] == "6.7 TB/s"
    assert serving.document["workload"]["slo"]["ttft_s"] == "1500 ms"
    assert "6.7 TB/s" in as_alice.get(f"/s/{serving.pk}/").content.decode()


def test_an_emptied_field_goes_back_to_its_default(serving: SavedScenario, as_alice: Client) -> None:
    as_alice.post(f"/s/{serving.pk}/edit/", {"workload.request_count": ""})
    serving.refresh_from_db()
    assert "request_count" not in serving.document["workload"]


def test_a_wrong_value_stands_at_its_field_and_changes_nothing(
    serving: SavedScenario, as_alice: Client
) -> None:
    before = serving.document
    answer = as_alice.post(f"/s/{serving.pk}/edit/", {"workload.slo.ttft_s": "3 GB"})
    assert answer.status_code == 422
    assert "workload.slo.ttft_s" in answer.context["errors"]
    serving.refresh_from_db()
    assert (serving.document, serving.revisions.count()) == (before, 1)


def test_what_was_refused_is_still_there_tomorrow(serving: SavedScenario, as_alice: Client) -> None:
    as_alice.post(f"/s/{serving.pk}/edit/", {"workload.slo.ttft_s": "3 GB"})
    page = as_alice.get(f"/s/{serving.pk}/")
    assert page.context["draft"]["workload.slo.ttft_s"]["typed"] == "3 GB"
    assert "3 GB" in page.content.decode()


def test_a_refused_draft_is_nobody_elses(serving: SavedScenario, as_alice: Client, as_bob: Client) -> None:
    as_alice.post(f"/s/{serving.pk}/edit/", {"workload.slo.ttft_s": "3 GB"})
    SavedScenario.objects.update(visibility="public")
    assert "3 GB" not in as_bob.get(f"/s/{serving.pk}/").content.decode()


def test_what_the_catalog_refuses_stands_at_its_field(serving: SavedScenario, viewer: Viewer) -> None:
    outcome = actions.edit(viewer, serving, {"hardware.chip": "nvidia-h1000"})
    assert "hardware.chip" in outcome.errors
    assert serving.draft["hardware.chip"]["typed"] == "nvidia-h1000"


def test_a_draft_that_fits_later_is_taken_then(serving: SavedScenario, viewer: Viewer) -> None:
    refused = actions.edit(viewer, serving, {"serving.replica_count": "5"})
    assert "serving.replica_count" in refused.errors, "one chip holds one replica"
    taken = actions.edit(viewer, serving, {"hardware.chip_count": "8"})
    assert not taken.errors
    assert serving.document["serving"]["replica_count"] == 5
    assert serving.draft == {}


def test_a_corrected_draft_is_gone(serving: SavedScenario, as_alice: Client) -> None:
    as_alice.post(f"/s/{serving.pk}/edit/", {"workload.request_count": "many"})
    as_alice.post(f"/s/{serving.pk}/edit/", {"workload.request_count": "400"})
    serving.refresh_from_db()
    assert serving.draft == {}
    assert serving.revisions.count() == 1


def test_another_kind_drops_the_keys_that_it_lacks(scenario: SavedScenario, as_alice: Client) -> None:
    as_alice.post(f"/s/{scenario.pk}/edit/", {"topology.kind": "rail_only"})
    scenario.refresh_from_db()
    assert scenario.document["topology"]["kind"] == "rail_only"


def test_htmx_gets_the_inside_of_the_page(serving: SavedScenario, as_alice: Client) -> None:
    path = f"/s/{serving.pk}/edit/"
    taken = as_alice.post(path, {"workload.request_count": "300"}, headers={"HX-Request": "true"})
    refused = as_alice.post(path, {"workload.request_count": "x"}, headers={"HX-Request": "true"})
    assert (taken.status_code, refused.status_code) == (200, 200)
    assert "<html" not in taken.content.decode()
    assert "workload.request_count" in refused.context["errors"]


# --- going back and forth -------------------------------------------------------------------------------------


def counts(scenario: SavedScenario) -> int:
    scenario.refresh_from_db()
    return int(scenario.document["hardware"]["chip_count"])


def test_undo_and_redo_walk_the_history(scenario: SavedScenario, as_alice: Client) -> None:
    for count in ("128", "256"):
        as_alice.post(f"/s/{scenario.pk}/edit/", {"hardware.chip_count": count})
    walked = []
    for verb in ("undo", "undo", "undo", "redo", "redo", "redo"):
        as_alice.post(f"/s/{scenario.pk}/{verb}/")
        walked.append(counts(scenario))
    assert walked == [128, 64, 64, 128, 256, 256]


def test_redo_follows_the_youngest_branch(scenario: SavedScenario, viewer: Viewer) -> None:
    actions.edit(viewer, scenario, {"hardware.chip_count": "128"})
    actions.undo(viewer, scenario)
    actions.edit(viewer, scenario, {"hardware.chip_count": "256"})
    actions.undo(viewer, scenario)
    actions.redo(viewer, scenario)
    assert counts(scenario) == 256


def test_undo_shows_the_result_that_was_there(finished: Run, viewer: Viewer) -> None:
    scenario = finished.revision.scenario
    actions.edit(viewer, scenario, {"hardware.chip_count": "128"})
    assert actions.undo(viewer, scenario) == finished


def test_a_revision_can_be_named(scenario: SavedScenario, as_alice: Client) -> None:
    as_alice.post(f"/s/{scenario.pk}/save/", {"label": "before the spine went"})
    assert scenario.revisions.get().label == "before the spine went"


@pytest.mark.parametrize(
    ("number", "count"), [("1", 64), ("2", 128), ("99", 128), ("x", 128), ("9" * 30, 128)]
)
def test_one_goes_back_to_a_named_state(
    number: str, count: int, scenario: SavedScenario, as_alice: Client
) -> None:
    as_alice.post(f"/s/{scenario.pk}/save/", {"label": "before"})
    as_alice.post(f"/s/{scenario.pk}/edit/", {"hardware.chip_count": "128"})
    assert [str(state) for state in as_alice.get(f"/s/{scenario.pk}/").context["named"]] == ["before"]
    as_alice.post(f"/s/{scenario.pk}/go/", {"number": number})
    assert counts(scenario) == count


def test_a_new_name_simulates_nothing(finished: Run, as_alice: Client, queue: list[Any]) -> None:
    scenario = finished.revision.scenario
    as_alice.post(f"/s/{scenario.pk}/rename/", {"name": "配平"})
    scenario.refresh_from_db()
    assert (scenario.name, scenario.document["name"]) == ("配平", "配平")
    assert run_of(scenario).status == "finished"
    assert run_of(scenario).result == finished.result


def test_a_new_name_does_not_disturb_the_run_under_way(scenario: SavedScenario, as_alice: Client) -> None:
    run = run_of(scenario)
    as_alice.post(f"/s/{scenario.pk}/rename/", {"name": "another"})
    scenario.refresh_from_db()
    assert run_of(scenario) == run
    assert run_of(scenario).status == "queued"


@pytest.mark.parametrize("name", ["", "   ", "x" * 201])
def test_a_name_has_a_length(scenario: SavedScenario, as_alice: Client, name: str) -> None:
    as_alice.post(f"/s/{scenario.pk}/rename/", {"name": name})
    scenario.refresh_from_db()
    assert scenario.name == "Two leaves"


# --- baseline and forks ---------------------------------------------------------------------------------------


def test_a_pinned_state_is_compared_with_from_then_on(finished: Run, viewer: Viewer, work: Any) -> None:
    scenario = finished.revision.scenario
    actions.pin(viewer, scenario)
    actions.edit(viewer, scenario, {"hardware.chip_count": "128"})
    work(run_of(scenario))
    assert scenario.baseline == finished.revision
    assert run_of(scenario).result != finished.result


def test_a_fork_is_compared_with_what_it_was_forked_from(finished: Run, bob: User, work: Any) -> None:
    copy = actions.fork(Viewer(user=bob), finished.revision.scenario)
    assert copy.document == finished.revision.document
    assert copy.baseline is not None
    assert copy.baseline.scenario == copy, "so that nothing of the original is needed, or shown, later"
    assert copy.forked_from == finished.revision.scenario
    assert run_of(copy).status == "finished", "the result is known"


def test_a_fork_outlives_its_original(finished: Run, bob: User) -> None:
    copy = actions.fork(Viewer(user=bob), finished.revision.scenario)
    actions.delete(finished.revision.scenario)
    copy.refresh_from_db()
    assert copy.forked_from is None
    assert run_of(copy).result_document is not None


def test_another_scenario_can_be_the_baseline(finished: Run, viewer: Viewer) -> None:
    other = actions.create_scenario(viewer, {**DOCUMENT, "name": "the other", "run": {"seed": 3}})
    actions.pin(viewer, other, finished.revision.scenario)
    assert other.baseline is not None
    assert (other.baseline.scenario, other.baseline.name) == (other, "Two leaves")
    assert other.current != other.baseline
    actions.unpin(other)
    assert other.baseline is None


def test_deleting_cancels_and_revokes(finished: Run, viewer: Viewer) -> None:
    scenario = finished.revision.scenario
    link = actions.share(viewer, scenario)
    actions.delete(scenario)
    link.refresh_from_db()
    assert not link.is_live
    assert (link.result, link.document) == (None, {})
    assert not Run.objects.exists()
