"""The same policies written the slow and obvious way: one object per sequence, one pass per token.

It shares no code with the engine. Every iteration walks all sequences, sums their contexts and asks the
table; KV blocks are counted per sequence. The engine must agree with it on every request.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from simcore.compute.step_table import StepTimeTable
from simcore.serving.queue_order import Line
from simcore.streams import stream
from simcore.workload.requests import Requests


@dataclass
class Sequence:
    request: int
    prompt: int
    answer: int
    generated: int = 0
    computed: int = 0  # tokens with keys and values
    last_token_s: float = math.nan
    decodes: bool = False  # all but the last sampled token is computed

    @property
    def target(self) -> int:
        """Tokens that must be computed before the next one can be sampled."""
        return self.prompt + self.generated


@dataclass
class Lane:
    running: list[Sequence] = field(default_factory=list)
    waiting: list[Sequence] = field(default_factory=list)
    work: list[tuple[Sequence, int]] = field(default_factory=list)
    end_s: float = math.inf
    joining: int = 0  # of a batch that is being formed
    left: int = 0  # in line beside a free seat when the last iteration had been put together
    credit: int = 0  # of a token that drafts have yet to give
    virtual: float = 0.0  # of a fair line
    tags: dict[int, float] = field(default_factory=dict)  # finish tags by flow


class Reference:
    def __init__(
        self,
        requests: Requests,
        table: StepTimeTable,
        *,
        kind: str,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        block_count: int,
        block_size: int,
        replica_count: int,
        longest_chunk: int = 0,
        router: str = "round_robin",
        max_queue_length: int | None = None,
        line: Line | None = None,
    ) -> None:
        self.line = line
        self.ranks = np.zeros(len(requests)) if line is None else np.array(line.ranks)
        self.rows, self.gain = table.verified_tokens, round(table.gained_tokens * 2**32)
        self.table, self.kind = table, kind
        self.longest = longest_chunk or max_num_batched_tokens
        self.seats, self.budget = max_num_seqs, max_num_batched_tokens
        self.blocks, self.block = block_count, block_size
        self.lanes = [Lane() for _ in range(replica_count)]
        count = len(requests)
        self.inputs, self.outputs = requests.input_tokens, requests.output_tokens
        self.arrival = np.array(requests.arrival_s)
        self.turns, self.sessions = requests.turns, requests.start_count
        self.released = min(requests.concurrency, self.sessions) if requests.concurrency else self.sessions
        self.known = set(range(self.released))  # whose instant is known, and who has not come
        self.scheduled, self.first, self.finish = (np.full(count, np.nan) for _ in range(3))
        self.preemptions = np.zeros(count, int)
        self.rejected = np.zeros(count, bool)
        self.gaps: list[float] = []
        self.iterations = 0
        self.busy_s = 0.0
        self.router, self.longest_line = router, max_queue_length
        self.picks = stream(1, "router").random((count, 2))
        self.turn, self.last = 0, -1
        self.refused, self.unsent = np.zeros(count, bool), np.zeros(count, bool)
        self.number: dict[int, int] = {}  # in order of arrival
        self.replica = np.full(count, -1)
        self.tied = False  # two replicas ended at one instant, up to rounding: their order is then arbitrary
        self.run()

    def held(self, tokens: int) -> int:
        return math.ceil(tokens / self.block)

    def free(self, lane: Lane) -> int:
        return self.blocks - sum(self.held(sequence.computed) for sequence in lane.running)

    def run(self) -> None:
        while True:
            lane, *others = sorted(self.lanes, key=lambda lane: lane.end_s)
            self.tied |= any(other.end_s - lane.end_s < 1e-9 for other in others)
            if self.upcoming_s() <= lane.end_s and self.known:
                now = self.upcoming_s()
                while self.upcoming_s() == now:
                    self.arrive(self.upcoming())
                for idle in self.lanes:
                    if idle.end_s == math.inf:
                        self.start(idle, now)
                continue
            if lane.end_s == math.inf:
                break
            now = lane.end_s
            self.complete(lane, now)
            while self.upcoming_s() <= now:
                self.arrive(self.upcoming())
            self.start(lane, now)
            for idle in self.lanes:
                if idle.end_s == math.inf:
                    self.start(idle, now)
        assert self.released == self.sessions
        assert not self.known

    def upcoming(self) -> int:
        """Who comes next; of one instant, later turns before first ones."""
        return min(self.known, key=lambda one: (self.arrival[one], one < self.sessions, one))

    def upcoming_s(self) -> float:
        return self.arrival[self.upcoming()] if self.known else math.inf

    def arrive(self, request: int) -> None:
        self.known.remove(request)
        self.number[request] = len(self.number)
        prompt, answer = int(self.inputs[request]), int(self.outputs[request])
        wasted = math.ceil(self.gain / 2**32) - 1
        if self.held(prompt + answer - 1 + wasted) > self.blocks:
            self.turn_away(request)
            return
        chosen = self.route(request)
        lane = self.lanes[chosen]
        self.turn += 1
        self.replica[request] = chosen
        line = len(lane.waiting) + (0 if lane.left else len(lane.running) - self.seats)
        if self.longest_line is not None and line >= self.longest_line:
            self.refused[request] = True
            self.turn_away(request)
            return
        self.last = chosen
        lane.waiting.append(Sequence(request, prompt, answer))
        if self.line is not None:
            if self.line.flows is not None:
                flow, cost = int(self.line.flows[request]), self.ranks[request]
                self.ranks[request] = max(lane.virtual, lane.tags.get(flow, 0.0))
                lane.tags[flow] = self.ranks[request] + cost
            lane.waiting.sort(key=self.turn_of)

    @property
    def lowest_goes(self) -> bool:
        return self.line is not None and self.line.preempts_lowest

    def turn_of(self, sequence: Sequence) -> tuple[int, float, int]:
        """A preempted one keeps its place at the head, unless it was the lowest; the rest go by rank."""
        request = sequence.request
        if self.preemptions[request] and not self.lowest_goes:
            return (0, 0.0, 0)
        return (1, float(self.ranks[request]), self.number[request])

    def turn_away(self, request: int) -> None:
        """Rejected, and nobody sends the later turns of its session."""
        self.rejected[request] = True
        for other in self.later_turns(request):
            self.rejected[other] = self.unsent[other] = True
        self.release(self.arrival[request])

    def later_turns(self, request: int) -> np.ndarray:
        if self.turns is None:
            return np.zeros(0, int)
        mine = (self.turns.session == self.turns.session[request]) & (
            self.turns.turn > self.turns.turn[request]
        )
        return np.flatnonzero(mine)  # in order, as turns stand turn by turn

    def answered(self, request: int, now: float) -> None:
        later = self.later_turns(request)
        if len(later):
            self.arrival[later[0]] = now + self.turns.think_s[later[0]]
            self.known.add(int(later[0]))
        else:
            self.release(now)

    def route(self, request: int) -> int:
        count = len(self.lanes)
        first, second = (
            int(pick * lanes) for pick, lanes in zip(self.picks[request], (count, count - 1), strict=True)
        )
        second = (first + 1 + second) % count
        in_turn = [(self.last + 1 + place) % count for place in range(count)]
        outstanding = [len(lane.waiting) + len(lane.running) for lane in self.lanes]
        match self.router:
            case "round_robin":
                return self.turn % count
            case "random":
                return first
            case "power_of_two":
                return second if outstanding[second] < outstanding[first] else first
            case "least_kv":
                return min(in_turn, key=lambda index: self.blocks_asked_for(self.lanes[index]))
            case "session" if self.turns is not None and self.turns.turn[request] > 0:
                first_turn = np.flatnonzero(self.turns.session == self.turns.session[request])[0]
                return int(self.replica[first_turn])
            case "least_outstanding" | "prefix_affinity" | "session":  # no prompt has a name here
                return min(in_turn, key=lambda index: outstanding[index])
        raise AssertionError(f"no reference for {self.router}")

    def blocks_asked_for(self, lane: Lane) -> int:
        chunks = {sequence.request: chunk for sequence, chunk in lane.work}
        running = sum(self.held(s.computed + chunks.get(s.request, 0)) for s in lane.running)
        return running + sum(self.held(s.target) for s in lane.waiting)

    def release(self, now: float) -> None:
        if self.released < self.sessions:
            self.arrival[self.released] = now
            self.known.add(self.released)
            self.released += 1

    def preempt(self, lane: Lane) -> Sequence:
        victim = lane.running[-1]
        if self.lowest_goes:
            victim = max(lane.running, key=lambda s: (self.ranks[s.request], s.request))
        lane.running.remove(victim)
        victim.computed, victim.decodes = 0, False
        self.preemptions[victim.request] += 1
        lane.waiting.insert(0, victim)
        if self.lowest_goes:
            lane.waiting.sort(key=self.turn_of)
        return victim

    def start(self, lane: Lane, now: float) -> None:
        lane.work = []
        if self.kind == "chunked_prefill":
            self.schedule_chunked(lane, now)
        elif self.kind == "continuous":
            self.schedule_continuous(lane, now)
        else:
            self.schedule_static(lane, now)
        lane.left = len(lane.waiting) if len(lane.running) < self.seats else 0
        if not lane.work:
            assert not lane.running
            assert not lane.waiting
            lane.end_s = math.inf
            return
        lane.end_s = now + self.step_s(lane)
        self.busy_s += lane.end_s - now
        self.iterations += 1

    def schedule_chunked(self, lane: Lane, now: float) -> None:
        budget, place, preempted = self.budget, 0, False
        grown: dict[int, int] = {}
        spent: dict[int, int] = {}

        def room() -> int:
            return self.free(lane) - sum(
                self.held(s.computed + grown.get(s.request, 0)) - self.held(s.computed) for s in lane.running
            )

        order = sorted(lane.running, key=lambda s: not s.decodes)  # decodes come first
        while place < len(order) and budget > 0:
            sequence = order[place]
            left = sequence.target - sequence.computed
            chunk = self.given(lane) if sequence.decodes else min(left, budget, self.longest)
            need = self.held(sequence.computed + chunk) - self.held(sequence.computed)
            out = False
            while need > room() and not out:
                preempted = True
                victim = self.preempt(lane)
                order.remove(victim)
                out = victim is sequence
                if victim.request in grown:
                    lane.work = [piece for piece in lane.work if piece[0] is not victim]
                    grown.pop(victim.request)
                    budget += spent.pop(victim.request)
                    place -= 1
            if out:
                continue  # its place in the order is the next one's
            grown[sequence.request] = chunk
            lane.work.append((sequence, chunk))
            spent[sequence.request] = self.rows if sequence.decodes else chunk
            budget -= spent[sequence.request]
            place += 1
        while not preempted and lane.waiting and budget > 0 and len(lane.running) < self.seats:
            sequence = lane.waiting[0]
            chunk = min(sequence.target, budget, self.longest)
            if self.held(chunk) > room():
                break
            self.admit(lane, now)
            grown[sequence.request] = chunk
            lane.work.append((sequence, chunk))
            budget -= chunk

    def schedule_continuous(self, lane: Lane, now: float) -> None:
        budget, taken = self.budget, 0
        while lane.waiting and len(lane.running) < self.seats:
            sequence = lane.waiting[0]
            need = self.held(sequence.target)
            reserve = int(0.01 * self.blocks) if lane.running else 0
            if (sequence.target > budget and lane.work) or need + reserve > self.free(lane) - taken:
                break
            self.admit(lane, now)
            taken += need
            lane.work.append((sequence, sequence.target))
            budget -= sequence.target
        if lane.work:
            return
        self.decode_all(lane)

    def schedule_static(self, lane: Lane, now: float) -> None:
        if not lane.running:
            lane.joining = min(len(lane.waiting), self.seats)
        tokens = 0
        while lane.joining:
            sequence = lane.waiting[0]
            if self.held(sequence.target) > self.free(lane) - sum(self.held(chunk) for _, chunk in lane.work):
                lane.joining = 0
            elif lane.work and tokens + sequence.target > self.budget:
                break
            else:
                self.admit(lane, now)
                lane.work.append((sequence, sequence.target))
                tokens += sequence.target
                lane.joining -= 1
        if not lane.work:
            self.decode_all(lane)

    def decode_all(self, lane: Lane) -> None:
        given = self.given(lane)
        while sum(self.held(s.computed + given) for s in lane.running) > self.blocks:
            self.preempt(lane)
        lane.work = [(sequence, given) for sequence in lane.running]

    def given(self, lane: Lane) -> int:
        """Tokens that a decode gets of this iteration."""
        return (lane.credit + self.gain) // 2**32

    def admit(self, lane: Lane, now: float) -> None:
        sequence = lane.waiting.pop(0)
        lane.running.append(sequence)
        if not self.preemptions[sequence.request]:
            lane.virtual = max(lane.virtual, float(self.ranks[sequence.request]))
        if math.isnan(self.scheduled[sequence.request]):
            self.scheduled[sequence.request] = now

    def step_s(self, lane: Lane) -> float:
        table, window = self.table, self.table.window_tokens
        decodes = [s for s, _ in lane.work if s.decodes]
        prompts = [(s, chunk) for s, chunk in lane.work if not s.decodes]
        tokens = sum(self.rows if s.decodes else chunk for s, chunk in lane.work)
        sampled = len(decodes) + sum(s.computed + chunk == s.target for s, chunk in prompts)
        last = len(table.linear_s) - 1
        seconds = float(
            table.linear_s[min(tokens, last)] + table.comm_s[min(tokens, last)] + table.overhead_s
        )
        seconds *= max(1.0, tokens / last)
        seconds += float(table.head_s[sampled]) + table.overhead_s_per_sequence * len(lane.work)
        if decodes:
            contexts = [s.computed + self.rows for s in decodes]
            seconds += table.decode_attention_s + table.decode_attention_s_per_sequence * len(decodes)
            seconds += table.decode_attention_s_per_token * sum(contexts)
            seconds += table.decode_attention_s_per_window_token * sum(min(c, window) for c in contexts)
        if prompts:
            middles = [(chunk, s.computed + chunk / 2) for s, chunk in prompts]
            seconds += table.prefill_attention_s
            seconds += table.prefill_attention_s_per_token_context * sum(c * m for c, m in middles)
            seconds += table.prefill_attention_s_per_window_token * sum(
                c * min(window, m) for c, m in middles
            )
        return seconds

    def complete(self, lane: Lane, now: float) -> None:
        decoded = [s for s, _ in lane.work if s.decodes]
        lane.work.sort(key=lambda piece: piece[0] not in decoded)  # finishes of decodes come first
        if decoded:
            lane.credit = (lane.credit + self.gain) % 2**32
        for sequence, chunk in lane.work:
            tokens = min(chunk, sequence.answer - sequence.generated) if sequence.decodes else 1
            sequence.computed += tokens if sequence.decodes else chunk
            if sequence.computed < sequence.target:
                continue
            if sequence.generated == 0:
                self.first[sequence.request] = now
            else:
                self.gaps.append(now - sequence.last_token_s)
            sequence.generated += tokens
            sequence.decodes = True
            sequence.last_token_s = now
            if sequence.generated == sequence.answer:
                self.finish[sequence.request] = now
                lane.running.remove(sequence)
                self.answered(sequence.request, now)
        lane.work = []
