"""Without numba the same code runs as plain Python, and gives the same bits."""

import subprocess
import sys
from importlib import import_module

import pytest

from tests.simcore.serving.tables import ALL_SCHEDULERS, SCHEDULERS
from tests.simcore.serving.test_reservations import KINDS

LAWS = (
    "test_prefix",
    "test_tiers",
    "test_follow_up",
    "test_interruptions",
)  # each with a fingerprint of runs of its own
PROGRAM = """
import sys
sys.modules["numba"] = None
from simcore.compiled import HAVE_COMPILER
from tests.simcore.serving.{module} import fingerprint
assert not HAVE_COMPILER
print(fingerprint({kind!r}))
"""
CASES = [
    *(("test_engine_laws", kind) for kind in ALL_SCHEDULERS),
    *((law, kind) for law in LAWS for kind in SCHEDULERS),
    *(("test_reservations", kind) for kind in KINDS),
]


@pytest.mark.parametrize(("module", "kind"), CASES)
def test_plain_python_gives_the_same_bits_as_compiled_code(module: str, kind: str) -> None:
    program = PROGRAM.format(module=module, kind=kind)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == import_module(f"tests.simcore.serving.{module}").fingerprint(kind)
