"""Replicas by load in a plan: how many there may be, and what the closed forms then do not speak of.

The pool of a plan holds the most replicas that there may be: capacity, memory and chips are those of all of them, and
so is the money, since owned chips cost the same whether a replica runs on them or not.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.errors import InputError, Message
from simcore.scenario.schema import Serving

_PATH = "serving.autoscaling"


def most_replicas(spec: Serving, replica_chip_count: int, chip_count: int) -> int:
    """Replicas of the pool: as asked, or all that the chips hold. Raises InputError where they do not hold so many."""
    most, scaling = chip_count // replica_chip_count, spec.autoscaling
    wanted, path = spec.replica_count, "serving.replica_count"
    if scaling is not None:
        wanted, path = scaling.max_replica_count, f"{_PATH}.max_replica_count"
    found = wanted if isinstance(wanted, int) else max(1, most)
    if isinstance(wanted, int) and wanted > most:
        raise InputError.at(
            path,
            "replicas.too_many",
            "{got} replicas of {each} chips need {needed}, and {owned} are owned; use at most {allowed}",
            got=wanted,
            each=replica_chip_count,
            needed=wanted * replica_chip_count,
            owned=chip_count,
            allowed=most,
        )
    if scaling is not None and scaling.min_replica_count > found:
        raise InputError.at(
            f"{_PATH}.min_replica_count",
            "autoscaling.fewest_above_most",
            "got {got}, and there are {most} replicas at most; use at most {most}, or raise max_replica_count or "
            "hardware.chip_count",
            got=scaling.min_replica_count,
            most=found,
        )
    return found


def refuse_apart(spec: Serving) -> None:
    """Raises InputError where the two pools of a disaggregated scheduler were to be scaled."""
    if spec.autoscaling is not None:
        raise InputError.at(
            _PATH,
            "autoscaling.apart",
            "replicas that only prefill or only decode are not scaled; remove it, or use another "
            "serving.scheduler.kind",
        )


def refuse_unlike(spec: Serving) -> None:
    """Raises InputError where replicas of several kinds were to be scaled."""
    if spec.autoscaling is not None:
        raise InputError.at(
            _PATH,
            "autoscaling.unlike",
            "replicas of further pools are not scaled beside the main ones; remove it, or remove hardware.pools",
        )


def scaling_notes(spec: Serving) -> Iterator[Message]:
    if spec.autoscaling is not None:
        yield Message(
            code="autoscaling.owned",
            template="capacity, memory, cost and power are those of all owned chips: a replica that is given up leaves "
            "its chips idle, and what that would save elsewhere is not counted",
            path=_PATH,
        )
