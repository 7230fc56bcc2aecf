"""The command line: every command, its exit codes, and one clear message instead of a traceback."""

import csv
import io
import json
import subprocess
import sys

import pytest

from simcore.cli import main
from simcore.plan import plan
from simcore.scenario import Scenario, load_document

SMALL = """
name: small
hardware: {chip_count: 1}
workload:
  arrivals: {kind: poisson, request_per_s: 6.0}
  lengths: {kind: constant, input_tokens: 256, output_tokens: 32}
  request_count: 200
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return str(path)


@pytest.fixture
def trimtab(capsys):
    """Run a command; gives exit code, standard output and standard error. No command leaves a traceback."""

    def run(*arguments):
        capsys.readouterr()
        try:
            code = main(list(arguments))
        except SystemExit as left:  # argparse ends on its own
            code = left.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


# ---- run


def test_run_prints_a_summary_with_units_findings_and_digest(trimtab, scenario):
    code, out, err = trimtab("run", scenario)
    assert (code, err) == (0, "")
    assert out.startswith("small\n")
    assert "serving.ttft_s.p95" in out
    assert " ms " in out
    assert "finding: " in out
    assert "warning: " in out
    assert plan(Scenario.parse(load_document(SMALL))).digest[:16] in out


def test_run_json_prints_the_result_document_alone(trimtab, scenario):
    code, out, _ = trimtab("run", scenario, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["schema_version"] == 1
    assert document["metrics"]["serving.completed_count"] == 200
    assert document["metrics"]["analysis.bottleneck"]
    assert document["tables"]["findings"]


def test_run_events_prints_one_event_a_line(trimtab, scenario):
    code, out, _ = trimtab("run", scenario, "--events")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert all(set(event) == {"kind", "payload"} for event in events)
    kinds = [event["kind"] for event in events]
    assert list(dict.fromkeys(kinds)) == ["stage", "series", "finding"]


def test_run_without_findings_skips_the_doublings(trimtab, scenario):
    _, out, _ = trimtab("run", scenario, "--json", "--no-findings")
    assert "analysis.bottleneck" not in json.loads(out)["metrics"]


def test_run_reads_standard_input(trimtab, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SMALL.encode())))
    code, out, _ = trimtab("run", "-", "--json")
    assert code == 0
    assert json.loads(out)["scenario"] == "small"


def test_set_overrides_any_path_in_order(trimtab, scenario):
    _, out, _ = trimtab(
        "run", scenario, "--json",
        "--set", "name=other",
        "--set", "hardware.chip_overrides.hbm_bytes_per_s=x2",
        "--set", "workload.request_count=50",
        "--set", "workload.request_count=x2",
    )  # fmt: skip
    document = json.loads(out)
    assert document["scenario"] == "other"
    assert document["metrics"]["serving.completed_count"] == 100


def test_set_warns_of_keys_that_a_change_of_kind_drops(trimtab, scenario):
    code, out, err = trimtab(
        "run",
        scenario,
        "--json",
        "--set",
        "workload.arrivals.kind=closed_loop",
        "--set",
        "workload.arrivals.concurrency=4",
    )
    assert code == 0
    assert "warning: workload.arrivals.request_per_s: request_per_s was dropped" in err
    assert json.loads(out)["metrics"]["serving.completed_count"] == 200


def test_a_trace_beside_the_scenario_is_found(trimtab, tmp_path):
    (tmp_path / "trace.csv").write_text("timestamp_s,input_tokens,output_tokens\n0,100,10\n1,200,20\n")
    path = tmp_path / "traced.yaml"
    path.write_text("name: traced\nworkload: {arrivals: {kind: trace, path: trace.csv}}")
    code, out, _ = trimtab("run", str(path), "--json")
    assert code == 0
    assert json.loads(out)["metrics"]["serving.completed_count"] == 2


# ---- bad input: exit 2, the path, what was got, what is allowed


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("hardware.chipp=x", "error: hardware.chipp: unknown key"),
        ("topology={\"kind\": \"clos\", \"radix\": 127}", "error: topology.radix: 127 is odd; a folded Clos"),
        ("workload.slo.ttft_s=1 GB", "error: workload.slo.ttft_s: got '1 GB', whose unit 'GB'"),
        ("hardware.chip_count=NaN", "error: hardware.chip_count: got nan"),
        ("hardware.chip_count=-1", "error: hardware.chip_count: got -1"),
        ("hardware.chip=nvidia-h200", "error: hardware.chip: no chip 'nvidia-h200'"),
        ("serving.parallelism.tp=3", "error: serving.parallelism.tp: got 3, which does not divide"),
        ("no-equals-sign", "error: --set: got 'no-equals-sign'; write path=value"),
        ("serving.parallelism.tp=x2", "error: serving.parallelism.tp: x2 multiplies a number"),
        ("workload.arrivals={\"kind\": \"trace\", \"trace\": \"abc\"}", "name a file with workload.arrivals.path"),
        ("workload.arrivals={\"kind\": \"trace\", \"path\": \"gone.csv\"}", "gone.csv"),
    ],
)  # fmt: skip
def test_bad_input_is_one_message_on_standard_error_and_exit_2(trimtab, scenario, assignment, says):
    code, out, err = trimtab("run", scenario, "--set", assignment)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_every_problem_has_its_line(trimtab, scenario):
    code, _, err = trimtab("run", scenario, "--set", "run.seed=-1", "--set", "hardware.chip_count=0")
    assert code == 2
    assert sorted(line.split(":")[1].strip() for line in err.splitlines()) == [
        "hardware.chip_count",
        "run.seed",
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"name: [", "line "),
        (b"a: &a [x]\nb: *a\n", "anchors and aliases are not read"),
        (b"\xff\xfe", "not UTF-8"),
        (b"- 1", "a document is a mapping"),
        (b"name: x\n" + b" " * 1_000_000, "1,000,000"),
        (b"", "a document is a mapping"),
    ],
)
def test_a_file_that_is_no_scenario_is_bad_input(trimtab, tmp_path, content, says):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    code, _, err = trimtab("run", str(path))
    assert code == 2
    assert says in err


@pytest.mark.parametrize("command", ["run", "explain", "compare"])
def test_a_file_that_cannot_be_read_is_bad_input(trimtab, tmp_path, scenario, command):
    more = {"run": [], "explain": ["cost.capex_usd"], "compare": [scenario]}[command]
    for missing in (tmp_path / "none.yaml", tmp_path):
        code, out, err = trimtab(command, str(missing), *more)
        assert (code, out) == (2, "")
        assert "the file cannot be read" in err


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["run"], ["compare"], ["bench", "nothing"], ["run", "x", "--sett"]]
)
def test_a_wrong_command_line_is_exit_2_with_the_usage(trimtab, arguments):
    code, _, err = trimtab(*arguments)
    assert code == 2
    assert "usage: trimtab" in err


# ---- infeasible: exit 3


def test_what_cannot_fit_is_exit_3_with_the_constraint_and_what_would_fit(trimtab, scenario):
    code, out, err = trimtab("run", scenario, "--set", "model.name=llama-3.1-70b")
    assert (code, out) == (3, "")
    assert err.startswith("infeasible: serving: does not fit, and weights bind")
    assert "What would fit: " in err


# ---- explain


def test_explain_prints_the_tree_as_text(trimtab, scenario):
    code, out, _ = trimtab("explain", scenario, "memory.kv_token_capacity")
    assert code == 0
    assert out.startswith("memory.kv_token_capacity = ")
    assert "input serving.kv.block_size" in out
    assert len(out.splitlines()) > 10


def test_explain_prints_json_and_latex(trimtab, scenario):
    _, out, _ = trimtab("explain", scenario, "compute.decode_step_s", "--json")
    tree = json.loads(out)
    assert tree["name"] == "compute.decode_step_s"
    assert tree["op"] == "+"
    _, out, _ = trimtab("explain", scenario, "compute.decode_step_s", "--latex")
    assert out.startswith("\\begin{aligned}")


def test_explain_follows_overrides(trimtab, scenario):
    trees = []
    for factor in ("x1", "x2"):
        assignment = f"hardware.chip_overrides.hbm_visible_bytes={factor}"
        _, out, _ = trimtab("explain", scenario, "memory.kv_bytes_per_chip", "--json", "--set", assignment)
        trees.append(json.loads(out)["value"])
    assert trees[1] > 2 * trees[0]


def test_explain_says_of_a_simulated_number_how_it_came_about(trimtab, scenario):
    code, out, _ = trimtab("explain", scenario, "serving.ttft_s.p95")
    assert code == 0
    assert "p95 of 200 simulated, seed 1" in out


@pytest.mark.parametrize(
    ("metric", "says"), [("serving.ttft", "serving.ttft_s"), ("serving.regime", "the word 'stable'")]
)
def test_explain_refuses_what_has_no_tree(trimtab, scenario, metric, says):
    code, out, err = trimtab("explain", scenario, metric)
    assert (code, out) == (2, "")
    assert says in err


KINDS = {
    "serving": {"request_count": 50},
    "training": {"kind": "training"},
    "none": {"kind": "none"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_a_result_can_be_explained(trimtab, tmp_path, kind):
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"name": kind, "hardware": {"chip_count": 64}, "workload": KINDS[kind]}))
    _, out, _ = trimtab("run", str(file), "--json")
    numbers = {
        name: value for name, value in json.loads(out)["metrics"].items() if not isinstance(value, str)
    }
    planned = plan(Scenario.parse(load_document(file.read_bytes())))
    assert numbers.keys() >= planned.terms.keys()
    for metric in {**dict.fromkeys(list(numbers)[::6]), **dict.fromkeys(list(numbers)[-1:])}:
        code, tree, _ = trimtab("explain", str(file), metric, "--json")
        assert code == 0
        assert json.loads(tree)["value"] == pytest.approx(numbers[metric]), metric


# ---- compare


@pytest.fixture
def two(tmp_path, scenario):
    other = tmp_path / "faster.yaml"
    other.write_text(
        SMALL.replace("name: small", "name: faster").replace(
            "chip_count: 1", "chip_count: 1, chip_overrides: {hbm_bytes_per_s: x2}"
        )
    )
    return scenario, str(other)


def test_compare_prints_markdown(trimtab, two):
    code, out, _ = trimtab("compare", *two)
    assert code == 0
    assert out.startswith("# small against faster\n")
    assert "| HBM bandwidth | hardware.chip_overrides.hbm_bytes_per_s | — | x2 |" in out


@pytest.mark.parametrize(
    ("form", "start"), [("csv", "kind,id,label,small,faster"), ("json", "{"), ("html", "<!doctype html>")]
)
def test_compare_prints_other_forms(trimtab, two, form, start):
    code, out, _ = trimtab("compare", *two, "--format", form)
    assert code == 0
    assert out.startswith(start)


def test_compare_takes_another_baseline(trimtab, two):
    _, out, _ = trimtab("compare", *two, "--baseline", two[1], "--format", "json")
    assert json.loads(out)["names"] == ["faster", "small"]
    code, _, err = trimtab("compare", *two, "--baseline", "third.yaml")
    assert code == 2
    assert "must be one of the files" in err


def test_compare_writes_a_file(trimtab, two, tmp_path):
    target = tmp_path / "out.html"
    code, out, _ = trimtab("compare", *two, "--format", "html", "-o", str(target))
    assert (code, out) == (0, "")
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("ending", "start"),
    [
        ("pdf", b"%PDF"),
        ("xlsx", b"PK"),
        ("csv", b"kind,id"),
        ("json", b"{"),
        ("html", b"<!doc"),
        ("md", b"# "),
    ],
)
def test_compare_writes_what_the_ending_says(trimtab, two, tmp_path, ending, start):
    target = tmp_path / f"out.{ending}"
    code, out, _ = trimtab("compare", *two, "-o", str(target))
    assert (code, out) == (0, "")
    assert target.read_bytes().startswith(start)


def test_compare_into_a_place_that_is_not_there_is_bad_input(trimtab, two, tmp_path):
    code, _, err = trimtab("compare", *two, "-o", str(tmp_path / "no" / "such" / "out.md"))
    assert code == 2
    assert "cannot be written" in err


def test_compare_needs_two(trimtab, scenario):
    code, _, err = trimtab("compare", scenario)
    assert code == 2
    assert "compare 2 to 5" in err


# ---- catalog, validate, warm


def test_catalog_lists_shelves_slugs_and_a_card_with_sources(trimtab):
    _, out, _ = trimtab("catalog")
    assert "chips: " in out
    assert "nvidia-h100-sxm" in out
    _, out, _ = trimtab("catalog", "models")
    assert "llama-3.1-70b" in out
    _, out, _ = trimtab("catalog", "chips", "nvidia-h100-sxm")
    assert "3.35 TB/s" in out
    _, out, _ = trimtab("catalog", "prices", "default-2026")
    assert "USD" in out


def test_catalog_prints_json(trimtab):
    _, out, _ = trimtab("catalog", "--json")
    assert "nvidia-h100-sxm" in json.loads(out)["chips"]
    _, out, _ = trimtab("catalog", "servers", "--json")
    assert "dgx-h100" in json.loads(out)
    _, out, _ = trimtab("catalog", "chips", "nvidia-h100-sxm", "--json")
    figure = json.loads(out)["figures"]["hbm_bytes_per_s"]
    assert figure["printed"] == "3.35 TB/s"
    assert figure["source"]


@pytest.mark.parametrize(
    "kind", ["chips", "servers", "switches", "optics", "optical-switches", "models", "prices", "calibrations"]
)
def test_every_entry_of_a_shelf_has_a_card(trimtab, kind):
    _, out, _ = trimtab("catalog", kind, "--json")
    for slug in json.loads(out):
        code, card, _ = trimtab("catalog", kind, slug)
        assert code == 0
        assert slug in card.splitlines()[0]


def test_catalog_refuses_an_unknown_slug(trimtab):
    code, _, err = trimtab("catalog", "chips", "nvidia-h1000")
    assert code == 2
    assert "`trimtab catalog chips` lists them" in err


def test_validate_prints_every_published_number_and_fails_where_one_is_missed(trimtab):
    code, out, err = trimtab("validate", "--json")
    rows = json.loads(out)
    assert len(rows) > 20
    assert f"of {len(rows)} published numbers met" in err
    assert code == 0


def test_bench_edit_measures_a_what_if(trimtab):
    code, out, _ = trimtab("bench", "edit", "--json")
    measured = json.loads(out)
    assert code == 0
    assert measured["requests"] == 10_000
    assert 0 < measured["seconds"] < 1
    assert measured["peak_rss_bytes"] > 0


def test_an_interrupt_ends_quietly(trimtab, scenario, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("simcore.cli.run.simulate", interrupted)
    assert trimtab("run", scenario) == (130, "", "interrupted\n")


# ---- records


def test_run_records_writes_a_row_per_request(trimtab, scenario, tmp_path):
    file = tmp_path / "records.csv"
    code, out, _ = trimtab("run", scenario, "--json", "--no-findings", "--records", str(file))
    assert code == 0
    rows = list(csv.DictReader(file.read_text().splitlines()))
    metrics = json.loads(out)["metrics"]
    assert len(rows) == 200
    mean = sum(float(row["ttft_s"]) for row in rows) / 200
    assert mean == pytest.approx(metrics["serving.ttft_s.mean"])


@pytest.mark.parametrize(
    ("file", "assignment", "complaint"),
    [
        ("records.xlsx", "name=x", "error: --records: got"),
        ("no/such/folder/records.csv", "name=x", "error: --records: no/such/folder/records.csv cannot be written"),
        ("records.csv", "workload.kind=none", "error: workload.kind: got none; only what serves"),
    ],
)  # fmt: skip
def test_records_that_cannot_be_written_are_refused(trimtab, scenario, file, assignment, complaint):
    code, _, err = trimtab("run", scenario, "--no-findings", "--records", file, "--set", assignment)
    assert code == 2
    assert err.startswith(complaint)


def test_parquet_without_its_reader_names_the_extra(trimtab, scenario, monkeypatch):
    monkeypatch.setattr("simcore.report.records.find_spec", lambda name: None)
    code, _, err = trimtab("run", scenario, "--records", "records.parquet")
    assert code == 2
    assert "pip install 'trimtab[measured]'" in err


# ---- as a program


def test_python_dash_m_simcore_is_trimtab(scenario):
    command = [sys.executable, "-m", "simcore", "run", scenario, "--json", "--no-findings"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["metrics"]["serving.completed_count"] == 200
    assert ran.stderr == ""


def test_the_program_says_what_is_wrong_and_leaves_no_traceback(tmp_path):
    command = [sys.executable, "-m", "simcore", "run", str(tmp_path / "none.yaml")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: ")
    assert len(ran.stderr.splitlines()) == 1


# ---- trace


def test_trace_writes_an_iteration_for_trace_viewers(trimtab, scenario, tmp_path):
    code, out, _ = trimtab("trace", scenario)
    assert code == 0
    events = json.loads(out)["traceEvents"]
    assert {"qkv", "attention", "lm_head"} <= {event["name"] for event in events}
    file = tmp_path / "trace.json"
    assert trimtab("trace", scenario, "-o", str(file))[0] == 0
    assert json.loads(file.read_text()) == json.loads(out)


def test_trace_of_what_serves_nothing_says_so(trimtab, scenario):
    code, _, err = trimtab("trace", scenario, "--set", "workload.kind=none")
    assert code == 2
    assert "workload.kind" in err


# ---- measured over simulated


BENCHMARK = {
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "completed": 200,
    "total_input_tokens": 51_200,
    "total_output_tokens": 6_400,
    "request_throughput": 6.0,
    "mean_ttft_ms": 50.0,
    "median_ttft_ms": 48.0,
    "mean_tpot_ms": 8.0,
}


@pytest.fixture
def benchmark(tmp_path):
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(BENCHMARK))
    return str(path)


def test_run_lays_a_benchmark_over_its_result(trimtab, scenario, benchmark):
    code, out, err = trimtab("run", scenario, "--no-findings", "--measured", "vllm-bench", benchmark)
    assert (code, err) == (0, "")
    line = next(line for line in out.splitlines() if line.endswith("   serving.tpot_s.mean") and "%" in line)
    assert line.split()[:2] == ["8", "ms"]
    code, out, _err = trimtab(
        "run", scenario, "--json", "--no-findings", "--measured", "vllm-bench", benchmark
    )
    rows = {row["metric"]: row for row in json.loads(out)["tables"]["measured"]}
    assert rows["serving.ttft_s.p50"]["measured"] == 0.048
    assert rows["serving.ttft_s.p50"]["simulated"] == json.loads(out)["metrics"]["serving.ttft_s.p50"]


def test_run_says_where_a_benchmark_had_another_load(trimtab, scenario, benchmark):
    _code, out, _err = trimtab(
        "run", scenario, "--set", "workload.arrivals.request_per_s=12", "--no-findings",
        "--measured", "vllm-bench", benchmark,
    )  # fmt: skip
    assert "Request rate: 6 in the benchmark, 1" in out


@pytest.mark.parametrize(
    ("tool", "content", "says"),
    [
        ("k6", json.dumps(BENCHMARK), "--measured: got 'k6'; the results of vllm-bench, guidellm"),
        ("vllm-bench", "{", "bench.json: line 1"),
        ("vllm-bench", json.dumps(BENCHMARK | {"completed": 0}), "completed: got 0"),
    ],
)
def test_a_benchmark_that_cannot_be_read_is_bad_input(trimtab, scenario, tmp_path, tool, content, says):
    path = tmp_path / "bench.json"
    path.write_text(content)
    code, out, err = trimtab("run", scenario, "--measured", tool, str(path))
    assert (code, out) == (2, "")
    assert says in err


def test_a_benchmark_is_laid_over_what_serves_only(trimtab, scenario, benchmark):
    code, _out, err = trimtab(
        "run", scenario, "--set", "workload.kind=none", "--measured", "vllm-bench", benchmark
    )
    assert code == 2
    assert "workload.kind" in err


# ---- sweep


def test_sweep_writes_a_row_for_each_combination(trimtab, scenario):
    axes = ("--axis", "workload.arrivals.request_per_s=2..4:2", "--axis", "serving.kv.block_size=16,32")
    code, out, _ = trimtab("sweep", scenario, *axes, "--jobs", "1", "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(out.splitlines()))
    assert [(row["workload.arrivals.request_per_s"], row["serving.kv.block_size"]) for row in rows] == [
        ("2", "16"), ("2", "32"), ("4", "16"), ("4", "32"),
    ]  # fmt: skip
    assert all(float(row["serving.ttft_s.p95"]) > 0 for row in rows)
    _, alone, _ = trimtab(
        "run", scenario, "--set", "workload.arrivals.request_per_s=4", "--json", "--no-findings"
    )
    assert float(rows[2]["serving.ttft_s.p95"]) == json.loads(alone)["metrics"]["serving.ttft_s.p95"]


def test_sweep_on_processes_finds_the_same_and_a_refused_cell_says_why(trimtab, scenario):
    axis = ("--axis", "workload.arrivals.request_per_s=2,fast,4", "--depth", "closed_forms")
    found = []
    for jobs in ("1", "2"):
        code, out, _ = trimtab("sweep", scenario, *axis, "--jobs", jobs, "--format", "jsonl")
        assert code == 0
        found.append(sorted(map(json.loads, out.splitlines()), key=lambda line: line["index"]))
    assert found[0] == found[1]
    assert found[0][1]["errors"][0]["path"] == "workload.arrivals.request_per_s"


def test_sweep_as_a_table_ends_with_the_best_cells(trimtab, scenario):
    code, out, _ = trimtab(
        "sweep", scenario, "--axis", "workload.arrivals.request_per_s=1,2", "--metrics", "serving.ttft_s.p95",
        "--jobs", "1",
    )  # fmt: skip
    assert code == 0
    assert out.splitlines()[0].split() == ["request_per_s", "TTFT", "p95"]
    assert out.splitlines()[-1].startswith("best TTFT p95: ")


def test_an_axis_that_is_none_is_refused(trimtab, scenario):
    code, _, err = trimtab("sweep", scenario, "--axis", "nothing")
    assert code == 2
    assert "write path=value,value" in err
