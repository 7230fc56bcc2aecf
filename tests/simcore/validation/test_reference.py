"""The facts that were typed in are those of the reference files: nothing was changed or left out on the way."""

import csv

import pytest

from simcore.errors import InputError
from simcore.validation.facts import load_facts
from simcore.validation.memory import MEMORY_CHECKS

GIB = 2**30
FACTS = {fact.id: fact for fact in load_facts()}


def rows(shared, name):
    with (shared / "reference" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_engine_logs_are_those_of_the_reference(shared):
    checked = 0
    for row in rows(shared, "kv_logs.csv"):
        scale = GIB if row["unit"].startswith("GiB") else 1
        for suffix in ("", ".identity"):
            fact = FACTS.get(f"{row['group']}.{row['quantity']}{suffix}")
            if row["role"] == "apriori" and fact is not None:
                assert fact.expected == pytest.approx(float(row["value"]) * scale, abs=0.5), row["id"]
                assert fact.inputs["utilization"] == float(row["gpu_memory_utilization"])
                checked += 1
    assert checked == sum(fact.check == "engine_log" for fact in FACTS.values()) > 200


def test_models_are_those_of_the_reference(shared):
    for row in rows(shared, "models.csv"):
        assert FACTS[f"N-{row['model']}.total"].expected == float(row["params_total_B"])


def test_few_facts_are_known_deviations_and_no_exact_one():
    known = [fact for fact in FACTS.values() if fact.known_deviation]
    assert len(known) <= 0.05 * len(FACTS)
    assert all(fact.tolerance > 0 for fact in known)


def test_a_model_that_is_not_carried_is_a_problem_of_its_row():
    with pytest.raises(InputError, match="closest"):
        MEMORY_CHECKS["parameters"]({"model": "no-such-model", "ask": "total"})
