"""One scenario in several ways, side by side: what each would run, and the run that speaks for it.

What is varied is said by those who ask: `schedulers.ways`, `splits.ways`. Nothing is stored beside the runs: a
variant's run is found by its digest among those of its scenario.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from explorer import actions
from explorer.access import viewer_owning
from explorer.actions import Outcome
from explorer.forms import changes
from explorer.forms.schema import at
from explorer.models import Run, SavedScenario
from simcore.errors import InputError, Message
from simcore.scenario import apply_overrides


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What is typed into the scenario; nothing, where it already stands so."""

    name: str
    typed: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The scenario in one way; `refused` says why it cannot be, where it cannot."""

    name: str
    document: Mapping[str, Any]
    outcome: Outcome | None
    refused: tuple[Message, ...] = ()
    dropped: tuple[Message, ...] = ()  # what the document sets and this way does not have
    run: Run | None = None

    @property
    def is_missing(self) -> bool:
        """Whether there is something to run that nobody has run."""
        return self.run is None and not self.refused


def variants(scenario: SavedScenario, ways: Sequence[Way]) -> list[Variant]:
    """The scenario as it stands, in each way."""
    planned = [_planned(scenario, way) for way in ways]
    runs = _runs(scenario, [one.outcome.digest for one in planned if one.outcome and one.outcome.digest])
    return [_with_run(one, runs) for one in planned]


def run_missing(scenario: SavedScenario, ways: Sequence[Way]) -> tuple[Message, ...]:
    """Queue what nobody has run yet; returns what stood in the way of the rest."""
    try:
        for variant in variants(scenario, ways):
            if variant.is_missing and variant.outcome is not None:
                actions.run_beside(scenario, dict(variant.document), variant.outcome)
    except InputError as error:
        return error.messages
    return ()


def _planned(scenario: SavedScenario, way: Way) -> Variant:
    document = scenario.document
    try:
        typed = changes(document, way.typed)
        edited, dropped = apply_overrides(document, typed) if typed else (document, [])
        outcome = actions.plan_for(viewer_owning(scenario), edited)
    except InputError as error:
        return Variant(name=way.name, document=document, outcome=None, refused=error.messages)
    return Variant(
        name=way.name,
        document=edited,
        outcome=outcome,
        refused=outcome.infeasible,
        dropped=tuple(message for message in dropped if at(document, message.path) is not None),
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
    return replace(variant, refused=refused, run=run)


def _message(said: Mapping[str, Any]) -> Message:
    return Message(code=said["code"], template=said["template"], params=said["params"], path=said["path"])
