"""The fabric's graph opens part by part, for whoever may read the run or has the link, and is written as a file."""

import io
import re
from itertools import pairwise
from uuid import uuid4

import networkx as nx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from explorer import actions
from explorer.access import Viewer
from explorer.charts import expansion
from explorer.models import Run, ShareLink
from simcore.fabric import Clos, OcsPod, RailOnly, Torus
from simcore.fabric.expansion import expanded
from tests.simcore.fabric.fabrics import built

pytestmark = pytest.mark.django_db


@pytest.fixture
def link(finished: Run, alice: User) -> ShareLink:
    return actions.share(Viewer(user=alice), finished.revision.scenario)


def test_the_fabric_tab_links_every_tier_to_what_is_in_it(finished: Run, as_alice: Client) -> None:
    page = as_alice.get(f"/s/{finished.revision.scenario_id}/fabric/").content.decode()
    addresses = set(re.findall(rf'href="(/runs/{finished.pk}/graph/[a-z]+/)" data-expand', page))
    assert len(addresses) >= 2
    for address in addresses:
        assert as_alice.get(address).status_code == 200


def test_a_part_comes_alone_for_the_page_and_whole_without_scripts(finished: Run, as_alice: Client) -> None:
    address = f"/runs/{finished.pk}/graph/chip.0/"
    part = as_alice.get(address, headers={"HX-Request": "true"}).content.decode()
    whole = as_alice.get(address).content.decode()
    assert "<html" not in part
    assert "<html" in whole
    for text in (part, whole):
        assert "links to" in text
        assert f'href="/runs/{finished.pk}/graph/chip/"' in text


@pytest.mark.parametrize("node", ["leaf.9999", "leaf.5-2", "moon", "chip.0-63.0"])
def test_what_is_not_in_the_fabric_is_not_found(finished: Run, as_alice: Client, node: str) -> None:
    assert as_alice.get(f"/runs/{finished.pk}/graph/{node}/").status_code == 404


def test_a_stranger_is_told_that_there_is_nothing(finished: Run, as_bob: Client, as_nobody: Client) -> None:
    for who in (as_bob, as_nobody):
        for address in ("graph/leaf/", "fabric.graphml", "fabric.dot"):
            assert who.get(f"/runs/{finished.pk}/{address}").status_code == 404
    assert as_bob.get(f"/runs/{uuid4()}/graph/leaf/").status_code == 404
    assert as_bob.get("/runs/not-a-run-not-a-run-not-a-run-not-aaa/fabric.dot").status_code == 404


def test_the_graph_comes_as_graphml_and_dot(finished: Run, as_alice: Client) -> None:
    answer = as_alice.get(f"/runs/{finished.pk}/fabric.graphml?full=1")
    assert "attachment" in answer.headers["Content-Disposition"]
    graph = nx.read_graphml(io.BytesIO(answer.content))
    assert sum(kind == "chip" for _, kind in graph.nodes(data="kind")) == 64
    quotient = nx.read_graphml(io.BytesIO(as_alice.get(f"/runs/{finished.pk}/fabric.graphml").content))
    assert dict(quotient.nodes(data="count"))["chip"] == 64
    assert as_alice.get(f"/runs/{finished.pk}/fabric.dot").content.startswith(b"graph fabric {")
    assert as_alice.get(f"/runs/{finished.pk}/fabric.svg").status_code == 404


def test_who_has_a_link_may_look_inside_until_it_is_revoked(link: ShareLink, as_nobody: Client) -> None:
    page = as_nobody.get(f"/r/{link.token}/").content.decode()
    assert f'href="/r/{link.token}/graph/leaf/"' in page
    assert f'href="/r/{link.token}/fabric.graphml"' in page
    for address in ("graph/leaf.0/", "fabric.graphml", "fabric.dot?full=1"):
        assert as_nobody.get(f"/r/{link.token}/{address}").status_code == 200
    link.revoked_at = timezone.now()
    link.save()
    for address in ("graph/leaf.0/", "fabric.graphml", "fabric.dot?full=1"):
        assert as_nobody.get(f"/r/{link.token}/{address}").status_code == 404


# --- the picture ---


def test_a_pod_is_one_bus_and_a_rail_one_tree() -> None:
    fabric = built(Clos(radix=128, hb_domain_size=256), 32_768)
    chart = expansion.picture(expanded(fabric, "leaf.64-127"))
    assert chart.title == "Leaf switches 64–127, one by one: 64"
    levels = {wire.y1 for wire in chart.body.wires if wire.y1 == wire.y2}
    assert len(levels) == 2, "one line joins spines and leaves, one level of lines leaves and chips"
    rails = built(RailOnly(radix=128, hb_domain_size=256), 32_768)
    chart = expansion.picture(expanded(rails, "rail.17"))
    assert chart.title == "Rail switch 17: 128 links to 128 neighbours"


@pytest.mark.parametrize(
    "node", ["leaf", "leaf.0-63", "leaf.3", "spine", "core.1", "chip", "server.2", "chip.77"]
)
def test_boxes_and_wires_stay_in_the_picture_and_apart(node: str) -> None:
    chart = expansion.picture(expanded(built(Clos(radix=128, hb_domain_size=256), 32_768), node))
    boxes = chart.body.boxes
    for box in boxes:
        assert 0 <= box.left <= box.left + box.width <= 100
        assert 0 <= box.top <= box.top + box.height <= chart.body.height
        assert box.said
    for one, other in pairwise(boxes):
        assert one.top != other.top or one.left + one.width < other.left
    for wire in chart.body.wires:
        assert wire.x1 == wire.x2 or wire.y1 == wire.y2, "orthogonal"


def test_what_nobody_could_follow_shares_a_dashed_bus() -> None:
    chart = expansion.picture(expanded(built(OcsPod(), 4096), "chip.64-127"))
    assert "dashed" in chart.axis
    levels = {wire.y1 for wire in chart.body.wires if wire.y1 == wire.y2}
    assert len(levels) < 30


def test_a_place_on_a_torus_is_called_by_its_coordinates() -> None:
    chart = expansion.picture(expanded(built(Torus(), 4096), "chip.273"))
    assert chart.title == "Chip (1, 1, 1): 6 links to 6 neighbours"
    chart = expansion.picture(expanded(built(OcsPod(), 4096), "chip"))
    assert "in 64 parts" in chart.title
