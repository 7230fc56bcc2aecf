"""What does not fit: the answer names changes, and one press makes one of them."""

from collections.abc import Callable

from django.contrib.auth.models import User
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.charts import memory
from explorer.models import Run
from tests.explorer import documents
from tests.explorer.conftest import SERVING, run_of

TOO_LARGE = {
    **SERVING,
    "model": {"name": "llama-3.1-70b"},
    "serving": {"parallelism": {"tp": 1}},
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 1},
}


def failed(alice: User, work: Callable[[Run], Run]) -> Run:
    return work(run_of(actions.create_scenario(Viewer(user=alice), TOO_LARGE)))


def test_each_change_is_a_button_that_makes_the_scenario_run(
    alice: User, as_alice: Client, work: Callable[[Run], Run]
) -> None:
    run = failed(alice, work)
    assert run.status == "failed"
    found = memory.nearest(run.messages, 1)
    assert 1 <= len(found) <= 3
    page = as_alice.get(f"/s/{run.revision.scenario_id}/memory/").content.decode()
    for change in found:
        for path, value in change.fields.items():
            assert f'name="{path}" value="{value}"' in page
        copy = actions.create_scenario(Viewer(user=alice), TOO_LARGE)
        assert as_alice.post(f"/s/{copy.pk}/edit/", dict(change.fields)).status_code == 302
        copy.refresh_from_db()
        assert work(run_of(copy)).status == "finished"


def test_chips_that_a_change_needs_are_bought_with_it() -> None:
    said = {"params": {"nearest": [{"edits": {"serving.parallelism.tp": "4"}, "chips": 4, "capacity": 1000}]}}
    (change,) = memory.nearest([said], 1)
    assert change.fields == {"serving.parallelism.tp": "4", "hardware.chip_count": "4"}
    assert change.effect == "leaves room for 1,000 tokens"
    assert memory.nearest([said], 8)[0].fields == {"serving.parallelism.tp": "4"}


def test_who_only_reads_has_no_buttons(alice: User, as_bob: Client, work: Callable[[Run], Run]) -> None:
    run = failed(alice, work)
    scenario = run.revision.scenario
    assert as_bob.get(f"/s/{scenario.pk}/memory/").status_code == 404
    actions.set_visibility(scenario, "link")
    page = as_bob.get(f"/s/{scenario.pk}/memory/").content.decode()
    assert "leaves room for" in page
    assert "/edit/" not in page.split('id="panel"')[0].split('id="status"')[1]


def test_bytes_moved_stand_with_their_time_and_energy() -> None:
    result = documents.serving()
    result["tables"]["data_movement"] = [
        {
            "tier": "hbm",
            "bytes_per_output_token": 2.5e8,
            "s_per_output_token": 8e-5,
            "joule_per_output_token": 8e-3,
            "joule_per_byte": 31e-12,
            "source": "a paper",
        }
    ]
    chart = memory.movement(result)
    assert chart is not None
    assert chart.title == "Each output token moves 250 MB over HBM"
    assert chart.table is not None
    assert [f"{cell.text} {cell.unit}" for cell in chart.table.rows[0][1:]] == [
        "250 MB",
        "80.0 µs",
        "8 mJ/token",
    ]
