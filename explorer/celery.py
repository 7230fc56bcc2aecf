"""The Celery application; every choice about it stands in `explorer/settings.py` under `CELERY_`."""

import os
import warnings

from celery import Celery
from celery.exceptions import SecurityWarning

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "explorer.settings")
# Celery warns a root user at length, since pickled messages would be code; this application takes JSON alone.
warnings.simplefilter("ignore", SecurityWarning)

app = Celery("trimtab")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
