"""A Why tree as indented lines in the words of one language: value, how it is computed, where a leaf is from."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.report.language import Language
from simcore.why import INFIX, Term, is_plain_number


def trace_text(term: Term, title: str, language: Language) -> str:
    return "\n".join(_lines(term, title, language, 0))


def _lines(term: Term, title: str, language: Language, depth: int) -> Iterator[str]:
    name = title or _name(term, language)
    indent = "  " * depth
    if term.op == "leaf":
        source = language.source(term.source) or term.path
        yield f"{indent}{name} = {term.text}" + (f"   ({source})" if source else "")
        return
    yield f"{indent}{name} = {term.text}   = {_operation(term, language)}"
    for arg in _below(term):
        yield from _lines(arg, "", language, depth + 1)


def _below(term: Term) -> Iterator[Term]:
    """The arguments that have a line of their own: named ones, and those inside unnamed ones."""
    for arg in term.args:
        if is_plain_number(arg):
            continue
        if arg.name:
            yield arg
        else:
            yield from _below(arg)


def _name(term: Term, language: Language) -> str:
    return language.label(term.path) if term.path and not term.name else language.term(term.name)


def _operation(term: Term, language: Language) -> str:
    parts = [_operand(arg, term.op, language) for arg in term.args]
    return INFIX[term.op].join(parts) if term.op in INFIX else f"{term.op}({', '.join(parts)})"


def _operand(term: Term, parent: str, language: Language) -> str:
    if is_plain_number(term):
        return f"{term.value:g}"
    if term.name or term.op == "leaf":
        return _name(term, language) if term.name else term.text
    inner = _operation(term, language)
    flat = term.op == parent and parent in ("+", "*")
    return f"({inner})" if term.op in INFIX and not flat else inner
