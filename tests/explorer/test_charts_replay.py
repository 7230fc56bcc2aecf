"""The replayed runs on Methods: two curves measured, two replayed, for each run."""

from explorer.charts.replay import panel
from simcore.validation.serving_curves import replay_curves


def test_it_draws_measured_dotted_beside_replayed_solid() -> None:
    made = panel()
    assert len(made.charts) == len(replay_curves()) == 2
    for chart, run in zip(made.charts, replay_curves(), strict=True):
        lines = {trace["name"]: trace for trace in chart.body["data"]}
        assert lines["running, measured"]["y"] == list(run.measured_running_count)
        assert lines["waiting, replayed"]["y"] == list(run.replayed_waiting_count)
        dashes = {name: trace["line"].get("dash") for name, trace in lines.items()}
        assert dashes == {
            "running, measured": "dot",
            "running, replayed": None,
            "waiting, measured": "dot",
            "waiting, replayed": None,
        }


def test_it_says_how_far_the_means_are() -> None:
    first = panel().charts[0]
    assert "+2.1 %" in first.title
    assert "+3.7 %" in first.title
