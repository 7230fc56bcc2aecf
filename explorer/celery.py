"""The Celery application; every choice about it stands in `explorer/settings.py` under `CELERY_`."""

import os
import warnings
from typing import Any

from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "explorer.settings")
# Celery warns a root user at length, since pickled messages would be code; this application takes JSON alone.
warnings.simplefilter("ignore", SecurityWarning)

app = Celery("trimtab")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def load_compiled_engine(**signal: Any) -> None:
    """Before a worker forks its pool, so that every process of it has the machine code from its first run on.

    On a new version of the engine this compiles, which takes some seconds; after that it is read from disk.
    """
    from simcore.serving.warm import warm

    warm()
