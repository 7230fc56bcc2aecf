"""Block hashes of a trace's prompts, as one array with the places where each request's chain begins.

Chain `i` is `hashes[offsets[i]:offsets[i + 1]]`. Hashes are whole numbers; only whether two are equal counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Chains = tuple[Integers, Integers]  # offsets, hashes
HASHES_NAME: Final = "hash_ids"
BLOCK_TOKENS: Final = 512  # that a hash stands for, in Mooncake's traces


def chains_of(lists: Sequence[Any]) -> Chains:
    """Lists of hashes as chains; None is an empty one. Raises ValueError or TypeError at anything else."""
    given = [one or () for one in lists]
    if not all(isinstance(one, list | tuple) for one in given):
        raise TypeError("a list of whole numbers per row")
    flat = np.array(list(chain.from_iterable(given)))
    if len(flat) and (flat.ndim > 1 or flat.dtype.kind not in "iu"):
        raise ValueError("hashes are whole numbers of 64 bits")
    lengths = np.fromiter(map(len, given), np.int64, len(given))
    return np.append(0, np.cumsum(lengths)), flat.astype(np.int64)


def joined(parts: Sequence[Chains]) -> Chains | None:
    """The chains of consecutive pieces of a file; None where no row has a hash."""
    hashes = np.concatenate([part[1] for part in parts]) if parts else np.empty(0, np.int64)
    if len(hashes) == 0:
        return None
    lengths = np.concatenate([np.diff(part[0]) for part in parts])
    return np.append(0, np.cumsum(lengths)), hashes


def picked(chains: Chains | None, rows: Integers) -> Chains | None:
    """The chains of some rows, in their order."""
    if chains is None:
        return None
    offsets, hashes = chains
    lengths = np.diff(offsets)[rows]
    ends = np.append(0, np.cumsum(lengths))
    places = np.arange(ends[-1]) + np.repeat(offsets[:-1][rows] - ends[:-1], lengths)
    return ends, hashes[places]
