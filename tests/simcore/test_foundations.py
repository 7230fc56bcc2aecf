"""Errors, streams, specs, parallelism, glossary and the compiler shim."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import Field, ValidationError

import simcore
from simcore import glossary
from simcore.compiled import compiled, source_hash, sources
from simcore.errors import InputError, Message, TrimtabError
from simcore.parallelism import Parallelism
from simcore.spec import Spec, as_input_error
from simcore.streams import stream


class Link(Spec):
    bandwidth_bytes_per_s: float = Field(gt=0)
    radix: int = 64


def _errors(**values):
    with pytest.raises(ValidationError) as caught:
        Link(**values)
    return as_input_error(caught.value, prefix="topology").messages


def test_a_spec_reads_quantities_by_the_name_of_the_field():
    assert Link(bandwidth_bytes_per_s="400 Gb/s").bandwidth_bytes_per_s == 50e9


@pytest.mark.parametrize(
    "value", ["nan", float("nan"), float("inf"), "inf", "-1 GB/s", "3 TFLOP/s", None, []]
)
def test_a_spec_refuses_impossible_values_at_their_path(value):
    (message,) = _errors(bandwidth_bytes_per_s=value)
    assert message.path == "topology.bandwidth_bytes_per_s"
    assert message.text


def test_an_unknown_key_is_named():
    (message,) = _errors(bandwidth_bytes_per_s=1, radixx=3)
    assert (message.path, message.code) == ("topology.radixx", "key.unknown")


def test_a_missing_key_is_named():
    (message,) = _errors()
    assert (message.path, message.code) == ("topology.bandwidth_bytes_per_s", "key.missing")


def test_messages_keep_template_and_params_for_translation():
    message = Message(
        code="x", template="got {got}; use {allowed}", params={"got": 1, "allowed": 2}, path="a.b"
    )
    assert str(message) == "a.b: got 1; use 2"
    assert message.as_dict()["template"] == "got {got}; use {allowed}"


def test_an_error_without_a_message_is_a_programming_error():
    with pytest.raises(ValueError, match="at least one"):
        TrimtabError()


def test_an_error_prints_all_its_messages():
    error = InputError(
        Message(code="a", template="one", path="x"), Message(code="b", template="two", path="y")
    )
    assert str(error) == "x: one\ny: two"


def test_streams_depend_on_seed_and_name_alone():
    first = stream(1, "arrivals").random(5)
    stream(1, "lengths").random(1000)
    assert np.array_equal(first, stream(1, "arrivals").random(5))
    assert not np.array_equal(first, stream(2, "arrivals").random(5))
    assert not np.array_equal(first, stream(1, "lengths").random(5))


def test_streams_are_equal_in_another_process():
    code = "from simcore.streams import stream; print(stream(3, 'a', 4).random())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(other.stdout) == stream(3, "a", 4).random()


def test_a_replica_takes_tp_times_pp_times_cp_chips():
    assert Parallelism(tp=8, pp=2, cp=2, ep=4).replica_chip_count == 32


@pytest.mark.parametrize(("field", "value"), [("pp", 0), ("ep", -1), ("tp", "many")])
def test_parallel_degrees_are_positive_integers(field, value):
    with pytest.raises(ValidationError):
        Parallelism(**{field: value})


def test_the_glossary_answers_for_paths_metrics_and_statistics():
    assert glossary.label("serving.ttft_s.p95") == "TTFT p95"
    assert glossary.label("serving.parallelism.tp") == "Tensor parallel"
    assert glossary.better("serving.ttft_s.p95") == "down"
    assert glossary.better("serving.output_token_per_s") == "up"
    assert glossary.label("no.such.metric") == "no.such.metric"


def test_glossary_keys_are_unique():
    keys = [entry.key for entry in (*glossary._FIELDS, *glossary._METRICS, *glossary._TERMS)]
    assert len(keys) == len(set(keys))


def test_compiled_code_computes_the_same():
    def triple(value: float) -> float:
        return 3.0 * value

    assert compiled(triple)(2.0) == triple(2.0)


def test_machine_code_is_keyed_by_the_sources_it_came_from_and_no_others():
    kernel = Path(simcore.__file__).parent / "serving" / "kernel.py"
    names = {path.relative_to(kernel.parents[1]).as_posix() for path in sources(kernel)}
    assert {"serving/kernel.py", "serving/starting.py", "serving/heap.py", "compiled.py"} <= names
    assert not any(name.startswith(("fabric/", "cost/", "reliability/")) for name in names)


def test_the_key_of_machine_code_changes_with_a_source(tmp_path):
    first, second = tmp_path / "one.py", tmp_path / "two.py"
    first.write_text("from simcore.serving.heap import push\n")
    second.write_text("from simcore.serving.heap import push  # edited\n")
    assert source_hash(first) == source_hash(first) != source_hash(second)
