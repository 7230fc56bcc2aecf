"""Sessions: conversations of several turns, each of which is sent some time after the answer before it.

A turn's prompt is everything said before it (the system prompt that all sessions share, prompts and answers of
earlier turns) and a new message; message and answer are drawn from the workload's lengths. The arrival law gives the
instants of first turns, a closed loop its users, who begin another session when one has ended. When a later turn
comes depends on how it was served: here it has only its think time, gamma with a mean and a coefficient of variation.
How many turns a session has is geometric (the chance to go on is the same after each answer) or constant.

Draws are keyed by session and turn: the first turns are those of the workload without sessions, and what changes one
session changes no other. A turn that would not fit into the model's length ends its session before it. Requests stand
turn by turn, the first turns of all sessions before the second ones; the last session is cut where `request_count` is
reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from simcore.spec import Spec
from simcore.streams import stream
from simcore.workload.classes import RequestClass, draw_classes, draw_lengths_of_classes
from simcore.workload.lengths import AnyLengths, Pair, draw_lengths

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Sessions(Spec):
    """How many turns a session has, and how long its user thinks before each but the first."""

    turns_mean: float = Field(default=1.0, ge=1, le=200)
    turns_law: Literal["geometric", "constant"] = "geometric"
    think_time_mean_s: float = Field(default=10.0, ge=0, le=1e6)
    think_time_cv: float = Field(default=1.0, ge=0, le=20)
    shared_system_prompt_tokens: int = Field(default=0, ge=0, le=1_000_000)

    @model_validator(mode="after")
    def _constant_turns_are_whole(self) -> Self:
        if self.turns_law == "constant" and not self.turns_mean.is_integer():
            raise ValueError(
                f"turns_mean is {self.turns_mean:g}, and a constant number of turns is a whole one; round it, or set "
                "turns_law to geometric"
            )
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Aligned by request: whose turn it is, which one, and the time between the answer before it and its sending."""

    session: Integers
    turn: Integers  # 0 is the first
    think_s: Floats  # 0 of first turns
    shared_tokens: int  # that every prompt begins with
    cut_short_count: int = 0  # sessions that ended because their next turn would not have fitted

    @property
    def session_count(self) -> int:
        """Sessions; the first so many requests are their first turns."""
        return int(np.count_nonzero(self.turn == 0))

    @property
    def following(self) -> Integers:
        """The request that is the next turn of the same session; -1: none."""
        order = self.by_session
        found = np.full(len(order), -1, np.int64)
        goes_on = self.session[order[1:]] == self.session[order[:-1]]
        found[order[:-1][goes_on]] = order[1:][goes_on]
        return found

    @property
    def by_session(self) -> Integers:
        """All requests, session after session, each from its first turn to its last."""
        return np.lexsort((self.turn, self.session))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSessions:
    """The requests of sessions, aligned by request. First turns that were cut to the model's length are counted."""

    input_tokens: Integers
    output_tokens: Integers
    class_of: Integers | None
    turns: Turns
    clipped_count: int


def draw_sessions(
    sessions: Sessions,
    lengths: AnyLengths,
    *,
    request_count: int,
    seed: int,
    max_model_len: int,
    classes: Sequence[RequestClass] = (),
) -> DrawnSessions:
    """So many turns, of as many sessions as it takes. A class is a session's: all turns are of its class."""
    count = min(request_count, math.ceil(1.1 * request_count / sessions.turns_mean) + 16)
    while True:
        drawing = _Drawing(
            sessions=sessions,
            lengths=lengths,
            classes=classes,
            class_of=draw_classes(classes, count, seed) if classes else None,
            count=count,
            seed=seed,
            longest=max_model_len,
        )
        rows, wanted = drawing.rows()
        if len(rows.session) >= request_count:
            return _first(rows, wanted, drawing.class_of, request_count)
        count = min(request_count, 2 * count)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Turns as they were drawn, of more sessions than are wanted."""

    session: Integers
    turn: Integers
    think_s: Floats
    input_tokens: Integers
    output_tokens: Integers
    clipped: Flags
    shared_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawing:
    sessions: Sessions
    lengths: AnyLengths
    classes: Sequence[RequestClass]
    class_of: Integers | None
    count: int
    seed: int
    longest: int  # prompt and answer of one turn

    def rows(self) -> tuple[_Rows, Integers]:
        """The turns of the first `count` sessions, turn by turn, and how many each would have liked to have."""
        wanted, shared = self._turn_counts(), self.sessions.shared_system_prompt_tokens
        said = np.full(self.count, shared, np.int64)
        left = np.arange(self.count)
        parts: list[tuple[NDArray[np.generic], ...]] = []
        for turn in range(int(wanted.max())):
            left = left[wanted[left] > turn]
            if not len(left):
                break
            asked, answers = (drawn[left] for drawn in self._lengths(turn, int(left[-1]) + 1))
            prompts = said[left] + asked
            shown, kept = prompts, answers
            if turn == 0:
                shown = np.clip(prompts, 1, max(1, self.longest - 1))
                kept = np.clip(answers, 1, np.maximum(1, self.longest - shown))
            clipped = (shown != prompts) | (kept != answers)
            fits = shown + kept <= max(2, self.longest)
            think_s = self._think_s(turn, int(left[-1]) + 1)[left]
            left, shown, kept = left[fits], shown[fits], kept[fits]
            said[left] = shown + kept
            parts.append((left, np.full(len(left), turn), think_s[fits], shown, kept, clipped[fits]))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        names = ("session", "turn", "think_s", "input_tokens", "output_tokens", "clipped")
        return _Rows(**dict(zip(names, columns, strict=True)), shared_tokens=shared), wanted

    def _turn_counts(self) -> Integers:
        """By inversion, so that the same draw gives more turns where the mean is higher."""
        mean = self.sessions.turns_mean
        if self.sessions.turns_law == "constant" or mean == 1.0:
            return np.full(self.count, round(mean), np.int64)
        draws = stream(self.seed, "workload", "sessions", "turns").random(self.count)
        further = np.floor(np.log1p(-draws) / math.log1p(-1.0 / mean))
        return 1 + further.astype(np.int64)

    def _lengths(self, turn: int, count: int) -> Pair:
        """New messages and answers of a turn."""
        seed = self.seed
        if turn:
            seed = int(stream(seed, "workload", "sessions", "turn", turn).integers(2**63))
        if self.class_of is None:
            return draw_lengths(self.lengths, count, seed)
        return draw_lengths_of_classes(self.classes, self.class_of[:count], self.lengths, seed)

    def _think_s(self, turn: int, count: int) -> Floats:
        mean_s, variation = self.sessions.think_time_mean_s, self.sessions.think_time_cv
        if turn == 0:
            return np.zeros(count)
        if variation == 0.0:
            return np.full(count, mean_s)
        shape = 1.0 / variation**2
        draws = stream(self.seed, "workload", "sessions", "think_time", turn)
        return mean_s * draws.gamma(shape, 1.0 / shape, count)


def _first(rows: _Rows, wanted: Integers, class_of: Integers | None, request_count: int) -> DrawnSessions:
    """The first so many turns, session by session."""
    order = np.lexsort((rows.turn, rows.session))
    kept = np.zeros(len(order), np.bool_)
    kept[order[:request_count]] = True
    session, turn = rows.session[kept], rows.turn[kept]
    had = np.bincount(session)
    ended = had < wanted[: len(had)]
    ended[-1] &= len(rows.session) == request_count or rows.session[order[request_count]] > session.max()
    return DrawnSessions(
        input_tokens=rows.input_tokens[kept],
        output_tokens=rows.output_tokens[kept],
        class_of=None if class_of is None else class_of[session],
        turns=Turns(
            session=session,
            turn=turn,
            think_s=rows.think_s[kept],
            shared_tokens=rows.shared_tokens,
            cut_short_count=int(np.count_nonzero(ended)),
        ),
        clipped_count=int(np.count_nonzero(rows.clipped[kept])),
    )
