"""Signing up and logging in: what was made before becomes one's own."""

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from explorer import actions
from explorer.access import SANDBOX, Viewer
from explorer.models import SavedScenario, ShareLink, TraceUpload
from tests.explorer.conftest import DOCUMENT

pytestmark = pytest.mark.django_db

NEW = {"username": "charlie", "password1": "up-the-chocolate-river", "password2": "up-the-chocolate-river"}
TRACE = b"timestamp_s,input_tokens,output_tokens\n0,10,5\n1,20,5\n"


def upload(client: Client) -> None:
    client.post("/traces/", {"file": SimpleUploadedFile("t.csv", TRACE), "format": "csv"})


def test_what_charlie_made_is_his_after_signing_up(as_charlie: Client) -> None:
    upload(as_charlie)
    scenario = SavedScenario.objects.get(name="Charlie's")
    assert as_charlie.post("/accounts/signup/", NEW).status_code == 302
    scenario.refresh_from_db()
    charlie = User.objects.get(username="charlie")
    assert (scenario.owner, scenario.sandbox) == (charlie, "")
    assert TraceUpload.objects.get().owner == charlie
    assert as_charlie.get(f"/s/{scenario.pk}/").status_code == 200
    assert SANDBOX not in as_charlie.session


def test_what_alice_made_before_logging_in_is_hers(as_charlie: Client, alice: User) -> None:
    form = {"username": "alice", "password": "on-the-looking-glass"}
    assert as_charlie.post("/accounts/login/", form).status_code == 302
    assert SavedScenario.objects.get(name="Charlie's").owner == alice


def test_nothing_is_left_in_the_sandbox_for_who_comes_next(as_charlie: Client, alice: User) -> None:
    as_charlie.post("/accounts/login/", {"username": "alice", "password": "on-the-looking-glass"})
    as_charlie.post("/accounts/logout/")
    assert as_charlie.get("/").status_code == 200
    pk = SavedScenario.objects.get(name="Charlie's").pk
    assert as_charlie.get(f"/s/{pk}/").status_code == 404


def test_the_same_trace_in_both_places_is_kept_once(
    alice: User, as_alice: Client, as_charlie: Client
) -> None:
    upload(as_alice)
    upload(as_charlie)
    assert TraceUpload.objects.count() == 2
    as_charlie.post("/accounts/login/", {"username": "alice", "password": "on-the-looking-glass"})
    assert TraceUpload.objects.get().owner == alice


def test_nobody_adopts_what_has_no_sandbox(alice: User) -> None:
    SavedScenario.objects.create(name="orphan")
    assert actions.adopt_sandbox(alice, "") == 0
    assert SavedScenario.objects.get().owner is None


def test_links_are_adopted(alice: User) -> None:
    charlie = Viewer(sandbox="charlies-key")
    scenario = actions.create_scenario(charlie, DOCUMENT)
    ShareLink.objects.create(scenario=scenario, name="x", document={}, **charlie.as_owner)
    actions.adopt_sandbox(alice, "charlies-key")
    assert Viewer(user=alice).owns(ShareLink.objects.get())


def test_a_wrong_password_changes_nothing(as_charlie: Client, alice: User) -> None:
    page = as_charlie.post("/accounts/login/", {"username": "alice", "password": "guess"})
    assert page.status_code == 200
    assert SavedScenario.objects.get(name="Charlie's").owner is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"password2": "different"},
        {"password1": "123", "password2": "123"},
        {"username": "alice"},
        {"username": ""},
    ],
)
def test_signing_up_says_what_is_wrong(wrong: dict[str, str], alice: User, as_nobody: Client) -> None:
    page = as_nobody.post("/accounts/signup/", NEW | wrong)
    assert page.status_code == 422
    assert page.context["form"].errors
    assert User.objects.count() == 1


def test_guessing_passwords_is_slowed_down(alice: User, as_nobody: Client) -> None:
    guess = {"username": "alice", "password": "guess"}
    answers = [as_nobody.post("/accounts/login/", guess).status_code for _ in range(25)]
    assert answers[-1] == 429
    assert as_nobody.get("/accounts/login/").status_code == 200


@pytest.mark.parametrize(
    ("wanted", "got"),
    [("/library/", "/library/"), ("https://evil.example/", "/"), ("//evil.example", "/"), ("", "/")],
)
def test_after_signing_up_one_stays_on_this_site(wanted: str, got: str, as_nobody: Client) -> None:
    assert as_nobody.post("/accounts/signup/", NEW | {"next": wanted})["Location"] == got


def test_looking_around_leaves_no_sandbox_and_no_cookie(as_nobody: Client) -> None:
    for path in ("/", "/library/", "/help/", "/c/"):
        as_nobody.get(path)
    assert "sessionid" not in as_nobody.cookies
