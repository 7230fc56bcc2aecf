"""Where a design ends, as text: growth and what it breaks, the share that may cross domains, a job beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simcore.analysis.boundaries import Boundary, first_break
from simcore.analysis.colocated import Neighbour, message_of
from simcore.analysis.crossing import Crossing
from simcore.analysis.stages import Stage
from simcore.analysis.stages import message_of as leading
from simcore.glossary import label
from simcore.units import dimension_of, printed_text


def boundaries_text(
    rows: Sequence[Boundary],
    share: Crossing | None,
    beside: Sequence[Neighbour],
    staged: Sequence[Stage] = (),
) -> str:
    """As `trimtab boundaries` prints it."""
    lines = [first_break(rows).text, ""]
    for row in rows:
        lines += _row(row)
    if share is not None:
        lines += ["", share.message.text]
        lines += [
            f"  {one['share_fraction']:>4.0%} of the bytes: NICs at {one['nic_load_fraction']:.0%}"
            for one in share.rows
        ]
    if beside:
        lines += ["", message_of(beside).text]
        lines += [
            f"  {one.placing:<7}{one.name:<30}traffic ×{one.slowdown.value:.2f}, step ×{one.step.value:.2f}"
            for one in beside
        ]
    if staged:
        lines += ["", leading(staged).text, *map(_stage, staged)]
    return "\n".join(lines)


def _stage(stage: Stage) -> str:
    if stage.refused is not None or stage.taxes is None:
        return f"  {stage.name.text:<28}cannot be: {stage.refused.text if stage.refused else 'no price'}"
    amounts = ", ".join(f"{tax} {printed_text(term.value, 'usd')}" for tax, term in stage.taxes.terms.items())
    return f"  {stage.name.text:<28}{amounts} a year"


def _row(row: Boundary) -> Iterator[str]:
    yield row.case.name.text
    figures = {name: term.value for name, term in row.terms.items()}
    if figures:
        shown = (
            f"{label(name)} {printed_text(value, dimension_of(name), digits=3)}"
            for name, value in figures.items()
        )
        yield f"  {', '.join(shown)}"
    for message in row.breaks:
        yield f"  breaks: {message.text}"
    for message in row.notes:
        yield f"  {message.text}"
