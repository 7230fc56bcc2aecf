"""The digest names everything that can change a result, and nothing else."""

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.catalog.catalog import overridable_figures
from simcore.fabric import Clos, OcsPod, RailOnly, Torus
from simcore.plan import plan
from simcore.plan.digest import topology_entry
from simcore.scenario import Scenario, apply_overrides
from simcore.workload.traces import read_trace

BASE = {"name": "x", "workload": {"request_count": 10}}


def digest(overrides=None, base=BASE, **catalog_and_traces):
    document, _ = apply_overrides(base, overrides or {})
    return plan(Scenario.parse(document), **catalog_and_traces).digest


def test_a_digest_is_64_hexadecimal_digits():
    assert len(bytes.fromhex(digest())) == 32


def test_equal_scenarios_have_equal_digests():
    assert digest() == digest()
    written_out = Scenario.parse(BASE).model_dump(mode="json")
    assert digest(base=written_out) == digest()


def test_a_digest_is_the_same_in_another_process():
    code = (
        "from simcore.plan import plan; from simcore.scenario import Scenario; "
        f"print(plan(Scenario.parse({BASE!r})).digest)"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digest()


@pytest.mark.parametrize("path", ["name", "description"])
def test_words_do_not_change_it(path):
    assert digest({path: "another"}) == digest()


def test_a_unit_is_another_way_to_write_the_same():
    assert digest({"workload.slo.ttft_s": "1000 ms"}) == digest({"workload.slo.ttft_s": 1.0})


@pytest.mark.parametrize("figure", overridable_figures())
def test_every_chip_figure_changes_it(catalog, figure):
    now = getattr(catalog.chip("nvidia-h100-sxm"), figure)
    assert digest({f"hardware.chip_overrides.{figure}": 1e15 if now is None else now * 1.1}) != digest()


CHANGES = {
    "run.seed": 2,
    "hardware.chip_count": 16,
    "hardware.chip": "nvidia-h200-sxm",
    "hardware.calibration": "nvidia-h200-sxm",
    "model.name": "qwen3-32b",
    "topology.kind": "rail_only",
    "workload.request_count": 11,
    "workload.slo.tpot_s": 0.1,
    "workload.arrivals.request_per_s": 9,
    "workload.lengths.input_cv": 0.5,
    "serving.engine": "vLLM 0.18",
    "serving.max_model_len": 2048,
    "serving.kv.block_size": 32,
    "serving.scheduler.kind": "continuous",
    "serving.attention.kind": "naive",
    "serving.weights_dtype": "fp8",
    "reliability.host_availability_fraction": 0.9,
    "reliability.failures_per_thousand_node_days_ratio": 3.0,
    "reliability.mttr_s": 3600,
    "reliability.bring_up_s": 60,
    "reliability.jobs": [{"chips": 64}],
    "economics.pue": 1.1,
    "economics.price_book": "h100-sheet-2024-08",
}


def test_every_change_gives_another_digest():
    found = {path: digest({path: value}) for path, value in CHANGES.items()}
    assert len({digest(), *found.values()}) == 1 + len(CHANGES)


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["run.seed", "workload.request_count", "serving.kv.block_size"]), st.integers(1, 64)
    )
)
def test_digests_are_equal_exactly_where_the_scenarios_are(overrides):
    document, _ = apply_overrides(BASE, overrides)
    same = Scenario.parse(document) == Scenario.parse(BASE)
    assert (digest(overrides) == digest()) == same


def test_an_edited_price_changes_it(catalog):
    book = catalog.price_books["default-2026"]
    name, price = next((name, price) for name, price in book.prices.items() if "h100" in name)
    dearer = replace(book, prices={**book.prices, name: replace(price, mid_usd=price.mid_usd + 1)})
    edited = replace(catalog, price_books={**catalog.price_books, "default-2026": dearer})
    assert digest(catalog=edited) != digest(catalog=catalog)


def test_a_new_calibration_changes_it(catalog):
    fitted = {
        slug: replace(one, step_overhead=replace(one.step_overhead, per_iteration_s=1e-3))
        for slug, one in catalog.calibrations.items()
    }
    assert digest(catalog=replace(catalog, calibrations=fitted)) != digest(catalog=catalog)


# ---- traces: the content counts, not where it lies


TRACED = {"name": "x", "workload": {"arrivals": {"kind": "trace", "path": "a.csv"}}}
ROWS = "timestamp_s,input_tokens,output_tokens\n0,100,10\n1,200,20\n"


def reader(tmp_path, text):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return lambda named: read_trace(path, format=named.format, time_scale=named.time_scale)


def test_the_content_of_a_trace_counts_and_its_path_does_not(tmp_path):
    here = digest(base=TRACED, traces=reader(tmp_path, ROWS))
    assert (
        digest({"workload.arrivals.path": "elsewhere/b.csv"}, TRACED, traces=reader(tmp_path, ROWS)) == here
    )
    assert digest(base=TRACED, traces=reader(tmp_path, ROWS.replace("200", "201"))) != here


def test_how_a_trace_is_played_counts(tmp_path):
    read = reader(tmp_path, ROWS)
    assert digest({"workload.arrivals.time_scale": 2}, TRACED, traces=read) != digest(
        base=TRACED, traces=read
    )


SWITCHED = {
    "hb_domain_size",
    "kind",
    "oversubscription_ratio",
    "price_book",
    "radix",
    "tiers",
    "transceiver_convention",
}


@pytest.mark.parametrize(
    ("spec", "keys"),
    [
        (Clos(), SWITCHED),
        (RailOnly(), SWITCHED),
        (Torus(), {"dimensions", "kind", "price_book", "shape"}),
        (OcsPod(), {"kind", "ocs_usable_ports", "price_book"}),
        (Clos(planes=2), {*SWITCHED, "planes"}),
        (
            OcsPod(shape=(8, 8, 16), twisted=True),
            {"kind", "ocs_usable_ports", "price_book", "shape", "twisted"},
        ),
    ],
    ids=("clos", "rail_only", "torus", "pod", "planes", "twisted pod"),
)
def test_keys_that_a_topology_got_later_count_once_they_are_set(spec, keys):
    assert set(topology_entry(spec.model_dump(mode="json"))) == keys
