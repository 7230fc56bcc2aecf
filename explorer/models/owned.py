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
