"""Expression trees: a number that remembers how it was computed.

A `Term` carries its value, the operation that made it and its arguments. Physics written with terms is
computed once and explains itself: the tree that **Why** shows is the expression that was evaluated,
never a second text beside it. Leaves are scenario inputs, catalog figures, calibrated parameters,
assumptions or simulated statistics, each with its unit and source. `evaluate` re-computes a tree with
some leaves replaced; tests perturb a leaf and expect tree and re-plan to move alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import is_
from typing import Any, Final, Literal

from simcore.units import dimension_of, printed_text

LeafKind = Literal["input", "catalog", "calibrated", "assumption", "constant", "simulated", "derived"]

_OPERATIONS: Final[dict[str, Callable[..., float]]] = {
    "+": lambda *xs: math.fsum(xs),
    "-": lambda a, b: a - b,
    "*": lambda *xs: math.prod(xs),
    "/": lambda a, b: a / b,
    "max": max,
    "min": min,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "pow": lambda a, b: a**b,
}
INFIX: Final = {"+": " + ", "-": " − ", "*": " × ", "/": " / "}


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A value with its derivation. `op` is "leaf" or a key of the operation table."""

    value: float
    op: str = "leaf"
    args: tuple[Term, ...] = ()
    name: str = ""
    dimension: str = ""
    kind: LeafKind = "derived"
    source: str = ""
    path: str = ""

    def __add__(self, other: Term | float) -> Term:
        return _apply("+", self, other)

    def __radd__(self, other: float) -> Term:
        return _apply("+", other, self)

    def __sub__(self, other: Term | float) -> Term:
        return _apply("-", self, other)

    def __rsub__(self, other: float) -> Term:
        return _apply("-", other, self)

    def __mul__(self, other: Term | float) -> Term:
        return _apply("*", self, other)

    def __rmul__(self, other: float) -> Term:
        return _apply("*", other, self)

    def __truediv__(self, other: Term | float) -> Term:
        return _apply("/", self, other)

    def __rtruediv__(self, other: float) -> Term:
        return _apply("/", other, self)

    def __float__(self) -> float:
        return float(self.value)

    def named(self, name: str, dimension: str | None = None) -> Term:
        """The same derivation under a name of its own; the dimension comes from the name's suffix."""
        known = dimension_of(name) if dimension is None else dimension
        return Term(self.value, self.op, self.args, name, known, self.kind, self.source, self.path)

    @property
    def text(self) -> str:
        return printed_text(self.value, self.dimension, digits=4)


def leaf(
    value: float,
    name: str,
    *,
    kind: LeafKind = "input",
    source: str = "",
    path: str = "",
    dimension: str | None = None,
) -> Term:
    """A number that is not computed here: an input, a catalog figure, a calibrated constant, an assumption."""
    return Term(
        float(value),
        name=name,
        kind=kind,
        source=source,
        path=path,
        dimension=dimension_of(name) if dimension is None else dimension,
    )


def constant(value: float, name: str = "") -> Term:
    return Term(float(value), name=name or f"{value:g}", kind="constant")


def maximum(*terms: Term | float) -> Term:
    return _apply("max", *terms)


def minimum(*terms: Term | float) -> Term:
    return _apply("min", *terms)


def total(*terms: Term | float) -> Term:
    return _apply("+", *terms)


def product(*terms: Term | float) -> Term:
    return _apply("*", *terms)


def floor(term: Term) -> Term:
    return _apply("floor", term)


def ceil(term: Term) -> Term:
    return _apply("ceil", term)


def sqrt(term: Term) -> Term:
    return _apply("sqrt", term)


def power(base: Term, exponent: Term) -> Term:
    return _apply("pow", base, exponent)


def simulated(value: float, name: str, *, statistic: str, count: int, seed: int) -> Term:
    """A number that an engine produced: its leaf says which statistic, over how many, with which seed."""
    of = f"{statistic} of {count:,} simulated" if statistic else f"run of {count:,} simulated requests"
    return leaf(value, name, kind="simulated", source=f"{of}, seed {seed}")


def evaluate(term: Term, replaced: Mapping[str, float]) -> float:
    """The tree's value with leaves of these names (or paths) replaced."""
    if term.op == "leaf":
        return replaced.get(term.name, replaced.get(term.path, term.value))
    return float(_OPERATIONS[term.op](*(evaluate(arg, replaced) for arg in term.args)))


def leaves(term: Term) -> list[Term]:
    """All leaves, left to right, with repetition."""
    if term.op == "leaf":
        return [term]
    return [found for arg in term.args for found in leaves(arg)]


def with_paths(terms: Mapping[str, Term], renamed: Mapping[str, str]) -> dict[str, Term]:
    """The trees with leaves' scenario paths replaced, where an expression is shared between sections."""
    done: dict[int, Term] = {}

    def visit(term: Term) -> Term:
        known = done.get(id(term))
        if known is None:
            args = tuple([visit(arg) for arg in term.args])
            path = renamed.get(term.path, term.path)
            if path != term.path or not all(map(is_, args, term.args)):
                known = Term(
                    term.value, term.op, args, term.name, term.dimension, term.kind, term.source, path
                )
            else:
                known = term
            done[id(term)] = known
        return known

    return {name: visit(term) for name, term in terms.items()}


def as_dict(term: Term) -> dict[str, Any]:
    """The tree as JSON; plain numbers inside an expression are leaves of kind "constant"."""
    node: dict[str, Any] = {
        "value": term.value,
        "text": term.text,
        "op": term.op,
        "dimension": term.dimension,
    }
    if term.name:
        node["name"] = term.name
    if term.op == "leaf":
        node |= {"kind": term.kind, "source": term.source, "path": term.path}
    else:
        node["formula"] = formula(term)
        node["args"] = [as_dict(arg) for arg in term.args]
    return node


def from_dict(node: Mapping[str, Any]) -> Term:
    """The tree that `as_dict` wrote."""
    return Term(
        node["value"],
        op=node["op"],
        args=tuple(from_dict(arg) for arg in node.get("args", ())),
        name=node.get("name", ""),
        dimension=node["dimension"],
        kind=node.get("kind", "derived"),
        source=node.get("source", ""),
        path=node.get("path", ""),
    )


def formula(term: Term) -> str:
    """One line: the term's own operation over its named arguments."""
    if term.op == "leaf":
        return term.name
    parts = [_operand(arg, term.op) for arg in term.args]
    if term.op in INFIX:
        return INFIX[term.op].join(parts)
    return f"{term.op}({', '.join(parts)})"


def _operand(term: Term, parent: str) -> str:
    if term.name or term.op == "leaf":
        return term.name or term.text
    inner = formula(term)
    flat = term.op == parent and parent in ("+", "*")
    return f"({inner})" if term.op in INFIX and not flat else inner


def as_text(term: Term, *, depth: int = 0) -> str:
    """The tree as indented lines: value, name, formula, source."""
    head = "  " * depth + f"{term.name or formula(term)} = {term.text}"
    if term.op == "leaf":
        mark = " [assumption]" if term.kind == "assumption" else ""
        origin = term.source or (f"input {term.path}" if term.path else term.kind)
        return f"{head}   ({origin}){mark}"
    lines = [head + f"   = {formula(term)}" if term.name else head]
    lines += [as_text(arg, depth=depth + 1) for arg in term.args if not is_plain_number(arg)]
    return "\n".join(lines)


def as_latex(term: Term) -> str:
    """Aligned equations, one per named term, outermost first."""
    rows: list[str] = []
    _latex_rows(term, rows, set())
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _latex_rows(term: Term, rows: list[str], seen: set[str]) -> None:
    if term.op == "leaf":
        return
    name = term.name or "result"
    if name not in seen:
        seen.add(name)
        rows.append(f"{_latex_name(name)} &= {_latex(term)} = \\text{{{term.text}}}".replace("%", "\\%"))
    for arg in _named_below(term):
        _latex_rows(arg, rows, seen)


def is_plain_number(term: Term) -> bool:
    """A number of the formula itself, such as 2, which needs no line of its own."""
    return term.kind == "constant" and term.name in ("", f"{term.value:g}")


def _named_below(term: Term) -> list[Term]:
    found: list[Term] = []
    for arg in term.args:
        found += [arg] if arg.name and arg.op != "leaf" else _named_below(arg)
    return found


def _latex(term: Term, *, top: bool = True) -> str:
    if not top and (term.name or term.op == "leaf"):
        return _latex_name(term.name) if term.kind != "constant" else f"{term.value:g}"
    parts = [_latex(arg, top=False) for arg in term.args]
    if term.op == "/":
        return f"\\frac{{{parts[0]}}}{{{parts[1]}}}"
    if term.op == "sqrt":
        return f"\\sqrt{{{parts[0]}}}"
    if term.op in ("+", "-", "*"):
        body = {"+": " + ", "-": " - ", "*": " \\cdot "}[term.op].join(parts)
        return body if top else f"\\left({body}\\right)"
    brackets = {"floor": ("\\lfloor ", " \\rfloor"), "ceil": ("\\lceil ", " \\rceil")}
    if term.op in brackets:
        left, right = brackets[term.op]
        return left + parts[0] + right
    return f"\\operatorname{{{term.op}}}\\left({', '.join(parts)}\\right)"


def _latex_name(name: str) -> str:
    return "\\mathit{" + name.replace("_", "\\_") + "}"


def _apply(op: str, *args: Term | float) -> Term:
    terms = tuple([arg if isinstance(arg, Term) else constant(arg) for arg in args])
    return Term(float(_OPERATIONS[op](*[term.value for term in terms])), op, terms)
