"""Who something belongs to: a user, or the sandbox of a browser session that has not signed up."""

from django.conf import settings
from django.db import models


class Owned(models.Model):
    """Either `owner` or `sandbox` is set; a sandbox is a random key that its session alone knows."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    sandbox = models.CharField(max_length=64, blank=True, db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


def once_per_person(name: str, field: str) -> tuple[models.UniqueConstraint, models.UniqueConstraint]:
    """One person has a thing of this `field` once; `name` is what the constraints are called after."""
    return (
        models.UniqueConstraint(
            fields=(field, "owner"), condition=models.Q(owner__isnull=False), name=f"{name}_once_per_owner"
        ),
        models.UniqueConstraint(
            fields=(field, "sandbox"), condition=models.Q(owner=None), name=f"{name}_once_per_sandbox"
        ),
    )
