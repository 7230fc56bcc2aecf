"""Where numba has no wheel the same code runs as plain Python, with the same outcome."""

import subprocess
import sys

import pytest

from simcore.serving.schedulers import SCHEDULER_CODES
from tests.simcore.serving.test_engine_laws import fingerprint

PROGRAM = """
import sys
sys.modules["numba"] = None
from simcore.compiled import HAVE_COMPILER
from tests.simcore.serving.test_engine_laws import fingerprint
assert not HAVE_COMPILER
print(fingerprint({kind!r}))
"""


@pytest.mark.parametrize("kind", sorted(SCHEDULER_CODES))
def test_plain_python_gives_the_same_bits_as_compiled_code(kind: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(kind=kind)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == fingerprint(kind)
