"""Settings of the test run: `explorer.settings` in a directory of its own, so that tests and a running
Trimtab never meet. With DATABASE_URL and REDIS_URL set, the same tests run on PostgreSQL and Redis.
"""

import atexit
import os
import shutil
import tempfile

_var_dir = tempfile.mkdtemp(prefix="trimtab-tests-")
_owner = os.getpid()


def _remove() -> None:
    if os.getpid() == _owner:  # not in a forked child
        shutil.rmtree(_var_dir, ignore_errors=True)


atexit.register(_remove)
os.environ["VAR_DIR"] = _var_dir

from explorer.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # logging in is not what the tests time
CELERY_TASK_DEFAULT_QUEUE = (
    f"tests-{_owner}"  # on a Redis that others use too, no worker hears of these tasks
)
