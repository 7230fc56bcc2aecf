"""`manage.py up`: the whole product in one terminal, which is what `make run` starts.

Compiles translations, migrates, starts the web server and the workers, starts again what dies, prints the
address once the home page answers, and re-queues lost runs every few seconds. It needs nothing else, and
works as well with DATABASE_URL and REDIS_URL set.
"""

from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand

from explorer.embedded import supervisor
from explorer.embedded.supervisor import Child, Supervisor, SupervisorError, python
from explorer.management.commands.reap import reap_once


class Command(BaseCommand):
    """Takes no arguments; PORT, HOST, VAR_DIR and WORKER_PROCESSES come from the environment."""

    help = "Run Trimtab: web server and workers, supervised, until Ctrl-C."
    requires_system_checks = ()  # `make lint` runs them; here they would import the whole product twice

    def handle(self, *args: Any, **options: Any) -> None:
        """Refuse what cannot work with one clear line; else run until stopped."""
        host, port = settings.HOST, settings.PORT
        reachable = "127.0.0.1" if host == "0.0.0.0" else host
        address = f"http://{f'[{reachable}]' if ':' in reachable else reachable}:{port}/"
        headers = {"Host": settings.ALLOWED_HOSTS[0].lstrip(".").replace("*", "localhost")}
        if settings.HTTPS:
            headers["X-Forwarded-Proto"] = "https"
        try:
            with supervisor.only_one(settings.VAR_DIR / "up.lock", address=address):
                supervisor.require_free_port(host, port)
                call_command("compilemessages")
                call_command("migrate", interactive=False, verbosity=0)
                Supervisor(
                    children=[web(host, port), worker()],
                    groups_file=settings.VAR_DIR / "up.groups",
                    home_page=lambda: supervisor.status_of(reachable, port, headers=headers),
                    address=address,
                    tick=reap_once,
                    tick_every_s=settings.REAP_EVERY_S,
                ).run()
        except SupervisorError as error:
            raise CommandError(str(error)) from error


def web(host: str, port: int) -> Child:
    """One uvicorn process."""
    return Child(
        name="web",
        command=python(
            "uvicorn", "explorer.asgi:application", "--host", host, "--port", str(port),
            "--ws", "websockets-sansio", "--lifespan", "off", "--log-level", "warning", "--no-access-log",
            "--timeout-graceful-shutdown", "1",
        ),
    )  # fmt: skip


def worker() -> Child:
    """One Celery worker with a pool of processes; pages go first, so simulations are nice."""
    return Child(
        name="worker",
        command=(
            "nice", "-n", "10",
            *python(
                "celery", "--app", "explorer", "--quiet", "worker",
                "--pool", "prefork", "--loglevel", "WARNING",
                "--without-gossip", "--without-mingle", "--without-heartbeat",
            ),
        ),
    )  # fmt: skip
