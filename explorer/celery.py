"""The Celery application; every choice about it stands in `explorer/settings.py` under `CELERY_`."""

import os

from celery import Celery

from explorer.embedded.transport import register

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "explorer.settings")
register()

app = Celery("trimtab")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
