"""A long text in blocks of whole lines, so that reading it takes no object a line and no copy of the whole."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Final

BLOCK: Final = 4 * 2**20  # characters


def blocks(text: str, begin: int = 0, *, quoted: bool = True) -> Iterator[str]:
    """The text from `begin` on; all at once where it has quotes that may hold a line break.

    >>> list(blocks("a,b\\n1,2\\n", 4))
    ['1,2\\n']
    """
    size = len(text) if quoted and text.find('"', begin) >= 0 else BLOCK
    while begin < len(text):
        end = text.find("\n", min(begin + size, len(text)) - 1) + 1 or len(text)
        yield text[begin:end]
        begin = end


def lines(text: str, *, quoted: bool = True) -> Iterator[str]:
    """Its lines with their ends, as `csv.reader` takes them."""
    for block in blocks(text, quoted=quoted):
        yield from io.StringIO(block)
