"""topology.routing and topology.class_sharing reach the fabric's loads and times, and leave older digests alone."""

import pytest

from simcore.errors import InputError
from simcore.fabric.flows import sharing_of
from simcore.plan import plan
from simcore.plan.fabric_load import fabric_load
from simcore.scenario import Scenario
from tests.simcore.plan.test_degraded import TRAINING


def planned(**rules):
    return plan(Scenario.parse(TRAINING | {"topology": TRAINING["topology"] | rules}))


def value(one, metric="fabric.max_link_load_fraction"):
    return fabric_load(one).terms[metric].value


def test_hashed_paths_collide_where_an_even_split_does_not():
    even, hashed = planned(radix=8), planned(radix=8, routing="hashed")
    assert fabric_load(hashed).tables["traffic_period"][0]["routing"] == "hashed"
    assert value(hashed, "fabric.completion_s") > value(even, "fabric.completion_s")


def test_core_traffic_is_no_later_under_strict_priority():
    metric = "fabric.core_completion_s"
    assert value(planned(class_sharing="strict"), metric) <= value(planned(), metric)


def test_weights_go_to_the_classes_in_order():
    rules = planned(class_sharing="weighted", class_weight_ratio=[8, 2, 1])
    assert sharing_of(rules.fabric) == {"core": 8.0, "inter_domain": 2.0, "management": 1.0}
    assert "weighted" in fabric_load(rules).terms["fabric.completion_s"].source


def test_a_clos_has_no_dimension_order():
    with pytest.raises(InputError, match="clos has no dimensions"):
        planned(routing="dimension_order")


@pytest.mark.parametrize("rules", [{"routing": "adaptive"}, {"class_sharing": "strict"}])
def test_rules_are_in_the_digest_and_the_usual_ones_leave_it_as_it_was(rules):
    written = planned(routing="auto", class_sharing="max_min", class_weight_ratio=[4, 2, 1], degraded=[])
    assert written.digest == plan(Scenario.parse(TRAINING)).digest
    assert planned(**rules).digest != written.digest
