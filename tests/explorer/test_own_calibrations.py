"""Keep a fit, choose it in a scenario, see in the result whose it is."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions, calibrating
from explorer.access import Viewer
from explorer.models import Run, SavedCalibration, SavedScenario
from explorer.models.calibration import Fit
from simcore.errors import InputError
from tests.explorer.conftest import SERVING, run_of
from tests.simcore.validation.synthetic import gemm_rows, text

pytestmark = pytest.mark.django_db
H100 = "nvidia-h100-sxm"


@pytest.fixture(scope="module")
def fit() -> Fit:
    outcome = calibrating.fit(text(gemm_rows()).encode(), H100, fitted_on="2026-11-30")
    return calibrating.fit_of(outcome, H100, by="alice")


@pytest.fixture
def kept(fit: Fit, alice: User) -> SavedCalibration:
    return actions.keep_calibration(Viewer(user=alice), fit, name="Our lab")


def sealed(page: bytes) -> str:
    found = re.search(r'name="sealed" value="([^"]+)"', page.decode())
    assert found is not None
    return html.unescape(found[1])


def test_rows_become_a_fit_a_name_and_a_scenario_with_it(
    as_alice: Client, work: Callable[[Run], Run]
) -> None:
    fitted = as_alice.post(
        "/calibrate/", {"chip": H100, "rows": text([*gemm_rows(), "a100_sxm,bfloat16,1,1,1,5,x"])}
    )
    answer = as_alice.post("/calibrate/keep/", {"sealed": sealed(fitted.content), "name": "Our lab, rack 7"})
    saved = SavedCalibration.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/calibrate/{saved.slug}/")
    assert saved.slug.startswith("our-lab-rack-7-")
    assert saved.row_count == 90
    page = as_alice.get(answer["Location"]).content.decode()
    assert "gemm.bf16" in page
    assert "of another chip" in page
    assert as_alice.get(f"/calibrate/{saved.slug}/calibration.yaml").content.decode() == saved.text

    assert as_alice.post(f"/calibrate/{saved.slug}/use/").status_code == 302
    scenario = SavedScenario.objects.get()
    assert scenario.document["hardware"] == {"chip": H100, "calibration": saved.slug}
    run = work(run_of(scenario))
    assert run.shown is not None
    (used,) = run.shown["tables"]["calibration"]
    assert (used["name"], used["is_own"]) == ("Our lab, rack 7", True)
    why = as_alice.get(f"/runs/{run.pk}/why/compute.decode_step_s/").content.decode()
    assert "calibrated on 90 rows by alice, " in why


def test_it_is_chosen_in_the_outline_and_changes_the_steps(
    kept: SavedCalibration, alice: User, as_alice: Client, work: Callable[[Run], Run]
) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    before = work(run_of(scenario))
    page = as_alice.get(f"/s/{scenario.pk}/").content.decode()
    assert f'<option value="{kept.slug}">Our lab</option>' in page
    answer = as_alice.post(f"/s/{scenario.pk}/edit/", {"hardware.calibration": kept.slug})
    assert answer.status_code == 302
    scenario.refresh_from_db()
    after = work(run_of(scenario))
    assert before.shown is not None
    assert after.shown is not None
    steps = [run["metrics"]["compute.decode_step_s"] for run in (before.shown, after.shown)]
    assert steps[0] != steps[1]
    assert before.digest != after.digest


def test_choosing_auto_where_nothing_is_chosen_is_no_change(alice: User, as_alice: Client) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    as_alice.post(f"/s/{scenario.pk}/edit/", {"hardware.calibration": "auto"})
    assert scenario.revisions.count() == 1


def test_the_same_fit_under_the_same_name_is_one(kept: SavedCalibration, fit: Fit, alice: User) -> None:
    again = actions.keep_calibration(Viewer(user=alice), fit, name="Our lab")
    other = actions.keep_calibration(Viewer(user=alice), fit, name="Their lab")
    assert again.pk == kept.pk
    assert other.slug != kept.slug


@pytest.mark.parametrize(
    "name",
    ["实验室", 'a: b # "c" {d', "null", "<script>alert(1)</script>", "{% now %}", "- x", "'", "x" * 200],
)
def test_any_name_comes_back_as_it_was(name: str, fit: Fit, alice: User, as_alice: Client) -> None:
    saved = actions.keep_calibration(Viewer(user=alice), fit, name=name)
    assert saved.calibration().name == name
    page = as_alice.get(f"/calibrate/{saved.slug}/").content.decode()
    assert f'<h1 class="headline">{html.escape(name)}</h1>' in page


@pytest.mark.parametrize("name", ["", "   ", "\x00\x07", "x" * 201])
def test_a_name_that_will_not_do_is_asked_for_again_with_the_fit_at_hand(
    name: str, fit: Fit, as_alice: Client
) -> None:
    answer = as_alice.post("/calibrate/keep/", {"sealed": calibrating.sealed(fit), "name": name})
    assert answer.status_code == 422
    assert calibrating.unsealed(sealed(answer.content)) == fit
    assert not SavedCalibration.objects.exists()


@pytest.mark.parametrize("seal", ["", "x", "e30:1:2"])
def test_only_what_this_site_fitted_is_kept(seal: str, as_alice: Client) -> None:
    answer = as_alice.post("/calibrate/keep/", {"sealed": seal, "name": "Forged"})
    assert answer.status_code == 422
    assert "fit the rows again" in answer.content.decode()
    assert not SavedCalibration.objects.exists()


def test_a_seal_that_was_changed_is_refused(fit: Fit) -> None:
    seal = calibrating.sealed(fit)
    at = len(seal) // 2
    changed = seal[:at] + ("A" if seal[at] != "A" else "B") + seal[at + 1 :]
    with pytest.raises(InputError, match="no longer at hand"):
        calibrating.unsealed(changed)


def test_a_file_is_never_read_for_a_scenario(as_alice: Client) -> None:
    for path in (
        "./my.yaml",
        "/etc/hosts.yaml",
        "../../simcore/catalog/data/calibration/nvidia-h100-sxm.yaml",
    ):
        answer = as_alice.post("/start/", {"text": f"{{name: x, hardware: {{calibration: {path}}}}}"})
        assert answer.status_code == 422
        assert "on the command line only" in answer.content.decode()


def test_what_was_deleted_is_asked_for_at_the_next_edit(
    kept: SavedCalibration, alice: User, as_alice: Client, work: Callable[[Run], Run]
) -> None:
    scenario = actions.use_calibration(Viewer(user=alice), kept)
    run = work(run_of(scenario))
    assert as_alice.post(f"/calibrate/{kept.slug}/delete/").status_code == 302
    assert as_alice.get(f"/s/{scenario.pk}/").status_code == 200
    assert as_alice.get(f"/runs/{run.pk}/result.json").status_code == 200
    refused = as_alice.post(f"/s/{scenario.pk}/edit/", {"hardware.chip_count": "16"})
    assert refused.status_code == 422
    assert "none of your calibrations is" in refused.content.decode()
    assert as_alice.post(f"/s/{scenario.pk}/edit/", {"hardware.calibration": "auto"}).status_code == 302


def test_what_was_made_without_an_account_moves_into_it(fit: Fit, as_charlie: Client) -> None:
    posted = {"sealed": calibrating.sealed(fit), "name": "Charlie's"}
    slug = as_charlie.post("/calibrate/keep/", posted)["Location"]
    assert as_charlie.get(slug).status_code == 200
    password = "a-very-long-password-of-his"
    account = {"username": "charlie", "password1": password, "password2": password}
    assert as_charlie.post("/accounts/signup/", account).status_code == 302
    assert as_charlie.get(slug).status_code == 200
    assert SavedCalibration.objects.get().owner == User.objects.get(username="charlie")


def test_two_of_the_same_become_one_when_an_account_is_entered(
    fit: Fit, alice: User, as_charlie: Client
) -> None:
    as_charlie.post("/calibrate/keep/", {"sealed": calibrating.sealed(fit), "name": "Our lab"})
    actions.keep_calibration(Viewer(user=alice), fit, name="Our lab")
    actions.adopt_sandbox(alice, as_charlie.session["sandbox"])
    assert SavedCalibration.objects.get().owner == alice


def test_there_is_an_end_to_how_many(kept: SavedCalibration, fit: Fit, alice: User, settings: Any) -> None:
    settings.MAX_SCENARIOS_PER_OWNER = 1
    with pytest.raises(InputError, match="the most that one person may keep"):
        actions.keep_calibration(Viewer(user=alice), fit, name="One more")
