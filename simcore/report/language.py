"""The words of a memo: what turns a message, a metric's name and a source into a sentence of one language.

The core speaks English; the web gives the same three functions for Chinese. What a person wrote (titles, names) is
never translated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from simcore import glossary
from simcore.errors import Message
from simcore.term_names import term_label


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """`say` words a message, `label` a metric or path, `term` a name of a Why tree, `source` where a figure is from."""

    code: str
    say: Callable[[Message], str]
    label: Callable[[str], str]
    term: Callable[[str], str]
    source: Callable[[str], str]


def _term(name: str) -> str:
    found = term_label(name)
    return found.text if found else name


ENGLISH: Final = Language(
    code="en",
    say=lambda message: message.text,
    label=glossary.label,
    term=_term,
    source=lambda text: text,
)
