"""Clone and edit: a catalog chip becomes a scenario whose figures are the reader's own."""

import pytest
from django.test import Client

from explorer.models import SavedScenario
from simcore.catalog import default_catalog
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.units import dimension_of, quantity
from simcore.why import as_text


@pytest.fixture
def client(db: None) -> Client:
    return Client()


def clone(client: Client, slug: str) -> SavedScenario:
    assert client.post(f"/library/chips/{slug}/clone/").status_code == 302
    return SavedScenario.objects.get()


def test_a_clone_starts_as_the_datasheet_has_it_and_is_editable(client: Client) -> None:
    scenario = clone(client, "nvidia-h100-sxm")
    overrides = scenario.document["hardware"]["chip_overrides"]
    assert overrides["hbm_bytes_per_s"] == "3.35 TB/s"
    assert scenario.baseline is not None
    cloned, plain = (plan(Scenario.parse(one)) for one in (scenario.document, scenario.baseline.document))
    assert cloned.metrics["compute.decode_step_s"] == pytest.approx(plain.metrics["compute.decode_step_s"])
    edited = client.post(f"/s/{scenario.pk}/edit/", {"hardware.chip_overrides.hbm_bytes_per_s": "6.7 TB/s"})
    assert edited.status_code == 302


def test_an_edited_figure_stands_beside_the_shipped_one_and_is_yours(client: Client) -> None:
    scenario = clone(client, "nvidia-h100-sxm")
    client.post(f"/s/{scenario.pk}/edit/", {"hardware.chip_overrides.hbm_bytes_per_s": "6.7 TB/s"})
    page = client.get(f"/s/{scenario.pk}/").content.decode()
    assert "was 3.35 TB/s" in page
    assert "NVIDIA H100 SXM" in page
    scenario.refresh_from_db()
    step = plan(Scenario.parse(scenario.document)).terms["compute.decode_step_s"]
    assert "your override: 6.7 TB/s" in as_text(step)


@pytest.mark.parametrize("slug", sorted(default_catalog().chips))
def test_every_chip_can_be_cloned(client: Client, slug: str) -> None:
    overrides = clone(client, slug).document["hardware"]["chip_overrides"]
    chip = default_catalog().chip(slug)
    for name, value in overrides.items():
        assert quantity(value, dimension_of(name)) == getattr(chip, name)


def test_only_chips_are_cloned(client: Client) -> None:
    assert "/clone/" not in client.get("/library/models/llama-3.1-8b/").content.decode()
    assert client.post("/library/chips/llama-3.1-8b/clone/").status_code == 404
    assert client.get("/library/chips/nvidia-h100-sxm/clone/").status_code == 405


def test_a_chips_page_leads_to_its_calibration(client: Client) -> None:
    assert (
        "/calibrate/?chip=nvidia-h100-sxm" in client.get("/library/chips/nvidia-h100-sxm/").content.decode()
    )
    page = client.get("/calibrate/?chip=nvidia-a100-80gb-sxm").content.decode()
    assert 'value="nvidia-a100-80gb-sxm" selected' in page
