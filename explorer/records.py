"""One row per request of a finished run, as a file.

A run keeps its metrics, not its requests: at each edit they would be megabytes that nobody asks for. The same plan
gives the same requests bit for bit, so a download simulates again, within a limit, and only where the plan still has
the digest of the run.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings

from explorer.access import viewer_owning
from explorer.charts.serving import RECORD_FORMATS
from explorer.models import Run
from explorer.tasks import plan_document
from simcore.errors import InputError
from simcore.plan import Plan
from simcore.report.records import record_columns, write_records
from simcore.simulate import simulate

CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


def has_records(run: Run, suffix: str) -> bool:
    """Whether a run is of requests and finished, and this site writes such files."""
    document = run.result_document
    return (
        suffix in RECORD_FORMATS and document is not None and "serving.completed_count" in document["metrics"]
    )


def records_of(run: Run, suffix: str) -> bytes:
    """The file. Raises InputError where there are too many requests, or the run cannot be had again."""
    plan = plan_document(run.revision.document, viewer_owning(run.revision.scenario))
    if plan.digest != run.digest or plan.serving is None:
        raise InputError.at(
            "", "records.changed", "what this run was computed from has changed since: an entry of the catalog, or the "
            "engine; run the scenario again, then download",
        )  # fmt: skip
    _check_size(plan, len(plan.serving.inputs.requests))
    records = simulate(plan).records
    assert records is not None, "whatever serves has records"
    columns = record_columns(
        records,
        front_end_s=plan.serving.front_end_s,
        classes=[one.name for one in plan.scenario.workload.classes],
        class_of=plan.serving.inputs.requests.class_of,
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"records.{suffix}"
        write_records(columns, str(path))
        return path.read_bytes()


def _check_size(plan: Plan, request_count: int) -> None:
    count = request_count * plan.scenario.run.replications
    if count > settings.MAX_RECORDS_PER_DOWNLOAD:
        raise InputError.at(
            "", "limit.records", "got {got:,} requests, replications included; a download simulates up to {allowed:,} "
            "of them again, so lower request_count, or write the file with trimtab run --records", got=count,
            allowed=settings.MAX_RECORDS_PER_DOWNLOAD,
        )  # fmt: skip
