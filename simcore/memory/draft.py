"""What a draft model takes on the ranks of the model that it drafts for: its weights, and KV beside every block.

A token has keys and values in both models, so a page of the target is as much larger as the draft's share of it.
Limits: windows of the draft hold whole contexts; its states and activations are not counted.
"""

from __future__ import annotations

from dataclasses import replace

from simcore.memory.pages import page_bytes
from simcore.memory.request import MemoryRequest
from simcore.memory.weights import rank_weight_bytes
from simcore.parallelism import pipeline_stages
from simcore.why import Term, constant


def draft_bytes(request: MemoryRequest) -> Term:
    """Weights of the draft on one rank, in its own format; none where no model drafts."""
    draft = request.draft
    if draft is None:
        return constant(0.0, "draft_weight_bytes")
    stage = pipeline_stages(draft, 1)[0]
    weights = rank_weight_bytes(draft, request.parallelism, stage, weights_dtype=draft.weights_dtype)
    return weights.named("draft_weight_bytes", "bytes")


def with_draft(request: MemoryRequest, page: Term, groups: int) -> Term:
    """A page with the draft's keys and values of its tokens, which the groups of a token share out."""
    draft = request.draft
    if draft is None:
        return page
    own = page_bytes(replace(request, arch=draft, draft=None), draft.layers)
    if groups > 1:
        own = own / constant(float(groups), "layer_groups")
    return (page + own.named("draft_page_bytes", "bytes")).named("page_bytes", "bytes")
