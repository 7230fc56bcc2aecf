"""What a person may do: one function per change, each of which checks, writes, and announces on commit.

Functions that change something take the row that `access` gave with `change=True`; here stand the rules on content,
size and number. What a person typed wrongly raises InputError with a message at its path, and nothing saved is lost.
"""

import hashlib
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import IO, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.text import slugify
from pydantic import ValidationError

from explorer.access import Viewer
from explorer.events import access_changed
from explorer.models import (
    CachedResult,
    Revision,
    Run,
    SavedCalibration,
    SavedReport,
    SavedScenario,
    ShareLink,
    TraceUpload,
    TrafficMatrix,
    Visibility,
)
from explorer.models.calibration import Fit
from explorer.models.fields import dump
from explorer.models.matrix import pack_matrix
from explorer.models.run import UNFINISHED, Status
from explorer.models.scenario import MAX_NAME, printable, title_of
from explorer.models.trace import describe, pack
from explorer.tasks import enqueue, plan_document
from simcore.analysis.matrix_study import study
from simcore.catalog import Chip, default_catalog
from simcore.catalog.calibrations import own_calibration
from simcore.errors import InfeasibleError, InputError, Message
from simcore.measurements.matrix import MeasuredMatrix, read_matrix
from simcore.plan import Plan
from simcore.plan.digest import ENGINE_VERSION
from simcore.scenario import apply_overrides
from simcore.scenario.cloning import chip_clone
from simcore.scenario.imports import document_from_text
from simcore.scenario.stories import Story
from simcore.spec import as_input_error
from simcore.validation.calibration_file import calibration_text
from simcore.workload.arrivals import Trace
from simcore.workload.traces import read_trace

NOT_TEXT = re.compile(  # in JSON of ASCII: NUL, and one half of a surrogate pair without the other
    r"\\u0000|\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}"
)
MAX_SHARE_DAYS = 3_650


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What planning said: a digest, or why the scenario cannot be."""

    digest: str
    seed: int
    engine_version: str
    infeasible: tuple[Message, ...] = ()
    plan: Plan | None = None


def plan_for(viewer: Viewer, document: Mapping[str, Any]) -> Outcome:
    """Plan a document. Wrong input raises; a scenario that cannot be is an answer."""
    _check_text(document)
    try:
        plan = plan_document(document, viewer)
    except InfeasibleError as error:
        return Outcome(digest="", seed=0, engine_version=ENGINE_VERSION, infeasible=error.messages)
    return Outcome(digest=plan.digest, seed=plan.seed, engine_version=ENGINE_VERSION, plan=plan)


# --- making scenarios -------------------------------------------------------------------------------------


def create_scenario(
    viewer: Viewer, document: Mapping[str, Any], *, baseline: Mapping[str, Any] | None = None, **fields: Any
) -> SavedScenario:
    """A scenario of the viewer's, with a first revision and a run; with `baseline`, that state comes before it."""
    _room_for_one_more(viewer)
    states = [dict(state) for state in (baseline, document) if state is not None]
    planned = [plan_for(viewer, state) for state in states]
    with transaction.atomic():
        scenario = SavedScenario.objects.create(name=title_of(document), **viewer.as_owner, **fields)
        for state in states:
            scenario.add_revision(state, parent=scenario.current)
        if baseline is not None:
            scenario.baseline = scenario.revisions.get(number=1)
            scenario.save(update_fields=["baseline"])
        for number, outcome in enumerate(planned, start=1):
            start_run(scenario, scenario.revisions.get(number=number), outcome)
    return scenario


def text_of(file: IO[bytes], size_bytes: int) -> str:
    """A small text file as text."""
    allowed = settings.MAX_DOCUMENT_BYTES
    if size_bytes > allowed:
        raise InputError.at(
            "file", "document.too_large", "got {got:,} bytes; a scenario may have {allowed:,}, so upload a trace "
            "on the page for traces", got=size_bytes, allowed=allowed,
        )  # fmt: skip
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError.at(
            "file", "document.not_text", "this is not UTF-8 text; save the file as UTF-8"
        ) from None


def create_from_text(viewer: Viewer, text: str) -> tuple[SavedScenario, list[Message]]:
    """From a model id, a config.json, a `vllm serve` line, or a scenario in YAML or JSON."""
    document, warnings = document_from_text(text, default_catalog())
    return create_scenario(viewer, document), warnings


def create_from_story(viewer: Viewer, story: Story) -> SavedScenario:
    """The story's variant, compared with its baseline."""
    return create_scenario(viewer, story.variant, baseline=story.baseline, story=story.slug)


def clone_chip(viewer: Viewer, chip: Chip, *, name: str) -> SavedScenario:
    """A scenario whose chip figures are the viewer's to edit, compared with the chip as it ships."""
    shipped = {"name": chip.name, "hardware": {"chip": chip.slug}}
    return create_scenario(viewer, chip_clone(chip, name=name), baseline=shipped)


def fork(viewer: Viewer, scenario: SavedScenario) -> SavedScenario:
    """A copy of the viewer's own, compared with the state that it was forked from."""
    return create_scenario(
        viewer,
        scenario.document,
        baseline=scenario.document,
        story=scenario.story,
        forked_from=scenario,
    )


def delete(scenario: SavedScenario) -> None:
    """The scenario with its history, runs and links. A link keeps its token, to say that it was revoked."""
    with transaction.atomic():
        for link in scenario.shares.filter(revoked_at=None):
            revoke(link)
        access_changed([run.pk for run in _unfinished(scenario)])
        for run in _unfinished(scenario):
            run.cancel()
        scenario.delete()


# --- changing a scenario ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What became of an edit: a run, or messages by path with nothing changed."""

    run: Run | None = None
    plan: Plan | None = None  # of that run, for its closed forms: they need not be found twice
    errors: Mapping[str, Message] = field(default_factory=dict)
    warnings: tuple[Message, ...] = ()


def edit(
    viewer: Viewer,
    scenario: SavedScenario,
    values: Mapping[str, str],
    *,
    seen: Container[str] | None = None,
    since: Revision | None = None,
) -> Edit:
    """Set paths to what was typed. What was refused before is tried again with it, in case both fit now.

    `seen` are the paths that the form showed (all, where it is not given): a draft of one that is not typed again
    is withdrawn, and only what was typed becomes a draft. `since` is the state to undo to, where it is not the one
    before: all edits of one drag follow the state that it began at.
    """
    seen = values if seen is None else seen
    scenario.draft = {path: entry for path, entry in scenario.draft.items() if path not in seen}
    waiting = {path: entry["typed"] for path, entry in scenario.draft.items() if path not in values}
    if waiting:
        together = _try_edit(viewer, scenario, {**waiting, **values}, since)
        if not together.errors:
            return together
    outcome = _try_edit(viewer, scenario, values, since)
    if outcome.errors:
        _keep_draft(scenario, {path: typed for path, typed in values.items() if path in seen}, outcome.errors)
    return outcome


def _try_edit(
    viewer: Viewer, scenario: SavedScenario, values: Mapping[str, str], since: Revision | None
) -> Edit:
    try:
        document, warnings = apply_overrides(
            scenario.document, {path: values[path] or None for path in values}
        )
        outcome = plan_for(viewer, document)
        run = _take_edit(scenario, document, values, outcome, since)
    except InputError as error:
        return Edit(errors={message.path: message for message in error.messages})
    return Edit(run=run, plan=outcome.plan, warnings=tuple(warnings))


@transaction.atomic
def _take_edit(
    scenario: SavedScenario,
    document: dict[str, Any],
    values: Container[str],
    outcome: Outcome,
    since: Revision | None,
) -> Run:
    revision = scenario.current
    if revision is None or document != scenario.document:
        revision = scenario.add_revision(document, parent=since or revision)
    scenario.draft = {path: entry for path, entry in scenario.draft.items() if path not in values}
    scenario.save(update_fields=["draft"])
    return start_run(scenario, revision, outcome)


def _keep_draft(scenario: SavedScenario, values: Mapping[str, str], errors: Mapping[str, Message]) -> None:
    """Keep what was typed and refused beside the saved document, with the message of each path."""
    typed = {
        path: {"typed": text[:MAX_NAME], "message": errors[path].text if path in errors else ""}
        for path, text in values.items()
    }
    scenario.draft = {**scenario.draft, **typed}
    SavedScenario.objects.filter(pk=scenario.pk).update(draft=scenario.draft)


def rename(viewer: Viewer, scenario: SavedScenario, name: str) -> None:
    """The name is part of the document, and of no digest: nothing is simulated again."""
    name = _line("name", name)
    before, document = scenario.current, {**scenario.document, "name": name}
    outcome = plan_for(viewer, document)
    with transaction.atomic():
        revision = scenario.add_revision(document, parent=before)
        under_way = Run.objects.filter(revision=before, status__in=UNFINISHED)
        if not under_way.update(revision=revision):
            start_run(scenario, revision, outcome)


def save(scenario: SavedScenario, label: str) -> None:
    """Give the current revision a name of its own."""
    label = _line("label", label)
    scenario.revisions.filter(number=scenario.current.number if scenario.current else 0).update(label=label)


def _line(path: str, text: str) -> str:
    """One line that a person gave as a name."""
    line = printable(text)
    if not line or len(text.strip()) > MAX_NAME:
        raise InputError.at(
            path,
            "name.length",
            "got {got} characters; give it 1 to {allowed}",
            got=len(text.strip()),
            allowed=MAX_NAME,
        )
    return line


def undo(viewer: Viewer, scenario: SavedScenario) -> Run | None:
    """Go back to the state before, if there is one."""
    return _go(viewer, scenario, scenario.current.parent if scenario.current else None)


def redo(viewer: Viewer, scenario: SavedScenario) -> Run | None:
    """Go to the youngest state after this one, if there is one."""
    children = scenario.current.children.order_by("-number") if scenario.current else None
    return _go(viewer, scenario, children.first() if children is not None else None)


def go_to(viewer: Viewer, scenario: SavedScenario, number: int) -> Run | None:
    """Go to a revision by its number, if it exists."""
    return _go(viewer, scenario, scenario.revisions.filter(number=min(number, 2**31 - 1)).first())


def _go(viewer: Viewer, scenario: SavedScenario, revision: Revision | None) -> Run | None:
    if revision is None:
        return None
    outcome = plan_for(viewer, revision.document)
    with transaction.atomic():
        scenario.go(revision)
        return start_run(scenario, revision, outcome)


def pin(viewer: Viewer, scenario: SavedScenario, other: SavedScenario | None = None) -> None:
    """Compare with the current state from now on, or with a copy of another scenario's."""
    copied = other is not None and other.pk != scenario.pk
    document = other.document if other is not None and copied else scenario.document
    outcome = plan_for(viewer, document)
    with transaction.atomic():
        source = scenario.current
        if source is None or (other is not None and copied):
            source = scenario.add_revision(document, label=other.name if other else "", go=False)
        scenario.baseline = source
        scenario.save(update_fields=["baseline"])
        start_run(scenario, source, outcome)


def unpin(scenario: SavedScenario) -> None:
    """Compare with nothing."""
    scenario.baseline = None
    scenario.save(update_fields=["baseline"])


# --- sharing ----------------------------------------------------------------------------------------------


def set_visibility(scenario: SavedScenario, visibility: str) -> None:
    """Who else may read. Those who follow a run and may no longer are cut off at once."""
    if visibility not in Visibility.values:
        raise InputError.at(
            "visibility", "visibility.unknown", "got {got!r}; choose one of {allowed}", got=visibility[:20],
            allowed=", ".join(Visibility.values),
        )  # fmt: skip
    scenario.visibility = visibility
    with transaction.atomic():
        scenario.save(update_fields=["visibility", "updated_at"])
        access_changed([run.pk for run in _unfinished(scenario)])


def share(viewer: Viewer, scenario: SavedScenario, *, days: int | None = None) -> ShareLink:
    """Freeze the current state and its result under a new token."""
    run = latest_run(scenario.current)
    if run is None or run.result_document is None:
        raise InputError.at(
            "",
            "share.no_result",
            "a link freezes a result, and there is none yet; share when the run has finished",
        )
    if days is not None and not 1 <= days <= MAX_SHARE_DAYS:
        raise InputError.at(
            "days",
            "share.days",
            "got {got} days; a link may live 1 to {allowed}",
            got=days,
            allowed=MAX_SHARE_DAYS,
        )
    baseline = latest_run(scenario.baseline) if scenario.baseline_id != scenario.current_id else None
    return ShareLink.objects.create(
        scenario=scenario,
        name=scenario.name,
        document=run.revision.document,
        result=run.result_document,
        baseline_document=baseline.revision.document if baseline else None,
        baseline_result=baseline.result_document if baseline else None,
        expires_at=timezone.now() + timedelta(days=days) if days else None,
        **viewer.as_owner,
    )


def revoke(link: ShareLink) -> None:
    """The token stays, to say so; what it showed is gone."""
    link.revoked_at = timezone.now()
    link.document, link.result = {}, None
    link.baseline_document = link.baseline_result = None
    link.save()


def adopt_sandbox(user: User, sandbox: str) -> int:
    """What an anonymous person made becomes the user's; returns the number of scenarios."""
    if not sandbox:
        return 0
    theirs = {"owner": None, "sandbox": sandbox}
    with transaction.atomic():
        has = TraceUpload.objects.filter(owner=user).values("sha256")
        TraceUpload.objects.filter(**theirs, sha256__in=has).delete()
        drawn = TrafficMatrix.objects.filter(owner=user).values("sha256")
        TrafficMatrix.objects.filter(**theirs, sha256__in=drawn).delete()
        fits = SavedCalibration.objects.filter(owner=user).values("slug")
        SavedCalibration.objects.filter(**theirs, slug__in=fits).delete()
        for rows in (
            TraceUpload.objects,
            TrafficMatrix.objects,
            SavedCalibration.objects,
            ShareLink.objects,
            SavedReport.objects,
        ):
            rows.filter(**theirs).update(owner=user, sandbox="")
        return SavedScenario.objects.filter(**theirs).update(owner=user, sandbox="")


# --- traces -----------------------------------------------------------------------------------------------


def upload_trace(
    viewer: Viewer,
    file: IO[bytes],
    *,
    name: str,
    size_bytes: int,
    trace_format: str,
    columns: Mapping[str, str],
) -> TraceUpload:
    """Read a trace, keep its three columns and its block hashes. The same file again is the same upload."""
    if size_bytes > settings.MAX_TRACE_BYTES:
        raise InputError.at(
            "file", "trace.too_large", "got {got:,} bytes; a trace may have {allowed:,}, so cut it or raise "
            "MAX_TRACE_BYTES", got=size_bytes, allowed=settings.MAX_TRACE_BYTES,
        )  # fmt: skip
    spec = _trace_spec(trace_format, columns)
    table = read_trace(
        file,
        format=spec.format,
        columns=spec.columns,
        max_rows=settings.MAX_TRACE_ROWS,
        max_bytes=settings.MAX_TRACE_BYTES,
        path="file",
    )
    upload, _ = TraceUpload.objects.update_or_create(
        sha256=table.content_sha256,
        owner=viewer.user,
        sandbox=viewer.sandbox,
        defaults={
            "name": printable(name),
            "format": trace_format,
            "row_count": len(table.timestamp_s),
            "skipped": [message.as_dict() for message in table.skipped_rows][:100],
            "summary": describe(table),
            "packed": pack(table),
        },
    )
    return upload


def _trace_spec(trace_format: str, columns: Mapping[str, str]) -> Trace:
    described = {"trace": "upload", "format": trace_format, "columns": dict(columns) or None}
    try:
        return Trace.model_validate(described)
    except ValidationError as error:
        raise as_input_error(error) from None


def use_trace(viewer: Viewer, scenario: SavedScenario, upload: TraceUpload) -> Edit:
    """Make an upload the scenario's workload."""
    typed = {f"workload.arrivals.{key}": value for key, value in _arrivals_of(upload).items()}
    return edit(viewer, scenario, typed)


def create_on_trace(viewer: Viewer, upload: TraceUpload) -> SavedScenario:
    """A scenario whose workload is an upload, and all else as it stands by default."""
    return create_scenario(viewer, {"name": upload.name, "workload": {"arrivals": _arrivals_of(upload)}})


def _arrivals_of(upload: TraceUpload) -> dict[str, str]:
    return {"kind": "trace", "trace": upload.sha256, "format": upload.format}


# --- traffic matrices -------------------------------------------------------------------------------------


def upload_matrix(
    viewer: Viewer, file: IO[bytes], *, name: str, size_bytes: int, server: str
) -> TrafficMatrix:
    """Read a matrix and study it. The same file again is the same upload."""
    allowed = settings.MAX_TRACE_BYTES
    _room_for_one_more_matrix(viewer)
    raw = b"" if size_bytes > allowed else file.read(allowed + 1)
    if size_bytes > allowed or len(raw) > allowed:
        raise InputError.at(
            "file", "matrix.too_large", "got {got:,} bytes; a matrix may have {allowed:,}, so send it as npz or as a "
            "list of edges", got=size_bytes, allowed=allowed,
        )  # fmt: skip
    matrix = read_matrix(raw, max_bytes=allowed)
    if matrix.rank_count > settings.MAX_MATRIX_RANKS:
        raise InputError.at(
            "file", "matrix.many_ranks", "got {got:,} ranks; this site studies up to {allowed:,}, `trimtab matrix` "
            "more", got=matrix.rank_count, allowed=settings.MAX_MATRIX_RANKS,
        )  # fmt: skip
    saved, _ = TrafficMatrix.objects.update_or_create(
        sha256=matrix.content_sha256,
        owner=viewer.user,
        sandbox=viewer.sandbox,
        defaults={
            "name": printable(name),
            "form": matrix.form,
            "rank_count": matrix.rank_count,
            "packed": pack_matrix(matrix),
            **_studied(matrix, server),
        },
    )
    return saved


def study_matrix(saved: TrafficMatrix, *, server: str) -> None:
    """The same matrix on chips of another server."""
    for key, value in _studied(saved.matrix(), server).items():
        setattr(saved, key, value)
    saved.save(update_fields=["server", "study"])


def discard_matrix(saved: TrafficMatrix) -> None:
    saved.delete()


def _studied(matrix: MeasuredMatrix, server: str) -> dict[str, Any]:
    return {"server": server, "study": study(matrix, default_catalog(), server=server).as_dict()}


def _room_for_one_more_matrix(viewer: Viewer) -> None:
    allowed = settings.MAX_MATRICES_PER_OWNER
    if TrafficMatrix.objects.filter(viewer.owned).count() >= allowed:
        raise InputError.at(
            "file", "limit.matrices", "you keep {allowed:,} traffic matrices, which is the limit here; delete some",
            allowed=allowed,
        )  # fmt: skip


# --- calibrations -----------------------------------------------------------------------------------------


def keep_calibration(viewer: Viewer, fit: Fit, *, name: str) -> SavedCalibration:
    """A fit under a name of its owner's. The same fit under the same name is the same row."""
    name = _line("name", name)
    _room_for_one_more_calibration(viewer)
    text = calibration_text(replace(own_calibration(fit.text, slug=fit.chip), name=name))
    content = hashlib.sha256(text.encode()).hexdigest()
    saved, _ = SavedCalibration.objects.update_or_create(
        slug=f"{slugify(name)[:60] or fit.chip}-{content[:10]}",
        owner=viewer.user,
        sandbox=viewer.sandbox,
        defaults={
            "name": name,
            "chip": fit.chip,
            "text": text,
            "row_count": fit.row_count,
            "report": fit.report,
        },
    )
    return saved


def discard_calibration(saved: SavedCalibration) -> None:
    """Forget a fit; what was computed with it stays."""
    saved.delete()


def use_calibration(viewer: Viewer, saved: SavedCalibration) -> SavedScenario:
    """A scenario of this fit's chip, compared with the same under the chip's shipped calibration."""
    chip = default_catalog().chip(saved.chip)
    baseline = {"name": chip.name, "hardware": {"chip": saved.chip}}
    hardware = {"chip": saved.chip, "calibration": saved.slug}
    return create_scenario(
        viewer, {"name": f"{chip.name}, {saved.name}"[:MAX_NAME], "hardware": hardware}, baseline=baseline
    )


# --- runs -------------------------------------------------------------------------------------------------


def _check_text(document: Mapping[str, Any]) -> None:
    """What no schema looks at: the size, the depth, and characters that are no text."""
    try:
        text = dump(document)
    except RecursionError:
        raise InputError.at("", "document.too_deep", "lists within lists without end; flatten it") from None
    if len(text) > settings.MAX_DOCUMENT_BYTES:
        raise InputError.at(
            "", "document.too_large", "got {got:,} bytes; a scenario may have {allowed:,}", got=len(text),
            allowed=settings.MAX_DOCUMENT_BYTES,
        )  # fmt: skip
    if NOT_TEXT.search(text):
        raise InputError.at(
            "", "document.not_text", "it holds a NUL or half a character; type that part again"
        )


@transaction.atomic
def run_beside(scenario: SavedScenario, document: dict[str, Any], outcome: Outcome) -> Run:
    """Run another state of the scenario, which stays as it stands. The next edit makes such runs stale."""
    revision = scenario.add_revision(document, go=False)
    return start_run(scenario, revision, outcome, beside=True)


def start_run(scenario: SavedScenario, revision: Revision, outcome: Outcome, *, beside: bool = False) -> Run:
    """Queue a run of a revision, or answer at once from what is known. What it makes stale is cancelled."""
    known_or_under_way = revision.runs.filter(
        status__in=(*UNFINISHED, Status.FINISHED), cancel_requested=False
    )
    same = known_or_under_way.filter(digest=outcome.digest).first() if outcome.digest else None
    if same is not None:
        return same
    run = Run(
        revision=revision, digest=outcome.digest, seed=outcome.seed, engine_version=outcome.engine_version
    )
    known = CachedResult.objects.filter(digest=outcome.digest).first()
    with transaction.atomic():
        run.save(force_insert=True)
        run.announce_queued()
        kept = (scenario.current, scenario.baseline)
        for stale in () if beside else _unfinished(scenario).exclude(revision__in=kept):
            stale.cancel(superseded_by=run)
        if outcome.infeasible:
            run.fail([message.as_dict() for message in outcome.infeasible])
        elif known is not None:
            run.reuse(known)
        else:
            _room_for_one_more_run(scenario)
            enqueue(run)
    return run


def cancel_runs(scenario: SavedScenario) -> int:
    """Stop what the scenario has under way; returns how many."""
    return sum(run.cancel() for run in _unfinished(scenario))


def latest_run(revision: Revision | None) -> Run | None:
    """The run to show for a revision: the newest, and a finished one before a cancelled one."""
    if revision is None:
        return None
    runs = revision.runs.select_related("revision__scenario", "result").defer("result__why")
    return runs.exclude(status="cancelled").first() or runs.first()


def _unfinished(scenario: SavedScenario) -> QuerySet[Run]:
    return Run.objects.filter(revision__scenario=scenario, status__in=UNFINISHED)


def _room_for_one_more(viewer: Viewer) -> None:
    allowed = settings.MAX_SCENARIOS_PER_OWNER
    if SavedScenario.objects.filter(viewer.owned).count() >= allowed:
        raise InputError.at(
            "", "quota.scenarios", "you have {allowed:,} scenarios, the most that one person may keep; delete some",
            allowed=allowed,
        )  # fmt: skip


def _room_for_one_more_calibration(viewer: Viewer) -> None:
    allowed = settings.MAX_SCENARIOS_PER_OWNER
    if SavedCalibration.objects.filter(viewer.owned).count() >= allowed:
        raise InputError.at(
            "name", "quota.calibrations", "you have {allowed:,} calibrations, the most that one person may keep; "
            "delete some", allowed=allowed,
        )  # fmt: skip


def _room_for_one_more_run(scenario: SavedScenario) -> None:
    allowed = settings.MAX_ACTIVE_RUNS_PER_OWNER
    theirs = {"revision__scenario__owner": scenario.owner_id, "revision__scenario__sandbox": scenario.sandbox}
    active = Run.objects.filter(**theirs, status__in=UNFINISHED, cancel_requested=False).count()
    if active > allowed:  # the new run is counted
        raise InputError.at(
            "", "quota.runs", "{allowed} simulations of yours are under way, the most at a time; wait or cancel one",
            allowed=allowed,
        )  # fmt: skip
