"""Speculative decoding: a cheap draft proposes k tokens, and one step of the target verifies them all.

A decoding sequence puts 1 + k tokens into an iteration and gets, where each draft token is accepted with the
same probability `a` if all before it were, the mean number of tokens

    E = 1 + a + a² + … + a^k = (1 - a^(k+1)) / (1 - a)

the token that the target samples itself included (Leviathan, Kalman and Matias, ICML 2023). In the engine every
sequence of a lane gets the same whole number of tokens in an iteration, so that runs of equal batches still
advance in closed form: a lane keeps its credit, the part of a token that is still to come, in units of
2**-CREDIT_BITS, and m iterations give `floor(credit + m · E)` tokens. A sequence that ends inside an iteration
wastes the rest of it. What verifying and drafting cost is in the step table (`compute/drafting.py`).

Limits: the spread of accepted tokens between sequences and iterations is left out, so answers end a little more
alike than they do (a long answer's spread is small beside its length); the acceptance is one number for all
requests; draft tokens that are refused hold no KV block, as vLLM's look-ahead slots do, at most one more each.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field

from simcore.compiled import compiled_in_place
from simcore.memory.kv_pool import run_blocks, steps_within
from simcore.serving.records import Floats
from simcore.spec import Spec

CREDIT_BITS: Final = 32
_WHOLE: Final = 1 << CREDIT_BITS


class _Speculation(Spec):
    """What all methods have; vLLM logs (mean acceptance length - 1) / k as its draft acceptance rate."""

    num_speculative_tokens: int = Field(default=3, ge=1, le=64)
    acceptance_rate: float = Field(default=0.7, ge=0, le=1)  # of a draft token, those before it accepted


class Ngram(_Speculation):
    """Drafts are looked up in the prompt and cost nothing."""

    kind: Literal["ngram"] = "ngram"


class Eagle(_Speculation):
    """A head of one layer that reads the target's own states; auto: one layer of the target and its LM head."""

    kind: Literal["eagle"] = "eagle"
    draft_cost_fraction: Literal["auto"] | Annotated[float, Field(ge=0, le=1)] = "auto"  # of a decode step


class Eagle3(_Speculation):
    """EAGLE-3: the same cost, and more tokens accepted."""

    kind: Literal["eagle3"] = "eagle3"
    draft_cost_fraction: Literal["auto"] | Annotated[float, Field(ge=0, le=1)] = "auto"


class Mtp(_Speculation):
    """The multi-token prediction layer that the model was trained with."""

    kind: Literal["mtp"] = "mtp"
    draft_cost_fraction: Literal["auto"] | Annotated[float, Field(ge=0, le=1)] = "auto"


class DraftModel(_Speculation):
    """A small model of the catalog, on the same chips."""

    kind: Literal["draft_model"] = "draft_model"
    model: str = Field(min_length=1, max_length=80, pattern=r"^[a-z0-9][a-z0-9.\-]*$")


Speculative = Annotated[Ngram | Eagle | Eagle3 | Mtp | DraftModel, Field(discriminator="kind")]


def tokens_per_iteration(acceptance_rate: float, draft_tokens: int) -> float:
    """E: the mean tokens that a sequence gets of an iteration.

    >>> tokens_per_iteration(0.0, 4), tokens_per_iteration(1.0, 4), round(tokens_per_iteration(0.8, 4), 4)
    (1.0, 5.0, 3.3616)
    """
    return float(sum(acceptance_rate**place for place in range(draft_tokens + 1)))


def mean_iterations(tokens: Floats, gained: float) -> Floats:
    """Iterations that answers of so many decoded tokens take, over all credits that a lane may stand at.

    The mean of `ceil((tokens - credit) / gained)` over credits from 0 to 1; no tokens take none.

    >>> mean_iterations(np.array([0.0, 1.0, 4.0]), 1.0), mean_iterations(np.array([5.0]), 2.5)
    (array([0., 1., 4.]), array([2.3]))
    """
    if gained == 1.0:
        return tokens
    mean = gained * (_ceilings(tokens / gained) - _ceilings((tokens - 1.0) / gained))
    return np.where(tokens > 0, mean, 0.0)


def _ceilings(upper: Floats) -> Floats:
    """The integral of `ceil` from 0."""
    whole = np.floor(upper)
    integral: Floats = 0.5 * whole * (whole + 1.0) + (upper - whole) * (whole + 1.0)
    return integral


def in_credit(gained: float) -> int:
    """Tokens of an iteration in units of credit."""
    return round(gained * _WHOLE)


@compiled_in_place
def tokens_gained(lane: Any, setup: Any, iterations: int) -> int:
    """Tokens that each decoding sequence gets of the lane's next iterations."""
    tokens: int = (lane.credit + iterations * setup.gain) >> CREDIT_BITS
    return tokens


@compiled_in_place
def spend(lane: Any, setup: Any, iterations: int) -> int:
    """Tokens of iterations that are over; what is left of a token stays as credit."""
    credit = lane.credit + iterations * setup.gain
    lane.credit = credit & (_WHOLE - 1)
    tokens: int = credit >> CREDIT_BITS
    return tokens


@compiled_in_place
def iterations_ahead(lane: Any, phases: Any, setup: Any, tokens: int, free: int) -> int:
    """Iterations until `tokens` more have come or the free blocks are used up; the first has its blocks already."""
    most: int = ((tokens << CREDIT_BITS) - lane.credit + setup.gain - 1) // setup.gain
    if most <= 1:
        return 1
    later = tokens_gained(lane, setup, most) - lane.gained
    served = steps_within(
        phases,
        lane.phase_base,
        setup.block_size,
        setup.block_shift,
        lane.step + lane.gained,
        lane.decodes * setup.pages,
        later,
        free,
    )
    if served < later:
        most = (((lane.gained + served + 1) << CREDIT_BITS) - 1 - lane.credit) // setup.gain
    return most


@compiled_in_place
def later_blocks(lane: Any, phases: Any, setup: Any, iterations: int) -> int:
    """Blocks that the lane's run takes in so many iterations, after the first of them."""
    return run_blocks(
        phases,
        lane.phase_base,
        setup.block_size,
        setup.block_shift,
        lane.step + lane.gained,
        lane.decodes * setup.pages,
        tokens_gained(lane, setup, iterations) - lane.gained,
    )


@compiled_in_place
def grow(lane: Any, setup: Any, tokens: int) -> None:
    """All decoding sequences hold so many tokens more."""
    lane.step += tokens
    lane.held += lane.decoding * tokens
    if setup.window > 0:
        lane.held_in_window += lane.below_window * tokens
