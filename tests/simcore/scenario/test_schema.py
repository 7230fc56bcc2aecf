"""The scenario document: its defaults, the example of the interface, and what it refuses, where and how."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.errors import InfeasibleError, InputError
from simcore.plan import plan
from simcore.scenario import Scenario, load_document

# The example of interfaces.md, as far as it is built: `disaggregated` comes later.
EXAMPLE = """
schema_version: 1
name: Llama-3.1-70B chat on H100
description: …
hardware:
  chip: nvidia-h100-sxm                 # catalog slug
  chip_overrides: {hbm_bytes_per_s: "6.7 TB/s"}      # inherit and override
  server: dgx-h100                      # chips per server, scale-up domain, NICs, host
  chip_count: 64
  pools: []
topology: {kind: rail_optimized, radix: 128, tiers: auto, oversubscription_ratio: 1.0, hb_domain_size: 8,
  transceiver_convention: both_ends, price_book: h100-sheet-2024-08}
model: {name: llama-3.1-70b}
workload:
  kind: serving
  arrivals: {kind: poisson, request_per_s: 8}
  lengths: {kind: lognormal, input_mean_tokens: 1024, input_cv: 1.0, output_mean_tokens: 256, output_cv: 1.0}
  request_count: 10000
  slo: {ttft_s: 1.0, tpot_s: 0.05, attainment_fraction: 0.95}
serving:
  engine: "vLLM 0.19"
  max_model_len: auto
  parallelism: {tp: 8, pp: 1, ep: 1}
  replica_count: auto
  scheduler: {kind: chunked_prefill, max_num_seqs: auto, max_num_batched_tokens: auto}
  router: {kind: round_robin}
  kv: {allocator: paged, block_size: 16, dtype: auto, gpu_memory_utilization: 0.9,
    enable_prefix_caching: false, offload: []}
  weights_dtype: bf16
  attention: {kind: flash}
training: {parallelism: {tp: 8, pp: 8, dp: 512, cp: 1, ep: 1}, sequence_length: 8192, global_batch_tokens: 134217728,
  micro_batch_size: 1, virtual_stages: 1, zero_stage: 1, recompute: selective, sequence_parallel: true,
  overlap: {dp: true, tp: false}, total_tokens: 15.6e12}
reliability: {host_availability_fraction: 0.995, slice_chips: 1024, failures: meta-rsc-1, spares: 0,
  checkpoint_interval_s: auto, shocks: []}
economics: {price_book: default-2026, electricity_usd_per_kwh: 0.08, pue: 1.25, depreciation_years: 4,
  labour_usd_per_hour: 120, minutes_per_suspect: 10, connection_load_threshold_fraction: 0.05, alternatives: []}
run: {seed: 1, replications: 1}
"""


def scenario_of(text):
    return Scenario.parse(load_document(text))


def test_the_smallest_scenario_is_a_name(planner):
    assert planner.plan(base={"name": "x"}).scenario.name == "x"


def test_the_example_of_the_interface_is_read_and_planned():
    planned = plan(scenario_of(EXAMPLE))
    assert planned.serving.pool.replica_count == 8
    assert planned.chip.hbm_bytes_per_s == 6.7e12


def test_the_values_of_the_example_are_the_defaults_where_it_says_auto():
    written, bare = scenario_of(EXAMPLE), Scenario(name="x")
    for section in ("workload", "reliability", "economics", "run"):
        assert getattr(written, section) == getattr(bare, section)


def test_a_scenario_reads_back_from_its_own_dump():
    scenario = scenario_of(EXAMPLE)
    assert Scenario.parse(scenario.model_dump(mode="json")) == scenario


# Document, path and a part of the message of every problem in it.
WRONG = [
    # keys
    ("{name: x, hardwear: {}}", "hardwear", "unknown key"),
    ("{name: x, hardware: {chipp: a}}", "hardware.chipp", "unknown key"),
    ("{name: x, topology: {kind: clos, radixx: 128}}", "topology.radixx", "unknown key"),
    ("{description: x}", "name", "required"),
    ("{name: x, workload: {arrivals: {kind: poisson}}}", "workload.arrivals.request_per_s", "required"),
    ("{name: x, schema_version: 2}", "schema_version", "got 2; this program reads version 1"),
    # types
    ('{name: ""}', "name", "got ''"),
    ("{name: 3}", "name", "got 3; input should be a valid string"),
    ("{name: x, hardware: 3}", "hardware", "got 3"),
    ("{name: x, hardware: {chip_count: true}}", "hardware.chip_count", "got true; a number is needed"),
    ("{name: x, hardware: {chip_count: eight}}", "hardware.chip_count", "got 'eight'"),
    (
        "{name: x, hardware: {chip_count: 8.5}}",
        "hardware.chip_count",
        "got 8.5; input should be a valid integer",
    ),
    ("{name: x, hardware: {chip_overrides: [1]}}", "hardware.chip_overrides", "got [1]"),
    ("{name: x, hardware: {chip_overrides: {tdp_w: true}}}", "hardware.chip_overrides.tdp_w", "got True"),
    ("{name: x, model: {config: 3}}", "model.config", "got 3"),
    # units
    (
        '{name: x, workload: {slo: {ttft_s: "1 GB"}}}',
        "workload.slo.ttft_s",
        "whose unit 'GB' does not measure s",
    ),
    (
        '{name: x, workload: {arrivals: {kind: poisson, request_per_s: "8 GB/s"}}}',
        "workload.arrivals.request_per_s",
        "write it like '8 req/s'",
    ),
    # not finite
    (
        "{name: x, hardware: {chip_count: .nan}}",
        "hardware.chip_count",
        "got nan; input should be a finite number",
    ),
    ("{name: x, workload: {slo: {ttft_s: .inf}}}", "workload.slo.ttft_s", "got inf"),
    ("{name: x, workload: {slo: {ttft_s: nan}}}", "workload.slo.ttft_s", "a finite number is needed"),
    (
        "{name: x, workload: {arrivals: {kind: poisson, request_per_s: .inf}}}",
        "workload.arrivals.request_per_s",
        "got inf",
    ),
    (
        "{name: x, workload: {lengths: {kind: constant, input_tokens: .inf, output_tokens: 1}}}",
        "workload.lengths.input_tokens",
        "got inf",
    ),
    (
        "{name: x, topology: {kind: clos, oversubscription_ratio: .nan}}",
        "topology.oversubscription_ratio",
        "got nan; input should be a finite number",
    ),
    ("{name: x, reliability: {checkpoint_interval_s: .inf}}", "reliability.checkpoint_interval_s", "got inf"),
    # negative, zero, absurd
    (
        "{name: x, hardware: {chip_count: 0}}",
        "hardware.chip_count",
        "got 0; input should be greater than or equal to 1",
    ),
    ("{name: x, hardware: {chip_count: -8}}", "hardware.chip_count", "got -8"),
    ("{name: x, hardware: {chip_count: 1e12}}", "hardware.chip_count", "less than or equal to 1048576"),
    (
        "{name: x, workload: {arrivals: {kind: poisson, request_per_s: 0}}}",
        "workload.arrivals.request_per_s",
        "greater than 0",
    ),
    (
        "{name: x, workload: {arrivals: {kind: closed_loop, concurrency: 0}}}",
        "workload.arrivals.concurrency",
        "got 0",
    ),
    (
        "{name: x, workload: {arrivals: {kind: gamma, request_per_s: 1, cv: 0}}}",
        "workload.arrivals.cv",
        "got 0",
    ),
    (
        "{name: x, workload: {lengths: {kind: constant, input_tokens: 0, output_tokens: 1}}}",
        "workload.lengths.input_tokens",
        "got 0",
    ),
    (
        "{name: x, workload: {lengths: {kind: constant, input_tokens: 100000000000, output_tokens: 1}}}",
        "workload.lengths.input_tokens",
        "less than or equal to 16777216",
    ),
    (
        "{name: x, workload: {lengths: {kind: lognormal, input_mean_tokens: 10, input_cv: -1, output_mean_tokens: 1}}}",
        "workload.lengths.input_cv",
        "got -1",
    ),
    (
        "{name: x, workload: {lengths: {kind: empirical, input_tokens: [1], output_tokens: [1, 2]}}}",
        "workload.lengths",
        "give one of each",
    ),
    ("{name: x, workload: {request_count: 1e18}}", "workload.request_count", "less than or equal to 5000000"),
    ("{name: x, workload: {slo: {attainment_fraction: 95}}}", "workload.slo.attainment_fraction", "got 95"),
    ("{name: x, run: {replications: 33}}", "run.replications", "less than or equal to 32"),
    (
        "{name: x, serving: {parallelism: {tp: 0}}}",
        "serving.parallelism.tp",
        "'auto' or greater than or equal to 1",
    ),
    ("{name: x, serving: {parallelism: {tp: -8}}}", "serving.parallelism.tp", "got -8"),
    ("{name: x, serving: {replica_count: 0}}", "serving.replica_count", "got 0; input should be 'auto' or"),
    ("{name: x, serving: {max_model_len: 0}}", "serving.max_model_len", "got 0"),
    ("{name: x, serving: {kv: {block_size: 0}}}", "serving.kv.block_size", "got 0"),
    ("{name: x, serving: {kv: {gpu_memory_utilization: 90}}}", "serving.kv.gpu_memory_utilization", "got 90"),
    (
        "{name: x, reliability: {host_availability_fraction: 1.1}}",
        "reliability.host_availability_fraction",
        "got 1.1",
    ),
    ("{name: x, reliability: {slice_chips: 0}}", "reliability.slice_chips", "got 0"),
    (
        "{name: x, reliability: {checkpoint_interval_s: 0}}",
        "reliability.checkpoint_interval_s",
        "greater than 0",
    ),
    (
        "{name: x, reliability: {checkpoint_interval_s: -1}}",
        "reliability.checkpoint_interval_s",
        "greater than 0",
    ),
    ("{name: x, economics: {pue: 0.5}}", "economics.pue", "got 0.5"),
    ("{name: x, economics: {depreciation_years: 0}}", "economics.depreciation_years", "got 0"),
    ("{name: x, run: {seed: -1}}", "run.seed", "got -1"),
    ("{name: x, run: {seed: 9223372036854775808}}", "run.seed", "less than or equal to 9223372036854775807"),
    # choices
    ("{name: x, topology: {kind: closs}}", "topology.kind", "unknown kind 'closs'; choose one of 'clos', "),
    ("{name: x, topology: {radix: 128}}", "topology.kind", "kind is missing"),
    ("{name: x, topology: {kind: clos, tiers: 4}}", "topology.tiers", "input should be 'auto', 1, 2 or 3"),
    ("{name: x, workload: {kind: sleeping}}", "workload.kind", "input should be 'serving'"),
    (
        "{name: x, serving: {scheduler: {kind: static}}}",
        "serving.scheduler.kind",
        "choose one of 'chunked_prefill'",
    ),
    (
        "{name: x, serving: {weights_dtype: fp7}}",
        "serving.weights_dtype",
        "got 'fp7'; input should be 'auto', 'bf16'",
    ),
    (
        "{name: x, workload: {arrivals: {kind: trace}}}",
        "workload.arrivals",
        "needs either path (a file) or trace",
    ),
    # laws of the topology
    ("{name: x, topology: {kind: clos, hb_domain_size: 0}}", "topology.hb_domain_size", "got 0"),
    (
        "{name: x, topology: {kind: clos, oversubscription_ratio: 0.5}}",
        "topology.oversubscription_ratio",
        "got 0.5",
    ),
    ("{name: x, serving: {parallelism: {dp: 0}}}", "serving.parallelism.dp", "got 0"),
    (
        "{name: x, serving: {parallelism: {expert_imbalance_ratio: 0.9}}}",
        "serving.parallelism.expert_imbalance_ratio",
        "got 0.9",
    ),
    ("{name: x, serving: {parallelism: {cp: 2}}}", "serving.parallelism.cp", "not modelled; remove cp"),
]


@pytest.mark.parametrize(("text", "path", "says"), WRONG, ids=[text for text, *_ in WRONG])
def test_a_wrong_document_is_refused_at_its_path(text, path, says):
    with pytest.raises(InputError) as caught:
        scenario_of(text)
    assert [message.path for message in caught.value.messages] == [path]
    assert says in caught.value.message.text


def test_an_odd_radix_is_refused_in_the_words_of_the_interface():
    with pytest.raises(InputError) as caught:
        scenario_of("{name: x, topology: {kind: clos, radix: 127}}")
    assert str(caught.value) == (
        "topology.radix: 127 is odd; a folded Clos splits each switch's ports evenly, so use an even radix such as 128"
    )


def test_every_problem_of_a_document_is_named_at_once():
    with pytest.raises(InputError) as caught:
        scenario_of("{name: x, run: {seed: -1}, hardware: {chip_count: 0}, topology: {kind: clos, radix: 3}}")
    assert {message.path for message in caught.value.messages} == {
        "run.seed",
        "hardware.chip_count",
        "topology.radix",
    }


@pytest.mark.parametrize("document", [None, [], "x", 3])
def test_what_is_no_mapping_is_refused(document):
    with pytest.raises(InputError, match="mapping"):
        Scenario.parse(document)


# What a document alone cannot show: names of the catalog, what divides, what fits.
WRONG_WITH_CATALOG = [
    ("{name: x, hardware: {chip: nvidia-h100}}", "hardware.chip", "closest: nvidia-"),
    ("{name: x, hardware: {server: dgx-h10}}", "hardware.server", "dgx-h100"),
    ("{name: x, topology: {kind: clos, price_book: nope}}", "topology.price_book", "h100-sheet-2024-08"),
    ("{name: x, economics: {price_book: nope}}", "economics.price_book", "default-2026"),
    ("{name: x, model: {name: llama-3.1-80b}}", "model.name", "llama-3.1-8"),
    ("{name: x, model: {config: {}}}", "model.config.model_type", "paste the whole file"),
    (
        "{name: x, model: {config: {architectures: [LlamaForCausalLM], model_type: llama, hidden_size: -1}}}",
        "model.config.hidden_size",
        "got -1",
    ),
    ("{name: x, serving: {engine: vLLM 99}}", "serving.engine", "for example 'vLLM 0.19'"),
    (
        '{name: x, hardware: {chip_overrides: {hbm_bytes_per_s: "3 TFLOP/s"}}}',
        "hardware.chip_overrides.hbm_bytes_per_s",
        "write it like '3.35 TB/s'",
    ),
    (
        "{name: x, hardware: {chip_overrides: {hbm_bytes_per_s: -1}}}",
        "hardware.chip_overrides.hbm_bytes_per_s",
        "got -1",
    ),
    (
        "{name: x, hardware: {chip_overrides: {hbm_bytes: 1e300}}}",
        "hardware.chip_overrides.hbm_bytes",
        "check the unit",
    ),
    (
        "{name: x, hardware: {chip_overrides: {hbm_byte_per_s: 1e12}}}",
        "hardware.chip_overrides.hbm_byte_per_s",
        "did you mean hbm_bytes_per_s",
    ),
    ("{name: x, serving: {parallelism: {tp: 3}}}", "serving.parallelism.tp", "got 3, which does not divide"),
    (
        "{name: x, hardware: {chip_count: 64}, serving: {parallelism: {tp: 1, pp: 33}}}",
        "serving.parallelism.pp",
        "got 33 stages for 32 layers; use at most 32",
    ),
    (
        "{name: x, hardware: {chip_count: 64}, serving: {parallelism: {pp: 33}}}",
        "serving.parallelism.pp",
        "got 33 stages for 32 layers; use at most 32",
    ),
    ("{name: x, serving: {parallelism: {tp: 2, ep: 2}}}", "serving.parallelism.ep", "got 2"),
    ("{name: x, serving: {parallelism: {ep: 2}}}", "serving.parallelism.ep", "got 2"),
    ("{name: x, serving: {replica_count: 9}}", "serving.replica_count", "9 replicas of 1 chips need 9"),
    (
        "{name: x, serving: {scheduler: {kind: chunked_prefill, max_num_seqs: 512, max_num_batched_tokens: 256}}}",
        "serving.scheduler.max_num_batched_tokens",
        "got 256, which is below max_num_seqs 512",
    ),
    (
        "{name: x, workload: {arrivals: {kind: trace, trace: gone}}}",
        "workload.arrivals",
        "upload it",
    ),
]


@pytest.mark.parametrize(
    ("text", "path", "says"), WRONG_WITH_CATALOG, ids=[t for t, *_ in WRONG_WITH_CATALOG]
)
def test_a_wrong_name_or_value_is_refused_by_the_plan_at_its_path(text, path, says):
    with pytest.raises(InputError) as caught:
        plan(scenario_of(text))
    assert caught.value.message.path == path
    assert says in caught.value.message.text


# What is well formed and cannot be: path, the binding constraint, and a change that would do.
INFEASIBLE = [
    ("{name: x, model: {name: llama-3.1-405b}}", "serving", "weights bind", "serving.weights_dtype: fp8"),
    (
        "{name: x, model: {name: llama-3.1-70b}, hardware: {chip_count: 1}}",
        "serving",
        "too much",
        "serving.parallelism.tp: 2",
    ),
    ("{name: x, serving: {parallelism: {tp: 16}}}", "hardware.chip_count", "= 16 chips and 8", "own 16"),
    (
        "{name: x, serving: {kv: {gpu_memory_utilization: 0.01}}}",
        "serving",
        "too much",
        "serving.kv.gpu_memory_utilization",
    ),
    (
        "{name: x, topology: {kind: clos, radix: 4}, hardware: {chip_count: 1024}}",
        "topology.tiers",
        "N ≤ radix × down_ports × down_ports = 16",
        "use at most 16 endpoints",
    ),
    (
        "{name: x, hardware: {chip: tpu-v4, chip_count: 1048576}, workload: {kind: none}}",
        "topology.ocs_usable_ports",
        "32768 > 288",
        "use at most 9,216 chips",
    ),
]


@pytest.mark.parametrize(("text", "path", "binds", "fits"), INFEASIBLE, ids=[t for t, *_ in INFEASIBLE])
def test_what_cannot_exist_names_the_constraint_and_a_change_that_fits(text, path, binds, fits):
    with pytest.raises(InfeasibleError) as caught:
        plan(scenario_of(text))
    message = caught.value.message
    assert message.path == path
    assert binds in message.text
    assert fits in message.text


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=5), inner, max_size=2)
        ),
        max_leaves=5,
    ),
    st.sampled_from(sorted(Scenario.model_fields)),
)
def test_whatever_stands_in_a_section_is_read_or_refused_below_it(value, section):
    try:
        Scenario.parse({"name": "x", section: value})
    except InputError as error:
        refused = error.messages
    else:
        refused = ()
    assert all(message.path.split(".")[0] == section and message.text for message in refused)
