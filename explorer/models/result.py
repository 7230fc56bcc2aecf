"""Results, by digest: the same plan, seed and engine version is computed once and shown to everyone who
asks.
"""

from django.db import models

from explorer.models.fields import CompressedJson


class CachedResult(models.Model):
    """A Result document without its scenario section: names are not in the digest, and stay with their
    owner.
    """

    digest = models.CharField(max_length=80, primary_key=True)
    document = CompressedJson()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.digest
