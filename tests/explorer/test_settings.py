"""Settings from the environment: what the real stack needs, and what keeps it safe."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from explorer.settings import database_from_url, env_secret
from tests.conftest import ROOT

PRODUCTION = {
    "SECRET_KEY": "k9-" + "0123456789abcdefghijklmnopqrstuvwxyz" * 2,
    "ALLOWED_HOSTS": "trimtab.example.org",
    "CSRF_TRUSTED_ORIGINS": "https://trimtab.example.org",
    "HTTPS": "1",
    "DATABASE_URL": "postgres://user:secret@db.example.org/trimtab",
    "REDIS_URL": "redis://redis.example.org/0",
}


def manage(*arguments: str, var_dir: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", ""), "VAR_DIR": str(var_dir)}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_deployment_check_is_clean_for_a_production_environment(tmp_path: Path) -> None:
    checked = manage("check", "--deploy", "--fail-level", "WARNING", var_dir=tmp_path, **PRODUCTION)
    assert checked.returncode == 0, checked.stderr


def test_static_files_can_be_collected_hashed_and_compressed(tmp_path: Path) -> None:
    variables = {"COLLECTED_STATIC": "1", "STATIC_ROOT": str(tmp_path / "static")}
    collected = manage("collectstatic", "--noinput", "--verbosity", "0", var_dir=tmp_path, **variables)
    assert collected.returncode == 0, collected.stderr
    names = [path.name for path in (tmp_path / "static" / "plotly").iterdir()]
    assert any(name.startswith("plotly.min.") and name.endswith(".js.gz") for name in names)


def test_a_postgres_address_is_read_with_its_escapes_and_options() -> None:
    read = database_from_url("DATABASE_URL", "postgresql://me:p%40ss@db:5433/my%20base?sslmode=require")
    assert read == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "my base",
        "USER": "me",
        "PASSWORD": "p@ss",
        "HOST": "db",
        "PORT": "5433",
        "OPTIONS": {"sslmode": "require"},
    }


def test_a_refused_address_does_not_show_its_password() -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        database_from_url("DATABASE_URL", "mysql://me:p4ss@db/base")
    assert "p4ss" not in str(refused.value)


def test_the_secret_is_made_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    kept_in = tmp_path / "secret_key"
    first = env_secret("A_VARIABLE_THAT_IS_NOT_SET", kept_in)
    assert len(first) >= 50
    assert env_secret("A_VARIABLE_THAT_IS_NOT_SET", kept_in) == first
    assert stat.S_IMODE(kept_in.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
