"""One scenario under every scheduler that there is: what each would run, and the run that speaks for it.

The schedulers are those that the schema lets a scenario name, so a new one is compared without being told of here.
Nothing is stored beside the runs: a variant's run is found by its digest among those of its scenario.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from explorer import actions
from explorer.access import viewer_owning
from explorer.actions import Outcome
from explorer.forms import changes
from explorer.models import Run, SavedScenario
from simcore.errors import InputError, Message
from simcore.scenario import apply_overrides
from simcore.scenario.overrides import union_members

SECTION: Final = "serving.scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The scenario under one scheduler; `refused` says why it cannot be, where it cannot."""

    kind: str
    document: Mapping[str, Any]
    outcome: Outcome | None
    refused: tuple[Message, ...] = ()
    dropped: tuple[Message, ...] = ()  # what the document sets and this scheduler does not have
    run: Run | None = None

    @property
    def is_missing(self) -> bool:
        """Whether there is something to run that nobody has run."""
        return self.run is None and not self.refused


def kinds() -> tuple[str, ...]:
    """The names of all schedulers, in the order of their union."""
    return tuple(str(model.model_fields["kind"].default) for model in union_members(SECTION))


def variants(scenario: SavedScenario) -> list[Variant]:
    """The scenario as it stands, under each scheduler; none where it serves no requests."""
    if (scenario.document.get("workload") or {}).get("kind", "serving") != "serving":
        return []
    planned = [_planned(scenario, kind) for kind in kinds()]
    runs = _runs(scenario, [one.outcome.digest for one in planned if one.outcome and one.outcome.digest])
    return [_with_run(one, runs) for one in planned]


def run_missing(scenario: SavedScenario) -> tuple[Message, ...]:
    """Queue what nobody has run yet; returns what stood in the way of the rest."""
    try:
        for variant in variants(scenario):
            if variant.is_missing and variant.outcome is not None:
                actions.run_beside(scenario, dict(variant.document), variant.outcome)
    except InputError as error:
        return error.messages
    return ()


def _planned(scenario: SavedScenario, kind: str) -> Variant:
    document = scenario.document
    try:
        typed = changes(document, {f"{SECTION}.kind": kind})
        edited, dropped = apply_overrides(document, typed) if typed else (document, [])
        outcome = actions.plan_for(viewer_owning(scenario), edited)
    except InputError as error:
        return Variant(kind=kind, document=document, outcome=None, refused=error.messages)
    own = ((document.get("serving") or {}).get("scheduler") or {}).keys()
    return Variant(
        kind=kind,
        document=edited,
        outcome=outcome,
        refused=outcome.infeasible,
        dropped=tuple(message for message in dropped if message.path.rpartition(".")[2] in own),
    )


def _runs(scenario: SavedScenario, digests: list[str]) -> dict[str, Run]:
    """The run to show for each digest: a finished one, else the newest that was not stopped."""
    found = Run.objects.filter(revision__scenario=scenario, digest__in=digests).exclude(status="cancelled")
    newest_last = found.select_related("revision", "result").defer("result__why").order_by("created_at")
    shown: dict[str, Run] = {}
    for run in newest_last:
        if run.digest not in shown or run.result is not None or shown[run.digest].result is None:
            shown[run.digest] = run
    return shown


def _with_run(variant: Variant, runs: Mapping[str, Run]) -> Variant:
    run = runs.get(variant.outcome.digest) if variant.outcome else None
    refused = variant.refused or tuple(_message(said) for said in run.messages) if run else variant.refused
    return Variant(
        kind=variant.kind,
        document=variant.document,
        outcome=variant.outcome,
        refused=refused,
        dropped=variant.dropped,
        run=run,
    )


def _message(said: Mapping[str, Any]) -> Message:
    return Message(code=said["code"], template=said["template"], params=said["params"], path=said["path"])
