"""What chips send each other on the Fabric tab: groups of flows, where each stays, and the matrix in coarse cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.heat import heat_maps
from explorer.charts.style import Cell, Chart, Result, Table


def charts(result: Result | None) -> tuple[Chart, ...]:
    """Nothing where nothing moves."""
    groups = style.rows(result, "traffic_groups")
    if not groups:
        return ()
    return _groups(result, groups), *heat_maps(style.rows(result, "traffic_matrix"))


def _groups(result: Result | None, groups: Any) -> Chart:
    period = style.rows(result, "traffic_period")[0]
    title = _title(groups, str(period["per"]))
    return Chart(
        slug="traffic-groups",
        title=title,
        axis=_("Bytes between chips by what they are for; all flows start at once and share links fairly"),
        summary=title,
        source=_("Closed form; completion by max-min shares over %(routing)s paths")
        % {"routing": str(period["routing"]).replace("_", " ")},
        draw="table",
        table=Table(
            columns=(
                _("Flows for"),
                _("Class"),
                _("Bytes"),
                _("Share"),
                _("Inside scale-up"),
                _("On their rail"),
                _("Same leaf"),
                _("All done after"),
            ),
            words=2,
            rows=tuple(_row(row) for row in groups),
        ),
        wide=True,
    )


def _title(groups: Any, per: str) -> str:
    whole = sum(row["bytes"] for row in groups)
    largest = max(groups, key=lambda row: row["bytes"])
    words = {
        "bytes": style.number(whole, "bytes"),
        "group": name(largest["group"]),
        "share": style.percent(largest["share_fraction"], digits=0),
        "inside": style.percent(
            sum(row["bytes"] * row["domain_fraction"] for row in groups) / whole, digits=0
        ),
    }
    if per == "step":
        return (
            _(
                "A step moves %(bytes)s between chips, %(share)s for %(group)s; %(inside)s stay in scale-up domains"
            )
            % words
        )
    return (
        _(
            "A second moves %(bytes)s between chips, %(share)s for %(group)s; %(inside)s stay in scale-up domains"
        )
        % words
    )


def _row(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    shares = (row[f"{key}_fraction"] for key in ("share", "domain", "rail", "leaf"))
    done = row["completion_s"]
    return (
        Cell(text=name(row["group"])),
        Cell(text=traffic_class(row["traffic_class"]), muted=True),
        _number(row["bytes"], "bytes"),
        *(Cell(text="" if share is None else style.percent(share)) for share in shares),
        Cell(text="") if done is None else _number(done, "completion_s"),
    )


def _number(value: float, name: str) -> Cell:
    printed = style.number(value, name)
    return Cell(text=printed.text, unit=printed.unit)


def name(group: str) -> str:
    """What a group of flows is for."""
    return {
        "tensor": _("tensor parallelism"),
        "sequence": _("tensor and sequence parallelism"),
        "context": _("context parallelism"),
        "expert": _("experts"),
        "data": _("data parallelism"),
        "expert_data": _("data parallelism of experts"),
        "pipeline": _("pipeline stages"),
        "kv": _("KV from prefill to decode"),
        "checkpoint": _("checkpoints"),
        "monitoring": _("monitoring"),
    }[group]


def traffic_class(of: str) -> str:
    return {
        "core": _("critical path"),
        "inter_domain": _("between domains"),
        "management": _("management"),
    }[of]
