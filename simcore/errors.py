"""What can go wrong, by meaning.

    TrimtabError
    ├── InputError        the document or file is wrong        (command line: exit 2, web: at the field)
    └── InfeasibleError   the input is fine, the system cannot exist or hold the work (exit 3: an answer)

Every error, warning, finding and note is a `Message`: a stable `code`, an English template and its
`params`. The core knows no gettext; the web translates the template and formats it with the same
params. A message names the path, what was got, what is allowed and a next step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One sentence for a person: `code` is stable, `template.format(**params)` is the English text."""

    code: str
    template: str
    params: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""

    @property
    def text(self) -> str:
        return self.template.format(**self.params)

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text

    def as_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "path": self.path,
            "message": self.text,
            "template": self.template,
            "params": {key: _plain(value) for key, value in self.params.items()},
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Message:
        """The message that `as_dict` wrote."""
        params = {key: _whole(value) for key, value in plain.get("params", {}).items()}
        return cls(code=plain["code"], template=plain["template"], params=params, path=plain.get("path", ""))


@dataclass(frozen=True, slots=True)
class Phrases:
    """Messages inside a message: a param whose text the web translates piece by piece."""

    messages: tuple[Message, ...]

    def __str__(self) -> str:
        return "; ".join(message.text for message in self.messages)


def _plain(param: Any) -> Any:
    """A param as it stands in a document."""
    if isinstance(param, Phrases):
        return {"phrases": [message.as_dict() for message in param.messages]}
    return param


def _whole(param: Any) -> Any:
    """A param of a document as it was."""
    if isinstance(param, Mapping) and "phrases" in param:
        return Phrases(tuple(Message.from_dict(one) for one in param["phrases"]))
    return param


class TrimtabError(Exception):
    """Base of all errors that speak to a user; `messages` holds one or more, never none."""

    def __init__(self, *messages: Message) -> None:
        if not messages:
            raise ValueError("an error needs at least one message")
        self.messages = messages
        super().__init__("\n".join(str(message) for message in messages))

    @property
    def message(self) -> Message:
        return self.messages[0]


class InputError(TrimtabError):
    """The document, file or override is wrong."""

    @classmethod
    def at(cls, path: str, code: str, template: str, **params: Any) -> InputError:
        return cls(Message(code=code, template=template, params=params, path=path))


class InfeasibleError(TrimtabError):
    """The scenario is well formed but cannot be built or cannot hold its work."""

    @classmethod
    def at(cls, path: str, code: str, template: str, **params: Any) -> InfeasibleError:
        return cls(Message(code=code, template=template, params=params, path=path))
