"""`serving.kernels`: fitted does not depend on what is installed, measured says so in result, digest and trees."""

import pytest

from simcore.analysis import analyse
from simcore.catalog import measured
from simcore.errors import InputError
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.simulate import simulate
from simcore.why import leaves
from tests.simcore.synthetic_tables import require_package

DOCUMENT = {"name": "x", "hardware": {"chip_count": 8}, "workload": {"request_count": 50}}


def planned(kernels="fitted", **serving):
    return plan(Scenario.parse({**DOCUMENT, "serving": {"kernels": kernels, **serving}}))


@pytest.mark.parametrize("package", [None, "aiconfigurator-core 99.0"])
def test_fitted_is_the_same_whatever_is_installed(monkeypatch, package):
    before = planned()
    monkeypatch.setattr(measured, "installed_package", lambda: package)
    after = planned()
    assert (after.digest, after.metrics) == (before.digest, before.metrics)
    assert after.tables["operators"] == before.tables["operators"]


def test_measured_without_the_package_is_refused(monkeypatch):
    monkeypatch.setattr(measured, "installed_package", lambda: None)
    with pytest.raises(InputError, match="pip install"):
        planned("measured")


def test_a_chip_without_tables_says_so_and_keeps_its_fits(monkeypatch):
    monkeypatch.setattr(measured, "installed_package", lambda: "made up 1.0")
    documents = [
        {**DOCUMENT, "hardware": {"chip": "amd-mi300x"}, "serving": {"kernels": kernels}}
        for kernels in ("fitted", "measured")
    ]
    fitted, found = (plan(Scenario.parse(document)) for document in documents)
    assert "measured.no_tables" in {warning.code for warning in found.warnings}
    assert found.metrics == fitted.metrics


def test_training_does_not_ask_for_tables(monkeypatch):
    monkeypatch.setattr(measured, "installed_package", lambda: None)
    document = {"name": "x", "workload": {"kind": "training"}, "serving": {"kernels": "measured"}}
    assert plan(Scenario.parse(document)).training is not None


def test_every_operator_says_where_its_seconds_are_from():
    for row in planned().tables["operators"]:
        assert row["source"].startswith(("fitted: ", "assumed: ")), row["operator"]


def test_with_tables_each_operator_that_they_have_is_measured():
    require_package()
    found = planned("measured", parallelism={"tp": 2})
    sources = {row["operator"]: row["source"] for row in found.tables["operators"]}
    for name in ("qkv", "attention", "attention_output", "mlp_up", "mlp_down", "lm_head", "all_reduce"):
        assert sources[name].startswith("measured: aiconfigurator-core "), name
    for name in ("launch", "norms_and_activations", "sampling", "host"):
        assert sources[name].startswith("fitted: "), name
    names = {found.name for found in leaves(found.terms["compute.decode_step_s"])}
    assert "measured_ratio" in names


def test_the_version_of_the_package_is_in_the_digest(monkeypatch):
    require_package()
    before = planned("measured").digest
    assert before != planned().digest
    monkeypatch.setattr(measured, "installed_package", lambda: "aiconfigurator-core 99.0")
    assert planned("measured").digest != before


def test_doublings_and_rows_hold_with_measured_kernels():
    require_package()
    found = planned("measured", parallelism={"tp": 2})
    for phase in ("decode", "prefill"):
        rows = [row for row in found.tables["operators"] if row["phase"] == phase]
        assert sum(row["s"] for row in rows) == pytest.approx(
            found.metrics[f"compute.{phase}_step_s"], rel=1e-9
        )
    findings = analyse(found, simulate(found))
    gains = {row["resource"]: row["gain_ratio"] for row in findings.tables["doublings"]}
    assert gains["hbm_bandwidth"] > 1.05
