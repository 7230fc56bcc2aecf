"""Saved scenarios and their revisions.

A `SavedScenario` is the row; the `Scenario` is the document that a `Revision` holds, exactly as it was typed.
Revisions are never changed. They form a tree: an edit adds a child of the current one, undo goes to the
parent, redo to the youngest child. The baseline is a revision of the same scenario (a fork's first one is
the state that it was forked from), so a comparison never depends on what another person does with theirs.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from django.db import models, transaction
from django.db.models import Max

from explorer.models.fields import JsonText
from explorer.models.owned import Owned

MAX_NAME = 200


def title_of(document: Mapping[str, Any]) -> str:
    """The name in a document, as a line that can be printed."""
    return printable(str(document.get("name") or ""))


def printable(text: str) -> str:
    """Without control characters, which no database column and no page wants; at most MAX_NAME characters."""
    return "".join(letter for letter in text if letter.isprintable())[:MAX_NAME].strip()


class Visibility(models.TextChoices):
    """Who besides the owner may read: nobody, who has the address, or everyone in the library."""

    PRIVATE = "private"
    LINK = "link"
    PUBLIC = "public"


class SavedScenario(Owned):
    """A scenario that a person works on: its name, its visibility, and where in its history it stands."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=MAX_NAME)
    visibility = models.CharField(max_length=7, choices=Visibility.choices, default=Visibility.PRIVATE)
    story = models.SlugField(blank=True)  # the preset that it came from
    forked_from = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="forks"
    )
    current = models.ForeignKey("Revision", on_delete=models.SET_NULL, null=True, related_name="+")
    baseline = models.ForeignKey(
        "Revision", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    draft = JsonText(default=dict)  # {path: {"typed": text, "message": text}} of edits that were refused
    updated_at = models.DateTimeField(auto_now=True, db_index=True)

    class Meta:
        ordering = ("-updated_at",)
        indexes = (models.Index(fields=("owner", "-updated_at"), name="scenario_of_owner"),)

    def __str__(self) -> str:
        return self.name

    @property
    def document(self) -> dict[str, Any]:
        """The current document, as typed."""
        return dict(self.current.document) if self.current else {}

    @transaction.atomic
    def add_revision(
        self, document: dict[str, Any], *, parent: "Revision | None" = None, label: str = "", go: bool = True
    ) -> "Revision":
        """Append a revision and, unless told otherwise, stand on it. Two at once get two numbers."""
        locked = SavedScenario.objects.select_for_update().get(pk=self.pk)
        newest = self.revisions.aggregate(newest=Max("number"))["newest"] or 0
        revision = self.revisions.create(number=newest + 1, document=document, parent=parent, label=label)
        if go:
            locked.current = self.current = revision
        locked.name = self.name = title_of(document) or self.name
        locked.save(update_fields=["current", "name", "updated_at"])
        return revision

    def go(self, revision: "Revision") -> None:
        """Stand on an earlier or later revision; what was typed but refused belonged to the one left."""
        self.current, self.draft = revision, {}
        self.name = title_of(revision.document) or self.name
        self.save(update_fields=["current", "draft", "name", "updated_at"])


class Revision(models.Model):
    """One state of a scenario's document. A label makes it a named revision."""

    scenario = models.ForeignKey(SavedScenario, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    label = models.CharField(max_length=MAX_NAME, blank=True)
    parent = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="children"
    )
    document = JsonText()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-number",)
        constraints = (models.UniqueConstraint(fields=("scenario", "number"), name="revision_number"),)

    def __str__(self) -> str:
        return self.label or f"{self.number}"

    @property
    def name(self) -> str:
        """What a comparison calls this state: its label, or the name in its document."""
        return self.label or str(self.document.get("name", ""))
