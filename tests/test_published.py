"""Published numbers are test data: each row of `simcore/validation` is met, or its deviation is on record."""

from __future__ import annotations

import pytest

from simcore.validation.facts import Fact, load_facts

FACTS = load_facts()


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.id)
def test_the_program_meets_the_published_number(fact: Fact) -> None:
    row = fact.evaluate()
    assert not row.problem
    assert not row.is_surprise, row.as_line()


def test_ids_are_unique() -> None:
    ids = [fact.id for fact in FACTS]
    assert len(ids) == len(set(ids))


def test_the_facts_of_the_contract_are_all_here() -> None:
    stems = {fact.id.split(".")[0].rstrip("abcde") for fact in FACTS if fact.id.startswith("F")}
    wanted = [*range(1, 19), *range(23, 30), 35, *range(39, 43), 61]
    assert {f"F{number:02d}" for number in wanted} <= stems


def test_a_wrong_answer_would_be_missed() -> None:
    fact = FACTS[0]
    row = fact.evaluate()
    wrong = type(row)(fact=fact, got=fact.expected * 1.01 + 1)
    assert not wrong.passed
    assert wrong.is_surprise


def test_the_mean_error_of_kv_memory_is_that_of_the_starts_beside_it() -> None:
    starts = [fact for fact in FACTS if fact.check == "engine_log" and fact.inputs["ask"] == "kv_mem"]
    errors = [abs(fact.evaluate().error) for fact in starts]
    (mean,) = (fact.evaluate().got for fact in FACTS if fact.id == "KV-mean")
    assert len(errors) >= 45
    assert mean == pytest.approx(sum(errors) / len(errors))
