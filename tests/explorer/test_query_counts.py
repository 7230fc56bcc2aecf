"""Pages ask the database a bounded number of questions, however much is in it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from explorer import actions
from explorer.access import Viewer
from explorer.models import Run
from tests.explorer.conftest import DOCUMENT, run_of

pytestmark = pytest.mark.django_db

LIMITS = {"/": 6, "/library/": 9, "/traces/": 5, "/matrices/": 5, "/reports/": 5, "/healthz": 1, "/help/": 4}
LIMIT_OF_WORKBENCH = 20


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


@pytest.mark.parametrize("path", list(LIMITS))
def test_lists_do_not_grow_with_their_content(
    path: str, alice: User, as_alice: Client, settings: Any
) -> None:
    settings.MAX_ACTIVE_RUNS_PER_OWNER = 100
    few = queries(as_alice, path)
    for seed in range(10):
        actions.create_scenario(Viewer(user=alice), {**DOCUMENT, "run": {"seed": seed % 3}})
    many = queries(as_alice, path)
    assert many <= max(few, LIMITS[path])
    assert many <= LIMITS[path]


@pytest.mark.parametrize("tab", ["", "fabric/", "memory/", "serving/", "reliability/"])
def test_the_workbench_asks_little(tab: str, finished: Run, alice: User, as_alice: Client, work: Any) -> None:
    scenario, viewer = finished.revision.scenario, Viewer(user=alice)
    actions.pin(viewer, scenario)
    actions.edit(viewer, scenario, {"hardware.chip_count": "128"})
    work(run_of(scenario))
    assert queries(as_alice, f"/s/{scenario.pk}/{tab}") <= LIMIT_OF_WORKBENCH
