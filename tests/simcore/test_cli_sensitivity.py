"""`trimtab tornado`, `monte-carlo` and `goal`: tables, JSON, and one sentence where something is wrong."""

import json

import pytest

from simcore.cli import main

SMALL = """
name: small
hardware: {chip_count: 2}
serving: {parallelism: {tp: 1}}
workload: {arrivals: {kind: poisson, request_per_s: 6.0}, request_count: 200}
"""


@pytest.fixture
def trimtab(tmp_path, capsys):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)

    def run(command, *arguments):
        code = main([command, str(path), *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_a_tornado_without_more_takes_the_known_ranges(trimtab):
    code, out, _ = trimtab("tornado")
    assert code == 0
    assert out.startswith("cost.usd_per_million_tokens = ")
    assert "between the low and the high prices of Default prices 2026" in out


def test_a_tornado_of_named_inputs_and_written_ends(trimtab):
    path = "workload.arrivals.request_per_s"
    arguments = ("--range", f"{path}=5 to 8", "--path", "economics.pue", "--metric", "serving.ttft_s.p95")
    code, out, _ = trimtab("tornado", *arguments, "--json")
    rows = json.loads(out)["tornado"]
    assert code == 0
    assert {row["path"] for row in rows} == {path, "economics.pue"}
    rate = next(row for row in rows if row["path"] == path)
    assert (rate["low"], rate["base"], rate["high"], rate["confidence"]) == (5.0, 6.0, 8.0, "yours")
    assert rate["at_high"] > rate["at_low"]  # a run's metric: simulated without being told to


def test_draws_say_their_interval_their_number_and_the_chance(trimtab):
    target = "cost.usd_per_million_tokens <= 10"
    code, out, _ = trimtab(
        "monte-carlo", "--range", "economics.pue=1.1 to 1.4", "--draws", "20", "--target", target
    )
    assert code == 0
    assert "20 draws, 0 cannot be built" in out
    assert "cost.usd_per_million_tokens ≤ 10 USD per M token: 100.0% ± 0.0%" in out


def test_a_goal_is_one_sentence_and_what_was_tried(trimtab):
    target = "serving.capacity_request_per_s >= 100"
    code, out, _ = trimtab(
        "goal", "--path", "hardware.chip_count", "--between", "1 to 32", "--target", target
    )
    assert code == 0
    assert "is the smallest that keeps to Capacity ≥ 100 request/s" in out.splitlines()[0]
    assert any(" not " in line for line in out.splitlines()[1:])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("tornado", "--path", "serving.router.kind"), "no number stands here"),
        (("monte-carlo", "--range", "economics.pue=often"), "write the ends of a 90 % interval like 5 to 8"),
        (
            ("goal", "--path", "hardware.chip_count", "--between", "1 to 4", "--target", "soon"),
            "write a metric",
        ),
        (("goal", "--path", "hardware.chip_count", "--between", "1 to 4"), "targets"),
        (("goal", "--path", "hardware.chip_count", "--between", "4 to 4", "--slo"), "low must be below high"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(trimtab, arguments, says):
    code, out, err = trimtab(*arguments)
    assert code == 2
    assert out == ""
    assert says in err
    assert "Traceback" not in err
