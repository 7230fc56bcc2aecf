"""Records of requests as a file: every request, units in the names, nothing where nothing applies."""

import csv
from pathlib import Path

import numpy as np
import pytest

from simcore.report.records import record_columns, write_records
from simcore.serving.records import Records
from simcore.serving.state import FINISHED, REJECTED

THREE = Records(
    arrival_s=np.array([0.0, 1.0, 2.0]),
    scheduled_s=np.array([0.1, 1.5, np.nan]),
    first_token_s=np.array([0.5, 2.0, np.nan]),
    finish_s=np.array([1.5, 2.0, np.nan]),
    input_tokens=np.array([20, 30, 5000]),
    output_tokens=np.array([11, 1, 10]),
    preemption_count=np.array([0, 2, 0], np.int32),
    replica=np.array([0, 1, -1], np.int32),
    status=np.array([FINISHED, FINISHED, REJECTED], np.int32),
)


def test_a_row_holds_what_a_client_saw(tmp_path: Path) -> None:
    file = tmp_path / "records.csv"
    write_records(record_columns(THREE, front_end_s=0.25), str(file))
    first, short, refused = csv.DictReader(file.read_text().splitlines())
    assert [float(first[name]) for name in ("queue_s", "ttft_s", "tpot_s", "e2e_s")] == pytest.approx(
        [0.1, 0.75, 0.1, 1.75]
    )
    assert (first["status"], refused["status"]) == ("finished", "rejected")
    assert short["tpot_s"] == ""
    assert short["preemption_count"] == "2"
    assert {
        refused[name] for name in ("scheduled_s", "finish_s", "ttft_s", "e2e_s", "queue_s", "replica")
    } == {""}
    assert short["replica"] == "1"
    assert refused["input_tokens"] == "5000"


def test_a_class_is_named_where_there_is_one() -> None:
    columns = record_columns(THREE, front_end_s=0.0, classes=("chat", "batch"), class_of=np.array([0, 1, 1]))
    assert columns["class"].tolist() == ["chat", "batch", "batch"]
    assert "class" not in record_columns(THREE, front_end_s=0.0)


def test_many_rows_are_written_in_their_order(tmp_path: Path) -> None:
    many = THREE.where(np.ones(3, bool))
    long = Records(**{name: np.tile(getattr(many, name), 50_000) for name in THREE.__dataclass_fields__})
    file = tmp_path / "records.csv"
    write_records(record_columns(long, front_end_s=0.0), str(file))
    lines = file.read_text().splitlines()
    assert len(lines) == 150_001
    assert [line.split(",", 1)[0] for line in lines[1:]] == [str(place) for place in range(150_000)]


def test_parquet_holds_the_same_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow, an extra")
    file = tmp_path / "records.parquet"
    columns = record_columns(THREE, front_end_s=0.0)
    write_records(columns, str(file))
    table = parquet.read_table(file)
    assert table.column_names == list(columns)
    assert table["ttft_s"].to_pylist() == [0.5, 1.0, None]
