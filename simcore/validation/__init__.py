"""Published numbers and the program's answer to each: what `trimtab validate` and Methods show."""

from __future__ import annotations

from simcore.validation.facts import Fact, FactRow, evaluate_all, load_facts

__all__ = ["Fact", "FactRow", "evaluate_all", "load_facts"]
