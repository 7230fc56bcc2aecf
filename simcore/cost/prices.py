"""A price of a book as the leaf of a tree, with its source and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from simcore.catalog.types import Price, PriceBook
from simcore.why import LeafKind, Term, leaf

_KINDS: Final[Mapping[str, LeafKind]] = {
    "assumption": "assumption",
    "estimate": "assumption",
    "user": "input",
}


def leaf_kind(price: Price) -> LeafKind:
    """Who says a price, as trees mark it."""
    return _KINDS.get(price.source.kind, "catalog")


def price_leaf(
    book: PriceBook,
    item: str,
    name: str,
    edge: Literal["low", "mid", "high"] = "mid",
    *,
    dimension: str = "usd",
) -> Term | None:
    """The price of one unit of an item, None where the book has none."""
    price = book.get(item)
    if price is None:
        return None
    value = {"low": price.low_usd, "mid": price.mid_usd, "high": price.high_usd}[edge]
    source = f"{book.name}: {price.source.title}"
    return leaf(value, name, kind=leaf_kind(price), source=source, dimension=dimension)
