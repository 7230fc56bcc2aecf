"""Trimtab's web application: pages, API, tasks and sockets around `simcore`, which never imports it."""

from explorer.celery import app as celery_app

__all__ = ["celery_app"]
