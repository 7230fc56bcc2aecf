"""Entries by last use: a doubly linked list through `cells`, in the pool of a lane and in every tier behind it.

`shelf` is the lane or the tier: it says where its cells begin, which entries stand at both ends, and how many
blocks all of them fill. Each operation is O(1).
"""

from __future__ import annotations

from typing import Any

from simcore.compiled import compiled_in_place


@compiled_in_place
def shelve(shelf: Any, prefix: Any, entry: int) -> None:
    """Enter an entry that nobody holds, as the most recently used of those that may go."""
    cells, base = prefix.cells, shelf.cell_base
    cell = cells[base + entry]
    cell.older = shelf.newest
    cell.newer = -1
    if shelf.newest >= 0:
        cells[base + shelf.newest].newer = entry
    else:
        shelf.oldest = entry
    shelf.newest = entry
    shelf.cached_blocks += prefix.blocks[entry]


@compiled_in_place
def unshelve(shelf: Any, prefix: Any, entry: int) -> None:
    """Take an entry out of those that may go."""
    cells, base = prefix.cells, shelf.cell_base
    cell = cells[base + entry]
    if cell.newer >= 0:
        cells[base + cell.newer].older = cell.older
    else:
        shelf.newest = cell.older
    if cell.older >= 0:
        cells[base + cell.older].newer = cell.newer
    else:
        shelf.oldest = cell.newer
    shelf.cached_blocks -= prefix.blocks[entry]
