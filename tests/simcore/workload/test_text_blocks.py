"""Blocks of a text put together are the text; its lines are those of the whole; large traces are read in parts."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.errors import InputError
from simcore.workload import text_blocks
from simcore.workload.text_blocks import blocks, lines
from simcore.workload.traces import read_trace

TEXTS = st.text(alphabet='ab,\n "\r\x0b\u2028', max_size=60)


@given(text=TEXTS, size=st.integers(1, 20), begin=st.integers(0, 5), quoted=st.booleans())
def test_blocks_are_the_text_cut_after_line_ends(text: str, size: int, begin: int, quoted: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_blocks, "BLOCK", size)
        found = list(blocks(text, begin, quoted=quoted))
    assert "".join(found) == text[begin:]
    assert all(block.endswith("\n") for block in found[:-1])
    assert all(len(block[:-1].rpartition("\n")[0]) < size for block in found) or (quoted and '"' in text)


@given(text=TEXTS)
def test_lines_are_those_that_csv_reads_from_the_whole(text: str) -> None:
    def rows(source: object) -> list[list[str]] | str:
        try:
            return list(csv.reader(source))
        except csv.Error as error:
            return str(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_blocks, "BLOCK", 5)
        assert rows(lines(text)) == rows(io.StringIO(text))


ROWS = [(0.25 * number, 10 + number, 1 + number % 7) for number in range(500)]


def written(form: str) -> bytes:
    head, row = {
        "csv": ("timestamp_s,input_tokens,output_tokens\n", "{0},{1},{2}\n"),
        "burstgpt": (
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
            "{0},ChatGPT,{1},{2},9,API log\n",
        ),
        "azure": (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n",
            "2023-11-16 18:{3:02d}:{4:09.6f}0,{1},{2}\n",
        ),
        "mooncake": ("", '{{"timestamp": {5}, "input_length": {1}, "output_length": {2}}}\n'),
    }[form]
    body = (
        row.format(at_s, sent, answered, int(at_s // 60), at_s % 60, 1000 * at_s)
        for at_s, sent, answered in ROWS
    )
    return (head + "".join(body)).encode()


@pytest.mark.parametrize("form", ["csv", "burstgpt", "azure", "mooncake"])
def test_a_trace_read_in_blocks_is_the_same_cut_and_scaled_in_any_format(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = {"time_scale": 2.0, "window": (10.0, 60.0), "limit": 150}
    whole, cut = read_trace(written(form), format=form), read_trace(written(form), format=form, **cuts)
    monkeypatch.setattr(text_blocks, "BLOCK", 200)
    in_blocks = read_trace(written(form), format=form)
    for column in ("timestamp_s", "input_tokens", "output_tokens"):
        np.testing.assert_array_equal(getattr(in_blocks, column), getattr(whole, column))
    np.testing.assert_allclose(whole.timestamp_s, [row[0] for row in ROWS], atol=1e-6)
    assert len(cut) == 150
    np.testing.assert_allclose(cut.timestamp_s, 2.0 * 0.25 * np.arange(150), atol=1e-6)
    assert cut.input_tokens[0] == 50


@pytest.mark.parametrize("form", ["csv", "azure", "mooncake"])
def test_a_broken_row_far_down_is_named_by_its_line(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "BLOCK", 200)
    broken = written(form).replace(b",410,", b",-410,").replace(b": 410,", b": -410,")
    with pytest.raises(InputError) as caught:
        read_trace(broken, format=form)
    assert f"line {401 + (form != 'mooncake')}" in str(caught.value)
