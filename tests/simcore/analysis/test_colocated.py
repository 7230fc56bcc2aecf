"""Two jobs on one fabric: halves of a full uplink, nothing in a fabric that blocks nobody, never quicker than alone."""

import numpy as np
import pytest

from simcore.analysis import colocated as subject
from simcore.analysis.colocated import colocated, message_of
from simcore.catalog import default_catalog
from simcore.errors import InputError
from simcore.fabric.patterns import flows, sent
from simcore.fabric.traffic import FlowGroup
from simcore.plan import plan
from simcore.plan.traffic import Traffic
from simcore.scenario import Scenario

CATALOG = default_catalog()
TRAINING = {
    "name": "train",
    "hardware": {"chip_count": 32},
    "workload": {"kind": "training"},
    "training": {"parallelism": {"tp": 4}},
    "topology": {"kind": "clos", "radix": 48, "oversubscription_ratio": 2.0},
}
OTHER = TRAINING | {"name": "other"}


def together(*documents):
    first, second = (plan(Scenario.parse(document), CATALOG) for document in documents)
    return colocated(first, second, CATALOG)


@pytest.fixture
def two_apart(monkeypatch):
    """Every chip sends a gigabyte to the chip with its number two servers on."""

    def traffic(planned):
        ranks = np.arange(planned.fabric.chip_count)
        edges = [sent(ranks, (ranks + 16) % len(ranks), np.full(len(ranks), 1e9))]
        group = FlowGroup(name="shift", traffic_class="core")
        return Traffic(flows=flows(group, edges), period_s=1.0, per="step")

    monkeypatch.setattr(subject, "traffic_of", traffic)


def test_uplinks_that_one_job_fills_take_two_twice_as_long(two_apart):
    """By hand: 48 ports, 32 down and 16 up, so a leaf holds four servers.

    In blocks each job has a leaf of its own and meets nobody: 1 GB ÷ 50 GB/s = 20 ms. Mixed, two servers of each stand
    under each leaf, and all send to the other leaf: 16 flows of one job fill the 16 uplinks, those of both take twice
    as long.
    """
    found = together(TRAINING, OTHER)
    assert [one.placing for one in found] == ["blocks", "blocks", "mixed", "mixed"]
    assert [one.alone.value for one in found] == pytest.approx([0.02] * 4)
    assert [one.slowdown.value for one in found] == pytest.approx([1.0, 1.0, 2.0, 2.0])
    share = found[2].exposed_fraction
    assert found[2].step.value == pytest.approx(1 + share)
    assert "waits 2.00 times as long" in message_of(found).text


def test_a_fabric_that_blocks_nobody_keeps_them_apart():
    wide = {**TRAINING, "topology": {"kind": "clos", "radix": 64}}
    found = together(wide, OTHER)
    assert all(one.slowdown.value == pytest.approx(1.0) for one in found)
    assert "don't slow each other down" in message_of(found).text


@pytest.mark.parametrize("chips", [16, 32, 64])
def test_beside_another_nobody_is_quicker(chips):
    other = {**OTHER, "hardware": {"chip_count": chips}}
    for one in together(TRAINING, other):
        assert one.slowdown.value >= 1 - 1e-9
        assert 1 - 1e-9 <= one.step.value <= max(1.0, one.slowdown.value) + 1e-9


def test_a_job_that_sends_nothing_is_refused():
    alone = {"name": "alone", "hardware": {"chip_count": 1}}
    with pytest.raises(InputError) as error:
        together(TRAINING, alone)
    assert error.value.message.code == "colocated.silent"
