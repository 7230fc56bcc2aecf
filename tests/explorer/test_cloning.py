"""Clone and edit: a catalog chip becomes a scenario whose figures are the reader's own."""

import html
import re

import pytest
from django.test import Client

from explorer.models import SavedScenario
from simcore.catalog import default_catalog
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.units import dimension_of, quantity


@pytest.fixture
def client(db: None) -> Client:
    return Client()


def test_a_clone_starts_as_the_datasheet_has_it_and_is_editable(client: Client) -> None:
    page = client.get("/library/chips/nvidia-h100-sxm/").content.decode()
    text = re.search(r'name="text" value="([^"]+)"', page)
    assert text is not None
    answer = client.post("/start/", {"text": html.unescape(text[1])})
    assert answer.status_code == 302
    scenario = SavedScenario.objects.get()
    overrides = scenario.document["hardware"]["chip_overrides"]
    assert overrides["hbm_bytes_per_s"] == "3.35 TB/s"
    cloned = plan(Scenario.parse(scenario.document))
    plain = plan(Scenario.parse({"name": "plain", "hardware": {"chip": "nvidia-h100-sxm"}}))
    assert cloned.metrics["compute.decode_step_s"] == pytest.approx(plain.metrics["compute.decode_step_s"])
    edited = client.post(f"/s/{scenario.pk}/edit/", {"hardware.chip_overrides.hbm_bytes_per_s": "6.7 TB/s"})
    assert edited.status_code == 302


@pytest.mark.parametrize("slug", sorted(default_catalog().chips))
def test_every_chip_can_be_cloned(client: Client, slug: str) -> None:
    page = client.get(f"/library/chips/{slug}/").content.decode()
    text = re.search(r'name="text" value="([^"]+)"', page)
    assert text is not None
    assert client.post("/start/", {"text": html.unescape(text[1])}).status_code == 302
    overrides = SavedScenario.objects.get().document["hardware"]["chip_overrides"]
    chip = default_catalog().chip(slug)
    for name, value in overrides.items():
        assert quantity(value, dimension_of(name)) == getattr(chip, name)


def test_only_chips_are_cloned(client: Client) -> None:
    assert "/start/" not in client.get("/library/models/llama-3.1-8b/").content.decode()


def test_a_chips_page_leads_to_its_calibration(client: Client) -> None:
    assert (
        "/calibrate/?chip=nvidia-h100-sxm" in client.get("/library/chips/nvidia-h100-sxm/").content.decode()
    )
    page = client.get("/calibrate/?chip=nvidia-a100-80gb-sxm").content.decode()
    assert 'value="nvidia-a100-80gb-sxm" selected' in page
