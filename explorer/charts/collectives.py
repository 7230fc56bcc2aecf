"""Collectives: the groups that talk, every algorithm they could use, and the one that a step pays for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from explorer.charts import style
from explorer.charts.style import Cell, Chart, Result, Table

Row = Mapping[str, Any]
_BEFORE: Final = {
    "group": "all",
    "algorithm": "ring",
    "taken": True,
}  # of results that were kept before there were groups


def collectives(result: Result | None) -> Chart | None:
    """Time and bus bandwidth by group and algorithm; what is not taken is grey."""
    listed = [{**_BEFORE, **row} for row in style.rows(result, "collectives")]
    if not listed:
        return None
    title = _title(listed)
    return Chart(
        slug="collectives",
        title=title,
        axis=_("Time of one call and its bus bandwidth, by group and algorithm; grey ones are not taken"),
        summary=title,
        source=_("Calibrated fit where one exists, latency and bandwidth otherwise"),
        draw="table",
        table=Table(
            columns=(
                _("Group"), _("Operation"), _("Algorithm"), _("Ranks"), _("Payload"), _("Time"), _("Bus bandwidth"),
            ),
            rows=tuple(_cells(row) for row in listed),
            words=3,
        ),
        wide=True,
        tall=True,
    )  # fmt: skip


def _title(listed: Sequence[Row]) -> str:
    """The call that takes longest of those that the work makes; without work, the first of all chips."""
    taken = [row for row in listed if row["taken"]]
    own = [row for row in taken if row["group"] != "all"]
    longest = max(own, key=lambda row: float(row["s"])) if own else taken[0]
    words = {
        "operation": _operations()[str(longest["operation"])],
        "algorithm": _algorithms()[str(longest["algorithm"])],
        "group": _groups().get(str(longest["group"]), str(longest["group"])),
        "ranks": f"{int(longest['ranks']):,}",
        "time": str(style.number(float(longest["s"]), "x_s")),
    }
    return (
        _("%(group)s: the longest call, %(operation)s of %(ranks)s ranks, takes %(time)s by %(algorithm)s")
        % words
    )


def _cells(row: Row) -> tuple[Cell, ...]:
    muted = not row["taken"]
    texts = (
        _groups().get(str(row["group"]), str(row["group"])),
        _operations()[str(row["operation"])],
        _algorithms()[str(row["algorithm"])],
        f"{int(row['ranks']):,}",
        str(style.number(float(row["payload_bytes"]), "bytes")),
        str(style.number(float(row["s"]), "x_s")),
        str(style.number(float(row["bus_bytes_per_s"]), "bus_bytes_per_s")),
    )
    return tuple(Cell(text=text, muted=muted) for text in texts)


def _groups() -> dict[str, str]:
    return {
        "all": _("All chips, 1 GB"),
        "tensor": _("Tensor parallel"),
        "tensor_decode": _("Tensor parallel, decode"),
        "tensor_prefill": _("Tensor parallel, prefill"),
        "context": _("Context parallel"),
        "data": _("Data parallel"),
        "expert_data": _("Data parallel of experts"),
        "experts": _("Experts"),
        "experts_decode": _("Experts, decode"),
        "experts_prefill": _("Experts, prefill"),
    }


def _operations() -> dict[str, str]:
    return {
        "all_reduce": _("all-reduce"),
        "all_gather": _("all-gather"),
        "reduce_scatter": _("reduce-scatter"),
        "all_to_all": _("all-to-all"),
    }


def _algorithms() -> dict[str, str]:
    return {
        "nccl": _("NCCL's choice, measured"),
        "engine": _("the engine's own kernel"),
        "ring": _("ring"),
        "tree": _("tree"),
        "halving_doubling": _("halving and doubling"),
        "hierarchical": _("hierarchical"),
        "in_network": _("reduction in the switches"),
        "pairwise": _("pairwise"),
        "low_latency": _("a row to each expert"),
        "normal": _("a row once to each chip"),
    }
