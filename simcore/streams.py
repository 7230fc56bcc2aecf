"""Named random streams: every draw of a run comes from `stream(seed, name)`, before the engine runs.

Two scenarios with one seed share their arrivals and lengths whatever else differs (paired comparison),
because a stream depends on the seed and its own name alone, not on what was drawn before it.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The child generator called `names` under `seed`; equal in every process and thread."""
    label = "/".join(str(name) for name in names)
    digest = hashlib.sha256(label.encode()).digest()[:16]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, int.from_bytes(digest, "big")])))
