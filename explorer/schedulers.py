"""A scenario under every scheduler that there is.

The schedulers are those that the schema lets a scenario name, so a new one is compared without being told of here.
"""

from typing import Final

from explorer.beside import Way
from explorer.forms.schema import at
from explorer.models import SavedScenario
from simcore.scenario.overrides import union_members

SECTION: Final = "serving.scheduler"


def ways(scenario: SavedScenario) -> list[Way]:
    """Each scheduler, in the order of their union; none where the scenario serves no requests."""
    if (at(scenario.document, "workload.kind") or "serving") != "serving":
        return []
    kinds = [str(model.model_fields["kind"].default) for model in union_members(SECTION)]
    return [Way(name=kind, typed={f"{SECTION}.kind": kind}) for kind in kinds]
