"""What does not fit names what binds and changes that do fit; one is found wherever there is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simcore.catalog import default_catalog
from simcore.errors import InfeasibleError
from simcore.memory.budget import KvBudget, kv_budget
from simcore.memory.engines import engine_constants
from simcore.memory.fit import Change, fitting_changes, require_fit
from simcore.parallelism import Parallelism
from simcore.units import quantity

CATALOG = default_catalog()


def budget(
    model: str = "llama-3.1-8b", chip: str = "nvidia-h100-sxm", tp: int = 1, pp: int = 1, **options: object
) -> KvBudget:
    arguments: dict[str, object] = {
        "engine": engine_constants("vLLM 0.19"),
        "weights_dtype": "bf16",
        "kv_dtype": "bf16",
        "other_chips": tuple(CATALOG.chips.values()),
    }
    arguments |= options
    return kv_budget(CATALOG.model(model), CATALOG.chip(chip), Parallelism(tp=tp, pp=pp), **arguments)  # type: ignore[arg-type]


def paths(change: Change) -> set[str]:
    return {path for path, _value in change.edits}


def test_too_large_a_model_names_what_binds_and_three_changes_that_fit() -> None:
    got = budget("llama-3.1-70b")
    changes = fitting_changes(got)
    assert got.binding == "weights"
    assert len(changes) == 3
    assert {"serving.parallelism.tp", "hardware.chip"} <= set[str]().union(*map(paths, changes))
    assert all(change.token_capacity > 0 for change in changes)
    with pytest.raises(InfeasibleError) as caught:
        require_fit(got)
    assert caught.value.message.code == "memory.does_not_fit"
    assert "serving.parallelism.tp: 2, 2 chips a replica" in str(caught.value)


def test_a_length_that_does_not_fit_says_how_much_does() -> None:
    got = budget("qwen3-32b", max_model_len=40_960)
    assert got.binding == "max_model_len"
    assert paths(fitting_changes(got)[0]) == {"serving.max_model_len"}
    with pytest.raises(InfeasibleError, match="one sequence of 40,960 tokens does not fit"):
        require_fit(got)


def _made(change: Change) -> dict[str, Any]:
    """The budget's arguments with a change made."""
    made: dict[str, Any] = {}
    for path, value in change.edits:
        name = path.rpartition(".")[2]
        if path == "serving.kv.dtype":
            made["kv_dtype"] = value
        elif name == "kv_cache_memory_bytes":
            made[name] = quantity(value, "bytes")
        elif name == "gpu_memory_utilization":
            made[name] = float(value)
        else:
            made[name] = int(value) if value.isdigit() else value
    return made


TIGHT: dict[str, dict[str, Any]] = {
    "weights": {"model": "llama-3.1-70b", "max_model_len": 8192},
    "an older engine": {
        "model": "gpt-oss-120b", "weights_dtype": "mxfp4", "engine": engine_constants("vLLM 0.11"),
    },
    "a small card": {"chip": "nvidia-rtx-4090", "max_model_len": 131_072},
    "a large step": {"max_num_batched_tokens": 1_000_000},
    "a large step for many": {"max_num_batched_tokens": 1_000_000, "max_num_seqs": 65_536},
    "blocks asked for": {"num_gpu_blocks_override": 1_000_000},
    "a cache asked for": {"chip": "nvidia-l40s", "kv_cache_memory_bytes": 60e9},
    "a trillion on a small card": {"model": "kimi-k2", "chip": "nvidia-rtx-4090", "weights_dtype": "fp8"},
    "a long sequence beside large weights": {
        "model": "qwen2.5-14b", "chip": "nvidia-t4", "max_model_len": 131_072, "other_chips": (),
    },
    "no other chip": {"model": "phi-4", "chip": "nvidia-t4", "other_chips": (), "max_model_len": 16_384},
}  # fmt: skip


@pytest.mark.parametrize("case", TIGHT)
def test_each_change_fits_with_the_capacity_that_is_said_and_none_holds_another(case: str) -> None:
    options = TIGHT[case]
    got = budget(**options)
    assert not got.fits
    changes = fitting_changes(got)
    assert 1 <= len(changes) <= 3
    for change in changes:
        again = budget(**options | _made(change))
        assert again.fits, change
        assert again.token_capacity.value == change.token_capacity
        others = [one for one in changes if one is not change]
        assert not any(paths(one) <= paths(change) for one in others)


def test_where_no_lever_helps_alone_two_are_pulled_together() -> None:
    """So many sequences need as large a token budget: neither may be lowered without the other."""
    got = budget(max_num_seqs=65_536, max_num_batched_tokens=65_536, other_chips=())
    changes = fitting_changes(got)
    assert paths(changes[0]) == {"serving.scheduler.max_num_seqs"}, "its logits are what binds"
    got = budget(max_num_seqs=65_536, max_num_batched_tokens=1_000_000, other_chips=())
    sizes = {"serving.scheduler.max_num_seqs", "serving.scheduler.max_num_batched_tokens"}
    assert paths(fitting_changes(got)[0]) == sizes
    with pytest.raises(
        InfeasibleError, match=r"max_num_seqs: 256 \+ serving\.scheduler\.max_num_batched_tokens: 2048"
    ):
        require_fit(got)


def test_what_three_levers_cannot_do_is_said() -> None:
    """A trillion parameters in 16 bits over 64 × 16 chips of 1 GB."""
    tiny = replace(CATALOG.chip("nvidia-t4"), hbm_visible_bytes=1e9)
    options = {"engine": engine_constants("vLLM 0.19"), "weights_dtype": "bf16", "kv_dtype": "bf16"}
    got = kv_budget(CATALOG.model("kimi-k2"), tiny, Parallelism(tp=1), **options)  # type: ignore[arg-type]
    assert fitting_changes(got) == ()
    with pytest.raises(InfeasibleError, match="What would fit: no three changes together"):
        require_fit(got)
