"""Optical circuits: which cube works for which job, which port meets which, and what one failed cube moves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Chart, Result, Table

Rows = Sequence[Mapping[str, Any]]
AXES: Final = ("x", "y", "z")
POSITIONS: Final = 16
_JOB_COLOURS: Final = (
    "var(--scaleout)", "var(--hbm)", "var(--compute)", "var(--scaleup)", "var(--host)", "var(--l2)",
    "var(--seq-4)", "var(--worse)",
)  # fmt: skip
_FREE: Final = "var(--hair)"
_FAILED: Final = "var(--failure)"


def cubes(result: Result | None) -> Chart | None:
    """Every cube with its job, before a cube fails and after."""
    rows = style.rows(result, "circuits")
    if not rows:
        return None
    swap = _swap(result)
    return Chart(
        slug="circuit-map",
        title=_cubes_title(result, swap),
        axis=_(
            "Cubes of the pod by job, before and after a cube fails; a job takes any cubes, wherever they stand"
        ),
        summary=_jobs_summary(result),
        source=_("Assigned: the first free healthy cubes; free cubes are grey, the failed one red"),
        draw="plot",
        body=_cubes_figure(rows, swap),
        table=_jobs_table(result, rows),
        wide=True,
        height=320,
    )


def _swap(result: Result | None) -> Mapping[str, Any] | None:
    found = style.rows(result, "circuit_swap")
    return found[0] if found else None


def _cubes_title(result: Result | None, swap: Mapping[str, Any] | None) -> str:
    time_s = style.metric(result, "reliability.reconfiguration_s")
    if swap is None or time_s is None:
        return _("The jobs take every cube: one that fails is waited for")
    return _(
        "Cube %(failed)s fails, cube %(spare)s takes its place: %(moved)s of %(all)s circuits move, in %(time)s"
    ) % {
        "failed": swap["failed_cube"],
        "spare": swap["spare_cube"],
        "moved": f"{int(swap['moved_circuit_count']):,}",
        "all": f"{int(swap['circuit_count']):,}",
        "time": style.number(time_s, "reconfiguration_s"),
    }  # fmt: skip


def _jobs_summary(result: Result | None) -> str:
    told = [
        _("job %(job)s: %(shape)s cubes")
        % {"job": int(row["job"]) + 1, "shape": "×".join(str(size) for size in row["cubes"])}
        for row in style.rows(result, "circuit_jobs")
    ]
    return _("Jobs on the pod: %(jobs)s.") % {"jobs": "; ".join(told)}


def _cubes_figure(rows: Rows, swap: Mapping[str, Any] | None) -> dict[str, Any]:
    width = math.ceil(math.sqrt(len(rows)))
    sides = [("job", "x", "y", _("Before"))] + ([("after_job", "x2", "y2", _("After"))] if swap else [])
    data, layout = [], {}
    for side, (column, x, y, name) in enumerate(sides):
        failed = int(swap["failed_cube"]) if swap and side else -1
        data.append(_grid(rows, column, width, failed) | {"xaxis": x, "yaxis": y, "name": name})
        span = [0, 1] if len(sides) == 1 else [side * 0.52, side * 0.52 + 0.48]
        plain = {"showgrid": False, "showticklabels": False, "ticks": ""}
        layout[f"{x[0]}axis{x[1:]}"] = style.axis(domain=span, anchor=y, title={"text": name}, **plain)
        layout[f"{y[0]}axis{y[1:]}"] = style.axis(autorange="reversed", anchor=x, **plain)
    return style.figure(
        data,
        x=layout.pop("xaxis"),
        y=layout.pop("yaxis"),
        margin={"l": 8, "r": 8, "t": 8, "b": 36},
        dragmode=False,
        **layout,
    )


def _grid(rows: Rows, column: str, width: int, failed: int) -> dict[str, Any]:
    """A heat map whose colours are jobs; a cell says its job's number."""
    jobs = 1 + max(max(int(row["job"]) for row in rows), 0)
    codes = [jobs + 1 if int(row["cube"]) == failed else int(row[column]) + 1 for row in rows]
    texts = ["✕" if code == jobs + 1 else str(code) if code else "" for code in codes]
    pad = -len(rows) % width
    shades = [_FREE, *(_JOB_COLOURS[job % len(_JOB_COLOURS)] for job in range(jobs)), _FAILED]
    return {
        "type": "heatmap",
        "x": list(range(width)),
        "y": list(range(math.ceil(len(rows) / width))),
        "z": _folded([*codes, *[None] * pad], width),
        "text": _folded([*texts, *[""] * pad], width),
        "customdata": _folded([*range(len(rows)), *[None] * pad], width),
        "texttemplate": "%{text}",
        "textfont": {"color": "var(--on-dark-mark)", "size": 12},
        "hovertemplate": _("cube %(cube)s · job %(job)s") % {"cube": "%{customdata}", "job": "%{text}"}
        + "<extra></extra>",
        "colorscale": _steps(shades),
        "zmin": -0.5,
        "zmax": jobs + 1.5,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }


def _folded(values: Sequence[Any], width: int) -> list[list[Any]]:
    return [list(values[start : start + width]) for start in range(0, len(values), width)]


def _steps(shades: Sequence[str]) -> list[list[Any]]:
    """A colour scale in steps: one colour per whole number."""
    share = 1 / len(shades)
    return [[edge, shade] for i, shade in enumerate(shades) for edge in (i * share, (i + 1) * share)]


def _jobs_table(result: Result | None, rows: Rows) -> Table:
    """Each job with its cubes."""
    return Table(
        columns=(_("Job"), _("Shape in cubes"), _("Twisted"), _("Chips"), _("Cubes"), _("Cubes after the failure")),
        rows=tuple(
            style.text_cells(
                str(int(job["job"]) + 1),
                "×".join(str(size) for size in job["cubes"]),
                _("yes") if job["is_twisted"] else _("no"),
                f"{int(job['chip_count']):,}",
                *(
                    _ranges([int(row["cube"]) for row in rows if row[column] == job["job"]])
                    for column in ("job", "after_job")
                ),
            )
            for job in style.rows(result, "circuit_jobs")
        ),
        words=3,
    )  # fmt: skip


def _ranges(numbers: Sequence[int]) -> str:
    """Runs of numbers: 0–15, 48."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def switches(result: Result | None) -> Chart | None:
    """Port against port, for the switches of each dimension."""
    rows = style.rows(result, "circuits")
    if not rows:
        return None
    ports = 2 * len(rows)
    lit = 2 * sum(int(row["x"]) >= 0 for row in rows)
    title = _("%(lit)s of %(ports)s ports of each optical switch are lit, none of them twice") % {
        "lit": lit,
        "ports": ports,
    }
    return Chart(
        slug="circuit-switches",
        title=title,
        axis=_(
            "Which cube's + face (across) is joined to which cube's − face (up), after the failure, on the switches of "
            "each dimension, by number; its 16 carry the same pattern"
        ),
        summary=title,
        source=_("Port 2c is the + face of cube c, port 2c + 1 its − face; rings mark circuits that moved"),
        draw="plot",
        body=_switches_figure(rows),
        table=_ports_table(rows),
        wide=True,
        height=300,
    )


def _switches_figure(rows: Rows) -> dict[str, Any]:
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    for place, axis in enumerate(AXES):
        number = "" if place == 0 else str(place + 1)
        pairs = [row for row in rows if int(row[f"after_{axis}"]) >= 0]
        moved = [row for row in pairs if row[f"after_{axis}"] != row[axis]]
        on = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        data.append(_points(pairs, axis) | on)
        data.append(_points(moved, axis) | on | {"marker": _ring()})
        span = [place * 0.35, place * 0.35 + 0.3]
        text = f"{axis}: {place * POSITIONS + 1}–{(place + 1) * POSITIONS}"
        ends = [-1, len(rows)]
        layout[f"xaxis{number}"] = style.axis(
            domain=span, anchor=f"y{number}", title={"text": text}, range=ends, nticks=5
        )
        layout[f"yaxis{number}"] = style.axis(anchor=f"x{number}", range=ends, nticks=5)
    return style.figure(
        data,
        x=layout.pop("xaxis"),
        y=layout.pop("yaxis"),
        margin={"l": 32, "r": 8, "t": 8, "b": 48},
        **layout,
    )


def _points(rows: Rows, axis: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [int(row["cube"]) for row in rows],
        "y": [int(row[f"after_{axis}"]) for row in rows],
        "customdata": [[2 * int(row["cube"]), 2 * int(row[f"after_{axis}"]) + 1] for row in rows],
        "marker": {
            "size": 5,
            "color": [_JOB_COLOURS[int(row["after_job"]) % len(_JOB_COLOURS)] for row in rows],
        },
        "hovertemplate": _("port %(first)s to port %(second)s")
        % {"first": "%{customdata[0]}", "second": "%{customdata[1]}"}
        + "<extra></extra>",
    }


def _ring() -> dict[str, Any]:
    return {"size": 12, "symbol": "circle-open", "color": _FAILED, "line": {"width": 2}}


def _ports_table(rows: Rows) -> Table:
    """Every cube's circuits, as ports of the 16 switches of each dimension."""
    columns = tuple(
        _("%(axis)s: switches %(first)s–%(last)s")
        % {"axis": axis, "first": place * POSITIONS + 1, "last": (place + 1) * POSITIONS}
        for place, axis in enumerate(AXES)
    )
    return Table(
        columns=(_("Cube"), _("Job"), *columns),
        rows=tuple(
            style.text_cells(
                str(row["cube"]),
                str(int(row["after_job"]) + 1),
                *(f"{2 * int(row['cube'])} → {2 * int(row[f'after_{axis}']) + 1}" for axis in AXES),
            )
            for row in rows
            if int(row["after_job"]) >= 0
        ),
        words=2,
    )
