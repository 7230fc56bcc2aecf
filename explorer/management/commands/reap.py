"""`manage.py reap`: looks for lost runs, every few seconds, for ever (or once, with --once).

`manage.py up` does this by itself. Where web server and workers are started by something else (compose, systemd),
one process of this command stands beside them; a second one does no harm.
"""

import logging
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import close_old_connections

from explorer.tasks import reap

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    """One flag; REAP_EVERY_S comes from the environment."""

    help = "Queue lost runs again, or fail those lost twice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="look once, say how many, and end")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            self.stdout.write(f"{reap()} runs were queued again or failed")
            return
        while True:
            try:
                close_old_connections()
                reap()
            except Exception:
                logger.exception("looking for lost runs failed; trying again in %d s", settings.REAP_EVERY_S)
            time.sleep(settings.REAP_EVERY_S)
