"""The `vllm serve` line says what was simulated, and the importer reads the same scenario back."""

import json
import shlex
from typing import Any

import pytest

from simcore.catalog import default_catalog
from simcore.errors import InputError
from simcore.plan import plan
from simcore.report.engine_command import vllm_command
from simcore.scenario import Scenario
from simcore.scenario.imports import document_from_text

LINES = (
    {"model": "llama-3.1-70b", "hardware": {"chip_count": 8}, "serving": {"parallelism": {"tp": 4}}},
    {
        "model": "qwen3-32b",
        "hardware": {"chip_count": 8},
        "serving": {
            "parallelism": {"tp": 2, "pp": 2},
            "replica_count": 2,
            "max_model_len": 8192,
            "weights_dtype": "fp8",
            "kv": {
                "dtype": "fp8",
                "enable_prefix_caching": True,
                "gpu_memory_utilization": 0.85,
                "block_size": 32,
            },
            "scheduler": {
                "kind": "chunked_prefill",
                "max_num_seqs": 64,
                "max_num_batched_tokens": 2048,
                "long_prefill_token_threshold": 512,
                "queue": "priority",
            },
        },
    },
    {
        "model": "qwen3-30b-a3b",
        "hardware": {"chip_count": 4},
        "serving": {"parallelism": {"tp": 4, "ep": 4}, "scheduler": {"kind": "continuous"}},
    },
    {
        "model": "deepseek-v3",
        "hardware": {"chip_count": 16},
        "serving": {"parallelism": {"tp": 1, "dp": 16, "ep": 16}},
    },
    {
        "model": "mixtral-8x7b",
        "hardware": {"chip_count": 8},
        "serving": {"parallelism": {"tp": 2, "dp": 4}},
    },
)


def scenario(model: str, **sections: Any) -> Scenario:
    return Scenario.parse({"name": "c", "model": {"name": model}, **sections})


@pytest.mark.parametrize("document", LINES, ids=lambda document: document["model"])
def test_the_importer_reads_the_same_scenario_back(document: dict[str, Any]) -> None:
    wanted = plan(scenario(**document))
    text = vllm_command(wanted)
    read, warnings = document_from_text(text, default_catalog())
    got = plan(Scenario.parse(read))
    assert not [warning for warning in warnings if warning.code == "vllm.ignored"]
    assert got.serving.pool.parallelism == wanted.serving.pool.parallelism
    assert got.serving.pool.replica_count == wanted.serving.pool.replica_count
    assert got.serving.pool.scheduler == wanted.serving.pool.scheduler
    assert got.serving.pool.kv.block_count.value == wanted.serving.pool.kv.block_count.value
    assert got.serving.inputs.spec.kv == wanted.serving.inputs.spec.kv
    assert got.serving.inputs.weights_dtype == wanted.serving.inputs.weights_dtype


def test_a_shell_can_run_it() -> None:
    words = shlex.split(vllm_command(plan(scenario("llama-3.1-8b"))), comments=True)
    assert words[:3] == ["vllm", "serve", "meta-llama/Meta-Llama-3.1-8B"]
    assert "--no-enable-prefix-caching" in words


def test_what_the_line_cannot_say_stands_above_it() -> None:
    text = vllm_command(plan(scenario("llama-2-7b", serving={"weights_dtype": "int4"})))
    assert text.startswith("# llama-2-7b is the scenario's name for the model")
    assert "# the checkpoint must hold int4 weights" in text
    static = vllm_command(plan(scenario("llama-3.1-8b", serving={"scheduler": {"kind": "static_batch"}})))
    assert static.startswith("# vLLM does not batch statically")


def test_ranks_that_share_experts_are_data_parallel_to_vllm_and_so_are_replicas_of_dense_models() -> None:
    eight = {"hardware": {"chip": "nvidia-h200-sxm", "chip_count": 8}}
    wide = vllm_command(
        plan(scenario("deepseek-v3", serving={"parallelism": {"tp": 1, "dp": 8, "ep": 8}}, **eight))
    )
    assert "--data-parallel-size 8" in wide
    assert "--enable-expert-parallel" in wide
    assert "#" not in wide
    dense = vllm_command(plan(scenario("llama-3.1-8b", serving={"parallelism": {"tp": 1, "dp": 8}}, **eight)))
    assert "--data-parallel-size 8" in dense


def test_replicas_of_experts_are_servers_of_their_own() -> None:
    """vLLM would spread the experts of one model over its data parallel ranks."""
    apart = {"parallelism": {"tp": 2}, "replica_count": 4}
    line = vllm_command(plan(scenario("mixtral-8x7b", serving=apart)))
    assert "--data-parallel-size" not in line
    assert line.startswith("# one of 4 replicas: run this line on the chips of each, behind a router\n")
    in_groups = {"parallelism": {"tp": 1, "dp": 8, "ep": 2}}
    assert "its expert parallel size is tp × dp, not ep" in vllm_command(
        plan(scenario("mixtral-8x7b", serving=in_groups))
    )


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"workload": {"kind": "none"}}, "workload.kind"),
        ({"serving": {"engine": "SGLang 0.5"}}, "serving.engine"),
    ],
)
def test_a_scenario_without_a_command_is_refused(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        vllm_command(plan(scenario("llama-3.1-8b", **changes)))
    assert caught.value.message.path == path


@pytest.mark.parametrize(("queue", "said"), [("fair", "weights"), ("shortest_predicted", "lengths")])
def test_an_order_that_vllm_does_not_have_is_said_above_the_line(queue: str, said: str) -> None:
    text = vllm_command(
        plan(scenario("llama-3.1-8b", serving={"scheduler": {"kind": "continuous", "queue": queue}}))
    )
    assert said in text.split("vllm serve")[0]
    assert "--scheduling-policy" not in text


@pytest.mark.parametrize("kind", ["ngram", "eagle", "eagle3", "mtp"])
def test_drafts_are_written_as_vllm_reads_them(kind: str) -> None:
    drafts = {"kind": kind, "num_speculative_tokens": 5, "acceptance_rate": 0.6}
    text = vllm_command(plan(scenario("llama-3.1-8b", serving={"speculative": drafts})))
    words = shlex.split(text, comments=True)
    config = json.loads(words[words.index("--speculative-config") + 1])
    assert config["method"] == kind
    assert config["num_speculative_tokens"] == 5
    assert ("model" in config) == kind.startswith("eagle")
    assert "# an acceptance rate of 0.6 was assumed" in text
    read, _warnings = document_from_text(text, default_catalog())
    assert Scenario.parse(read).serving.speculative.kind == kind
    assert Scenario.parse(read).serving.speculative.num_speculative_tokens == 5


def test_a_draft_model_is_named_by_its_repository() -> None:
    drafts = {"kind": "draft_model", "model": "qwen3-0.6b"}
    text = vllm_command(plan(scenario("qwen3-8b", serving={"speculative": drafts})))
    assert '"model": "Qwen/Qwen3-0.6B"' in text


def test_no_drafts_are_no_option() -> None:
    assert "speculative" not in vllm_command(plan(scenario("llama-3.1-8b")))
