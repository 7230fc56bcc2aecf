"""Messages of the core in the reader's language: the template is translated, then filled with its params."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext

from simcore.errors import Message


def translated(message: Message | Mapping[str, Any]) -> str:
    """The text of a Message, or of its dictionary; English where no translation fits its params."""
    if isinstance(message, Message):
        template, params, text = message.template, message.params, ""
    else:
        template = str(message.get("template") or "")
        params = message.get("params") or {}
        text = str(message.get("text") or message.get("message") or "")
    if not template:
        return text
    words = {
        key: gettext(value) if isinstance(value, str) and value else value for key, value in params.items()
    }
    try:
        return gettext(template).format(**words)
    except (KeyError, IndexError, ValueError, TypeError):
        return text or template
