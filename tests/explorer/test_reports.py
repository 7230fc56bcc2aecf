"""A report is frozen, readable by its link, revocable by its owner, and opens as the same scenarios."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import Run, SavedReport, SavedScenario
from simcore.report import memo_pdf
from simcore.report.formats import CONTENT_TYPES
from tests.explorer.conftest import DOCUMENT, run_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def query(finished: Run, alice: User, work: Any) -> str:
    """Alice's two leaves as the baseline, and twice the chips beside them."""
    larger = {**DOCUMENT, "name": "Four leaves", "hardware": {**DOCUMENT["hardware"], "chip_count": 128}}
    other = actions.create_scenario(Viewer(user=alice), larger)
    work(run_of(other))
    return f"s={finished.revision.scenario_id}&s={other.pk}"


def write(client: Client, query: str, **more: str) -> SavedReport:
    form = {"title": "Do we need <four> leaves?", "question": "Why not two?", "language": "en", **more}
    answer = client.post(f"/reports/new/?{query}", form)
    assert answer.status_code == 302, answer.content.decode()
    return SavedReport.objects.latest("created_at")


def test_the_form_offers_the_scenarios(query: str, as_alice: Client) -> None:
    page = as_alice.get(f"/reports/new/?{query}").content.decode()
    for part in ("Two leaves / Four leaves", "What the figures say", "Two leaves (baseline)", "简体中文"):
        assert part in page


def test_who_has_the_link_reads_the_memo(query: str, as_alice: Client, as_nobody: Client) -> None:
    token = write(as_alice, query).token
    page = as_nobody.get(f"/r/{token}/")
    text = page.content.decode()
    assert page.status_code == 200
    assert "Do we need &lt;four&gt; leaves?" in text
    assert f"http://testserver/r/{token}/" in text
    assert "Revoke" not in text
    assert "no-store" in page.headers["Cache-Control"]


@pytest.mark.parametrize("form", list(CONTENT_TYPES))
def test_it_comes_in_six_formats(form: str, query: str, as_alice: Client, as_nobody: Client) -> None:
    token = write(as_alice, query).token
    file = as_nobody.get(f"/r/{token}/report.{form}")
    assert file.status_code == 200
    assert file.headers["Content-Type"] == CONTENT_TYPES[form]
    assert file.content.startswith({"pdf": b"%PDF", "xlsx": b"PK", "json": b"{"}.get(form, file.content[:1]))
    assert as_nobody.get(f"/r/{token}/report.doc").status_code == 404


def test_an_edit_never_changes_a_report(query: str, as_alice: Client, alice: User, work: Any) -> None:
    report = write(as_alice, query)
    before = as_alice.get(f"/r/{report.token}/report.json").content
    scenario = SavedScenario.objects.get(name="Four leaves")
    actions.edit(Viewer(user=alice), scenario, {"hardware.chip_count": "2048"})
    work(run_of(scenario))
    actions.delete(scenario)
    assert as_alice.get(f"/r/{report.token}/report.json").content == before


def test_its_json_opens_as_the_same_scenarios(query: str, as_alice: Client, as_charlie: Client) -> None:
    text = as_alice.get(f"/r/{write(as_alice, query).token}/report.json").content.decode()
    digests = [one["digest"] for one in json.loads(text)["scenarios"]]
    opened = as_charlie.post("/start/", {"text": text})
    assert opened.status_code == 302
    assert opened["Location"].startswith("/c/?s=")
    made = SavedScenario.objects.filter(owner=None).exclude(name="Charlie's").order_by("created_at")
    assert [run_of(one).digest for one in made] == digests


def test_a_broken_report_is_refused_in_words(as_alice: Client) -> None:
    answer = as_alice.post("/start/", {"text": '{"kind": "trimtab.report", "scenarios": []}'})
    assert answer.status_code == 422
    assert "no whole report" in answer.content.decode()


def test_a_report_needs_a_title_and_results(query: str, scenario: SavedScenario, as_alice: Client) -> None:
    assert (
        "say what is to be decided"
        in as_alice.post(f"/reports/new/?{query}", {"title": " "}).content.decode()
    )
    page = as_alice.get(f"/reports/new/?s={query.rpartition('=')[2]}").content.decode()
    assert "needs two to five scenarios" in page
    assert not SavedReport.objects.exists()


def test_it_can_be_chinese(query: str, as_alice: Client) -> None:
    token = write(as_alice, query, language="zh-hans", title="要四个叶交换机吗？").token
    text = as_alice.get(f"/r/{token}/").content.decode()
    for part in ('lang="zh-hans"', "变化", "依据", "如何复现", "交换机"):
        assert part in text
    assert "What changes" not in text
    if memo_pdf.chinese_fonts():
        assert as_alice.get(f"/r/{token}/report.pdf").content.startswith(b"%PDF")


def test_a_revoked_report_says_so_and_shows_nothing(query: str, as_alice: Client, as_nobody: Client) -> None:
    report = write(as_alice, query)
    as_alice.post(f"/reports/{report.token}/revoke/")
    for path in (f"/r/{report.token}/", f"/r/{report.token}/report.json"):
        assert as_nobody.get(path).status_code == 410
    report.refresh_from_db()
    assert report.content is None


def test_a_report_may_expire(query: str, as_alice: Client, as_nobody: Client) -> None:
    report = write(as_alice, query, days="3")
    assert report.expires_at is not None
    SavedReport.objects.update(expires_at=report.created_at)
    assert as_nobody.get(f"/r/{report.token}/").status_code == 410


def test_only_the_owner_lists_and_revokes(
    query: str, as_alice: Client, as_bob: Client, as_charlie: Client, as_nobody: Client
) -> None:
    report = write(as_alice, query)
    assert report.token in as_alice.get("/reports/").content.decode()
    for stranger in (as_bob, as_charlie, as_nobody):
        assert report.token not in stranger.get("/reports/").content.decode()
        assert stranger.post(f"/reports/{report.token}/revoke/").status_code == 404
        assert stranger.get(f"/reports/new/?{query}").status_code == 404
        assert stranger.post(f"/reports/new/?{query}", {"title": "mine"}).status_code == 404
    assert as_alice.get(f"/reports/{report.token}/revoke/").status_code == 405
    assert SavedReport.objects.filter(revoked_at=None).count() == 1


@pytest.mark.parametrize("form", ["json", "xlsx", "pdf"])
def test_a_comparison_is_exported_as_a_report_too(
    form: str, query: str, as_alice: Client, as_bob: Client
) -> None:
    assert as_alice.get(f"/c/export/{form}/?{query}").headers["Content-Type"] == CONTENT_TYPES[form]
    assert as_bob.get(f"/c/export/{form}/?{query}").status_code == 404
