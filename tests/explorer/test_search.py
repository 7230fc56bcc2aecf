"""The search of the Explore page: asked for by a form, carried out as a sweep, and a design becomes a scenario."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import SavedScenario, Sweep
from explorer.sweeping import cut_sweep, evaluate_chunk, reap_sweeps
from simcore.analysis.search import study
from tests.explorer.conftest import SERVING

pytestmark = pytest.mark.django_db
FORM = {
    "kind": "search",
    "objective": "chip_count",
    "max_chips": "4",
    "rate": "held",
    "chip": ["nvidia-h100-sxm"],
}


@pytest.fixture
def serving(alice: User) -> SavedScenario:
    return actions.create_scenario(Viewer(user=alice), SERVING)


def as_shown(client: Client, scenario: SavedScenario, sweep: Sweep) -> HttpResponse:
    return client.get(f"/s/{scenario.pk}/explore/?sweep={sweep.pk}")  # type: ignore[return-value]


def searched(client: Client, scenario: SavedScenario, **changes: str) -> Sweep:
    answer = client.post(f"/s/{scenario.pk}/explore/start/", FORM | changes)
    assert "sweep=" in answer["Location"], answer["Location"]
    sweep = Sweep.objects.get(pk=re.search(r"sweep=([0-9a-f-]+)", answer["Location"])[1])  # type: ignore[index]
    assert not sweep.is_cut  # the form is answered before anything is searched
    assert as_shown(client, scenario, sweep).status_code == 200
    cut_sweep(str(sweep.pk))
    cut_sweep(str(sweep.pk))  # told twice, cut once
    for chunk in sweep.chunks.all():
        evaluate_chunk(chunk.pk, chunk.attempts)
    sweep.refresh_from_db()
    return sweep


def test_a_search_shows_its_designs_and_one_becomes_a_scenario(
    serving: SavedScenario, as_alice: Client
) -> None:
    sweep = searched(as_alice, serving)
    page = as_alice.get(f"/s/{serving.pk}/explore/?sweep={sweep.pk}").content.decode()
    assert "simulated, and" in page
    assert "chart-search-frontier" in page or "search-frontier" in page
    assert 'form="use-cell" name="index" value="0"' in page  # a design is pressed by keyboard, too
    answer = as_alice.post(f"/sweeps/{sweep.pk}/use/", {"index": "0"})
    made = re.search(r"/s/([0-9a-f-]+)/", answer["Location"])[1]  # type: ignore[index]
    document = SavedScenario.objects.get(pk=made).document
    assert document["hardware"]["chip_count"] <= 4


def test_an_impossible_limit_is_said_with_the_nearest(serving: SavedScenario, as_alice: Client) -> None:
    sweep = searched(as_alice, serving, tpot_ms="0.5")
    page = as_alice.get(f"/s/{serving.pk}/explore/?sweep={sweep.pk}").content.decode()
    assert "TPOT ≤ 500 µs binds" in page
    assert "The nearest designs, each beyond one of the limits" in page


def test_a_form_that_makes_no_sense_is_refused(serving: SavedScenario, as_alice: Client) -> None:
    answer = as_alice.post(f"/s/{serving.pk}/explore/start/", FORM | {"max_chips": "many"})
    assert "sweep=" not in answer["Location"]
    assert not Sweep.objects.exists()


def test_a_search_that_no_worker_has_cut_is_told_again_and_not_ended(
    serving: SavedScenario,
    as_alice: Client,
    settings: Any,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    answer = as_alice.post(f"/s/{serving.pk}/explore/start/", FORM)
    assert "sweep=" in answer["Location"]
    reap_sweeps()
    sweep = Sweep.objects.get()
    assert not sweep.is_ended
    settings.RUN_UNCLAIMED_AFTER_S = 0
    with django_capture_on_commit_callbacks() as told:
        assert reap_sweeps() == 1
    assert [callback.func.__self__.name for callback in told] == ["explorer.cut_sweep"]


def test_a_finished_search_is_shown_without_searching_again(
    serving: SavedScenario, as_alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = searched(as_alice, serving)
    monkeypatch.setattr(study, "closed_forms", None)
    study._remembered.cache_clear()
    assert "simulated, and" in as_shown(as_alice, serving, sweep).content.decode()
