"""nccl-tests' text: rows with operation, ranks and rates, whatever stands around them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.errors import InputError
from simcore.fabric.collectives import bus_factor
from simcore.measurements import as_csv, read_nccl_tests

TEXT = """\
# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 4 minBytes 0 maxBytes 16777216 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid 223120 on node-002 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 223120 on node-002 device  1 [0000:1c:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid 223120 on node-002 device  2 [0000:1d:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid 223120 on node-002 device  3 [0000:1e:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0     float     sum      -1     0.18    0.00    0.00      0     0.17    0.00    0.00      0
     8388608       2097152     float     sum      -1    78.00  107.55  161.32      0    79.00  106.18  159.28      0
    16777216       4194304     float     sum      -1    128.0  131.07  196.61    N/A    127.0  132.10  198.16    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 119.2
"""


def test_rows_out_of_place_and_in_place():
    rows = read_nccl_tests(TEXT.encode())
    assert [(row.bytes, row.in_place) for row in rows] == [
        (8388608, False),
        (8388608, True),
        (16777216, False),
        (16777216, True),
    ]
    first = rows[0]
    assert (first.operation, first.ranks, first.gpu) == ("all_reduce", 4, "NVIDIA H100 80GB HBM3")
    assert (first.time_s, first.busbw_bytes_per_s) == pytest.approx((78e-6, 161.32e9))
    assert first.algbw_bytes_per_s == pytest.approx(first.bytes / first.time_s, rel=1e-3)
    assert first.busbw_bytes_per_s / first.algbw_bytes_per_s == pytest.approx(
        bus_factor("all_reduce", 4), rel=1e-3
    )


def test_two_runs_in_one_file_keep_their_names_and_ranks():
    smaller = TEXT.replace("all_reduce_perf", "alltoall_perf").replace("#  Rank  3", "#  gone  3")
    rows = read_nccl_tests((TEXT + smaller).encode())
    assert [(row.operation, row.ranks) for row in rows[::4]] == [("all_reduce", 4), ("all_to_all", 3)]


def test_marks_of_mpirun_are_passed_over():
    marked = "\n".join(f"[1,0]<stdout>: {line}" for line in TEXT.splitlines())
    assert read_nccl_tests(marked.encode()) == read_nccl_tests(TEXT.encode())


def test_an_old_text_needs_its_operation_said():
    old = TEXT.replace("# Collective test starting: all_reduce_perf\n", "")
    with pytest.raises(InputError, match="--operation"):
        read_nccl_tests(old.encode())
    assert read_nccl_tests(old.encode(), operation="all_gather")[0].operation == "all_gather"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no line of sizes"),
        (TEXT.replace("#  Rank", "#  rank"), "number of ranks"),
        (TEXT.replace("107.55", "fast"), "line 15: algbw: got 'fast'"),
        (TEXT.replace("78.00", "-1"), "line 15: time: got '-1'"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, problem):
    with pytest.raises(InputError, match=problem):
        read_nccl_tests(text.encode())


@given(
    start=st.integers(0, len(TEXT)),
    cut=st.integers(0, 200),
    new=st.text(alphabet="0123456789.-# \nRank[]x", max_size=20),
)
def test_any_damage_is_read_or_refused(start, cut, new):
    with contextlib.suppress(InputError):
        as_csv(read_nccl_tests((TEXT[:start] + new + TEXT[start + cut :]).encode()))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw):
    with pytest.raises(InputError):
        read_nccl_tests(raw)
