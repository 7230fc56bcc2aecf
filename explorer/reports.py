"""Reports: freezing a comparison as a decision memo, revoking it, and what it reads like in the reader's language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import get_language, override

from explorer import wording
from explorer.access import Viewer
from explorer.actions import MAX_SHARE_DAYS, create_scenario
from explorer.exports import Entry
from explorer.models import SavedReport, SavedScenario
from explorer.models.scenario import printable
from explorer.tasks import catalog_with, plan_document, read_upload
from simcore.errors import InputError
from simcore.report.formats import render_report
from simcore.report.frozen import Column, Report
from simcore.report.language import Language
from simcore.report.making import attribution_of, made_column, sensitivities_of
from simcore.report.memo import memo
from simcore.report.memo_html import article
from simcore.scenario import Scenario

MAX_QUESTION = 500
MAX_REPORTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person typed into the form: `choice` is the column to recommend, None what the figures say."""

    title: str
    question: str
    language: str
    choice: int | None = None
    days: int | None = None


def language_of(code: str) -> Language:
    """The words of the language that is active when a memo is made."""
    return Language(
        code=code,
        say=wording.translated,
        label=wording.label,
        term=wording.term_name,
        source=wording.source,
    )


def freeze(viewer: Viewer, entries: Sequence[Entry], wanted: Wanted, *, address: str) -> SavedReport:
    """A new report of these scenarios, the baseline first. `address` is a template of its permalink."""
    _check(viewer, entries, wanted)
    columns = tuple(_column(entry) for entry in entries)
    row = SavedReport(title=wanted.title, language=wanted.language, **viewer.as_owner)
    report = Report(
        title=wanted.title,
        question=wanted.question,
        made_on=timezone.now().isoformat(timespec="seconds"),
        columns=columns,
        choice=wanted.choice,
        language=wanted.language,
        permalink=address.format(token=row.token),
        **_studied(viewer, columns, wanted.choice),
    )
    row.content = report.as_dict()
    row.expires_at = timezone.now() + timedelta(days=wanted.days) if wanted.days else None
    row.save()
    return row


def of_comparison(entries: Sequence[Entry]) -> Report:
    """The report of a comparison that nobody gave a title or a question, for its files."""
    if len(entries) < 2 or any(entry.result is None for entry in entries):
        raise _not_ready()
    columns = tuple(_column(entry) for entry in entries)
    title = " / ".join(column.name for column in columns)
    return Report(
        title=title,
        question="",
        made_on=timezone.now().isoformat(timespec="seconds"),
        columns=columns,
        language=get_language() or "en",
    )


def _studied(viewer: Viewer, columns: Sequence[Column], choice: int | None) -> dict[str, Any]:
    """What is asked of the scenario that is recommended, with what its owner may read."""
    document = columns[-1 if choice is None else choice].document
    catalog = catalog_with(viewer, Scenario.parse(document).hardware.calibration)
    traces = partial(read_upload, viewer)
    return {
        "sensitivities": sensitivities_of(columns, choice, catalog=catalog, traces=traces),
        "attribution": attribution_of(columns, choice, planner=lambda one: plan_document(one, viewer)),
    }


def _column(entry: Entry) -> Column:
    why = entry.run.result.why if entry.run is not None and entry.run.result is not None else {}
    return made_column(entry.document, entry.result or {}, why)


def _not_ready() -> InputError:
    return InputError.at(
        "", "report.not_ready",
        "a report freezes the results of two to five scenarios; choose them, and wait for their runs",
    )  # fmt: skip


def _check(viewer: Viewer, entries: Sequence[Entry], wanted: Wanted) -> None:
    if len(entries) < 2 or any(entry.result is None for entry in entries):
        raise _not_ready()
    if not printable(wanted.title):
        raise InputError.at("title", "report.title", "a report needs a title; say what is to be decided")
    if len(wanted.question) > MAX_QUESTION:
        raise InputError.at(
            "question", "report.question", "got {got} characters; ask in {allowed} at most",
            got=len(wanted.question), allowed=MAX_QUESTION,
        )  # fmt: skip
    if wanted.days is not None and not 1 <= wanted.days <= MAX_SHARE_DAYS:
        raise InputError.at(
            "days", "share.days", "got {got} days; a link may live 1 to {allowed}", got=wanted.days,
            allowed=MAX_SHARE_DAYS,
        )  # fmt: skip
    if SavedReport.objects.filter(viewer.owned, revoked_at=None).count() >= MAX_REPORTS:
        raise InputError.at(
            "", "report.too_many", "got {got} reports; {allowed} can be kept, so revoke one first",
            got=MAX_REPORTS, allowed=MAX_REPORTS,
        )  # fmt: skip


def revoke(report: SavedReport) -> None:
    """The token stays, to say so; what it showed is gone."""
    report.revoked_at = timezone.now()
    report.content = None
    report.save(update_fields=["revoked_at", "content"])


def content_of(row: SavedReport) -> Report:
    return Report.from_dict(row.content)


def article_of(row: SavedReport) -> str:
    """The memo in its own language, whatever the reader's."""
    with override(row.language):
        return article(memo(content_of(row), language_of(row.language)))


def file_of(report: Report, form: str) -> bytes:
    """The report in one of the formats, in its own language."""
    with override(report.language):
        return render_report(report, form, language_of(report.language))


def create_from_report(viewer: Viewer, documents: Sequence[Mapping[str, Any]]) -> list[SavedScenario]:
    """The scenarios of a report's JSON, as they were typed."""
    with transaction.atomic():
        return [create_scenario(viewer, document) for document in documents]
