"""The grid: every combination once, ranges as typed, the best cells and the frontier."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.analysis.cells import CellResult
from simcore.analysis.grid import Axis, Grid, axis_values, frontier, parse_axis
from simcore.analysis.studies import parse_study
from simcore.errors import InputError


def test_the_last_axis_runs_fastest():
    grid = parse_study(
        {"kind": "grid", "axes": [{"path": "a", "values": [1, 2]}, {"path": "b", "values": ["x", "y", None]}]}
    )
    overrides = [cell.overrides for cell in grid.cells({})]
    assert overrides[:4] == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert len(overrides) == 6


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("4, 8,16", ["4", "8", "16"]),
        ("2..8:4", [2, 4, 6, 8]),
        ("1..16:5log", [1, 2, 4, 8, 16]),
        ("0..1:3", [0, 0.5, 1]),
        ("100..400 GB/s:4", ["100 GB/s", "200 GB/s", "300 GB/s", "400 GB/s"]),
        ("1e3..3e3:2", [1000, 3000]),
        ("[1, 2],[3]", ["[1, 2]", "[3]"]),
        ("rail_only,clos", ["rail_only", "clos"]),
    ],
)
def test_values_are_read_as_typed(text, values):
    assert axis_values(text) == values
    assert parse_axis(f"some.path={text}").values == tuple(values)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nothing", "axis.malformed"),
        ("=1,2", "axis.malformed"),
        ("a=", "axis.malformed"),
        ("a=0..4:3log", "axis.range"),
        ("a=1..4:1", "axis.range"),
        ("a=1..4:9999", "axis.range"),
        ("a=e..E:3", "axis.range"),
    ],
)
def test_what_is_no_axis_is_refused_with_a_next_step(text, code):
    with pytest.raises(InputError) as refused:
        parse_axis(text)
    assert refused.value.message.code == code


@pytest.mark.parametrize(
    ("paths", "code"), [(("p", "q"), "sweep.too_many"), (("p", "p"), "axis.twice")], ids=["long", "twice"]
)
def test_a_grid_has_an_end_and_takes_a_path_once(paths, code):
    values = range(1000 if code == "sweep.too_many" else 2)
    grid = Grid(axes=tuple(Axis(path=path, values=tuple(values)) for path in paths))
    with pytest.raises(InputError) as refused:
        grid.cells({})
    assert refused.value.message.code == code


def test_an_axis_without_values_is_refused_at_its_place():
    with pytest.raises(InputError) as refused:
        parse_study({"kind": "grid", "axes": [{"path": "a", "values": []}]})
    assert refused.value.message.path == "axes.0.values"


def test_the_summary_has_a_row_for_each_cell_and_the_best_of_each_metric():
    grid = Grid(axes=(Axis(path="a", values=(1, 2, 3)),))
    results = [
        CellResult(index=2, errors=({"message": "does not fit"},)),
        CellResult(index=1, metrics={"serving.ttft_s.p95": 0.2, "serving.output_token_per_s": 10.0}),
        CellResult(index=0, metrics={"serving.ttft_s.p95": 0.4, "serving.output_token_per_s": 20.0}),
    ]
    tables = grid.summary({}, results)
    assert [(row["index"], row["a"], row["error"]) for row in tables["sweep"]] == [
        (0, 1, ""), (1, 2, ""), (2, 3, "does not fit"),
    ]  # fmt: skip
    assert {row["metric"]: row["index"] for row in tables["best"]} == {
        "serving.ttft_s.p95": 1,
        "serving.output_token_per_s": 0,
    }


points = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=30)


@given(points, st.booleans(), st.booleans())
def test_nothing_beats_the_frontier_and_it_beats_the_rest(pairs, first_up, second_up):
    results = [CellResult(index=i, metrics={"x": x, "y": y}) for i, (x, y) in enumerate(pairs)]
    on_it = frontier(results, "x", "y", up=(first_up, second_up))
    signed = [(x if first_up else -x, y if second_up else -y) for x, y in pairs]

    def beaten(i: int) -> bool:
        return any(
            other[0] >= signed[i][0] and other[1] >= signed[i][1] and other != signed[i] for other in signed
        )

    assert on_it
    assert not any(beaten(i) for i in on_it)
    assert {signed[i] for i in on_it} == {signed[i] for i in range(len(pairs)) if not beaten(i)}
