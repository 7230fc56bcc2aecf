"""The Django application `explorer`."""

from django.apps import AppConfig

from explorer.embedded.transport import register


class ExplorerConfig(AppConfig):
    """One application holds the product; simcore is a library to it."""

    name = "explorer"
    verbose_name = "Trimtab"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """`broker_url = "embedded://…"` needs kombu to know the scheme."""
        register()
