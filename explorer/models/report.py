"""A decision memo that was frozen: everything that it says, whatever happens to its scenarios later."""

from django.db import models
from django.utils import timezone

from explorer.models.fields import CompressedJson
from explorer.models.owned import Owned
from explorer.models.share import new_token


class SavedReport(Owned):
    """Who has the token may read it, until it is revoked or expires; `content` is the JSON of `simcore.report`."""

    token = models.CharField(max_length=40, unique=True, default=new_token, editable=False)
    title = models.CharField(max_length=200)
    language = models.CharField(max_length=10, default="en")
    content = CompressedJson(null=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return self.title

    @property
    def is_live(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())
