"""A user's own calibration, from rows to a scenario that uses it: its file, its sources, its digest."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from simcore.catalog import Catalog, default_catalog
from simcore.catalog.calibrations import own_calibration
from simcore.catalog.kernels import Kernels
from simcore.cli import main
from simcore.errors import InputError
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.validation.calibrate import Outcome, calibrate
from simcore.validation.calibration_file import calibration_text
from simcore.validation.own_fit import own, row_count
from simcore.why import as_text
from tests.simcore.validation.synthetic import gemm_rows, text

CATALOG = default_catalog()
H100 = CATALOG.chip("nvidia-h100-sxm")
PRESENT = CATALOG.calibrations[H100.slug]
SIGNED = "calibrated on 90 rows by alice, 2026-11-30 (fit of by hand)"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    rows = tmp_path_factory.mktemp("rows") / "rows.csv"
    rows.write_text(text(gemm_rows()))
    return calibrate([rows], H100, CATALOG, fitted_on="2026-11-30")


@pytest.fixture
def file(outcome: Outcome, tmp_path: Path) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(calibration_text(own(outcome, PRESENT, name="Our lab", chip=H100, by="alice")))
    return path


def with_own(file: Path, name: str = "lab") -> Catalog:
    return replace(CATALOG, own_calibrations={name: own_calibration(file.read_text(), slug=name)})


def scenario(calibration: str, **sections: object) -> Scenario:
    hardware = {"chip_count": 1, "calibration": calibration}
    return Scenario.parse({"name": "x", "workload": {"request_count": 20}, "hardware": hardware, **sections})


def test_only_what_was_fitted_is_signed(outcome: Outcome) -> None:
    signed = own(outcome, PRESENT, name="Our lab", chip=H100, by="alice")
    assert (signed.name, signed.chip) == ("Our lab", H100.slug)
    for item in fields(Kernels):
        for dtype, fit in getattr(signed.kernels, item.name).items():
            is_new = (item.name, dtype) == ("gemm", "bf16")
            assert (fit.source.title == SIGNED) == is_new
            assert is_new or fit == getattr(PRESENT.kernels, item.name)[dtype]
    assert signed.residuals["gemm.bf16"].source.title == SIGNED
    assert signed.step_overhead == PRESENT.step_overhead
    assert row_count(outcome) == 90


def test_a_plan_uses_it_and_its_trees_say_whose_it_is(file: Path) -> None:
    ours = plan(scenario("lab"), with_own(file))
    shipped = plan(scenario("auto"), CATALOG)
    assert ours.terms["compute.decode_step_s"].value != shipped.terms["compute.decode_step_s"].value
    assert SIGNED in as_text(ours.terms["compute.decode_step_s"])
    assert "alice" not in as_text(shipped.terms["compute.decode_step_s"])
    assert ours.resolved["hardware.calibration"] == "lab"
    (used,) = ours.tables["calibration"]
    assert used == {"name": "Our lab", "slug": "lab", "fitted_on": "2026-11-30", "is_own": True}
    assert shipped.tables["calibration"][0]["is_own"] is False


def test_training_takes_its_collectives_alone_and_says_so(file: Path) -> None:
    training = {"workload": {"kind": "training"}}
    shipped, ours = [
        plan(
            Scenario.parse(
                {
                    "name": "x",
                    **training,
                    "hardware": {"chip_count": 8, "calibration": name},
                    "training": {"parallelism": {"tp": 8, "pp": 1, "dp": 1}, "global_batch_tokens": 65_536},
                }
            ),
            with_own(file),
        )
        for name in ("auto", "lab")
    ]
    assert shipped.metrics["training.step_s"] == ours.metrics["training.step_s"]  # products alone were fitted
    said = {plan_.digest: [warning.code for warning in plan_.warnings] for plan_ in (shipped, ours)}
    assert "training.own_calibration" in said[ours.digest]
    assert "training.own_calibration" not in said[shipped.digest]


def test_the_digest_holds_its_content_and_not_where_it_lies(file: Path) -> None:
    lies_here, lies_there = (
        plan(
            scenario(name),
            replace(with_own(file), own_calibrations={name: own_calibration(file.read_text(), slug="lab")}),
        )
        for name in ("./lab.yaml", "/elsewhere/lab.yaml")
    )
    assert lies_here.digest == lies_there.digest
    file.write_text(file.read_text().replace("by alice", "by bob"))
    assert plan(scenario("./lab.yaml"), with_own(file, "./lab.yaml")).digest != lies_here.digest


def test_auto_is_the_chips_own() -> None:
    named, auto = (plan(scenario(name), CATALOG) for name in (H100.slug, "auto"))
    assert named.metrics == auto.metrics
    assert auto.resolved["hardware.calibration"] == H100.slug


def test_a_fit_of_another_chip_is_used_with_a_warning(file: Path) -> None:
    found = plan(
        Scenario.parse({"name": "x", "hardware": {"chip": "nvidia-h200-sxm", "calibration": "lab"}}),
        with_own(file),
    )
    (warning,) = [one for one in found.warnings if one.path == "hardware.calibration"]
    assert warning.code == "calibration.other_chip"
    assert "Our lab was fitted on nvidia-h100-sxm" in warning.text
    assert not [one for one in plan(scenario("lab"), with_own(file)).warnings if "calibration." in one.code]


def test_class_defaults_may_be_asked_for() -> None:
    assert not [one for one in plan(scenario("class-default")).warnings if "calibration." in one.code]
    assert "own" not in plan(scenario("class-default")).resolved["hardware.calibration"]


def test_an_unknown_one_names_what_is_close() -> None:
    with pytest.raises(
        InputError, match=r"hardware\.calibration: no calibration 'nvidia-h100'.*nvidia-h100-sxm"
    ):
        plan(scenario("nvidia-h100"))


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("fitted_rows: 78", "fitted_rows: many"),
        ("memory_fraction: 0.", "memory_fraction: -0."),
        ("alpha_s: ", "alpha_s: inf #"),
        ("name: Our lab", "name: []"),
        ("kernels:", "kernels: 5\nmore:"),
        ("step_range: {", "step_range: {unknown: 1, "),
        ("source: s1}", "source: none}"),
    ],
)
def test_a_file_that_was_tampered_with_is_named(file: Path, was: str, becomes: str) -> None:
    damaged = file.read_text().replace(was, becomes)
    assert damaged != file.read_text()
    with pytest.raises(InputError, match=r"^hardware\.calibration"):
        own_calibration(damaged, slug="lab")


@pytest.mark.parametrize("share", ["compute_fraction", "memory_fraction"])
def test_what_is_divided_by_is_positive(outcome: Outcome, share: str) -> None:
    fit = replace(outcome.calibration.kernels.gemm["bf16"], **{share: 0.0})
    broken = replace(outcome.calibration, kernels=replace(outcome.calibration.kernels, gemm={"bf16": fit}))
    with pytest.raises(InputError, match=share):
        own_calibration(calibration_text(broken), slug="lab")


@pytest.mark.parametrize(
    "text", ["", "[]", "name: x", "{" * 5000, "a" * 1_000_001, "name: x\ncollectives: {a: 5}"]
)
def test_what_is_no_calibration_is_bad_input(text: str) -> None:
    with pytest.raises(InputError, match=r"^hardware\.calibration"):
        own_calibration(text, slug="lab")


def test_the_command_line_fits_and_then_uses_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, file, document = tmp_path / "rows.csv", tmp_path / "lab.yaml", tmp_path / "scenario.yaml"
    rows.write_text(text(gemm_rows()))
    fit = ["calibrate", str(rows), "--chip", H100.slug, "--name", "Our lab", "--by", "alice", "-o", str(file)]
    assert main(fit) == 0
    document.write_text(
        "{name: x, hardware: {calibration: lab.yaml, chip_count: 1}, workload: {request_count: 20}}"
    )
    capsys.readouterr()
    assert main(["explain", str(document), "compute.decode_step_s"]) == 0
    assert "rows by alice" in capsys.readouterr().out
    assert main(["run", str(document), "--json", "--no-findings"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"]["calibration"][0]["name"] == "Our lab"
    assert main(["run", str(document), "--set", "hardware.calibration=missing.yaml"]) == 2
    assert "hardware.calibration: missing.yaml cannot be read" in capsys.readouterr().err
