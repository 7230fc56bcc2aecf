"""Prefix chains of sessions: what every turn has in common with the turns before it, in KV blocks.

Sessions have no block hashes, and need none: a turn's prompt is all that was said before. The first entries are the
whole blocks of the system prompt that all sessions share; then come a session's own, turn by turn the blocks that its
prompt fills up and those that its answer fills up. A turn's chain ends with its own answer, which becomes resident
when it is done; the next turn's chain begins with all of it. The last token of an answer is never stored, and a block
that is not full is not shared, as in vLLM. Entries are no longer than what a hash of a trace stands for, so eviction
takes no more at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simcore.serving.prefix import PrefixChains
from simcore.serving.records import Floats, Integers
from simcore.workload.block_hashes import BLOCK_TOKENS, Chains
from simcore.workload.requests import Requests
from simcore.workload.sessions import Turns

_TURN_PARTS: Final = 2  # of a chain: what a prompt adds, and its answer
_ANSWER_S: Final = 1.0  # about what one takes; only its share in the time between two turns counts


def session_chains(requests: Requests, turns: Turns, *, block_size_tokens: int) -> PrefixChains:
    """The chains of all turns; those of a session are the beginnings of one."""
    longest = max(1, BLOCK_TOKENS // block_size_tokens)
    shared = _pieces(np.array([turns.shared_tokens // block_size_tokens]), longest)
    order = turns.by_session
    starts = np.flatnonzero(turns.turn[order] == 0)
    ends = _filled(requests, order, block_size_tokens)
    np.maximum(ends, turns.shared_tokens // block_size_tokens, out=ends)
    before = np.append(0, ends[:-1])
    before[_TURN_PARTS * starts] = turns.shared_tokens // block_size_tokens
    sizes = ends - before
    counts = -(-sizes // longest)
    own = _pieces(sizes, longest)
    lengths = np.add.reduceat(counts, _TURN_PARTS * starts)  # own entries by session
    firsts = np.append(0, np.cumsum(lengths + len(shared)))
    entries = _numbered(lengths, len(shared))
    reached = np.cumsum(counts)[1::_TURN_PARTS]  # own entries up to the end of each turn
    session = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    offsets = np.empty(len(order), np.int64)
    chain_ends = np.empty(len(order), np.int64)
    offsets[order] = firsts[session]
    chain_ends[order] = reached + len(shared) * (session + 1)
    return PrefixChains(
        offsets=offsets,
        ends=chain_ends,
        entries=entries,
        blocks=np.append(shared, own),
        block_size_tokens=block_size_tokens,
    )


def expected_session_hits(
    requests: Requests, turns: Turns, *, lane_count: int, block_size_tokens: int
) -> float:
    """Share of the prompt tokens that a cache without an end finds, where turns go to any lane alike.

    A turn finds all whole blocks up to the end of the last turn of its session that its lane has had, or else the
    system prompt: `hit(t) = stored(t - 1) / lanes + hit(t - 1) (1 - 1 / lanes)`. With one lane, or a router that keeps
    sessions together, that is the turn before. The first prompt of a lane finds nothing.
    """
    order = turns.by_session
    stored = _filled(requests, order, block_size_tokens)[1::_TURN_PARTS] * float(block_size_tokens)
    shared = float(turns.shared_tokens // block_size_tokens * block_size_tokens)
    found = np.empty(len(requests))
    stored_of = np.empty(len(requests))
    stored_of[order] = stored
    following = turns.following
    found[turns.turn == 0] = shared
    for turn in range(int(turns.turn.max())):
        here = np.flatnonzero((turns.turn == turn) & (following >= 0))
        found[following[here]] = stored_of[here] / lane_count + found[here] * (1.0 - 1.0 / lane_count)
    most: Floats = np.minimum(found, requests.input_tokens - 1)
    most[: min(lane_count, turns.session_count)] = 0.0
    return float(most.sum() / requests.input_tokens.sum())


def approximate_chains(requests: Requests, turns: Turns) -> Chains:
    """Blocks of `BLOCK_TOKENS` that turns ask for, in the order in which they come if each answer takes `_ANSWER_S`."""
    order = np.argsort(_approximate_s(requests, turns), kind="stable")
    lengths = requests.input_tokens[order] // BLOCK_TOKENS
    offsets = np.append(0, np.cumsum(lengths))
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    session = np.repeat(turns.session[order], lengths)
    own = (session + 1) * (int(lengths.max(initial=0)) + 1) + places
    return offsets, np.where(places < turns.shared_tokens // BLOCK_TOKENS, places, own)


def _approximate_s(requests: Requests, turns: Turns) -> Floats:
    """When each turn comes; the users of a closed loop take the sessions in turn."""
    order = turns.by_session
    passed = np.cumsum(turns.think_s[order] + _ANSWER_S)
    first = turns.turn[order] == 0
    after = np.empty(len(order))
    after[order] = passed - passed[first][turns.session[order]]
    begins = requests.arrival_s[: turns.session_count]
    if requests.concurrency:
        lasted = np.diff(np.append(passed[first], passed[-1] + _ANSWER_S))
        rounds = -(-turns.session_count // requests.concurrency)
        by_user = np.zeros((rounds, requests.concurrency))
        by_user.ravel()[: turns.session_count] = lasted
        begins = (np.cumsum(by_user, axis=0) - by_user).ravel()
    instants: Floats = begins[turns.session] + after
    return instants


def _filled(requests: Requests, order: Integers, block_size_tokens: int) -> Integers:
    """Whole blocks from the beginning, of each turn twice: to the end of its prompt, and to that of its answer."""
    inputs, outputs = requests.input_tokens[order], requests.output_tokens[order]
    ends = np.empty(_TURN_PARTS * len(order), np.int64)
    ends[0::2] = inputs // block_size_tokens
    ends[1::2] = (inputs + outputs - 1) // block_size_tokens
    return ends


def _pieces(sizes: Integers, longest: int) -> Integers:
    """Sizes cut into pieces of `longest`, the rest of each last.

    >>> _pieces(np.array([5, 0, 2]), 2).tolist()
    [2, 2, 1, 2]
    """
    counts = -(-sizes // longest)
    found = np.full(int(counts.sum()), longest, np.int64)
    last = np.cumsum(counts) - 1
    cut = counts > 0
    found[last[cut]] = sizes[cut] - (counts[cut] - 1) * longest
    return found


def _numbered(lengths: Integers, shared_count: int) -> Integers:
    """Chain after chain, the shared entries and then as many of one's own.

    >>> _numbered(np.array([2, 1]), 1).tolist()
    [0, 1, 2, 0, 3]
    """
    own = np.arange(shared_count, shared_count + int(lengths.sum()), dtype=np.int64)
    if not shared_count:
        return own
    places = np.repeat(np.append(0, np.cumsum(lengths))[:-1], shared_count)
    return np.insert(own, places, np.tile(np.arange(shared_count), len(lengths)))
