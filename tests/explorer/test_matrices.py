"""Uploading traffic matrices: read, studied, seen by their owner alone; and topologies for a scenario's own traffic."""

import io
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from explorer import actions
from explorer.access import Viewer
from explorer.models import SavedScenario, TrafficMatrix
from tests.explorer.conftest import DOCUMENT

pytestmark = pytest.mark.django_db

RING = np.zeros((32, 32))
RING[np.arange(32), (np.arange(32) + 8) % 32] = 1e9
EDGES = b"source,target,bytes,messages,latency_sensitive\n0,8,1000000,10,1\n8,0,3000000,10,0\n0,1,500,1,0\n"
TRAINING = {
    "name": "Training",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 64},
    "topology": {"kind": "clos", "radix": 64},
    "model": {"name": "llama-3.1-8b"},
    "workload": {"kind": "training"},
    "training": {"parallelism": {"tp": 8}, "global_batch_tokens": 8192 * 64},
}


def npz(**columns: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **columns)
    return buffer.getvalue()


def post(client: Client, content: bytes, **form: str) -> Any:
    return client.post("/matrices/", {"file": SimpleUploadedFile("traffic.npz", content), **form})


@pytest.fixture
def saved(as_alice: Client) -> TrafficMatrix:
    assert post(as_alice, npz(bytes=RING)).status_code == 302
    return TrafficMatrix.objects.get()


def test_a_matrix_is_read_studied_and_shown(as_alice: Client, saved: TrafficMatrix) -> None:
    assert (saved.rank_count, saved.form, saved.server) == (32, "npz", "dgx-h100")
    page = as_alice.get(f"/matrices/{saved.sha256}/")
    text = page.content.decode()
    assert "32 GB between 32 pairs of 32 ranks" in text
    assert "100 %" in text
    assert "A ring with stride 8" in text
    assert page.context["ranking"].headline


def test_a_list_of_edges_says_messages_and_latency(as_alice: Client) -> None:
    post(as_alice, EDGES)
    text = as_alice.get(f"/matrices/{TrafficMatrix.objects.get().sha256}/").content.decode()
    assert "21 messages" in text
    assert "25.0 % of the bytes are latency-sensitive" in text


def test_the_same_file_again_is_the_same_upload(as_alice: Client) -> None:
    content = npz(bytes=RING)
    for server in ("dgx-h100", "dgx-a100"):
        post(as_alice, content, server=server)
    assert TrafficMatrix.objects.get().server == "dgx-a100"


def test_it_can_be_studied_on_other_servers(as_alice: Client, saved: TrafficMatrix) -> None:
    before = saved.study["ranking"][0]["busiest_link_s"]
    as_alice.post(f"/matrices/{saved.sha256}/study/", {"server": "dgx-a100"})
    saved.refresh_from_db()
    assert saved.server == "dgx-a100"
    assert saved.study["ranking"][0]["busiest_link_s"] == pytest.approx(2 * before)


def test_a_server_that_is_none_changes_nothing(as_alice: Client, saved: TrafficMatrix) -> None:
    page = as_alice.post(f"/matrices/{saved.sha256}/study/", {"server": "no-such"}, follow=True)
    assert "no-such" in page.content.decode()
    saved.refresh_from_db()
    assert saved.server == "dgx-h100"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"1,2\n3\n", "line 2"),
        (npz(bytes=np.array([[{}, 1], [2, 3]], dtype=object)), "pickled"),
        (npz(bytes=np.ones((3, 4))), "3 × 4"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(content: bytes, said: str, as_alice: Client) -> None:
    page = post(as_alice, content)
    assert page.status_code == 422
    assert said in page.content.decode()
    assert not TrafficMatrix.objects.exists()


def test_no_file_is_said(as_alice: Client) -> None:
    assert as_alice.post("/matrices/", {}).status_code == 422


def test_sizes_and_numbers_are_bounded(as_alice: Client, settings: Any) -> None:
    settings.MAX_MATRIX_RANKS = 16
    assert b"32 ranks" in post(as_alice, npz(bytes=RING)).content
    settings.MAX_MATRIX_RANKS = 64
    settings.MAX_TRACE_BYTES = 10
    assert post(as_alice, npz(bytes=RING)).status_code == 422
    settings.MAX_TRACE_BYTES = 100_000
    settings.MAX_MATRICES_PER_OWNER = 0
    assert b"the limit here" in post(as_alice, npz(bytes=RING)).content


def test_a_matrix_is_its_owners_alone(
    as_alice: Client, as_bob: Client, as_charlie: Client, client: Client, saved: TrafficMatrix
) -> None:
    for stranger in (as_bob, as_charlie, client):
        assert stranger.get(f"/matrices/{saved.sha256}/").status_code == 404
        for action in ("study", "delete"):
            assert stranger.post(f"/matrices/{saved.sha256}/{action}/").status_code == 404
        assert saved.name not in stranger.get("/matrices/").content.decode()
        assert saved.sha256 not in stranger.get("/library/").content.decode()
    assert saved.sha256 in as_alice.get("/library/").content.decode()


def test_changes_are_posted(as_alice: Client, saved: TrafficMatrix) -> None:
    for action in ("study", "delete"):
        assert as_alice.get(f"/matrices/{saved.sha256}/{action}/").status_code == 405


def test_it_is_deleted(as_alice: Client, saved: TrafficMatrix) -> None:
    assert as_alice.post(f"/matrices/{saved.sha256}/delete/").status_code == 302
    assert not TrafficMatrix.objects.exists()


def test_what_a_visitor_uploaded_is_theirs_after_signing_up(as_charlie: Client, alice: User) -> None:
    post(as_charlie, npz(bytes=RING))
    sandbox = TrafficMatrix.objects.get().sandbox
    actions.adopt_sandbox(alice, sandbox)
    assert TrafficMatrix.objects.get().owner == alice


@pytest.fixture
def training(alice: User) -> SavedScenario:
    return actions.create_scenario(Viewer(user=alice), TRAINING)


def test_topologies_are_ranked_for_a_scenario_and_made_by_a_press(
    as_alice: Client, training: SavedScenario
) -> None:
    page = as_alice.get(f"/s/{training.pk}/topologies/")
    kinds = {one["kind"]: one for one in page.context["candidates"]}
    assert {"clos", "rail_optimized", "rail_only"} <= kinds.keys()
    assert kinds["clos"]["is_current"]
    assert b'name="topology.kind" value="rail_only"' in page.content
    as_alice.post(f"/s/{training.pk}/edit/", {"tab": "fabric", "topology.kind": "rail_only"})
    training.refresh_from_db()
    assert training.document["topology"]["kind"] == "rail_only"


def test_where_nothing_moves_that_is_said(as_alice: Client, alice: User) -> None:
    scenario = actions.create_scenario(Viewer(user=alice), DOCUMENT)
    assert b"Nothing but monitoring moves" in as_alice.get(f"/s/{scenario.pk}/topologies/").content


def test_a_stranger_gets_404_and_a_reader_no_buttons(
    as_bob: Client, client: Client, training: SavedScenario
) -> None:
    path = f"/s/{training.pk}/topologies/"
    assert as_bob.get(path).status_code == client.get(path).status_code == 404
    SavedScenario.objects.filter(pk=training.pk).update(visibility="link")
    page = as_bob.get(path)
    assert page.status_code == 200
    assert b'name="topology.kind"' not in page.content
