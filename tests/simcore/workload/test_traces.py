"""Trace files of every format, whole and broken: read into arrays, or refused by line and column."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.errors import InputError
from simcore.workload.arrivals import Columns
from simcore.workload.trace_formats import detect_format
from simcore.workload.traces import cut, read_trace

AZURE = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
    b"2023-11-16 18:17:03.9799600,4808,10\n"
    b"2023-11-16 18:17:04.0319569,3180,8\n"
    b"2023-11-17 18:17:03.9799600,110,27\n"
)
BURSTGPT = (
    b"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    b"5,,3.1,ChatGPT,472,18,490,Conversation log\n"
    b"45,8,2.0,GPT-4,1087,0,1087,API log\n"
    b"118,8,2.0,GPT-4,417,276,693,API log\n"
)
MOONCAKE = (
    b'{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}\n'
    b'{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 2353]}\n'
)
PLAIN = b"timestamp_s,input_tokens,output_tokens\n1.5,100,10\n2.0,200,20\n4.5,300,30\n"


def refused(raw: bytes, **options: object) -> InputError:
    options.setdefault("format", "csv")
    with pytest.raises(InputError) as caught:
        read_trace(raw, **options)
    assert all(message.path == "workload.arrivals" for message in caught.value.messages)
    return caught.value


def test_azure_instants_have_seven_digits_and_count_from_the_first_row() -> None:
    table = read_trace(AZURE, format="azure")
    np.testing.assert_allclose(table.timestamp_s, [0.0, 0.0519969, 86_400.0], atol=1e-9)
    assert table.input_tokens.tolist() == [4808, 3180, 110]
    assert table.output_tokens.tolist() == [10, 8, 27]


def test_azure_instants_may_carry_utc_or_be_seconds() -> None:
    zoned = (
        AZURE.replace(b"00,4808", b"00+00:00,4808")
        .replace(b"69,3180", b"69Z,3180")
        .replace(b"00,110", b"00Z,110")
    )
    np.testing.assert_allclose(read_trace(zoned, format="azure").timestamp_s[1], 0.0519969, atol=1e-9)
    seconds = b"TIMESTAMP,ContextTokens,GeneratedTokens\n3,10,1\n4.25,10,1\n"
    assert read_trace(seconds, format="azure").timestamp_s.tolist() == [0.0, 1.25]


def test_burstgpt_failures_did_no_work_and_are_listed() -> None:
    table = read_trace(BURSTGPT, format="burstgpt")
    assert table.timestamp_s.tolist() == [0.0, 113.0]
    assert table.skipped_count == 1
    assert table.skipped_rows[0].text == "line 3 has 1087 tokens in and 0 out; it did no work and is skipped"


def test_mooncake_instants_are_milliseconds() -> None:
    table = read_trace(MOONCAKE, format="mooncake")
    np.testing.assert_allclose(table.timestamp_s, [0.0, 3.053])
    assert table.input_tokens.tolist() == [6955, 6472]


HASHED = b"""{"timestamp": 9000, "input_length": 1030, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 0, "input_length": 600, "output_length": 4, "hash_ids": [0, 7]}
{"timestamp": 3000, "input_length": 700, "output_length": 0, "hash_ids": [8, 9]}
{"timestamp": 4000, "input_length": 100, "output_length": 3}
"""


def test_block_hashes_stay_with_their_rows() -> None:
    """Rows are sorted by time and the one without output is skipped; a row without hashes has none."""
    table = read_trace(HASHED, format="mooncake")
    assert table.block_chains is not None
    offsets, hashes = table.block_chains
    assert table.input_tokens.tolist() == [600, 100, 1030]
    assert offsets.tolist() == [0, 2, 2, 5]
    assert hashes.tolist() == [0, 7, 0, 1, 2]
    later = cut(table, window=(1.0, 10.0), limit=5)
    assert later.block_hashes is not None
    assert later.block_hashes.tolist() == [0, 1, 2]


def test_a_trace_without_hashes_has_no_chains() -> None:
    plain = b'{"timestamp": 0, "input_length": 600, "output_length": 4}'
    assert read_trace(plain, format="mooncake").block_chains is None
    assert read_trace(PLAIN, format="csv").block_chains is None


@pytest.mark.parametrize("hashes", [b"5", b'["a1"]', b"[1.5]", b"[[1]]", b"[36893488147419103232]", b'"ab"'])
def test_hashes_that_are_no_whole_numbers_are_named(hashes: bytes) -> None:
    row = b'{"timestamp": 0, "input_length": 600, "output_length": 4, "hash_ids": %s}' % hashes
    assert "line 1, column 'hash_ids'" in str(refused(row, format="mooncake"))


def test_our_own_columns_need_no_map_and_others_do() -> None:
    assert len(read_trace(PLAIN, format="csv")) == 3
    renamed = PLAIN.replace(b"timestamp_s", b"when").replace(b"input_tokens", b"in")
    columns = Columns(timestamp_s="when", input_tokens="in")
    assert read_trace(renamed, format="csv", columns=columns).output_tokens.tolist() == [10, 20, 30]


def test_further_columns_byte_order_mark_quotes_and_windows_line_ends_are_harmless() -> None:
    raw = b'\xef\xbb\xbfid,timestamp_s,input_tokens,output_tokens\r\n"a, b",1,2,3\r\n\r\nc,2,4,5\r\n'
    assert read_trace(raw, format="csv").input_tokens.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("raw", "kind"),
    [(AZURE, "azure"), (BURSTGPT, "burstgpt"), (MOONCAKE, "mooncake"), (PLAIN, "csv"), (b"a,b\n", None)],
)
def test_a_format_is_told_by_its_first_line(raw: bytes, kind: str | None) -> None:
    assert detect_format(raw) == kind


def test_a_path_bytes_and_an_open_file_are_read_alike(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_bytes(PLAIN)
    hashes = {read_trace(source, format="csv").content_sha256 for source in (file, PLAIN, io.BytesIO(PLAIN))}
    assert len(hashes) == 1


def test_rows_are_sorted_then_cut_by_window_and_limit_then_scaled() -> None:
    raw = b"timestamp_s,input_tokens,output_tokens\n" + b"".join(
        b"%d,%d,1\n" % (t, t) for t in (9, 1, 5, 3, 7)
    )
    table = read_trace(raw, format="csv", window=(2.0, 8.0), limit=2, time_scale=10.0)
    assert table.input_tokens.tolist() == [3, 5]  # instants 2 and 4 after the first row
    assert table.timestamp_s.tolist() == [0.0, 20.0]


def test_broken_cells_are_named_by_line_and_column() -> None:
    error = refused(PLAIN + b"5.0,x,10\n6.0,10\n")
    assert [message.params["line"] for message in error.messages] == [5, 6]
    assert str(error).splitlines()[0] == (
        "workload.arrivals: line 5, column 'input_tokens': got 'x'; a whole number of tokens, 0 or more, is needed; "
        "mend the row or remove it"
    )
    assert "column 'output_tokens': got nothing" in str(error)


@pytest.mark.parametrize("cell", ["-3", "2.5", "nan", "inf", "1e12", "", "0x10"])
def test_impossible_token_counts_are_refused(cell: str) -> None:
    error = refused(PLAIN + b"5.0,10," + cell.encode() + b"\n")
    assert error.message.params["line"] == 5
    assert error.message.params["column"] == "output_tokens"


def test_a_bad_date_is_named_with_an_example() -> None:
    error = refused(AZURE + b"yesterday,10,10\n", format="azure")
    assert "line 5, column 'TIMESTAMP': got 'yesterday'" in str(error)
    assert "2023-11-16 18:17:03.9799600" in str(error)


def test_only_the_first_broken_cells_are_listed_and_the_rest_counted() -> None:
    error = refused(PLAIN + b"a,b,c\n" * 40)
    assert len(error.messages) == 6
    assert "115 more cells" in str(error)


@pytest.mark.parametrize("cell", ["-1", "0.5", "1e12", "nan"])
def test_what_is_a_number_and_cannot_be_is_counted_too(cell: str) -> None:
    """Such cells parse, so only the walk after it names them: five by line, and how many more."""
    error = refused(PLAIN + b"5.0,%s,10\n" % cell.encode() * 12)
    assert [message.params.get("line") for message in error.messages] == [5, 6, 7, 8, 9, None]
    assert "7 more cells" in str(error)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_are_counted_as_an_editor_counts_them(end: bytes) -> None:
    """Blank lines count, and a quoted cell may go on over two; both before the wrong cell and the idle row."""
    lines = [b"note,timestamp_s,input_tokens,output_tokens", b'"a', b'b",1,2,3', b"", b"c,2,0,5"]
    table = read_trace(end.join([*lines, b"d,3,4,5"]), format="csv")
    assert [message.params["line"] for message in table.skipped_rows] == [5]
    error = refused(end.join([*lines, b"", b"d,3,many,5"]))
    assert [message.params["line"] for message in error.messages] == [7]


@given(
    good=st.lists(st.sampled_from([b"1,2,3", b"", b"9,1,0"]), max_size=30),
    bad=st.sampled_from([b"x,2,3", b"1,-2,3", b"1,2", b"1,2,9999999999", b"nan,2,3", b"1,2_0,3"]),
    data=st.data(),
)
def test_the_line_that_is_named_is_the_line_that_is_wrong(
    good: list[bytes], bad: bytes, data: st.DataObject
) -> None:
    lines = [PLAIN.split(b"\n")[0], *good]
    place = data.draw(st.integers(1, len(lines)))
    lines.insert(place, bad)
    error = refused(b"\n".join(lines))
    assert {message.params["line"] for message in error.messages} == {place + 1}


def test_lines_of_json_count_blank_ones_and_the_rest_is_counted() -> None:
    rows = [b'{"timestamp": 1, "input_length": -9, "output_length": 1}'] * 8
    error = refused(MOONCAKE + b"\n\n" + b"\n".join(rows), format="mooncake")
    assert [message.params.get("line") for message in error.messages] == [5, 6, 7, 8, 9, None]
    assert "3 more cells" in str(error)


def test_a_json_number_beyond_all_floats_is_named() -> None:
    row = b'{"timestamp": 1, "input_length": 1%s, "output_length": 1}' % (b"0" * 400)
    assert "line 3, column 'input_length'" in str(refused(MOONCAKE + row, format="mooncake"))


def test_a_broken_json_line_is_named() -> None:
    error = refused(MOONCAKE + b'{"timestamp": 1, "input_length": "9"}\nnot json\n', format="mooncake")
    assert "line 3, column 'input_length': got '9'" in str(error)
    assert "line 4, column '(line)'" in str(error)


def test_nested_json_cannot_hurt() -> None:
    refused(b"[" * 100_000 + b"\n", format="mooncake")


def test_a_missing_column_names_what_there_is_and_what_to_do() -> None:
    assert "columns: {timestamp_s:" in str(refused(b"a,b,c\n1,2,3\n"))
    assert "set format: azure" in str(refused(AZURE))
    assert "set format: csv" in str(refused(PLAIN, format="azure"))


@pytest.mark.parametrize("name", ["prompt", "Response", "messages", "text"])
def test_files_with_prompt_text_are_refused(name: str) -> None:
    error = refused(b"timestamp_s,input_tokens,output_tokens," + name.encode() + b"\n1,2,3,hello\n")
    assert error.message.code == "trace.prompt_text"
    assert "keep the instants and token counts" in str(error)


def test_prose_under_a_harmless_name_is_refused_too() -> None:
    prose = b"please write me a letter " * 20
    assert refused(PLAIN.replace(b"tokens\n", b"tokens,x\n") + b"5,6,7," + prose + b"\n").message.code == (
        "trace.prompt_text"
    )
    row = json.dumps({"timestamp": 1, "input_length": 1, "output_length": 1, "prompt": "hello"})
    assert refused(row.encode(), format="mooncake").message.code == "trace.prompt_text"


def test_size_limits_come_before_parsing(tmp_path: Path) -> None:
    assert refused(PLAIN, max_bytes=20).message.code == "trace.too_large"
    assert refused(PLAIN, max_rows=2).message.code == "trace.too_many_rows"
    file = tmp_path / "trace.csv"
    file.write_bytes(PLAIN)
    assert refused(file, max_bytes=20).message.code == "trace.too_large"


@pytest.mark.parametrize("raw", [b"", PLAIN[:39], b"timestamp_s,input_tokens,output_tokens\n1,0,5\n"])
def test_a_trace_without_work_is_refused(raw: bytes) -> None:
    assert refused(raw).message.code in ("trace.empty", "trace.column_missing")


def test_a_missing_file_and_a_binary_file_are_said_clearly(tmp_path: Path) -> None:
    assert "no such file" in str(refused(tmp_path / "none.csv"))
    assert refused(b"\x1f\x8b\x08\x00\xff\xff", format="azure").message.code == "trace.not_text"


@given(st.binary(max_size=300), st.sampled_from(["csv", "azure", "burstgpt", "mooncake"]))
def test_no_bytes_break_the_reader(raw: bytes, form: str) -> None:
    for head in (b"", PLAIN, AZURE, MOONCAKE):
        try:
            table = read_trace(head + raw, format=form)
        except InputError:
            continue
        assert (np.diff(table.timestamp_s) >= 0).all()
        assert (table.input_tokens > 0).all()


def test_the_azure_conversation_trace_is_read_whole(shared: Path) -> None:
    table = read_trace(shared / "data/traces/azure2023_conv.csv", format="csv")
    assert len(table) == 19_366
    assert table.input_tokens.mean() == pytest.approx(1154.7, abs=0.05)
    assert table.output_tokens.mean() == pytest.approx(211.1, abs=0.05)
    assert table.timestamp_s[-1] == pytest.approx(3501.7, abs=0.05)
