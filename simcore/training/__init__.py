"""The training step in closed form: its time by resource, its memory by use, what would make it fit."""

from __future__ import annotations

from simcore.training.fit import TrainingChange, fitting_changes, require_fit
from simcore.training.inputs import TrainingInputs, check_inputs
from simcore.training.memory import TrainingMemory, memory_rows, training_memory
from simcore.training.rows import TrainingRow, phase_terms, training_rows
from simcore.training.schedule import Pass, schedule, shortened
from simcore.training.spec import Overlap, Training, TrainingParallelism
from simcore.training.stacks import STACKS, TrainingStack
from simcore.training.step import RESOURCES, TrainingStep, training_step

__all__ = [
    "RESOURCES",
    "STACKS",
    "Overlap",
    "Pass",
    "Training",
    "TrainingChange",
    "TrainingInputs",
    "TrainingMemory",
    "TrainingParallelism",
    "TrainingRow",
    "TrainingStack",
    "TrainingStep",
    "check_inputs",
    "fitting_changes",
    "memory_rows",
    "phase_terms",
    "require_fit",
    "schedule",
    "shortened",
    "training_memory",
    "training_rows",
    "training_step",
]
