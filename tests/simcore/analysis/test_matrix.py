"""What a measured matrix says: figures against their definitions, and patterns by name."""

import numpy as np
import pytest

from simcore.analysis.matrix import flows_of, pairs_of, summarise
from simcore.analysis.pattern import pattern_of
from simcore.fabric import patterns
from simcore.fabric.locality import Placement
from simcore.fabric.traffic import FlowGroup
from simcore.measurements.matrix import MeasuredMatrix

GROUP = FlowGroup(name="any", traffic_class="core")
RANKS = np.arange(64).reshape(1, 64)
PLACEMENT = Placement(rank_count=64, domain_size=8)
SERVERS = np.arange(64).reshape(8, 8)


def matrix(moved, **columns):
    return MeasuredMatrix(moved_bytes=np.asarray(moved, float), form="table", content_sha256="", **columns)


def named(edges, placement=PLACEMENT):
    flows = patterns.flows(GROUP, edges)
    return pattern_of(placement, flows.source, flows.target, flows.moved_bytes)


@pytest.mark.parametrize(
    ("edges", "name"),
    [
        (patterns.ring(RANKS, 1.0, inside=1), "ring"),
        (patterns.ring(SERVERS, 1.0, inside=8), "ring"),
        (patterns.all_to_all(RANKS, 1.0), "all_to_all"),
        (patterns.line(SERVERS.T, 1.0, 1.0), "pipeline"),
        (patterns.ring(SERVERS.T, 1.0, inside=1), "strided_ring"),
        (patterns.hierarchical(RANKS, 1.0, inside=8), "hierarchical"),
        (patterns.by_domain(RANKS, 1.0, 1.0, inside=8), "hierarchical"),
        (patterns.all_to_all(SERVERS, 1.0), "local"),
        ([patterns.sent(np.arange(1, 64), np.zeros(63, np.int64), 1.0)], "hot_spot"),
        ([patterns.sent(np.arange(64), np.arange(64) * 7 % 61, 1.0)], "irregular"),
    ],
)
def test_patterns_are_known_by_name(edges, name):
    assert named(edges).name == name


def test_the_words_carry_the_evidence():
    said = named(patterns.line(SERVERS.T, 3.0, 1.0)).message.text
    assert said == "a pipeline: 100% of the bytes go 8 ranks on or back, and none round the end"


def test_figures_of_a_small_matrix():
    found = summarise(
        matrix(
            [[0, 6, 2, 0], [2, 0, 0, 0], [0, 0, 0, 0], [0, 0, 10, 0]],
            message_count=np.array([[0, 3, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 5, 0.0]]),
            latency_sensitive_fraction=np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0.0]]),
            duration_s=2.0,
        ),
        Placement(rank_count=4, domain_size=2),
    )
    assert found.total_bytes == 20
    assert found.density_fraction == pytest.approx(4 / 12)
    assert (found.message_count, found.mean_message_bytes, found.message_per_s) == (10, 2, 5)
    assert found.latency_sensitive_fraction == pytest.approx(0.4)
    assert [one.moved_bytes for one in found.locality] == [18, 2, 0]
    assert [one.message_count for one in found.locality] == [9, 1, 0]
    assert found.locality[0].latency_sensitive_fraction == pytest.approx(8 / 18)
    assert found.rail_affinity_fraction == 1
    assert found.uniform_rail_affinity_fraction == 0.5
    assert found.send_imbalance_ratio == 2
    assert found.receive_imbalance_ratio == pytest.approx(12 / 5)
    assert found.busiest[0] == (3, 2, 10)


def test_what_the_file_does_not_say_is_not_made_up():
    found = summarise(matrix([[0, 1], [1, 0]]), Placement(rank_count=2, domain_size=8))
    assert found.message_count is found.mean_message_bytes is found.message_per_s is None
    assert found.latency_sensitive_fraction is None
    assert found.rail_affinity_fraction is None


def test_flows_are_the_cells():
    flows = flows_of(pairs_of(matrix([[0, 3], [4, 0]])))
    assert flows.total_bytes == 7
    assert len(flows) == 2
