"""Measured matrices: the same traffic in every form, and refusals that say where and what is allowed."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simcore.errors import InputError
from simcore.measurements.matrix import MAX_RANKS, read_matrix

SMALL = np.array([[0.0, 5.0, 0.0], [7.0, 0.0, 1.5], [0.0, 2.0, 0.0]])
TABLE = "0,5,0\n7,0,1.5\n0,2,0\n"
MATRICES = arrays(np.float64, (4, 4), elements=st.floats(0, 1e15)).filter(
    lambda matrix: (matrix - np.diag(np.diag(matrix))).any()
)


def packed(**columns):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **columns)
    return buffer.getvalue()


def refused(raw, **options):
    with pytest.raises(InputError) as caught:
        read_matrix(raw.encode() if isinstance(raw, str) else raw, **options)
    return caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        TABLE.replace(",", ";"),
        TABLE.replace(",", "\t"),
        "\n" + TABLE.replace("\n", "\r\n"),
        "r0,r1,r2\n" + TABLE,
        "0,1,2\n" + TABLE,
        ",r0,r1,r2\nr0,0,5,0\nr1,7,0,1.5\nr2,0,2,0\n",
        "0,0,5,0\n1,7,0,1.5\n2,0,2,0\n",
        "source,target,bytes\n0,1,5\n1,0,3\n1,2,1.5\n1,0,4\n2,1,2\n",
        'bytes,"target","source"\n5,1,0\n7,0,1\n1.5,2,1\n2,1,2\n',
    ],
)
def test_the_same_traffic_in_every_form(text):
    assert (read_matrix(text.encode()).moved_bytes == SMALL).all()


@given(MATRICES)
def test_what_was_packed_is_what_is_read_but_for_the_diagonal(matrix):
    found = read_matrix(packed(bytes=np.asfortranarray(matrix), messages=matrix))
    assert (found.moved_bytes == np.where(np.eye(4) > 0, 0.0, matrix)).all()
    assert (found.message_count == matrix).all()


def test_edges_with_messages_and_latency():
    found = read_matrix(
        b"source,target,bytes,messages,latency_sensitive\n0,1,6,2,true\n0,1,2,1,0\n1,0,8,4,0.5\n"
    )
    assert found.form == "edges"
    assert found.message_count[0, 1] == 3
    assert found.latency_sensitive_fraction[0, 1] == 0.75
    assert found.latency_sensitive_fraction[1, 0] == 0.5


def test_a_duration_comes_along():
    assert read_matrix(packed(bytes=SMALL, duration_s=12.0)).duration_s == 12.0


@pytest.mark.parametrize(
    ("raw", "code", "said"),
    [
        ("", "matrix.no_rows", "empty"),
        ("1,2\n3\n", "matrix.width", "line 2 has 1 cells"),
        ("1,2\n3,x\n", "matrix.cell", "line 2, column 2 is 'x'"),
        ("1,2,3\n4,5,6\n", "matrix.shape", "2 × 3"),
        ("1,2\n3,-4\n", "matrix.range", "from rank 1 to rank 1 is -4"),
        ("0,nan\n1,0\n", "matrix.range", "nan"),
        ("0,1e999\n1,0\n", "matrix.range", "inf"),
        ("3,0\n0,4\n", "matrix.empty", "no rank sends"),
        ("source,target,bytes\n", "matrix.no_edges", "no edge"),
        ("source,target,bytes\n0,1,1\n\n0,1.5,1\n", "matrix.rank", "line 4"),
        ("source,target,bytes\n0,99999,1\n", "matrix.rank", "0 to 4,095"),
        (b"\xff\xfe\x00\x01", "matrix.not_text", "UTF-8"),
        (packed(other=SMALL), "matrix.no_bytes", "bytes"),
        (packed(bytes=SMALL, messages=SMALL[:2]), "matrix.unlike_shapes", "messages is 2 × 3"),
        (packed(bytes=SMALL, latency_sensitive=SMALL), "matrix.range", "0 to 1"),
        (packed(bytes=SMALL, duration_s=-1.0), "matrix.duration", "above 0"),
        (packed(bytes=SMALL)[:200], "matrix.unreadable", "cannot be read"),
        (packed(bytes=np.array([["a", "b"]])), "matrix.dtype", "bytes holds <U1"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(raw, code, said):
    message = refused(raw)
    assert message.code == code
    assert said in message.text


def test_pickled_objects_are_refused_unread():
    assert refused(packed(bytes=np.array([[{}, 1], [2, 3]], dtype=object))).code == "matrix.dtype"


def header_alone(shape):
    """An archive whose array says that it is large."""
    buffer, header = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("bytes.npy", header.getvalue())
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        ((1_000_000, 1_000_000), "matrix.too_many_ranks"),
        ((64, 64), "matrix.unreadable"),
        ((-8, -8), "matrix.unreadable"),
    ],
)
def test_an_array_is_measured_before_it_is_unpacked(shape, code):
    assert refused(header_alone(shape)).code == code


def test_a_large_file_is_refused_before_it_is_parsed():
    assert refused(TABLE, max_bytes=5).code == "matrix.too_large"


def test_more_rows_than_ranks_are_refused():
    assert refused("0,1\n" * (MAX_RANKS + 2)).code == "matrix.too_many_rows"
