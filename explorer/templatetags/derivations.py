"""How a derivation reads: names, formulas and sources of a Why tree in the reader's language.

A formula is written from the tree itself, with the label of each name in it. Sources are citations, which stay
as they were printed, or sentences of the core, which are translated piece by piece.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import template
from django.utils.translation import gettext as _

from explorer import wording
from simcore.term_names import term_label
from simcore.why import INFIX

register = template.Library()

_LEAF_DOTS: Final = {
    "input": "you",
    "catalog": "ds",
    "calibrated": "cal",
    "assumption": "def",
    "simulated": "sim",
}
Node = Mapping[str, Any]


@register.filter
def leaf_dot(kind: str) -> str:
    """The dot of a Why leaf's kind."""
    return _LEAF_DOTS.get(kind, "")


@register.filter
def node_name(node: Node) -> str:
    """A node's name in words; a node without one is its formula."""
    name = str(node.get("name") or "")
    return wording.term_name(name) if name else formula_words(node)


@register.filter
def is_shown(node: Node) -> bool:
    """Whether a node has a line of its own: plain numbers stand in the formula alone."""
    return node.get("kind") != "constant" or term_label(str(node.get("name"))) is not None


@register.filter
def is_open(level: int) -> bool:
    """The first level of a derivation is open, deeper ones fold."""
    return level < 1


@register.filter
def formula_words(node: Node) -> str:
    """One line: the node's own operation over the names of its arguments."""
    op, args = str(node.get("op")), node.get("args") or ()
    if not args:
        return _name_in_text(node)
    parts = [_operand(arg, op) for arg in args]
    return INFIX[op].join(parts) if op in INFIX else f"{op}({', '.join(parts)})"


def _operand(node: Node, parent: str) -> str:
    if node.get("name") or not node.get("args"):
        return _name_in_text(node)
    inner, op = formula_words(node), str(node.get("op"))
    flat = op == parent and parent in ("+", "*")
    return f"({inner})" if op in INFIX and not flat else inner


def _name_in_text(node: Node) -> str:
    name = str(node.get("name") or "")
    if node.get("kind") == "constant" and term_label(name) is None:
        return name  # the number itself
    return wording.in_text(wording.term_name(name)) if name else str(node.get("text"))


@register.filter
def kind_words(kind: str) -> str:
    """A leaf's kind, where nothing else says where its value comes from."""
    names = {
        "input": _("yours"),
        "catalog": _("datasheet"),
        "calibrated": _("calibrated"),
        "assumption": _("assumption"),
        "constant": _("constant"),
        "simulated": _("simulated"),
        "derived": _("derived"),
    }
    return names.get(kind, kind)


@register.filter
def source_words(node: Node) -> str:
    """Where a leaf's value comes from; "" where only its scenario path says so."""
    return wording.source(str(node.get("source") or ""))


@register.filter
def band_basis(band: Mapping[str, Any]) -> str:
    """What an error band is taken from, and what makes it wider."""
    reasons = band.get("reasons")
    return _("; ").join(wording.translated(one) for one in reasons) if reasons else str(band.get("basis", ""))


@register.filter
def significant(value: float) -> str:
    """A bare ratio to three digits."""
    return f"{value:,.3g}"
