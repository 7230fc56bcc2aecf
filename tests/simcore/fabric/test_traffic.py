"""Flows: joining keeps every byte in its group."""

import numpy as np

from simcore.fabric.traffic import FlowGroup, Flows, joined

TENSOR = FlowGroup(name="tensor", traffic_class="core")
DATA = FlowGroup(name="data", traffic_class="inter_domain")


def _flows(group, *triples):
    return Flows(
        source=np.array([one[0] for one in triples]),
        target=np.array([one[1] for one in triples]),
        moved_bytes=np.array([float(one[2]) for one in triples]),
        group_of=np.zeros(len(triples), np.int64),
        groups=(group,),
    )


def test_joined_flows_keep_their_bytes_and_groups():
    both = joined([_flows(TENSOR, (0, 1, 5)), _flows(DATA, (1, 2, 7), (2, 0, 1)), _flows(TENSOR, (3, 0, 2))])
    assert both.groups == (TENSOR, DATA)
    assert both.total_bytes == 15
    assert both.moved_bytes[both.group_of == 0].sum() == 7
    assert both.source.tolist() == [0, 1, 2, 3]


def test_nothing_joined_is_empty():
    assert len(joined([])) == 0
