"""`trimtab import`: other tools' files become scenarios, rows and summaries, or one clear message."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.catalog import default_catalog
from simcore.cli import main
from simcore.errors import InputError
from simcore.importing import KINDS, Given, import_bytes
from simcore.plan import plan
from simcore.scenario import Scenario, load_document
from simcore.workload.summary import summarise
from simcore.workload.traces import read_trace
from tests.simcore.measurements.test_collectives import TEXT
from tests.simcore.measurements.test_serving import SAMPLES

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
QUANT = {
    "producer": {"name": "modelopt"},
    "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]},
}
ARGUMENTS = """
model: meta-llama/Llama-3.1-70B-Instruct
tensor-parallel-size: 4
max_model_len: 32K
enforce-eager: true
enable-prefix-caching: false
compilation_config: {level: 3}
kv_cache_dtype: fp8
"""
TRACE = "timestamp_s,input_tokens,output_tokens\n" + "".join(
    f"{second},{100 + second},10\n" for second in range(50)
)

LENGTHS = "model,input_tokens,output_tokens\n" + "".join(
    f"m,{100 + row},{1 + row % 9}\n" for row in range(50)
)


@pytest.fixture
def imports(tmp_path, capsys):
    """Run `trimtab import KIND` on a text; gives exit code, standard output and standard error."""

    def run(kind, text, *options, beside=None):
        file = tmp_path / "file"
        file.write_text(text)
        if beside is not None:
            (tmp_path / "hf_quant_config.json").write_text(beside)
        capsys.readouterr()
        code = main(["import", kind, str(file), *options])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


def planned(text):
    return plan(Scenario.parse(load_document(text)))


# ---- scenarios


def test_hf_makes_a_scenario_that_plans(imports):
    code, out, _ = imports("hf", json.dumps(CONFIG), "--name", "mine")
    assert code == 0
    assert planned(out).serving.inputs.weights_dtype == "bf16"
    assert Scenario.parse(load_document(out)).model.name == "mine"


def test_quantisation_inside_the_config_sets_the_weights(imports):
    """Question: what a config with quantization_config weighs."""
    _, out, _ = imports("hf", json.dumps(CONFIG | {"quantization_config": {"quant_method": "fp8"}}))
    assert planned(out).serving.inputs.weights_dtype == "fp8"


def test_quantisation_beside_the_config_sets_them_too(imports):
    _, out, _ = imports("hf", json.dumps(CONFIG), beside=json.dumps(QUANT))
    assert planned(out).serving.inputs.weights_dtype == "nvfp4"


def test_quantisation_may_be_named(imports, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(QUANT))
    _, out, _ = imports("hf", json.dumps(CONFIG), "--quant-config", str(other))
    assert planned(out).serving.inputs.weights_dtype == "nvfp4"


def test_hf_names_what_is_wrong(imports):
    code, _, err = imports("hf", json.dumps({key: CONFIG[key] for key in CONFIG if key != "hidden_size"}))
    assert code == 2
    assert "model.config.hidden_size" in err
    code, _, err = imports("hf", json.dumps(CONFIG), beside="{}")
    assert code == 2
    assert "hf_quant_config.json.quantization" in err


def test_vllm_line(imports):
    code, out, err = imports("vllm-args", "vllm serve Qwen/Qwen3-32B-FP8 -tp 2 --max-num-seqs 64 --foo 3")
    assert code == 0
    assert "--foo is not modelled" in err
    scenario = Scenario.parse(load_document(out))
    assert (scenario.model.name, scenario.serving.parallelism.tp) == ("qwen3-32b", 2)
    assert scenario.serving.weights_dtype == "fp8"


def test_vllm_engine_arguments_in_yaml(imports):
    code, out, err = imports("vllm-args", ARGUMENTS)
    assert code == 0
    assert "--enforce-eager is not modelled" in err
    assert "--compilation-config is not modelled" in err
    assert "prefix-caching" not in err  # false: as if it were not there
    scenario = Scenario.parse(load_document(out))
    assert (scenario.model.name, scenario.serving.parallelism.tp) == ("llama-3.1-70b", 4)
    assert (scenario.serving.max_model_len, scenario.serving.kv.dtype) == (32768, "fp8")


def test_a_wrong_engine_argument_is_named(imports):
    code, _, err = imports("vllm-args", "model: Qwen/Qwen3-32B\ntensor_parallel_size: four\n")
    assert code == 2
    assert "--tensor-parallel-size" in err


# ---- measurements and traces


@pytest.mark.parametrize("tool", SAMPLES)
def test_measurements_as_csv_and_json(imports, tool):
    code, out, _ = imports(tool, json.dumps(SAMPLES[tool]), "--gpu", "nvidia-h100-sxm")
    assert code == 0
    assert out.startswith("source_tool,")
    _, out, _ = imports(tool, json.dumps(SAMPLES[tool]), "--json")
    assert json.loads(out)[0]["source_tool"] == tool


def test_nccl_tests(imports):
    code, out, _ = imports("nccl-tests", TEXT)
    assert code == 0
    assert out.startswith("source_tool,operation,gpu,ranks,bytes,time_s,algbw_bytes_per_s,busbw_bytes_per_s")


def test_a_trace_is_summed_up(imports):
    code, out, _ = imports("trace", TRACE, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["format"], found["row_count"], found["span_s"]) == ("csv", 50, 49.0)
    assert (found["mean_request_per_s"], found["gap_cv_ratio"]) == (1.0, 0.0)
    assert found["input_tokens"]["p50"] == 124.5
    _, out, _ = imports("trace", TRACE)
    assert "mean_request_per_s  1\n" in out


def test_a_trace_of_one_row_has_no_rate(imports):
    code, out, _ = imports("trace", "timestamp_s,input_tokens,output_tokens\n0,1,1\n")
    assert code == 0
    assert "too few rows to say" in out


def test_a_trace_of_no_known_format_asks_for_it(imports):
    code, _, err = imports("trace", "a,b\n1,2\n")
    assert code == 2
    assert "--format" in err


def test_poisson_arrivals_have_a_variation_of_one():
    plain = Scenario.parse({"name": "x", "workload": {"request_count": 20_000}})
    instants = plan(plain).serving.inputs.requests.arrival_s
    text = "timestamp_s,input_tokens,output_tokens\n" + "".join(f"{instant},9,9\n" for instant in instants)
    summary = summarise(read_trace(text.encode(), format="csv"))
    assert summary.gap_cv_ratio == pytest.approx(1.0, abs=0.05)
    assert 0.5 < summary.dispersion_ratio < 1.6


# ---- files


def test_output_goes_to_a_file(imports, tmp_path):
    _, out, _ = imports("hf", json.dumps(CONFIG), "-o", str(tmp_path / "scenario.yaml"))
    assert out == ""
    assert planned((tmp_path / "scenario.yaml").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_file_and_an_empty_one_are_refused(imports, kind, capsys, tmp_path):
    assert main(["import", kind, str(tmp_path / "absent")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["import", kind, str(tmp_path)]) == 2
    code, _, err = imports(kind, "")
    assert code == 2
    assert err.startswith("error: ")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "raw", [b"\xff\xfe", b"\x00", b"[]", b"{}", b"model: 3", b"a: *b", b"- x", b"{" * 5000]
)
def test_odd_bytes_are_refused(kind, raw):
    with pytest.raises(InputError):
        import_bytes(kind, raw, default_catalog(), Given(), path="file")


SEEDS = {"hf": json.dumps(CONFIG), "vllm-args": ARGUMENTS, "trace": TRACE, "lengths": LENGTHS}


@pytest.mark.parametrize("kind", SEEDS)
@given(
    start=st.integers(0, 400),
    cut=st.integers(0, 30),
    new=st.sampled_from(
        ["!!bool x", "&a", "*a", "{", "]", ":", "\n", "1e400", "NaN", "-1", "null", "\0", "? ", '"']
    ),
)
def test_a_damaged_file_is_read_or_refused(kind, start, cut, new):
    seed = SEEDS[kind]
    damaged = seed[:start] + new + seed[start + cut :]
    with contextlib.suppress(InputError):
        import_bytes(kind, damaged.encode(), default_catalog(), Given(), path="file")


def test_a_table_of_lengths_becomes_a_scenario_that_draws_its_rows(imports):
    code, out, err = imports("lengths", LENGTHS, "--name", "chat")
    assert (code, err) == (0, "")
    scenario = Scenario.parse(load_document(out))
    assert scenario.name == "chat"
    requests = plan(scenario).serving.inputs.requests
    rows = set(
        zip(scenario.workload.lengths.input_tokens, scenario.workload.lengths.output_tokens, strict=True)
    )
    assert len(rows) == 50
    assert set(zip(requests.input_tokens.tolist(), requests.output_tokens.tolist(), strict=True)) == rows


def test_a_trace_is_a_table_of_lengths_too(imports):
    _code, out, _err = imports("lengths", TRACE)
    assert load_document(out)["workload"]["lengths"]["input_tokens"] == list(range(100, 150))


def test_a_long_table_is_thinned_to_what_a_scenario_takes(imports):
    long = "input_tokens,output_tokens\n" + "".join(f"{1 + row},{7}\n" for row in range(50_000))
    _code, out, err = imports("lengths", long)
    kept = load_document(out)["workload"]["lengths"]["input_tokens"]
    assert kept == list(range(1, 50_001, 3))
    assert "of these 50,000 one in 3 is kept" in err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the header has no column input_tokens, output_tokens; it has nothing"),
        ("input_tokens,tokens\n1,2\n", "the header has no column output_tokens"),
        ("input_tokens,output_tokens\n", "no row of lengths"),
        ("input_tokens,output_tokens\n1,2\n3,-4\n", "line 3, column output_tokens: got '-4'"),
        ("input_tokens,output_tokens\n1\n", "line 2, column output_tokens: got nothing"),
        (
            "input_tokens,output_tokens\n0,1\n",
            "line 2, column input_tokens: got '0'; a whole number of tokens from 1",
        ),
        ("input_tokens,output_tokens\n²,1\n", "line 2, column input_tokens"),
        ("input_tokens,output_tokens\n" + "x,1\n" * 9, "line 6, column input_tokens"),
    ],
)
def test_a_table_that_cannot_be_read_says_the_line(imports, text, says):
    code, out, err = imports("lengths", text)
    assert (code, out) == (2, "")
    assert says in err
