"""A frozen link: the document and its result as they were, whatever happens to the scenario later."""

import secrets

from django.db import models
from django.utils import timezone

from explorer.models.fields import CompressedJson, JsonText
from explorer.models.owned import Owned
from explorer.models.scenario import SavedScenario


def new_token() -> str:
    """128 bits that nobody can guess."""
    return secrets.token_urlsafe(16)


class ShareLink(Owned):
    """Who has the token may read the snapshot, until it is revoked or expires."""

    token = models.CharField(max_length=40, unique=True, default=new_token, editable=False)
    scenario = models.ForeignKey(
        SavedScenario, on_delete=models.SET_NULL, null=True, blank=True, related_name="shares"
    )
    name = models.CharField(max_length=200)
    document = JsonText()
    result = CompressedJson(null=True)
    baseline_document = JsonText(null=True)
    baseline_result = CompressedJson(null=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name

    @property
    def is_live(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())
