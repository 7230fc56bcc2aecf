"""Results, by digest: the same plan, seed and engine version is computed once, and shown to all who ask."""

from typing import Any

from django.db import models

from explorer.models.fields import CompressedJson


class CachedResult(models.Model):
    """A Result document without its scenario: names are not in the digest, and stay with their owner."""

    digest = models.CharField(max_length=80, primary_key=True)
    document = CompressedJson()
    why = CompressedJson()  # {metric id: expression tree}; read one at a time, so kept apart
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.digest

    @classmethod
    def keep(cls, digest: str, document: dict[str, Any], why: dict[str, Any]) -> "CachedResult":
        """Store a result; one that another run stored meanwhile is the same."""
        kept = {key: value for key, value in document.items() if key != "scenario"}
        result, _ = cls.objects.get_or_create(digest=digest, defaults={"document": kept, "why": why})
        return result
