"""Start from what people have: model ids, config.json files and vllm lines as they are pasted."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simcore.errors import InputError, TrimtabError
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.scenario.imports import MAX_TEXT_BYTES, document_from_text


@pytest.fixture(scope="module")
def paste(catalog):
    return lambda text: document_from_text(text, catalog)


def at(document, path):
    for key in path.split("."):
        document = document[key]
    return document


# ---- model ids


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("meta-llama/Meta-Llama-3.1-8B", "llama-3.1-8b"),
        ("  Qwen/Qwen3-32B\n", "qwen3-32b"),
        ("'Qwen/Qwen3-32B'", "qwen3-32b"),
        ("llama-3.1-405b", "llama-3.1-405b"),
        ("https://huggingface.co/Qwen/Qwen3-32B", "qwen3-32b"),
    ],
)
def test_a_model_id_becomes_a_scenario(paste, text, slug):
    document, warnings = paste(text)
    assert document["model"] == {"name": slug}
    assert Scenario.parse(document).name
    assert {one.code for one in warnings} <= {"paste.larger_chip"}


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("Qwen/Qwen3-32B-FP8", "fp8"),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", "fp8"),
        ("Qwen/Qwen3-32B-AWQ", "int4"),
    ],
)
def test_a_model_id_that_names_its_number_format_sets_it(paste, text, dtype):
    document, _ = paste(text)
    assert document["serving"] == {"weights_dtype": dtype}


def test_an_unknown_model_names_the_closest(paste):
    with pytest.raises(
        InputError, match=r"no model called 'meta-llama/Llama-3\.1-71B'.*llama-3\.1-"
    ) as caught:
        paste("meta-llama/Llama-3.1-71B")
    assert "config.json" in caught.value.message.text


# ---- documents and config.json


def test_a_scenario_as_json_yaml_or_flow_yaml_is_taken_as_it_is(paste):
    wanted = {"name": "mine", "run": {"seed": 3}}
    for text in (
        json.dumps(wanted),
        "name: mine\nrun: {seed: 3}",
        "{name: mine, run: {seed: 3}}",
        "---\nname: mine\nrun:\n  seed: 3",
    ):
        assert paste(text) == (wanted, [])


def test_a_scenario_without_a_name_is_refused_for_that_and_not_read_as_a_model(paste):
    document, _ = paste('{"hardware": {"chip_count": 8}}')
    with pytest.raises(InputError, match="name: this key is required"):
        Scenario.parse(document)


@pytest.mark.parametrize(
    "name",
    [
        "meta-llama--Meta-Llama-3.1-8B",
        "Qwen--Qwen3-30B-A3B",
        "openai--gpt-oss-20b",
        "mistralai--Mixtral-8x7B-v0.1",
    ],
)
def test_a_config_json_gives_a_scenario_that_plans(paste, shared, name):
    document, warnings = paste((shared / f"reference/hf_configs/{name}_config.json").read_text())
    planned = plan(Scenario.parse(document))
    assert planned.metrics["model.parameter_count"] > 1e9
    assert warnings == []


def test_every_config_json_at_hand_is_planned_or_refused_with_a_reason(paste, shared):
    files = sorted((shared / "reference/hf_configs").glob("*_config.json"))
    architectures = [path for path in files if "hf_quant_config" not in path.name]
    planned = 0
    for path in architectures:
        document, _ = paste(path.read_text())
        document["hardware"] = {"chip": "nvidia-b200-sxm", "chip_count": 64}
        document["workload"] = {"request_count": 10}
        try:
            planned += plan(Scenario.parse(document)).metrics["memory.kv_token_capacity"] > 0
        except TrimtabError as error:
            assert error.message.path.startswith(("model.config", "serving")), (path.name, str(error))  # noqa: PT017
    assert planned >= len(architectures) // 3


@pytest.mark.parametrize("text", ['{"model_type": "llama"', '{"a": 1} trailing', "{"])
def test_a_cut_off_file_names_line_and_column(paste, text):
    with pytest.raises(InputError, match=r"line \d+, column \d+") as caught:
        paste(text)
    assert caught.value.message.path == "text"


# ---- vllm lines

LINE = "vllm serve meta-llama/Llama-3.1-70B-Instruct"


@pytest.mark.parametrize(
    ("options", "path", "value"),
    [
        ("--tensor-parallel-size 4", "serving.parallelism.tp", 4),
        ("--tensor-parallel-size=4", "serving.parallelism.tp", 4),
        ("--tensor_parallel_size 4", "serving.parallelism.tp", 4),
        ("-tp 4", "serving.parallelism.tp", 4),
        ("-tp=4", "serving.parallelism.tp", 4),
        ("-pp 2", "serving.parallelism.pp", 2),
        ("-dp 2", "serving.replica_count", 2),
        ("--max-model-len 8192", "serving.max_model_len", 8192),
        ("--max-model-len 32k", "serving.max_model_len", 32_000),
        ("--max-model-len 32K", "serving.max_model_len", 32_768),
        ("--max-model-len auto", "serving.max_model_len", "auto"),
        ("--max-model-len -1", "serving.max_model_len", "auto"),
        ("--max-num-seqs 64", "serving.scheduler.max_num_seqs", 64),
        ("--max-num-batched-tokens 2k", "serving.scheduler.max_num_batched_tokens", 2000),
        ("--gpu-memory-utilization 0.95", "serving.kv.gpu_memory_utilization", 0.95),
        ("--gpu-memory-utilization='0.95'", "serving.kv.gpu_memory_utilization", 0.95),
        ("--block-size 32", "serving.kv.block_size", 32),
        ("--kv-cache-dtype fp8_e4m3", "serving.kv.dtype", "fp8"),
        ("--dtype half", "serving.weights_dtype", "fp16"),
        ("--quantization fp8", "serving.weights_dtype", "fp8"),
        ("-q awq", "serving.weights_dtype", "int4"),
        ("--quantization fp8 --dtype bfloat16", "serving.weights_dtype", "fp8"),
        ("--dtype bfloat16 --quantization fp8", "serving.weights_dtype", "fp8"),
        ("--num-gpu-blocks-override 1000", "serving.num_gpu_blocks_override", 1000),
        ("--kv-cache-memory-bytes 10g", "serving.kv_cache_memory_bytes", 10 * 10**9),
        ("--kv-cache-memory-bytes 10G", "serving.kv_cache_memory_bytes", 10 * 2**30),
        ("--seed 7", "run.seed", 7),
        ("--port 8000 --host 0.0.0.0 -tp 4", "serving.parallelism.tp", 4),
        ("--trust-remote-code -tp 4", "serving.parallelism.tp", 4),
        ("\\\n  --port 8000 \\\n  -tp 4", "serving.parallelism.tp", 4),
        ("\\\r\n  -tp 4 \\", "serving.parallelism.tp", 4),
        ("-tp 4 > log.txt 2>&1 &", "serving.parallelism.tp", 4),
        ("-tp 4 && echo done", "serving.parallelism.tp", 4),
    ],
)
def test_an_option_lands_at_its_path(paste, options, path, value):
    document, warnings = paste(f"{LINE} {options}")
    assert at(document, path) == value
    assert document["model"] == {"name": "llama-3.1-70b"}
    assert warnings == []
    Scenario.parse(document)


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve --tensor-parallel-size 4 meta-llama/Llama-3.1-70B-Instruct",
        "vllm serve --trust-remote-code --enforce-eager meta-llama/Llama-3.1-70B-Instruct -tp 4",
        'vllm serve "meta-llama/Llama-3.1-70B-Instruct" --tensor-parallel-size "4"',
        "CUDA_VISIBLE_DEVICES=0,1,2,3 HF_TOKEN=a:b vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4",
        "/opt/bin/vllm serve --model meta-llama/Llama-3.1-70B-Instruct -tp 4",
        "python -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.1-70B-Instruct -tp 4",
        "docker run -p 8000:8000 vllm/vllm-openai:v0.19.0 \\\n --model meta-llama/Llama-3.1-70B-Instruct -tp 4",
        "--model=meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size=4",
    ],
)
def test_a_line_is_read_however_it_is_started(paste, line):
    document, warnings = paste(line)
    assert document["model"] == {"name": "llama-3.1-70b"}
    assert document["serving"]["parallelism"] == {"tp": 4}
    assert {warning.params["option"] for warning in warnings} <= {"--enforce-eager"}


def test_an_option_that_is_not_understood_is_named_and_left_out(paste):
    document, warnings = paste(f"{LINE} --override-generation-config '{{}}' -tp 4 --frobnicate")
    assert [warning.text.split()[0] for warning in warnings] == [
        "--override-generation-config",
        "--frobnicate",
    ]
    assert document["serving"] == {"parallelism": {"tp": 4}}


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ("--tensor-parallel-size many", "--tensor-parallel-size"),
        ("--tensor-parallel-size", "--tensor-parallel-size"),
        ("-tp 4.5", "-tp"),
        ("--max-model-len 8x", "--max-model-len"),
        ("--max-model-len 1e999k", "--max-model-len"),
        ("--dtype complex64", "--dtype"),
        ("--quantization fp8 --dtype complex64", "--dtype"),
        ("--quantization no-such", "--quantization"),
        ("--gpu-memory-utilization high", "--gpu-memory-utilization"),
    ],
)
def test_a_wrong_value_is_an_error_at_its_option(paste, options, option):
    with pytest.raises(InputError, match="is needed") as caught:
        paste(f"{LINE} {options}")
    assert caught.value.message.path == option


@pytest.mark.parametrize("options", ["-tp 0", "-tp -4", "--gpu-memory-utilization nan", "--block-size 0"])
def test_an_impossible_value_is_refused_by_the_schema(paste, options):
    document, _ = paste(f"{LINE} {options}")
    with pytest.raises(InputError) as caught:
        Scenario.parse(document)
    assert caught.value.message.path.startswith("serving.")


@pytest.mark.parametrize(
    ("options", "chips", "replicas"),
    [("-tp 2", 2, 1), ("-tp 8 -pp 2", 16, 1), ("-tp 2 -dp 3", 6, 3), ("-tp 4 -pp 3", 12, 1)],
)
def test_a_line_that_cuts_the_model_owns_the_chips_it_uses(paste, options, chips, replicas):
    document, _ = paste(f"{LINE} {options} --max-model-len 4k")
    pool = plan(Scenario.parse(document)).serving.pool
    assert document["hardware"]["chip_count"] == chips
    assert (pool.chip_count, pool.replica_count) == (chips, replicas)


@pytest.mark.parametrize(
    "text",
    [
        "meta-llama/Llama-3.1-70B-Instruct",
        "Qwen/Qwen3-32B",
        "vllm serve openai/gpt-oss-120b",
        f"{LINE} -tp 4",
        f"{LINE} --tensor-parallel-size 8 --max-num-seqs 77",
    ],
)
def test_a_pasted_baseline_is_neither_idle_nor_overloaded(paste, text):
    document, _ = paste(text)
    planned = plan(Scenario.parse(document))
    point = planned.serving.pool.operating_point
    assert 0.05 < point.offered_request_per_s / point.capacity_request_per_s < 0.9


@pytest.mark.parametrize(
    ("options", "cut", "replicas", "chips"),
    [
        ("-dp 16 --enable-expert-parallel", {"tp": 1, "dp": 16, "ep": 16}, 1, 16),
        ("-tp 2 -dp 8 --enable-expert-parallel", {"tp": 2, "dp": 8, "ep": 16}, 1, 16),
        ("-tp 8 --enable-expert-parallel", {"tp": 8, "ep": 8}, None, 8),
        ("-tp 4 -dp 4", {"tp": 4, "dp": 4}, 1, 16),
        (
            "-dp 16 --data-parallel-size-local 8 --data-parallel-address node0 --headless --enable-expert-parallel",
            {"tp": 1, "dp": 16, "ep": 16},
            1,
            16,
        ),
    ],
)
def test_data_parallel_ranks_share_the_experts_of_a_model_that_has_some(paste, options, cut, replicas, chips):
    document, warnings = paste(f"vllm serve deepseek-ai/DeepSeek-V3 {options}")
    assert document["serving"]["parallelism"] == cut
    assert document["serving"].get("replica_count") == replicas
    assert document["hardware"]["chip_count"] == chips
    assert "vllm.ignored" not in {one.code for one in warnings}
    assert plan(Scenario.parse(document)).serving.pool.chip_count == chips


def test_data_parallel_ranks_of_a_dense_model_are_replicas_whatever_its_experts_are_told(paste):
    document, _ = paste(f"{LINE} -tp 4 -dp 2 --enable-expert-parallel")
    assert document["serving"] == {"parallelism": {"tp": 4}, "replica_count": 2}


def test_a_line_that_does_not_cut_it_gets_the_smallest_cut_that_fits(paste):
    document, _ = paste(LINE)
    assert "hardware" not in document
    assert plan(Scenario.parse(document)).serving.pool.parallelism.tp > 1


def test_a_line_without_a_model_is_refused(paste):
    with pytest.raises(InputError, match="names no model"):
        paste("vllm serve --port 8000")


def test_quotes_that_do_not_close_are_refused(paste):
    with pytest.raises(InputError, match="quotes do not close"):
        paste("vllm serve 'meta-llama/Llama-3.1-70B")


# ---- garbage


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nothing was pasted"),
        (" \n\t", "nothing was pasted"),
        ("please size my cluster", "neither a model id"),
        ("x" * (MAX_TEXT_BYTES + 1), "paste at most"),
    ],
)
def test_garbage_is_refused_with_what_to_paste(paste, text, says):
    with pytest.raises(InputError, match=says) as caught:
        paste(text)
    assert caught.value.message.path == "text"


@given(
    st.one_of(
        st.text(max_size=80),
        st.lists(
            st.sampled_from(
                [
                    "vllm",
                    "serve",
                    "-tp",
                    "--model",
                    "=",
                    "4",
                    "-1",
                    "{",
                    "}",
                    "'",
                    "\\\n",
                    "Qwen/Qwen3-32B",
                    "--dtype=fp8",
                    "&&",
                    "name:",
                    "\x00",
                ]
            ),
            max_size=8,
        ).map(" ".join),
    )
)
@example("&&")
@example("--")
@example("{ }")
@example("A=1")
@example("A=1 B=2")
@example("''")
def test_any_text_is_a_document_or_a_refusal(catalog, text):
    try:
        document, _ = document_from_text(text, catalog)
    except InputError as error:
        outcome = error.message.text
    else:
        outcome = document
    assert isinstance(outcome, dict) or outcome.strip()


# ---- the two files of a quantised checkpoint

CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
QUANT = {
    "producer": {"name": "modelopt"},
    "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]},
}


@pytest.mark.parametrize("pair", [(CONFIG, QUANT), (QUANT, CONFIG)])
def test_a_config_and_its_quantisation_may_be_pasted_together(paste, catalog, pair):
    document, _ = paste("\n".join(json.dumps(one, indent=2) for one in pair))
    planned = plan(Scenario.parse(document), catalog)
    assert planned.serving.inputs.weights_dtype == "fp8"
    assert planned.serving.inputs.kv_dtype == "fp8"


def test_a_cache_format_of_ones_own_wins_over_the_checkpoints(paste, catalog):
    document, _ = paste(json.dumps(CONFIG) + json.dumps(QUANT))
    document["serving"] = {"kv": {"dtype": "bf16"}}
    assert plan(Scenario.parse(document), catalog).serving.inputs.kv_dtype == "bf16"


def test_quantisation_alone_asks_for_the_config(paste):
    with pytest.raises(InputError, match="has no shapes") as caught:
        paste(json.dumps(QUANT))
    assert caught.value.message.path == "text"


@pytest.mark.parametrize("text", ["{} {}", '{"a": 1} {"b": 2}', '{"a": 1} [1]', '{"a": 1} x'])
def test_two_documents_that_are_no_checkpoint_are_refused(paste, text):
    with pytest.raises(InputError):
        paste(text)
