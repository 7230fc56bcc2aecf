"""The scenario: what a person edits. Document, schema, overrides, presets and imports."""

from simcore.scenario.documents import dump_document, load_document
from simcore.scenario.overrides import apply_overrides
from simcore.scenario.schema import Scenario

__all__ = ["Scenario", "apply_overrides", "dump_document", "load_document"]
