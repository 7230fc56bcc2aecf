"""The yardstick of the serving benchmark: a bare compiled batch loop, one pass per iteration and no metrics.

It does the same work as the engine on one replica with chunked prefill (Poisson arrivals, token budget,
seats, KV blocks, first tokens and finishes), and nothing else: no preemption, no replicas, no routing, no
series, no histograms, no attribution, no table. The engine's time is reported as a multiple of its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simcore.compiled import compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class BareStep:
    """A roofline in six figures, close to Llama-3.1-8B on an H100."""

    weight_bytes: float = 16e9
    kv_bytes_per_token: float = 131_072.0
    flop_per_token: float = 16e9
    attention_flop_per_pair: float = 4 * 4096 * 32.0
    attained_flop_per_s: float = 400e12
    attained_bytes_per_s: float = 2.6e12
    overhead_s: float = 2e-3

    def as_array(self) -> Any:
        return np.array(
            [
                self.weight_bytes,
                self.kv_bytes_per_token,
                self.flop_per_token,
                self.attention_flop_per_pair,
                self.attained_flop_per_s,
                self.attained_bytes_per_s,
                self.overhead_s,
            ]
        )


@compiled
def bare_loop(
    arrival: Any, inputs: Any, outputs: Any, budget: int, seats: int, blocks: int, block: int, step: Any
) -> Any:
    """First-token and finish instants, and the number of iterations."""
    count = arrival.size
    first, last = np.empty(count), np.empty(count)
    due, who = np.empty(seats + 1, np.int64), np.empty(seats + 1, np.int64)  # heap of finishes by decode step
    opens = np.zeros(block, np.int64)  # decodes that open a block, by decode step modulo block
    filled = np.zeros(count, np.int64)
    began = np.zeros(count, np.int64)
    now = 0.0
    admitted = prefilling = decoding = steps = context = done = iterations = 0
    while done < count:
        while admitted < count and arrival[admitted] <= now and decoding + admitted - prefilling < seats:
            need = (inputs[admitted] + block - 1) // block
            if need > blocks:
                break
            blocks -= need
            admitted += 1
        if decoding + admitted - prefilling == 0:
            now = arrival[admitted]
            continue
        left = budget - decoding
        work = 0.0
        ended = prefilling
        while ended < admitted and left > 0:
            chunk = min(inputs[ended] - filled[ended], left)
            work += chunk * (filled[ended] + 0.5 * chunk)
            filled[ended] += chunk
            left -= chunk
            if filled[ended] < inputs[ended]:
                break
            ended += 1
        tokens = budget - left
        flop = step[2] * tokens + step[3] * (work + context)
        moved = step[0] + step[1] * (context + tokens - decoding)
        now += max(flop / step[4], moved / step[5]) + step[6]
        iterations += 1
        steps += 1
        context += decoding
        blocks -= opens[steps % block]
        while decoding > 0 and due[0] <= steps:
            request = who[0]
            decoding -= 1
            key, moving, place = due[decoding], who[decoding], 0
            while True:
                child = 2 * place + 1
                if child >= decoding:
                    break
                if child + 1 < decoding and due[child + 1] < due[child]:
                    child += 1
                if due[child] >= key:
                    break
                due[place], who[place] = due[child], who[child]
                place = child
            due[place], who[place] = key, moving
            last[request] = now
            done += 1
            held = inputs[request] + outputs[request] - 1
            context -= held
            blocks += (held + block - 1) // block
            opens[(began[request] + 1 - inputs[request]) % block] -= 1
        while prefilling < ended:
            request = prefilling
            prefilling += 1
            first[request] = now
            if outputs[request] == 1:
                last[request] = now
                done += 1
                blocks += (inputs[request] + block - 1) // block
                continue
            began[request] = steps
            context += inputs[request]
            opens[(steps + 1 - inputs[request]) % block] += 1
            key, place = steps + outputs[request] - 1, decoding
            decoding += 1
            while place > 0 and due[(place - 1) >> 1] > key:
                due[place], who[place] = due[(place - 1) >> 1], who[(place - 1) >> 1]
                place = (place - 1) >> 1
            due[place], who[place] = key, request
    return first, last, iterations
