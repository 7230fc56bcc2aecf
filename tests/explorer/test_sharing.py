"""A shared link is frozen, and can be taken back."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from explorer import actions
from explorer.access import Viewer
from explorer.models import Run, SavedScenario, ShareLink
from simcore.errors import InputError
from tests.explorer.conftest import run_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def link(finished: Run, alice: User) -> ShareLink:
    return actions.share(Viewer(user=alice), finished.revision.scenario)


def test_who_has_the_link_needs_no_account(link: ShareLink, as_nobody: Client) -> None:
    page = as_nobody.get(f"/r/{link.token}/")
    assert page.status_code == 200
    assert "Two leaves" in page.content.decode()
    assert "no-store" in page.headers["Cache-Control"]


def test_a_link_opens_no_door_to_the_scenario(link: ShareLink, as_nobody: Client) -> None:
    assert as_nobody.get(f"/s/{link.scenario_id}/").status_code == 404


def test_sharing_says_where(finished: Run, as_alice: Client) -> None:
    page = as_alice.post(f"/s/{finished.revision.scenario_id}/share/", follow=True)
    token = ShareLink.objects.get().token
    assert f"/r/{token}/" in page.content.decode()


def test_an_edit_never_changes_a_link(link: ShareLink, alice: User, work: Any, as_nobody: Client) -> None:
    scenario, viewer = link.scenario, Viewer(user=alice)
    assert scenario is not None
    before = as_nobody.get(f"/r/{link.token}/").context
    actions.edit(viewer, scenario, {"hardware.chip_count": "2048"})
    actions.rename(viewer, scenario, "another")
    work(run_of(scenario))
    after = as_nobody.get(f"/r/{link.token}/").context
    assert (after["document"], after["result"]) == (before["document"], before["result"])
    assert after["document"]["name"] == "Two leaves"


def test_a_link_holds_the_baseline_too(finished: Run, alice: User, work: Any) -> None:
    scenario, viewer = finished.revision.scenario, Viewer(user=alice)
    actions.pin(viewer, scenario)
    actions.edit(viewer, scenario, {"hardware.chip_count": "128"})
    work(run_of(scenario))
    link = actions.share(viewer, scenario)
    assert link.baseline_document["hardware"]["chip_count"] == 64
    assert link.baseline_result["metrics"] == finished.result_document["metrics"]  # type: ignore[index]


def test_there_is_nothing_to_freeze_before_a_result(scenario: SavedScenario, alice: User) -> None:
    with pytest.raises(InputError, match="when the run has finished"):
        actions.share(Viewer(user=alice), scenario)


def test_a_revoked_link_says_so_and_shows_nothing(
    link: ShareLink, as_alice: Client, as_nobody: Client
) -> None:
    as_alice.post(f"/r/{link.token}/revoke/")
    page = as_nobody.get(f"/r/{link.token}/")
    assert page.status_code == 410
    assert "128" not in page.context.get("document", "")
    link.refresh_from_db()
    assert (link.document, link.result) == ({}, None)


def test_a_link_may_expire(finished: Run, as_alice: Client, as_nobody: Client) -> None:
    as_alice.post(f"/s/{finished.revision.scenario_id}/share/", {"days": "7"})
    link = ShareLink.objects.get()
    assert as_nobody.get(f"/r/{link.token}/").status_code == 200
    link.expires_at = timezone.now() - timedelta(seconds=1)
    link.save()
    assert as_nobody.get(f"/r/{link.token}/").status_code == 410


@pytest.mark.parametrize("token", ["x", "A" * 22, "A" * 500])
def test_a_token_that_is_none_is_404(token: str, link: ShareLink, as_nobody: Client) -> None:
    assert as_nobody.get(f"/r/{token}/").status_code == 404


def test_tokens_cannot_be_guessed(link: ShareLink) -> None:
    assert len(link.token) >= 22


def test_charlie_shares_from_his_sandbox(as_charlie: Client, as_nobody: Client, work: Any) -> None:
    scenario = SavedScenario.objects.get(name="Charlie's")
    work(run_of(scenario))
    as_charlie.post(f"/s/{scenario.pk}/share/")
    link = ShareLink.objects.get()
    assert as_nobody.get(f"/r/{link.token}/").status_code == 200
    assert as_nobody.post(f"/r/{link.token}/revoke/").status_code == 404
    assert as_charlie.post(f"/r/{link.token}/revoke/").status_code == 302


@pytest.mark.parametrize("visibility", ["everyone", "", "team"])
def test_a_visibility_that_is_none_changes_nothing(
    visibility: str, scenario: SavedScenario, as_alice: Client
) -> None:
    as_alice.post(f"/s/{scenario.pk}/visibility/", {"visibility": visibility})
    scenario.refresh_from_db()
    assert scenario.visibility == "private"
