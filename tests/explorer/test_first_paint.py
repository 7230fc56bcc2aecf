"""What a person sees who has just pasted something, before any worker has taken the run."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions, tasks
from explorer.access import Viewer
from explorer.models import Run
from explorer.tasks import plan_document
from simcore.plan import Plan
from tests.explorer.conftest import SERVING, run_of

pytestmark = pytest.mark.django_db


def test_the_closed_forms_stand_on_the_first_page(as_nobody: Client) -> None:
    answer = as_nobody.post("/start/", {"text": "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2"})
    assert Run.objects.get().status == "queued"
    for tab, said in (("", "Decode step"), ("memory/", "KV"), ("iteration/", "Step")):
        page = as_nobody.get(f"{answer['Location']}{tab}").content.decode()
        assert "Nothing to show yet" not in page
        assert 'data-partial="1"' in page
        assert said in page


def test_an_edit_is_planned_once(alice: User, as_alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer shows the closed forms of the plan that took the edit."""
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    planned = []

    def counted(document: dict[str, Any], viewer: Viewer) -> Plan:
        planned.append(document)
        return plan_document(document, viewer)

    monkeypatch.setattr(actions, "plan_document", counted)
    monkeypatch.setattr(tasks, "plan_document", counted)
    answer = as_alice.post(
        f"/s/{scenario.pk}/edit/",
        {"hardware.chip_count": "2", "tab": "memory"},
        headers={"HX-Request": "true"},
    )
    assert answer.context["result"]["scenario"]["hardware"]["chip_count"] == 2
    assert answer.context["result"]["metrics"]["memory.kv_block_count"] > 0
    assert len(planned) == 1


def test_a_run_that_cannot_be_planned_any_more_waits_for_its_worker(alice: User, as_alice: Client) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    revision = scenario.current
    assert revision is not None
    revision.document = {**SERVING, "hardware": {"calibration": "deleted-meanwhile"}}
    revision.save()
    page = as_alice.get(f"/s/{scenario.pk}/").content.decode()
    assert run_of(scenario).status == "queued"
    assert "Nothing to show yet" in page
