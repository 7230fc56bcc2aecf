"""`manage.py reap`: looks for lost runs and chunks of sweeps, every few seconds, until stopped.

`manage.py up` does this by itself. Where web server and workers are started by something else (compose,
systemd), one process of this command stands beside them; a second one does no harm. It is no Celery task: a
pool that is busy with long runs would take it up last, just when it is needed.
"""

import logging
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import close_old_connections

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    """REAP_EVERY_S comes from the environment."""

    help = "Look for lost runs and chunks of sweeps every few seconds, and queue them again or fail them."

    def handle(self, *args: Any, **options: Any) -> None:
        """For ever."""
        while True:
            reap_once()
            time.sleep(settings.REAP_EVERY_S)


def reap_once() -> None:
    """One look. A database or a broker that is away for a moment must not end who looks."""
    from explorer.sweeping import reap_sweeps  # brings the simulator along: a start should not wait for that
    from explorer.tasks import reap

    try:
        close_old_connections()
        handled = reap() + reap_sweeps()
    except Exception:
        logger.exception("could not look for what is lost; trying again in %d s", settings.REAP_EVERY_S)
    else:
        if handled:
            logger.warning("%d lost run(s) or chunk(s) were queued again or failed", handled)
