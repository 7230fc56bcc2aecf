"""The scenario form, derived from the schema: nothing about a field is written here a second time.

`outline` is the form of a document, `changes` reads a posted form back.
"""

from explorer.forms.changes import changes
from explorer.forms.outline import Field, Outline, Section, outline
from explorer.forms.schema import at, shown

__all__ = ["Field", "Outline", "Section", "at", "changes", "outline", "shown"]
