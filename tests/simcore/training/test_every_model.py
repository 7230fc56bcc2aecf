"""Every model of the catalog trains: its step and memory are positive, finite, and its MFU below one."""

from __future__ import annotations

import math

import pytest

from simcore.catalog import default_catalog
from simcore.training import training_memory, training_step
from simcore.validation.training import run_inputs

MODELS = default_catalog().models


@pytest.mark.parametrize("slug", sorted(MODELS))
def test_a_model_of_the_catalog_trains(slug: str) -> None:
    given = run_inputs(MODELS[slug], "nvidia-h100-sxm", {"tp": 1, "dp": 8}, batch=64, length=4096)
    step, memory = training_step(given), training_memory(given)
    assert math.isfinite(step.step_s.value)
    assert 0 < step.mfu_fraction.value < 1
    assert all(term.value > 0 for term in memory.uses.values())


@pytest.mark.parametrize("slug", sorted(slug for slug in MODELS if MODELS[slug].is_moe))
def test_experts_are_shared_out(slug: str) -> None:
    arch = MODELS[slug]
    ranks = math.gcd(arch.experts, 8)
    alone, shared = (
        run_inputs(arch, "nvidia-h100-sxm", {"tp": 1, "dp": 8, "ep": ep}, batch=64, length=4096)
        for ep in (1, ranks)
    )
    assert training_memory(shared).uses["weights"].value < training_memory(alone).uses["weights"].value


@pytest.mark.parametrize("chip", sorted(default_catalog().chips))
def test_every_chip_trains(chip: str) -> None:
    given = run_inputs(MODELS["llama-3.1-8b"], chip, {"tp": 1, "dp": 8, "pp": 2}, batch=64, length=4096)
    assert 0 < training_step(given).mfu_fraction.value < 1
