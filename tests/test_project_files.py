"""The files around the code agree with it: locks, compose, CI script."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;]+)")
SETTINGS = (ROOT / "explorer" / "settings.py").read_text()
FOR_UVICORN = {"FORWARDED_ALLOW_IPS"}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked(path: Path) -> dict[str, str]:
    found = (LOCKED.match(line) for line in path.read_text().splitlines())
    return {canonicalize_name(match[1]): match[2] for match in found if match}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-test.lock"])
def test_a_lock_holds_hashes_and_names_no_place_to_download_from(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert not re.search(r"^-|@ ", text, flags=re.MULTILINE)
    for block in re.split(r"\n(?=\S)", text):
        assert "--hash=sha256:" in block, block


def test_everything_the_project_needs_is_locked_within_its_bounds() -> None:
    needs = [*project()["project"]["dependencies"], *project()["dependency-groups"]["installer"]]
    versions = locked(ROOT / "requirements.lock")
    for need in map(Requirement, needs):
        assert need.specifier.contains(versions[canonicalize_name(need.name)]), need


def test_the_lock_for_tests_is_the_other_lock_and_more() -> None:
    run, test = locked(ROOT / "requirements.lock"), locked(ROOT / "requirements-test.lock")
    assert run.items() <= test.items()
    for need in map(Requirement, project()["dependency-groups"]["test"]):
        assert need.specifier.contains(test[canonicalize_name(need.name)]), need


def test_compose_sets_only_variables_that_are_read() -> None:
    environment = yaml.safe_load((ROOT / "compose.yaml").read_text())["x-trimtab"]["environment"]
    unread = {name for name in environment if f'"{name}"' not in SETTINGS} - FOR_UVICORN
    assert not unread


@pytest.mark.parametrize("script", [".ci/run"])
def test_a_script_parses_and_may_be_executed(script: str) -> None:
    path = ROOT / script
    assert path.stat().st_mode & 0o100
    subprocess.run(["bash", "-n", str(path)], check=True)
