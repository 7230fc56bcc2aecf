"""Every address, asked by Alice, who owns, by Bob and Charlie, who do not, and by nobody.

Whoever may not see something is told 404, exactly as for something that does not exist.
"""

import io
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from explorer import actions
from explorer.access import Viewer, own_traces
from explorer.models import Run, SavedCalibration, SavedScenario, Visibility
from explorer.models.calibration import Fit
from simcore.catalog import default_catalog
from simcore.validation.calibration_file import calibration_text
from tests.explorer.conftest import DOCUMENT, run_of

pytestmark = pytest.mark.django_db

READ = (
    "/s/{scenario}/",
    "/s/{scenario}/fabric/",
    "/s/{scenario}/memory/",
    "/s/{scenario}/serving/",
    "/s/{scenario}/iteration/",
    "/s/{scenario}/reliability/",
    "/s/{scenario}/cost/",
    "/s/{scenario}/scenario.yaml",
    "/s/{scenario}/schedulers/",
    "/s/{scenario}/splits/",
    "/s/{scenario}/topologies/",
    "/s/{scenario}/explore/",
    "/s/{scenario}/boundaries/",
    "/s/{scenario}/sensitivity/",
    "/runs/{run}/panel/overview/",
    "/runs/{run}/result.json",
    "/runs/{run}/measured/",
    "/runs/{run}/why/fabric.switch_count/",
    "/runs/{run}/graph/leaf/",
    "/runs/{run}/fabric.graphml",
    "/c/?s={scenario}",
)
CHANGE = (
    ("edit", {"hardware.chip_count": "128"}),
    ("pin", {}),
    ("pin", {"clear": "1"}),
    ("save", {"label": "as it was"}),
    ("share", {}),
    ("visibility", {"visibility": "public"}),
    ("rename", {"name": "another"}),
    ("undo", {}),
    ("redo", {}),
    ("go", {"number": "1"}),
    ("cancel", {}),
    ("schedulers/run", {}),
    ("splits/run", {}),
    ("delete", {}),
)
OPEN = (
    "/",
    "/library/",
    "/library/chips/nvidia-h100-sxm/",
    "/traces/",
    "/matrices/",
    "/calibrate/",
    "/reports/",
    "/c/",
    "/help/",
    "/methods/",
    "/healthz",
)
ACCOUNTS = ("/accounts/login/", "/accounts/signup/")


def address(template: str, run: Run) -> str:
    return template.format(scenario=run.revision.scenario_id, run=run.pk)


@pytest.mark.parametrize("template", READ)
def test_a_private_scenario_is_the_owners_alone(
    template: str, finished: Run, as_alice: Client, as_bob: Client, as_charlie: Client, as_nobody: Client
) -> None:
    path = address(template, finished)
    assert as_alice.get(path).status_code == 200
    for stranger in (as_bob, as_charlie, as_nobody):
        assert stranger.get(path).status_code == 404


@pytest.mark.parametrize("visibility", ["link", "public"])
@pytest.mark.parametrize("template", READ)
def test_who_has_the_address_reads_what_is_shared(
    template: str, visibility: str, finished: Run, as_bob: Client, as_nobody: Client
) -> None:
    SavedScenario.objects.update(visibility=visibility)
    for reader in (as_bob, as_nobody):
        assert reader.get(address(template, finished)).status_code == 200


@pytest.mark.parametrize("visibility", list(Visibility))
@pytest.mark.parametrize(("verb", "form"), CHANGE)
def test_only_the_owner_changes(
    verb: str,
    form: dict[str, str],
    visibility: str,
    finished: Run,
    as_alice: Client,
    as_bob: Client,
    as_charlie: Client,
    as_nobody: Client,
) -> None:
    SavedScenario.objects.filter(pk=finished.revision.scenario_id).update(visibility=visibility)
    before = SavedScenario.objects.get(pk=finished.revision.scenario_id)
    path = f"/s/{before.pk}/{verb}/"
    for stranger in (as_bob, as_charlie, as_nobody):
        assert stranger.post(path, form).status_code == 404
    after = SavedScenario.objects.get(pk=before.pk)
    assert (after.document, after.visibility, after.baseline_id) == (
        before.document,
        before.visibility,
        before.baseline_id,
    )
    assert as_alice.post(path, form).status_code == 302


@pytest.mark.parametrize("verb", [verb for verb, _ in CHANGE] + ["fork"])
def test_nothing_changes_by_reading(verb: str, finished: Run, as_alice: Client) -> None:
    assert as_alice.get(f"/s/{finished.revision.scenario_id}/{verb}/").status_code == 405


def test_fork_needs_no_more_than_reading(finished: Run, as_bob: Client, as_nobody: Client) -> None:
    scenario = finished.revision.scenario
    path = f"/s/{scenario.pk}/fork/"
    assert as_bob.post(path).status_code == as_nobody.post(path).status_code == 404
    actions.set_visibility(scenario, "link")
    for reader in (as_bob, as_nobody):
        copy = reader.post(path)
        assert copy.status_code == 302
        assert reader.get(copy["Location"]).status_code == 200
    assert SavedScenario.objects.filter(forked_from=scenario).count() == 2


def test_a_fork_is_the_forkers_alone(finished: Run, as_alice: Client, as_bob: Client) -> None:
    actions.set_visibility(finished.revision.scenario, "public")
    copy = as_bob.post(f"/s/{finished.revision.scenario_id}/fork/")["Location"]
    assert as_alice.get(copy).status_code == 404


@pytest.mark.parametrize("path", OPEN)
def test_these_pages_are_for_everyone(
    path: str, as_alice: Client, as_charlie: Client, as_nobody: Client
) -> None:
    for reader in (as_alice, as_charlie, as_nobody):
        assert reader.get(path).status_code == 200


@pytest.mark.parametrize("path", ACCOUNTS)
def test_accounts_are_for_those_without(path: str, as_nobody: Client) -> None:
    assert as_nobody.get(path).status_code == 200


def test_charlies_sandbox_is_his_alone(as_charlie: Client, as_alice: Client, as_nobody: Client) -> None:
    scenario = SavedScenario.objects.get(name="Charlie's")
    assert scenario.owner is None
    assert as_charlie.get(f"/s/{scenario.pk}/").status_code == 200
    assert as_charlie.post(f"/s/{scenario.pk}/rename/", {"name": "mine"}).status_code == 302
    for stranger in (as_alice, as_nobody):
        assert stranger.get(f"/s/{scenario.pk}/").status_code == 404


def test_two_without_an_account_do_not_see_each_other(as_charlie: Client, as_nobody: Client) -> None:
    as_nobody.post("/start/", {"text": "name: Another\nworkload: {kind: none}\n"})
    other = SavedScenario.objects.get(name="Another")
    assert as_charlie.get(f"/s/{other.pk}/").status_code == 404


def test_nobody_owns_what_has_no_sandbox(as_nobody: Client) -> None:
    orphan = SavedScenario.objects.create(name="orphan")
    assert as_nobody.get(f"/s/{orphan.pk}/").status_code == 404


def test_what_does_not_exist_looks_the_same(as_bob: Client, finished: Run) -> None:
    missing = as_bob.get(f"/s/{uuid4()}/")
    hidden = as_bob.get(f"/s/{finished.revision.scenario_id}/")
    assert missing.status_code == hidden.status_code == 404


@pytest.mark.parametrize(
    "path", ["/c/?s=nonsense", "/library/chips/no-such/", "/library/users/alice/", "/stories/s99/", "/s/1/"]
)
def test_an_address_that_is_none_is_404(path: str, as_nobody: Client) -> None:
    assert as_nobody.get(path).status_code in (404, 405)


def test_only_public_and_own_scenarios_are_listed(
    alice: User, as_alice: Client, as_bob: Client, as_nobody: Client
) -> None:
    for visibility in Visibility:
        scenario = actions.create_scenario(Viewer(user=alice), {**DOCUMENT, "name": f"is-{visibility}"})
        actions.set_visibility(scenario, visibility)
    for reader, expected in ((as_alice, ["is-private", "is-link", "is-public"]), (as_bob, ["is-public"])):
        page = reader.get("/library/").content.decode()
        assert [name for name in ("is-private", "is-link", "is-public") if name in page] == expected
    assert "is-link" not in as_nobody.get("/library/").content.decode()


def test_a_comparison_shows_nothing_of_what_may_not_be_read(
    finished: Run, as_bob: Client, bob: User, work: Any
) -> None:
    own = actions.create_scenario(Viewer(user=bob), DOCUMENT)
    work(run_of(own))
    query = f"s={own.pk}&s={finished.revision.scenario_id}"
    assert as_bob.get(f"/c/?{query}").status_code == 404
    assert as_bob.get(f"/c/layers/?{query}").status_code == 404
    for suffix in ("html", "csv", "json", "md"):
        assert as_bob.get(f"/c/export/{suffix}/?{query}").status_code == 404


def test_pinning_another_scenario_needs_reading_it(finished: Run, bob: User, as_bob: Client) -> None:
    own = actions.create_scenario(Viewer(user=bob), DOCUMENT)
    path = f"/s/{own.pk}/pin/"
    assert as_bob.post(path, {"source": str(finished.revision.scenario_id)}).status_code == 404
    actions.set_visibility(finished.revision.scenario, "link")
    assert as_bob.post(path, {"source": str(finished.revision.scenario_id)}).status_code == 302


def test_a_trace_is_its_uploaders_alone(as_alice: Client, alice: User, bob: User, as_bob: Client) -> None:
    file = SimpleUploadedFile("t.csv", b"timestamp_s,input_tokens,output_tokens\n0,10,5\n1,20,5\n")
    assert as_alice.post("/traces/", {"file": file, "format": "csv"}).status_code == 302
    assert own_traces(Viewer(user=alice)).count() == 1
    assert own_traces(Viewer(user=bob)).count() == 0
    assert "t.csv" not in as_bob.get("/traces/").content.decode()


@pytest.fixture
def calibration(alice: User) -> SavedCalibration:
    """Alice's."""
    text = default_catalog().calibrations["nvidia-h100-sxm"]
    fit = Fit(chip="nvidia-h100-sxm", text=calibration_text(text), row_count=90, report={"regimes": []})
    return actions.keep_calibration(Viewer(user=alice), fit, name="Looking glass lab")


def test_a_calibration_is_its_owners_alone(
    calibration: SavedCalibration, as_alice: Client, as_bob: Client, as_charlie: Client, as_nobody: Client
) -> None:
    page = f"/calibrate/{calibration.slug}/"
    for path in (page, f"{page}calibration.yaml"):
        assert as_alice.get(path).status_code == 200
        for stranger in (as_bob, as_charlie, as_nobody):
            assert stranger.get(path).status_code == 404
    for listing in ("/calibrate/", "/library/"):
        assert "Looking glass lab" in as_alice.get(listing).content.decode()
        for stranger in (as_bob, as_charlie, as_nobody):
            assert "Looking glass lab" not in stranger.get(listing).content.decode()


def test_a_strangers_calibration_is_neither_used_nor_deleted(
    calibration: SavedCalibration, as_alice: Client, as_bob: Client, as_charlie: Client, as_nobody: Client
) -> None:
    page = f"/calibrate/{calibration.slug}/"
    for stranger in (as_bob, as_charlie, as_nobody):
        for verb in ("use", "delete"):
            assert stranger.get(f"{page}{verb}/").status_code == 405
            assert stranger.post(f"{page}{verb}/").status_code == 404
    assert SavedCalibration.objects.count() == 1
    assert as_alice.post(f"{page}use/").status_code == 302
    assert as_alice.post(f"{page}delete/").status_code == 302
    assert not SavedCalibration.objects.exists()


def test_a_strangers_calibration_is_not_chosen(
    calibration: SavedCalibration, as_alice: Client, as_bob: Client, as_charlie: Client
) -> None:
    document = f"{{name: x, workload: {{kind: none}}, hardware: {{calibration: {calibration.slug}}}}}"
    assert as_alice.post("/start/", {"text": document}).status_code == 302
    for stranger in (as_bob, as_charlie):
        refused = stranger.post("/start/", {"text": document})
        assert refused.status_code == 422
        assert "hardware.calibration" in refused.content.decode()


def test_a_forker_brings_a_calibration_of_their_own(
    calibration: SavedCalibration, alice: User, as_bob: Client
) -> None:
    scenario = actions.use_calibration(Viewer(user=alice), calibration)
    actions.set_visibility(scenario, "public")
    assert as_bob.get(f"/s/{scenario.pk}/").status_code == 200
    answer = as_bob.post(f"/s/{scenario.pk}/fork/", follow=True)
    assert "none of your calibrations is" in answer.content.decode()
    assert not SavedScenario.objects.filter(forked_from=scenario).exists()


def test_a_link_is_revoked_by_who_made_it(
    finished: Run, alice: User, as_alice: Client, as_bob: Client
) -> None:
    link = actions.share(Viewer(user=alice), finished.revision.scenario)
    assert as_bob.post(f"/r/{link.token}/revoke/").status_code == 404
    assert as_bob.get(f"/r/{link.token}/").status_code == 200
    assert as_alice.post(f"/r/{link.token}/revoke/").status_code == 302
    assert as_bob.get(f"/r/{link.token}/").status_code == 410


def test_a_trace_is_its_owners_alone(
    alice: User, as_alice: Client, as_bob: Client, as_charlie: Client, as_nobody: Client
) -> None:
    content = b"timestamp_s,input_tokens,output_tokens\n0,10,5\n1,10,5\n"
    upload = actions.upload_trace(
        Viewer(user=alice),
        io.BytesIO(content),
        name="t.csv",
        size_bytes=len(content),
        trace_format="csv",
        columns={},
    )
    path = f"/traces/{upload.sha256}/"
    before = SavedScenario.objects.count()
    for stranger in (as_bob, as_charlie, as_nobody):
        assert stranger.get(path).status_code == 404
        assert stranger.post(f"{path}use/", {"scenario": ""}).status_code == 404
    assert SavedScenario.objects.count() == before
    assert as_alice.get(path).status_code == 200
    assert as_alice.post(f"{path}use/", {"scenario": ""}).status_code == 302


def test_posts_need_the_token_of_the_form(finished: Run, alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post(f"/s/{finished.revision.scenario_id}/delete/").status_code == 403


def test_every_address_is_tested_here() -> None:
    """A new address must take its place in this file."""
    known = {
        "home", "start", "story", "workbench", "edit", "fork", "pin", "save", "share", "visibility", "rename",
        "delete", "undo", "redo", "go", "cancel", "scenario_yaml", "panel", "why", "trace_json", "result_json",
        "measured", "compare", "layers", "export", "library", "entry", "calibrate", "calibration", "keep_calibration",
        "records",
        "calibration_yaml", "use_calibration", "discard_calibration",
        "clone",
        "traces", "trace", "use_trace", "beside", "run_beside", "shared", "revoke", "login", "logout", "signup",
        "matrices", "matrix", "study_matrix", "discard_matrix", "topologies", "boundaries", "sensitivity",
        # test_explore.py asks these as a stranger
        "explore", "start_sweep", "sweep", "cancel_sweep", "discard_sweep", "use_cell", "sweep_cells",
        "graph", "graph_file", "link_graph", "link_graph_file",
        "reports", "new_report", "revoke_report", "report_file",  # strangers in test_reports.py
        "help", "methods", "aiconfigurator", "healthz",
    }  # fmt: skip

    def names(patterns: list[URLPattern | URLResolver]) -> set[str]:
        found: set[str] = set()
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                if str(pattern.pattern) not in ("admin/", "i18n/"):
                    found |= names(pattern.url_patterns)
            elif pattern.name:
                found.add(pattern.name)
        return found

    assert names(get_resolver().url_patterns) == known
