"""Where a scenario ends: planned while the page is asked for, beside scenarios that the viewer may read."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import SavedScenario
from tests.explorer.conftest import DOCUMENT, SERVING

pytestmark = pytest.mark.django_db
TRAINING: dict[str, Any] = {
    "name": "Training",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 128},
    "topology": {"kind": "clos", "radix": 32, "oversubscription_ratio": 2.0},
    "workload": {"kind": "training"},
    "training": {"parallelism": {"tp": 4}},
}


@pytest.fixture
def training(alice: User) -> SavedScenario:
    return actions.create_scenario(Viewer(user=alice), TRAINING)


def charts_of(page: Any) -> dict[str, Any]:
    return {chart.slug: chart for chart in page.context["panel"].charts}


def test_growth_and_what_may_cross_stand_on_one_page(as_alice: Client, training: SavedScenario) -> None:
    page = as_alice.get(f"/s/{training.pk}/boundaries/")
    charts = charts_of(page)
    assert list(charts) == ["growth", "crossing"]
    assert len(charts["growth"].table.rows) == 5
    assert (
        page.context["panel"].headline
        == "Growing, it first breaks at ×8: it needs 3 tiers of switches, not 2"
    )
    assert charts["growth"].title == "At ×8 a chip brings 99 % of what it brings now"
    assert page.context["other_chip"] == "nvidia-h200-sxm"


def test_another_chip_is_tried_where_it_is_chosen(as_alice: Client, alice: User) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    page = as_alice.get(f"/s/{scenario.pk}/boundaries/?chip=nvidia-a100-80gb-sxm")
    (*_, last) = charts_of(page)["growth"].table.rows
    assert last[0].text == "1 NVIDIA A100 80GB SXM beside"
    assert b'value="nvidia-a100-80gb-sxm" selected' in page.content


def test_an_unknown_chip_is_refused_on_the_next_page(as_alice: Client, training: SavedScenario) -> None:
    page = as_alice.get(f"/s/{training.pk}/boundaries/?chip=no-such", follow=True)
    assert page.redirect_chain == [(f"/s/{training.pk}/", 302)]


def test_a_job_beside_slows_both_where_links_are_shared(as_alice: Client, training: SavedScenario) -> None:
    other = actions.create_scenario(Viewer(user=training.owner), TRAINING | {"name": "Other"})
    page = as_alice.get(f"/s/{training.pk}/boundaries/?beside={other.pk}")
    chart = charts_of(page)["neighbours"]
    assert [row[1].text for row in chart.table.rows] == ["Training", "Other"] * 2
    assert "times as long for its traffic" in chart.title


def test_a_job_that_sends_nothing_is_said(as_alice: Client, training: SavedScenario) -> None:
    other = actions.create_scenario(Viewer(user=training.owner), DOCUMENT)
    page = as_alice.get(f"/s/{training.pk}/boundaries/?beside={other.pk}")
    (note,) = page.context["panel"].notes
    assert note.text.startswith("Nothing moves between the chips of Two leaves")


def test_a_stranger_s_scenario_is_not_found(
    as_alice: Client, as_bob: Client, bob: User, training: SavedScenario
) -> None:
    path = f"/s/{training.pk}/boundaries/"
    assert as_bob.get(path).status_code == 404
    foreign = actions.create_scenario(Viewer(user=bob), TRAINING)
    for beside in (foreign.pk, uuid4(), "nonsense"):
        assert as_alice.get(f"{path}?beside={beside}").status_code == 404


def test_it_speaks_chinese(as_alice: Client, training: SavedScenario) -> None:
    page = as_alice.get(f"/s/{training.pk}/boundaries/", headers={"accept-language": "zh-hans"})
    assert "扩展时最先在 ×8 失效：需要 3 层交换机，而不是 2 层" in page.content.decode()


def test_taxes_by_stage_are_simulated_when_asked_for(as_alice: Client, alice: User) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    assert "stages" not in charts_of(as_alice.get(f"/s/{scenario.pk}/boundaries/"))
    chart = charts_of(as_alice.get(f"/s/{scenario.pk}/boundaries/?stages=yes"))["stages"]
    assert chart.title == "Waiting tax stays the largest as it grows, mixes and ages"
    assert chart.body[0].name == "As it stands"
    assert "64 times as large" in chart.table.columns
