"""Whatever is typed, at whatever path or address: an answer, never a fault of ours, and nothing saved is lost."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.forms import outline
from explorer.models import Run, SavedScenario
from simcore.errors import InputError
from tests.explorer.conftest import DOCUMENT, SERVING

pytestmark = pytest.mark.django_db

NASTY = (
    "x1e400", "1" * 400, "-1", "1e400", "NaN", "-Infinity", "true", "[]", "[" * 5000, '{"a":1}', "a\0b", "‮",
    '"\\ud800"', "3 GB", "1e308 TB/s", "١٢", "<script>", "9" * 18, '{"kind":"trace"}', "../../etc/passwd",
)  # fmt: skip
PATHS = sorted(
    {field.path for document in (SERVING, DOCUMENT) for field in outline(document).fields}
    | {"name", "schema_version", "model.config", "workload", "hardware.pools", "a.b", ".", "..", "a" * 300}
    | {"workload.arrivals.path", "workload.arrivals.window", "topology.kind.kind", "serving.kv.offload"}
)


@pytest.mark.parametrize("path", PATHS)
def test_a_field_takes_or_explains_anything(path: str, alice: User) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), SERVING)
    first = scenario.current
    for typed in NASTY:
        scenario.current, scenario.draft = first, {}
        outcome = actions.edit(Viewer(user=alice), scenario, {path: typed})
        assert outcome.errors or outcome.run
        Run.objects.update(status="cancelled")
    scenario.refresh_from_db()
    assert scenario.revisions.get(number=1).document == SERVING


@pytest.mark.parametrize("typed", ["a\0b", "‮", "3 GB", "<script>alert(1)</script>", "9" * 18])
def test_what_was_refused_can_be_shown(typed: str, scenario: SavedScenario, as_alice: Client) -> None:
    path = f"/s/{scenario.pk}/"
    assert as_alice.post(f"{path}edit/", {"hardware.chip_count": typed}).status_code == 422
    page = as_alice.get(path)
    assert page.status_code == 200
    assert "<script>alert" not in page.content.decode()


@pytest.mark.parametrize("text", ["a\0", "\ud800", "x\ud83dx", "\udc00😀"])
def test_what_is_no_text_is_refused_anywhere(text: str, alice: User) -> None:
    for document in ({**DOCUMENT, "name": text}, {**DOCUMENT, "description": text}):
        with pytest.raises(InputError, match="half a character"):
            actions.create_scenario(Viewer(user=alice), document)


@pytest.mark.parametrize("name", ["配平", "😀", "a\u202eb", "a\nb", "x" * 200])
def test_every_real_text_is_a_name(name: str, alice: User, as_alice: Client) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), {**DOCUMENT, "name": name})
    assert scenario.name.isprintable()
    assert as_alice.get(f"/s/{scenario.pk}/").status_code == 200


def test_json_escapes_of_nothing_are_refused(as_nobody: Client) -> None:
    for name in ('"\\ud800"', '"\\u0000"'):
        answer = as_nobody.post("/start/", {"text": f'{{"name": {name}, "workload": {{"kind": "none"}}}}'})
        assert answer.status_code == 422


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, json.dumps({"name": "x"} | {"a": "b" * 300_000})]
)
def test_a_paste_without_end_is_refused(text: str, as_nobody: Client) -> None:
    assert as_nobody.post("/start/", {"text": text}).status_code == 422


def test_a_form_that_is_too_large_is_explained(as_nobody: Client) -> None:
    whole = {"text": "x" * 4_000_000}
    for answer in (
        as_nobody.post("/start/", whole),
        as_nobody.post("/start/", urlencode(whole), "application/x-www-form-urlencoded"),
    ):
        assert answer.status_code == 413
        assert "too large" in answer.content.decode()
    many = "&".join(f"a{index}=1" for index in range(5000))
    assert as_nobody.post("/start/", many, "application/x-www-form-urlencoded").status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/r/%00/", "/r/a%00b/", "/library/chips/%00/", "/library/%00/x/", "/stories/%00/", "/c/?s=%00", "/c/?s=",
        "/runs/------------------------------------/why/x/", "/s/------------------------------------/",
        "/runs/%F0%9F%98%80/result.json", "/c/export/%00/",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_404(path: str, as_nobody: Client) -> None:
    assert as_nobody.get(path).status_code == 404


@pytest.mark.parametrize("metric", ["%00", "<b>", "a" * 2000, "%F0%9F%98%80"])
def test_a_metric_that_is_none_is_404(metric: str, finished: Run, as_alice: Client) -> None:
    assert as_alice.get(f"/runs/{finished.pk}/why/{metric}/").status_code == 404


@pytest.mark.parametrize(
    ("verb", "form"),
    [
        ("rename", {"name": "\0"}),
        ("save", {"label": "a\0b"}),
        ("pin", {"source": "\0"}),
        ("visibility", {"visibility": "\0"}),
        ("share", {"days": "99999999999999999999"}),
        ("share", {"days": "-1"}),
        ("go", {"number": "٣"}),
        ("edit", {"tab": "\0", "": "x"}),
    ],
)
def test_a_form_takes_or_explains_anything(
    verb: str, form: dict[str, Any], finished: Run, as_alice: Client
) -> None:
    assert as_alice.post(f"/s/{finished.revision.scenario_id}/{verb}/", form).status_code in (302, 404)
