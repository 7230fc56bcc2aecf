"""What a person does with sweeps: start one, cancel it, delete it, within what a site allows one person."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction

from explorer.access import Viewer, own_sweeps
from explorer.models import SavedScenario, Sweep
from explorer.models.run import ENDED, UNFINISHED
from explorer.sweeping import enqueue, enqueue_cutting, in_chunks
from simcore.analysis.cells import Cell
from simcore.analysis.studies import SLOW_TO_CUT, parse_study
from simcore.errors import InputError
from simcore.plan import ENGINE_VERSION
from simcore.scenario import Scenario, apply_overrides

KEPT_SWEEPS = 50  # of one person; the oldest that have ended make room
_REQUESTS = ("workload.request_count", "run.replications")


@transaction.atomic
def start_sweep(viewer: Viewer, scenario: SavedScenario, spec: Mapping[str, Any]) -> Sweep:
    """Cut the study of the scenario's present state into chunks, and queue them."""
    document = scenario.document
    study = parse_study(spec)
    Scenario.parse(document)
    cells = [] if study.kind in SLOW_TO_CUT else study.cells(document)
    _refuse_too_many(document, cells)
    _refuse_one_more(viewer)
    sweep = Sweep.objects.create(
        **viewer.as_owner,
        scenario=scenario,
        document=document,
        kind=study.kind,
        spec=dict(spec),
        engine_version=ENGINE_VERSION,
    )
    enqueue(sweep.begin(in_chunks(document, cells)))
    if not cells:
        enqueue_cutting(sweep)
    _make_room(viewer)
    return sweep


def _refuse_too_many(document: Mapping[str, Any], cells: Sequence[Cell]) -> None:
    allowed = settings.MAX_CELLS_PER_SWEEP
    if len(cells) > allowed:
        raise InputError.at(
            "axes", "quota.cells", "got {got:,} cells; this site evaluates up to {allowed:,} in a sweep, so take "
            "fewer values", got=len(cells), allowed=allowed,
        )  # fmt: skip
    requests, allowed = _request_count(document, cells), settings.MAX_REQUESTS_PER_SWEEP
    if requests > allowed:
        raise InputError.at(
            "workload.request_count", "quota.sweep_requests", "got {got:,} requests in all cells together; this site "
            "simulates up to {allowed:,} in a sweep, so take fewer requests or cells", got=requests, allowed=allowed,
        )  # fmt: skip


def _request_count(document: Mapping[str, Any], cells: Sequence[Cell]) -> int:
    """Requests of all cells; one that cannot be read will be refused where it is evaluated, and counts none."""
    counts: dict[str, int] = {}
    total = 0
    for cell in cells:
        varied = {path: cell.overrides[path] for path in _REQUESTS if path in cell.overrides}
        key = repr(varied)
        if key not in counts:
            counts[key] = _requests(document, varied)
        total += counts[key]
    return total


def _requests(document: Mapping[str, Any], varied: Mapping[str, Any]) -> int:
    try:
        scenario = Scenario.parse(apply_overrides(document, varied)[0])
    except InputError:
        return 0
    return scenario.workload.request_count * scenario.run.replications


def _refuse_one_more(viewer: Viewer) -> None:
    allowed = settings.MAX_ACTIVE_SWEEPS_PER_OWNER
    if own_sweeps(viewer).filter(status__in=UNFINISHED).count() >= allowed:
        raise InputError.at(
            "", "quota.sweeps", "{allowed} sweeps of yours are under way, the most at a time; wait or cancel one",
            allowed=allowed,
        )  # fmt: skip


def _make_room(viewer: Viewer) -> None:
    ended = own_sweeps(viewer).filter(status__in=ENDED).order_by("-created_at")
    own_sweeps(viewer).filter(pk__in=list(ended.values_list("pk", flat=True)[KEPT_SWEEPS:])).delete()
