"""What the tests of the core share: the catalog, and plans and results of small scenarios, made once."""

import json

import pytest

from simcore.catalog import default_catalog
from simcore.plan import plan
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import simulate

SMALL = {
    "name": "small",
    "hardware": {"chip_count": 1},
    "workload": {
        "arrivals": {"kind": "poisson", "request_per_s": 6.0},
        "lengths": {"kind": "constant", "input_tokens": 256, "output_tokens": 32},
        "request_count": 200,
    },
}


class Planner:
    """`planner(**overrides)` plans the small scenario with overrides; equal ones are planned once."""

    def __init__(self) -> None:
        self._plans = {}
        self._results = {}

    def document(self, overrides=None, base=SMALL):
        document, _ = apply_overrides(base, overrides or {})
        return document

    def plan(self, overrides=None, base=SMALL):
        document = self.document(overrides, base)
        key = json.dumps(document, sort_keys=True)
        if key not in self._plans:
            self._plans[key] = plan(Scenario.parse(document), default_catalog())
        return self._plans[key]

    def result(self, overrides=None, base=SMALL):
        planned = self.plan(overrides, base)
        if id(planned) not in self._results:
            self._results[id(planned)] = simulate(planned)
        return self._results[id(planned)]


@pytest.fixture(scope="session")
def planner():
    return Planner()


@pytest.fixture(scope="session")
def catalog():
    return default_catalog()
