"""Calibrate: rows in, a fit and a file out, within bounds, and a clear sentence for everything else."""

import base64
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from explorer import calibrating
from simcore.errors import InputError
from tests.simcore.validation.synthetic import HEAD, gemm_rows, text


@pytest.fixture
def client(db: None) -> Client:
    return Client()


def test_pasted_rows_are_fitted_and_the_file_is_offered(client: Client) -> None:
    rows = [*gemm_rows(), *gemm_rows(gpu="a100_sxm")[:5]]
    answer = client.post("/calibrate/", {"chip": "nvidia-h100-sxm", "rows": text(rows)})
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "gemm.bf16" in page
    assert "of another chip" in page
    data = re.search(r"data:application/yaml;base64,([\w+/=]+)", page)
    assert data is not None
    assert "by hand" in base64.b64decode(data[1]).decode()


def test_the_fit_is_closer_than_what_was_there(client: Client) -> None:
    outcome = calibrating.fit(text(gemm_rows()).encode(), "nvidia-h100-sxm", fitted_on="2026-11-30")
    (regime,) = outcome.regimes
    assert regime.fitted_mape_fraction < regime.before_fraction
    assert len(regime.points_s) > 10
    assert not outcome.calibration.is_class_default


def test_a_file_with_other_names_is_read_by_its_mapping(client: Client) -> None:
    file = SimpleUploadedFile(
        "rows.csv", text(gemm_rows(), HEAD.replace("measured_us", "time (us)")).encode()
    )
    posted = {"chip": "nvidia-h100-sxm", "file": file, "columns": "measured_us = time (us)"}
    assert client.post("/calibrate/", posted).status_code == 200


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [
        ("", "", "there are no rows"),
        ("a,b\n1,2\n", "", "these columns are no kernel measurements"),
        (text(gemm_rows()), "measured_us: time", "write our name = your name"),
        (text(gemm_rows()), "measured_us = nothing", "the file has no column nothing"),
        (text(gemm_rows(gpu="tpu")), "", "no row is about nvidia-h100-sxm"),
        (text(["h100_sxm,bfloat16,nan,1024,1024,5,x"] * 20), "", "20 × a number is missing"),
        (text(["h100_sxm,bfloat16,x,1024,1024,5,x"]), "", "no row is about"),
        ("model,gpu,tp,phase\nllama,h100_sxm,1,decode\n", "", "no row could be used"),
        ("model,gpu,tp,phase\nllama2-70b,h100-80gb,8,decode\n", "", "column batch is missing"),
        (text(gemm_rows() * 30), "", "this page fits at most 2,000"),
        ("x" * (calibrating.MAX_BYTES + 1), "", "larger than 500,000 bytes"),
    ],
)
def test_what_cannot_be_fitted_says_why(client: Client, rows: str, columns: str, said: str) -> None:
    posted = {"chip": "nvidia-h100-sxm", "rows": rows, "columns": columns}
    answer = client.post("/calibrate/", posted)
    assert answer.status_code == 422
    assert said in answer.content.decode()


def test_bytes_that_are_no_text_and_chips_that_are_none_are_named(client: Client) -> None:
    file = SimpleUploadedFile("rows.csv", b"\xff\xfe\x00")
    assert client.post("/calibrate/", {"chip": "nvidia-h100-sxm", "file": file}).status_code == 422
    answer = client.post("/calibrate/", {"chip": "<b>no</b>", "rows": text(gemm_rows())})
    assert answer.status_code == 422
    assert "<b>no</b>" not in answer.content.decode()


@pytest.mark.parametrize("value", ["inf", "-1", "1e400", "0", "9" * 400])
def test_odd_numbers_never_break_it(value: str) -> None:
    rows = [f"h100_sxm,bfloat16,{value},1024,1024,5,x", f"h100_sxm,bfloat16,8,1024,1024,{value},x"] * 10
    with pytest.raises(InputError):
        calibrating.fit(text(rows).encode(), "nvidia-h100-sxm", fitted_on="2026-11-30")
