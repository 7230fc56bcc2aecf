"""Sliders beside numbers: where they stand, and where Undo leads after one was dragged."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from explorer import actions
from explorer.access import Viewer
from explorer.forms import outline
from explorer.forms.scrub import Scrub, scrub_of
from explorer.models import Run, SavedScenario
from tests.explorer.conftest import SERVING

RATE = "workload.arrivals.request_per_s"
DRAGGED = (
    "hardware.chip_count",
    RATE,
    "workload.lengths.input_tokens",
    "workload.lengths.output_tokens",
    "workload.slo.ttft_s",
    "workload.slo.tpot_s",
    "serving.scheduler.max_num_batched_tokens",
)


@pytest.fixture
def serves(alice: User) -> SavedScenario:
    return actions.create_scenario(Viewer(user=alice), SERVING)


def value_of(slider: Scrub) -> float:
    """As the browser computes it."""
    return float(slider.low * (slider.high / slider.low) ** (slider.at / slider.steps))


def test_rate_lengths_objectives_budget_and_chips_have_a_slider() -> None:
    found = {field.path for field in outline(SERVING).fields if field.scrub}
    assert found == set(DRAGGED)


@pytest.mark.parametrize(
    ("path", "shown", "value"),
    [
        (RATE, "8", 8.0),
        ("workload.slo.tpot_s", "50 ms", 0.05),
        ("workload.slo.ttft_s", "1 s", 1.0),
        ("hardware.chip_count", "4,096", 4096.0),
        ("workload.lengths.input_tokens", "2,048", 2048.0),
    ],
)
def test_a_slider_stands_at_what_the_field_shows(path: str, shown: str, value: float) -> None:
    slider = scrub_of(path, shown)
    assert slider is not None
    assert value_of(slider) == pytest.approx(value, rel=0.03)


@pytest.mark.parametrize("shown", ["auto", "", "about 3"])
def test_a_slider_stands_in_its_middle_where_no_number_is_shown(shown: str) -> None:
    slider = scrub_of("serving.scheduler.max_num_batched_tokens", shown)
    assert slider is not None
    assert slider.at == slider.steps // 2


@given(st.floats(-1e12, 1e12))
def test_any_number_has_a_step_on_the_slider(value: float) -> None:
    slider = scrub_of(RATE, repr(value))
    assert slider is not None
    assert 0 <= slider.at <= slider.steps
    if slider.low <= value <= slider.high:
        half_a_step = (slider.high / slider.low) ** (0.5 / slider.steps)
        assert value / half_a_step * 0.999 <= value_of(slider) <= value * half_a_step * 1.001


@pytest.mark.django_db
def test_undo_after_a_drag_goes_back_to_where_it_began(serves: SavedScenario, as_alice: Client) -> None:
    began = serves.current
    assert began is not None
    for rate in ("9", "10", "11"):
        as_alice.post(f"/s/{serves.pk}/edit/", {RATE: rate, "since": str(began.number)})
    serves.refresh_from_db()
    assert serves.document["workload"]["arrivals"]["request_per_s"] == 11
    as_alice.post(f"/s/{serves.pk}/undo/")
    serves.refresh_from_db()
    assert serves.current == began


@pytest.mark.django_db
def test_what_a_drag_passed_over_is_no_longer_run(serves: SavedScenario, as_alice: Client) -> None:
    for rate in ("9", "10", "11"):
        as_alice.post(f"/s/{serves.pk}/edit/", {RATE: rate, "since": "1"})
    serves.refresh_from_db()
    waiting = Run.objects.filter(status="queued", cancel_requested=False)
    assert [run.revision_id for run in waiting] == [serves.current_id]


@pytest.mark.django_db
@pytest.mark.parametrize("since", ["", "x", "-1", "99999999999999999999"])
def test_a_drag_from_no_known_state_is_an_edit_like_any(
    serves: SavedScenario, as_alice: Client, since: str
) -> None:
    began = serves.current
    assert as_alice.post(f"/s/{serves.pk}/edit/", {RATE: "9", "since": since}).status_code == 302
    serves.refresh_from_db()
    assert serves.current is not None
    assert serves.current.parent == began
