"""The Django application `explorer`."""

from django.apps import AppConfig


class ExplorerConfig(AppConfig):
    """One application holds the product; simcore is a library to it."""

    name = "explorer"
    verbose_name = "Trimtab"
    default_auto_field = "django.db.models.BigAutoField"
