"""The live state of the engine: what a replica lane, a seat and the clock hold, as flat numpy records.

One array per kind of thing; a lane (one replica) owns `ring_size` consecutive seats, one per running
sequence, and as many rows of `room`, which holds its heap, rings and stacks. Equal lanes are a pool, with one
record of `SETUP` and one of `TOTALS`. All of it is mutable, private
to one `Engine`, and complete: a kernel call can stop after any event and the next call goes on from here.

Words: a *step* is one decode iteration of a lane (every decoding sequence gains a token; with speculation some, and
`lane.step` counts the tokens); a *run* is a number of iterations with an unchanged batch, advanced at once; *held*
tokens are those with keys and values in the KV pool.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

UNFINISHED: Final = 0
FINISHED: Final = 1
REJECTED: Final = 2

# What a pool does of a request.
BOTH: Final = 0
PREFILL: Final = 1
DECODE: Final = 2

# Why a kernel call returned.
PAUSED: Final = 0
SAMPLES_FULL: Final = 1
DONE: Final = 2
STUCK: Final = 3
MORE_SEATS: Final = 4  # the lane `clock.growing` must have more before the next arrival
HALTED: Final = 5  # at `clock.halt_s`
LOST: Final = 6  # the lane `clock.growing` is down, and its last step has ended

LEVEL_KEPT: Final = -2  # `row.level` of a sequence whose KV a copy elsewhere keeps

MAPPED_LANES: Final = 16
SAMPLE_ROWS: Final = 512  # of one kernel call; it returns when they are full
GAP_BINS_PER_OCTAVE_LOG2: Final = 7  # bins of the gap histogram are under 0.8 % wide
GAP_OCTAVES: Final = 44  # from 2**-30 s (1 ns) to 2**14 s (4.5 h)
GAP_LOWEST_EXPONENT: Final = -30
GAP_BINS: Final = GAP_OCTAVES << GAP_BINS_PER_OCTAVE_LOG2

LANE: Final = np.dtype(
    [
        ("start_s", "f8"),  # of the run in progress
        ("end_s", "f8"),
        ("moved_s", "f8"),  # before its first step, for KV that comes from or goes to a tier
        ("fetch_s", "f8"),  # what bringing back the KV of the first in line would take, as last looked up
        ("rate_s", "f8"),  # j-th step of the run takes rate_s + slope_s * j
        ("slope_s", "f8"),
        ("prefill_work", "f8"),  # Σ chunk * (done + chunk / 2) of this iteration
        ("prefill_window_work", "f8"),
        ("virtual", "f8"),  # time of a fair line: the latest start tag that left it
        ("steps", "i8"),  # steps of the run in progress; 0: idle
        ("decodes", "i8"),  # sequences that decode in it
        ("chunks", "i8"),  # prompts (or parts of them) prefilled in it
        ("prefill_tokens", "i8"),
        ("finishing", "i8"),  # prompts that end in it
        ("blocked", "i8"),  # the first in line waits for memory
        ("gathering", "i8"),  # of a static batch that is forming, how many may still join
        ("may_run", "i8"),  # nothing but an arrival can change the batch before the next heap event
        ("pool", "i8"),  # its row of setup and totals
        ("seat_base", "i8"),  # first seat, first row of room
        ("ring_size", "i8"),  # seats of the lane
        ("phase_base", "i8"),
        ("tree_base", "i8"),  # of the buddy allocator
        ("step", "i8"),  # decode steps done so far
        ("decoding", "i8"),
        ("running", "i8"),  # seats taken
        ("waiting", "i8"),  # in line
        ("returning", "i8"),  # of those, preempted ones
        ("left", "i8"),  # of those, whom the scheduler left waiting beside a free seat when it last looked
        ("line_blocks", "i8"),  # that the prompts of those ask for
        ("held", "i8"),  # Σ context of decoding sequences
        ("held_in_window", "i8"),  # Σ min(context, window)
        ("below_window", "i8"),  # decoding sequences with context < window
        ("prefilled", "i8"),  # Σ held tokens of sequences in prefill
        ("free_blocks", "i8"),  # cached ones among them
        ("cached_blocks", "i8"),  # resident prefixes that nobody holds
        ("doubled_blocks", "i8"),  # Σ (holders - 1) of shared blocks: what sharing saves
        ("found", "i8"),  # resident entries of the first in line, as last looked up
        ("found_held", "i8"),  # of their blocks, those in use
        ("newest", "i8"),  # entry that nobody holds, by last use; -1: none
        ("oldest", "i8"),
        ("cell_base", "i8"),
        ("tier_base", "i8"),
        ("heap_count", "i8"),
        ("ring_first", "i8"),  # ring of seats in prefill, in order of admission
        ("ring_count", "i8"),
        ("spare_count", "i8"),  # free seats
        ("group_count", "i8"),  # decodes that wait for a prefill-only iteration, by time of their last token
        ("queue_first", "i8"),  # linked through rows.after, or the root of a heap; -1: empty
        ("queue_last", "i8"),
        ("last_seat", "i8"),  # running sequences are linked in order of admission; -1: none
        ("barren", "i8"),  # iterations since a token was emitted
        # Only where drafts are verified:
        ("credit", "i8"),  # of a token that drafts have yet to give, in 2**-32
        ("gained", "i8"),  # tokens that a sequence gets of the first iteration of the run
        # Only where prefill and decode are apart:
        ("port_s", "f8"),  # when its end of the link is free again
        ("parked", "i8"),  # tokens whose blocks are taken while nothing computes on them
        ("parting_first", "i8"),  # prompts that ended in this run; -1: none
        ("parting_last", "i8"),
        ("queued", "i8"),  # prompts for which it has not reserved blocks yet, in the order of their ends
        ("queued_first", "i8"),
        ("queued_last", "i8"),
        ("coming", "i8"),  # whose KV is on its way
        ("landed", "i8"),  # whose KV is here, and which have no seat yet
        ("landed_first", "i8"),
        ("landed_last", "i8"),
        ("fresh", "i8"),  # sequences whose first token this run gives
        ("order", "i8"),  # position in the heap of busy lanes
        # Only where something fails:
        ("down", "i8"),  # 1: it computes nothing
        ("shut", "i8"),  # 1: it is sent nothing
        ("pace", "f8"),  # from the next run on, steps take so many times as long; 1.0 unless something failed
        ("slow", "f8"),  # the same of the run in progress
    ],
    align=True,
)
SEAT: Final = np.dtype(
    [
        ("last_token_s", "f8"),
        ("request", "i8"),
        ("target", "i8"),  # tokens to prefill: prompt and, after a preemption, what was generated
        ("done", "i8"),  # of those, prefilled
        ("chunk", "i8"),  # of those, in the last iteration that prefilled it
        ("generated", "i8"),  # tokens emitted before the decode began
        ("start", "i8"),  # lane.step when decode began; -1: in prefill
        ("phase", "i8"),
        ("below_window", "i8"),
        ("place", "i8"),  # position in the lane's heap
        ("finish", "i8"),  # step of the last token
        ("shared", "i8"),  # leading entries of its chain that it holds
        ("shared_blocks", "i8"),
        ("before", "i8"),
        ("after", "i8"),
    ]
)
ROOM: Final = np.dtype(
    [
        ("key", "i8"),  # heap of the next event (window crossing or finish) by step
        ("seat", "i8"),
        ("ring", "i8"),
        ("spare", "i8"),
        ("group_s", "f8"),
        ("group_size", "i8"),
    ]
)
ROW: Final = np.dtype(
    [
        ("first_token_s", "f8"),
        ("finish_s", "f8"),
        ("scheduled_s", "f8"),
        ("rank", "f8"),  # in the line, lowest first; not read where it is first come first served
        ("last_token_s", "f8"),  # of a preempted sequence in line, as the next three
        ("generated", "i4"),  # tokens that it has emitted; 0 of a newcomer
        ("held", "i4"),  # tokens that it had in memory
        ("level", "i2"),  # the tier that has them; -1: none, they are computed again
        ("flow", "i2"),  # whose share of a fair line it takes
        ("after", "i4"),  # next in the lane's queue
        ("child", "i4"),  # in a ranked line
        ("preemptions", "i4"),
        ("replica", "i4"),
        ("status", "i4"),
        ("reserved", "i4"),  # blocks promised at admission; not read where pages are
        ("first_block", "i4"),  # of the run that was taken
        ("number", "i4"),  # in order of arrival; not read where it is first come first served
    ],
    align=True,
)
HOP: Final = np.dtype(
    [
        ("prefilled_s", "f8"),  # instants of one prompt on its way from prefill to decode
        ("pulled_s", "f8"),
        ("request", "i8"),
        ("source", "i8"),  # lanes
        ("target", "i8"),
        ("shared", "i8"),  # as in a seat
        ("shared_blocks", "i8"),
    ]
)
CELL: Final = np.dtype(
    [
        ("older", "i4"),  # entries that nobody holds are linked by last use; -1: end
        ("newer", "i4"),
        ("holders", "i4"),  # 0: not resident; 1: resident, held by nobody; n + 1: by n sequences
    ]
)
TIER: Final = np.dtype(
    [
        ("latency_s", "f8"),
        ("s_per_token", "f8"),
        ("capacity_blocks", "i8"),
        ("through", "i8"),  # 1: takes entries when they are computed; 0: when they leave what is before it
        ("swapped_blocks", "i8"),  # of preempted sequences
        ("cached_blocks", "i8"),  # of entries
        ("newest", "i8"),  # entry by last use; -1: none
        ("oldest", "i8"),
        ("cell_base", "i8"),
        ("incoming", "i8"),  # tokens of the first in line that would come from here, as last looked up
        ("outgoing", "i8"),  # tokens to write before the next step
        ("read_tokens", "i8"),
        ("written_tokens", "i8"),
        ("hit_tokens", "i8"),  # of prompts, at their first admission
        ("most_blocks", "i8"),
    ],
    align=True,
)
CLOCK: Final = np.dtype(
    [
        ("now_s", "f8"),
        ("sample_s", "f8"),  # next sample
        ("halt_s", "f8"),  # the kernel returns before the first event after this instant
        ("watch_s", "f8"),  # the sooner of the two
        ("sample_interval_s", "f8"),
        ("next_request", "i8"),
        ("released", "i8"),  # requests whose instant is known; with sessions, one more than who comes next
        ("count", "i8"),  # requests that wait for no other, but in a closed loop for a user
        ("most_blocks", "i8"),  # that any lane can hold of one request
        ("completed", "i8"),
        ("rejected", "i8"),
        ("refused", "i8"),  # of those, because the line was full
        ("until", "i8"),  # pause when this many are completed or rejected
        ("closed_loop", "i8"),
        ("sessions", "i8"),  # 1: later turns come after the answers before them
        ("starts", "i8"),  # first turns whose instant is known
        ("next_start", "i8"),  # the first turn that has not arrived
        ("due", "i8"),  # later turns whose instant is known
        ("lined_up", "i8"),  # who stands at next_request; -1: nobody
        ("unsent", "i8"),  # of those rejected, because a turn before them was
        ("busy_lanes", "i8"),
        ("turn", "i8"),  # requests routed so far
        ("last_lane", "i8"),  # where the last one went; -1: there was none
        ("growing", "i8"),  # lane that must have more seats
        ("in_flight", "i8"),  # prompts whose KV is on its way
        ("last_target", "i8"),  # decode lane that the last prompt was handed to
        ("samples", "i8"),  # in the buffer
        ("samples_until_wider", "i8"),  # then the interval doubles, so a long tail costs few samples
        ("resuming", "i8"),  # 1: a lane that is down will be back, so an empty calendar is not the end
    ]
)
SETUP: Final = np.dtype(
    [
        ("decode_s_per_token", "f8"),
        ("decode_s_per_window_token", "f8"),
        ("decode_s_per_sequence", "f8"),
        ("decode_s", "f8"),
        ("prefill_s_per_work", "f8"),
        ("prefill_s_per_window_work", "f8"),
        ("prefill_s", "f8"),
        ("overhead_s_per_sequence", "f8"),
        ("kv_s_per_token", "f8"),  # of a lane's end of the link
        ("kv_latency_s", "f8"),
        ("kv_last_fraction", "f8"),  # of a prompt's KV, what cannot leave before its last layer is computed
        ("role", "i8"),
        ("most_load", "f8"),  # requests outstanding that a router passes a lane over beyond: this, and so
        ("most_load_per_request", "f8"),  # many for each request outstanding anywhere
        ("window", "i8"),
        ("scheduler", "i8"),
        ("router", "i8"),
        ("tracking", "i8"),  # 1: the router reads a tree of requests outstanding
        ("max_queue_length", "i8"),  # of a replica; -1: no bound
        ("lanes_per_replica", "i8"),
        ("most_seats", "i8"),  # that a lane can ever have taken
        ("max_num_seqs", "i8"),
        ("max_num_batched_tokens", "i8"),
        ("ranked", "i8"),  # 1: the line is in the order of rows.rank
        ("flows", "i8"),  # that share a fair line; 0: ranks do not depend on who came before
        ("preempts_lowest", "i8"),  # 1: the lowest in rank is preempted; 0: the last admitted
        ("longest_chunk", "i8"),  # of one prompt in an iteration
        ("block_size", "i8"),
        ("block_shift", "i8"),  # its log2, or -1
        ("block_count", "i8"),
        ("watermark_blocks", "i8"),
        ("pages", "i8"),  # 1: blocks are taken as sequences grow; 0: all that was promised, at admission
        ("levels", "i8"),  # of the buddy allocator's tree; -1: any blocks will do
        ("replica_count", "i8"),  # lanes that the router chooses among
        ("first_lane", "i8"),
        ("lane_count", "i8"),
        ("token_base", "i8"),  # of its steps by tokens, and their tally
        ("token_last", "i8"),
        ("sampled_base", "i8"),
        ("caching", "i8"),  # 1: prompts share resident prefixes
        ("finding", "i8"),  # 1: part of a prompt may need no computing
        ("tiers", "i8"),  # behind the KV pool of a lane
        ("swapping", "i8"),  # 1: they take the KV of preempted sequences
        ("stowing", "i8"),  # 1: they take evicted prefixes
        ("again_s_per_token", "f8"),  # computing a stowed prefix again
        ("again_s_per_work", "f8"),
        ("drafts", "i8"),  # draft tokens of a decoding sequence in an iteration; 0: no speculation
        ("gain", "i8"),  # tokens that a sequence gets of an iteration, in 2**-32
        ("gained_tokens", "f8"),  # the same
        ("most_wasted", "i8"),  # of them, by a sequence that ends in it
        ("keeping", "i8"),  # 1: what a lane loses has a copy elsewhere
        ("kept_s_per_token", "f8"),  # of bringing back KV from a copy elsewhere
        ("kept_latency_s", "f8"),
    ]
)
TOTALS: Final = np.dtype(
    [
        ("busy_s", "f8"),
        ("decode_context_tokens", "f8"),
        ("decode_window_tokens", "f8"),
        ("prefill_work", "f8"),
        ("prefill_window_work", "f8"),
        ("gap_s", "f8"),
        ("moved_s", "f8"),  # of busy_s, waiting for KV on its way from or to a tier
        ("block_s", "f8"),  # ∫ blocks in use dt
        ("held_s", "f8"),  # ∫ held tokens dt
        ("blocked_s", "f8"),  # ∫ free blocks dt, while the first in line does not fit
        ("iterations", "i8"),
        ("decode_iterations", "i8"),
        ("prefill_iterations", "i8"),
        ("decode_sequences", "i8"),
        ("sequences", "i8"),
        ("drafted_tokens", "i8"),  # that answers got of iterations with draft tokens
        ("prefill_tokens", "i8"),
        ("discarded_tokens", "i8"),
        ("preemptions", "i8"),
        ("swaps", "i8"),
        ("gaps", "i8"),
        ("prompt_tokens", "i8"),  # of admitted requests
        ("hit_tokens", "i8"),  # of those, resident at their first admission
        ("evicted_blocks", "i8"),
        ("most_blocks", "i8"),
        ("slowed_s", "f8"),  # of busy_s, what lanes that are slowed took longer
        ("stranded", "i8"),  # preemptions because their lane went down
    ]
)
SAMPLE: Final = np.dtype(
    [
        ("time_s", "f8"),
        ("running", "i8"),
        ("waiting", "i8"),
        ("used_blocks", "i8"),
        ("cached_blocks", "i8"),
        ("batch_tokens", "i8"),
        ("preemptions", "i8"),  # so far
        ("handing_over", "i8"),  # prompts that have ended on one lane and not begun on another
        ("held_tokens", "i8"),  # shared ones once
        ("lane_blocks", "i8", (MAPPED_LANES,)),  # in use, of the first lanes
    ]
)


def records(dtype: np.dtype[Any], count: int) -> Any:
    """Zeroed records with attribute access, which numba compiles and plain Python understands too."""
    return np.zeros(count, dtype).view(np.recarray)
