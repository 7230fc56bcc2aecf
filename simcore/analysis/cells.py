"""Cells: one scenario with some inputs set otherwise, evaluated many at a time; what every study is made of.

A cell is overrides on a document, in the form of `--set`: values with units, `null`, `x2`. Its result holds
metrics, or the sentences that say why there are none: a cell that is refused or does not fit is an answer, and
never stops the others. Depths: `closed_forms` plans only
(cost per token as `estimate.py` has it), `simulated` runs what was planned, `analysed` adds the
findings. The seed of the document stands in every cell, so two cells share their arrivals and lengths, and
differ by design, not by luck (common random numbers).

Nothing is shared between cells but the catalog and what `remembered` keeps, so cells may be evaluated in any order,
on any number of processes or machines, and come out the same.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from simcore.analysis.analyse import analyse
from simcore.analysis.estimate import closed_form_metrics
from simcore.catalog import Catalog, default_catalog
from simcore.errors import TrimtabError
from simcore.plan import Plan, plan
from simcore.scenario import Scenario, apply_overrides
from simcore.simulate import OnEvent, simulate
from simcore.workload.arrivals import Trace
from simcore.workload.traces import TraceTable

Depth = Literal["closed_forms", "simulated", "analysed"]
Metrics: TypeAlias = Mapping[str, float | str]
Traces: TypeAlias = Callable[[Trace], TraceTable]
Keep: TypeAlias = Callable[[str], bool]


class Known(Protocol):
    """Metrics by the digest of the plan, all of them whatever is kept."""

    def get(self, digest: str, /) -> Metrics | None: ...
    def __setitem__(self, digest: str, metrics: Metrics, /) -> None: ...


CHUNKS_PER_JOB: Final = 8  # enough that no process waits long for the last chunk of another
MAX_CHUNK_CELLS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One point of a study: its place, and what is set there."""

    index: int
    overrides: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """What a cell came to. `errors` (in the form of `Message.as_dict`) stand where there are no metrics; `warnings`
    are the codes of the plan's, such as `compute.extrapolated`.
    """

    index: int
    metrics: Metrics = field(default_factory=dict)
    errors: tuple[Mapping[str, Any], ...] = ()
    digest: str = ""
    warnings: tuple[str, ...] = ()


def evaluate(
    document: Mapping[str, Any],
    cells: Sequence[Cell],
    *,
    catalog: Catalog | None = None,
    traces: Traces | None = None,
    depth: Depth = "simulated",
    keep: Keep | None = None,
    known: Known | None = None,
    check: Callable[[Scenario], None] | None = None,
    on_event: OnEvent | None = None,
) -> Iterator[CellResult]:
    """Each cell's result, in the order of the cells, as soon as it is there.

    `keep` chooses metrics by name. What `known` has of a plan's digest is not run, and it is told the rest. `check`
    may refuse a scenario; whoever listens to the events of the runs may raise to stop.
    """
    catalog = catalog or default_catalog()
    reader = None if traces is None else _read_once(traces)
    for cell in cells:
        try:
            planned = _planned(document, cell, catalog, reader, check)
            metrics = known.get(planned.digest) if known is not None else None
            if metrics is None:
                metrics = _metrics(planned, depth, on_event)
                if known is not None:
                    known[planned.digest] = metrics
        except TrimtabError as error:
            yield CellResult(index=cell.index, errors=tuple(message.as_dict() for message in error.messages))
            continue
        kept = {name: _plain(value) for name, value in metrics.items() if keep is None or keep(name)}
        codes = tuple(dict.fromkeys(warning.code for warning in planned.warnings))
        yield CellResult(index=cell.index, metrics=kept, digest=planned.digest, warnings=codes)


def evaluate_in_processes(
    document: Mapping[str, Any],
    cells: Sequence[Cell],
    *,
    jobs: int,
    catalog: Callable[[], Catalog] = default_catalog,
    traces: Traces | None = None,
    depth: Depth = "simulated",
    keep: Keep | None = None,
) -> Iterator[CellResult]:
    """Each cell's result as its chunk is done, in any order, from `jobs` processes.

    `catalog` is called once in each process; like `traces` and `keep` it must be picklable.
    """
    if jobs <= 1 or len(cells) <= 1:
        yield from evaluate(document, cells, catalog=catalog(), traces=traces, depth=depth, keep=keep)
        return
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(document, catalog, traces, depth, keep),
    )
    with pool:
        try:
            waiting = [pool.submit(_chunk, chunk) for chunk in chunks(cells, parts=jobs * CHUNKS_PER_JOB)]
            for done in as_completed(waiting):
                yield from done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def chunks(cells: Sequence[Cell], *, parts: int, most: int = MAX_CHUNK_CELLS) -> list[Sequence[Cell]]:
    """The cells in at least `parts` runs, as far as there are that many, of `most` cells each at most."""
    size = max(1, min(most, len(cells) // max(1, parts)))
    return [cells[begin : begin + size] for begin in range(0, len(cells), size)]


_task: dict[str, Any] = {}  # of a process of the pool: what all its chunks have in common


def _begin(
    document: Mapping[str, Any],
    catalog: Callable[[], Catalog],
    traces: Traces | None,
    depth: Depth,
    keep: Keep | None,
) -> None:
    reader = None if traces is None else _read_once(traces)
    _task.update(document=document, catalog=catalog(), traces=reader, depth=depth, keep=keep)


def _chunk(cells: Sequence[Cell]) -> list[CellResult]:
    return list(evaluate(cells=cells, **_task))


def _planned(
    document: Mapping[str, Any],
    cell: Cell,
    catalog: Catalog,
    traces: Traces | None,
    check: Callable[[Scenario], None] | None,
) -> Plan:
    edited, _ = apply_overrides(document, cell.overrides)
    scenario = Scenario.parse(edited)
    if check is not None:
        check(scenario)
    return plan(scenario, catalog, traces)


def _metrics(planned: Plan, depth: Depth, on_event: OnEvent | None) -> Metrics:
    if depth == "closed_forms":
        return closed_form_metrics(planned)
    result = simulate(planned, on_event)
    if depth == "simulated":
        return result.metrics
    return result.with_findings(analyse(planned, result, on_event)).metrics


def _read_once(traces: Traces) -> Traces:
    """Cells that differ elsewhere name the same trace, and reading one takes longer than simulating it."""
    last: list[tuple[Trace, TraceTable]] = []

    def read(named: Trace) -> TraceTable:
        if not last or last[0][0] != named:
            last[:] = [(named, traces(named))]
        return last[0][1]

    return read


def _plain(value: Any) -> float | str:
    """A number of numpy's as Python's own."""
    return value if isinstance(value, str) else float(value)
