"""Degraded parts of a scenario's topology: refused where they do not exist, in the digest where they do."""

import pytest

from simcore.errors import InputError
from simcore.fabric import network_of
from simcore.fabric.routing import link_loads
from simcore.plan import plan
from simcore.plan.traffic import traffic_of
from simcore.scenario import Scenario

TRAINING = {
    "name": "training on 128 chips",
    "hardware": {"chip": "nvidia-h100-sxm", "chip_count": 128},
    "topology": {"kind": "clos", "radix": 16},
    "model": {"name": "llama-3.1-8b"},
    "workload": {"kind": "training"},
    "training": {"parallelism": {"tp": 8, "pp": 1, "dp": 16}},
}


def planned(*degraded):
    topology = TRAINING["topology"] | {"degraded": list(degraded)}
    return plan(Scenario.parse(TRAINING | {"topology": topology}))


def busiest_s(one):
    traffic, network = traffic_of(one), network_of(one.fabric)
    loads = link_loads(network, traffic.flows, routing="ecmp").moved_bytes[network.first_cable :]
    return (loads / network.cables.capacity_bytes_per_s).max()


def test_an_unknown_part_is_refused_when_planning():
    with pytest.raises(InputError, match="leaf 0 to leaf 15") as caught:
        planned({"link": "leaf 3 → spine 99"})
    assert caught.value.message.path == "topology.degraded.0.link"


def test_a_half_link_is_busy_for_twice_as_long():
    """Leaves differ by a little management traffic."""
    half = planned({"link": "leaf 3 → spine 1", "capacity_fraction": 0.5})
    assert busiest_s(half) == pytest.approx(2 * busiest_s(planned()), rel=1e-3)


def test_a_dead_spine_leaves_its_share_to_the_others():
    assert busiest_s(planned({"switch": "spine 2"})) == pytest.approx(8 / 7 * busiest_s(planned()))


def test_degraded_parts_are_in_the_digest_and_none_leave_it_as_it_was():
    assert planned().digest == plan(Scenario.parse(TRAINING)).digest
    assert planned({"switch": "spine 2"}).digest != planned().digest


def test_both_or_none_of_link_and_switch_are_refused_at_their_place():
    with pytest.raises(InputError, match="name either a link") as caught:
        planned({"link": "leaf 3 → spine 1", "switch": "spine 1"})
    assert caught.value.message.path == "topology.degraded.0"
