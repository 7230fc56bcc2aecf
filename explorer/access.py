"""Who may see and change what: the one place that decides, for pages, sockets and files alike.

A `Viewer` is a user or the sandbox of an anonymous session. Owners see and change what is theirs; others read
what is public, and what is visible by link if they have the address. Whoever may not is told 404, never 403:
that something exists is also private.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest

from explorer.models import (
    Run,
    SavedCalibration,
    SavedReport,
    SavedScenario,
    ShareLink,
    Sweep,
    TraceUpload,
    TrafficMatrix,
    Visibility,
)
from explorer.models.owned import Owned

SANDBOX = "sandbox"  # the session's key of its sandbox
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who asks. A sandbox of "" is an anonymous person who has made nothing yet."""

    user: User | None = None
    sandbox: str = ""

    @property
    def owned(self) -> Q:
        """The condition on rows that are this viewer's."""
        if self.user is not None:
            return Q(owner=self.user)
        return Q(owner=None, sandbox=self.sandbox) if self.sandbox else Q(pk__in=())

    @property
    def as_owner(self) -> dict[str, Any]:
        """The fields of a new row that is to be this viewer's."""
        return {"owner": self.user} if self.user is not None else {"sandbox": self.sandbox}

    def owns(self, row: Owned) -> bool:
        if self.user is not None:
            return row.owner_id == self.user.pk
        return (
            bool(self.sandbox) and row.owner_id is None and secrets.compare_digest(row.sandbox, self.sandbox)
        )


def viewer_of(request: HttpRequest, *, make_sandbox: bool = False) -> Viewer:
    """The viewer behind a request; with `make_sandbox`, an anonymous one gets a place to keep things in."""
    if isinstance(request.user, User):
        return Viewer(user=request.user)
    sandbox = request.session.get(SANDBOX, "")
    if make_sandbox and not sandbox:
        sandbox = request.session[SANDBOX] = secrets.token_urlsafe(24)
    return Viewer(sandbox=sandbox)


def viewer_in(scope: Mapping[str, Any]) -> Viewer:
    """The viewer behind a socket."""
    user = scope.get("user")
    if user is not None and not isinstance(user, AnonymousUser) and user.is_authenticated:
        return Viewer(user=user)
    return Viewer(sandbox=scope["session"].get(SANDBOX, "") if "session" in scope else "")


def viewer_owning(row: Owned) -> Viewer:
    """The viewer to whom a row belongs: what a worker may read on its behalf."""
    return Viewer(user=row.owner) if row.owner is not None else Viewer(sandbox=row.sandbox)


def readable_scenarios(viewer: Viewer) -> QuerySet[SavedScenario]:
    """What the viewer may open, given its address."""
    return SavedScenario.objects.filter(viewer.owned | Q(visibility__in=(Visibility.LINK, Visibility.PUBLIC)))


def listed_scenarios(viewer: Viewer) -> QuerySet[SavedScenario]:
    """What the viewer is shown without an address: theirs, and what is public."""
    return SavedScenario.objects.filter(viewer.owned | Q(visibility=Visibility.PUBLIC))


def scenario_for(viewer: Viewer, pk: UUID | str, *, change: bool = False) -> SavedScenario:
    """The scenario, if the viewer may read (or change) it."""
    rows = SavedScenario.objects.filter(viewer.owned) if change else readable_scenarios(viewer)
    return _or_404(rows.select_related("current", "baseline", "forked_from", "owner"), pk=pk)


def readable_runs(viewer: Viewer) -> QuerySet[Run]:
    """A run is readable where its scenario is."""
    return Run.objects.filter(revision__scenario__in=readable_scenarios(viewer))


def run_for(viewer: Viewer, pk: UUID | str) -> Run:
    """The run, if the viewer may read its scenario."""
    runs = readable_runs(viewer).select_related("revision__scenario", "result").defer("result__why")
    return _or_404(runs, pk=pk)


def share_for(viewer: Viewer, token: str) -> ShareLink:
    """A link of the viewer's own, to revoke it."""
    return _or_404(ShareLink.objects.filter(viewer.owned), token=token)


def own_reports(viewer: Viewer) -> QuerySet[SavedReport]:
    """The viewer's reports without what they say; nobody else's are listed."""
    return SavedReport.objects.filter(viewer.owned).defer("content")


def report_for(viewer: Viewer, token: str) -> SavedReport:
    """A report of the viewer's own, to revoke it."""
    return _or_404(own_reports(viewer), token=token)


def own_traces(viewer: Viewer) -> QuerySet[TraceUpload]:
    """The viewer's uploads, without their columns."""
    return TraceUpload.objects.filter(viewer.owned).defer("packed")


def trace_for(viewer: Viewer, sha256: str) -> TraceUpload:
    """The upload of that content, if it is the viewer's."""
    return _or_404(own_traces(viewer), sha256=sha256)


def own_matrices(viewer: Viewer) -> QuerySet[TrafficMatrix]:
    """The viewer's traffic matrices, without their arrays and what was found in them."""
    return TrafficMatrix.objects.filter(viewer.owned).defer("packed", "study")


def matrix_for(viewer: Viewer, sha256: str) -> TrafficMatrix:
    """The matrix of that content, if it is the viewer's."""
    return _or_404(TrafficMatrix.objects.filter(viewer.owned).defer("packed"), sha256=sha256)


def own_calibrations(viewer: Viewer) -> QuerySet[SavedCalibration]:
    """The viewer's own fits; nobody else's can be read, chosen or deleted."""
    return SavedCalibration.objects.filter(viewer.owned)


def calibration_for(viewer: Viewer, slug: str) -> SavedCalibration:
    """The fit of that name, if it is the viewer's."""
    return _or_404(own_calibrations(viewer), slug=slug)


def own_sweeps(viewer: Viewer) -> QuerySet[Sweep]:
    """The viewer's sweeps. Who reads a scenario of another does not see what its owner looked for in it."""
    return Sweep.objects.filter(viewer.owned)


def sweep_for(viewer: Viewer, pk: UUID | str) -> Sweep:
    """The sweep, if it is the viewer's."""
    return _or_404(own_sweeps(viewer).select_related("scenario"), pk=pk)


def uuid_or_404(text: str) -> UUID:
    """A key that stood in a form or a query; one that is none leads nowhere."""
    try:
        return UUID(text)
    except ValueError:
        raise Http404 from None


def _or_404(rows: QuerySet[M], **conditions: Any) -> M:
    found = rows.filter(**conditions).first()
    if found is None:
        raise Http404
    return found
