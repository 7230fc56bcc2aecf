"""Fields of a cluster's life that were set and that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.errors import Message
from simcore.fabric import Fabric
from simcore.reliability.life_spec import Life


def unused_in_life(life: Life | None, fabric: Fabric) -> Iterator[Message]:
    """One message per such field."""
    if life is None:
        return
    for key in ("maintenance_window_s", "maintenance_fraction"):
        if life.maintenance_period_s is None and _was_set(life, key):
            yield _message(
                key,
                template="has no effect: there is no maintenance; set reliability.life.maintenance_period_s",
            )
    if life.restart_scope == "job" and _was_set(life, "host_restart_s"):
        yield _message(
            "host_restart_s",
            template="has no effect: all hosts of a job restart; set reliability.life.restart_scope",
        )
    if not life.fault_tolerant_routing and _was_set(life, "link_slowdown_ratio"):
        yield _message(
            "link_slowdown_ratio",
            template="has no effect: a job stops with a link; set reliability.life.fault_tolerant_routing",
        )
    if not fabric.ocs_count and _was_set(life, "ocs_mtbf_s"):
        yield _message("ocs_mtbf_s", template="has no effect: this fabric has no optical switches")
    if not fabric.switch_count and _was_set(life, "switch_mtbf_s"):
        yield _message("switch_mtbf_s", template="has no effect: this fabric has no packet switches")


def _was_set(life: Life, key: str) -> bool:
    return bool(getattr(life, key) != type(life).model_fields[key].default)


def _message(key: str, *, template: str) -> Message:
    return Message(code="input.no_effect", template=template, path=f"reliability.life.{key}")
