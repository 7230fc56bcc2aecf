"""The core's words in the reader's language: labels of the glossary, and messages.

A message's template is translated, then filled with its params.

A param may be a label of the glossary, or a few words that the core composed of one: `HBM bandwidth ×2`,
`Compute 35% (27%)`, `decoding 48% faster`. Their label is translated too, the numbers stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext
from django.utils.translation import gettext as _

from simcore.errors import Message
from simcore.glossary import entry, resource_label, statistic
from simcore.units import dimension_of

_EFFECT: Final = re.compile(r"^(?P<what>[\w .-]+?) (?P<size>[\d.,]+)(?P<times>%| times) (?P<how>[a-z]+)$")
_LABELLED: Final = re.compile(r"^(?P<label>[A-Za-z][\w ,./()-]*?)(?P<rest>:? [×+−\d(→].*)$")

_ACRONYMS: Final = frozenset(
    {"qkv", "mlp", "lm", "kv", "nic", "hbm", "l2", "cpu", "gemm", "moe", "mla", "ocs"}
)


def term(english: str) -> str:
    """A label of the glossary in the reader's language."""
    return _(english) if english else ""


def label(name: str) -> str:
    """A metric's label with its statistic, in the reader's language."""
    found = entry(name)
    text = term(found.label) if found else operator(name.removesuffix("_s"))
    tier = name.rpartition(".")[2]
    if found and tier in ("hbm", "scaleup", "scaleout"):
        return _("%(what)s: %(resource)s") % {"what": text, "resource": resource(tier)}
    mark = statistic(name)
    return f"{text} {_(mark) if mark in ('mean', 'max', 'min') else mark}" if mark else text


def plain_name(name: str) -> str:
    """A name that the glossary does not have, without its unit: `topology.restart_s` -> "Restart"."""
    last = name.rsplit(".", 1)[-1].removesuffix(f"_{dimension_of(name)}")
    words = [word.upper() if word in _ACRONYMS else word for word in last.split("_")]
    return capitalised(" ".join(words))


def operator(name: str) -> str:
    """An operator of a step, or a part of its time, in words; else the name as it reads without its unit."""
    names = {
        "qkv": _("Q, K and V"),
        "kv": _("K and V"),
        "q": _("Q"),
        "q_latent": _("Q into latents"),
        "q_up": _("Q from latents"),
        "kv_latent": _("K and V into latents"),
        "kv_up": _("K and V from latents"),
        "attention": _("Attention"),
        "decode_attention": _("Attention in decode"),
        "prefill_attention": _("Attention in prefill"),
        "attention_gate": _("Attention gate"),
        "attention_output": _("Attention output"),
        "output_down": _("Attention output into ranks"),
        "output_up": _("Attention output from ranks"),
        "mlp_up": _("MLP up"),
        "mlp_down": _("MLP down"),
        "router": _("Router"),
        "experts": _("Experts"),
        "shared_experts_up": _("Shared experts up"),
        "shared_experts_down": _("Shared experts down"),
        "state_update": _("State update"),
        "norms_and_activations": _("Norms and activations"),
        "lm_head": _("LM head"),
        "sampling": _("Sampling"),
        "launch": _("Launches"),
        "eager_host": _("Launches by the host"),
        "all_reduce": _("All-reduces"),
        "communication": _("All-reduces"),
        "rank_wait": _("Ranks wait"),
        "host": _("Host"),
        "linear": _("Layers without attention"),
        "head": _("LM head and sampling"),
        "overhead": _("Host"),
    }
    return names.get(name) or plain_name(name)


def help_text(name: str) -> str:
    found = entry(name)
    return term(found.help) if found else ""


def capitalised(text: str) -> str:
    """A sentence's first letter as a capital; the rest as it is."""
    return text[:1].upper() + text[1:]


def resource(name: str) -> str:
    """A resource's name in the reader's language."""
    return term(resource_label(name))


def resource_in_text(name: str) -> str:
    """The same inside a sentence: "compute", but still "HBM"."""
    text = resource(name)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def translated(message: Message | Mapping[str, Any]) -> str:
    """The text of a Message, or of its dictionary; English where no translation fits its params."""
    if isinstance(message, Message):
        template, params, text = message.template, message.params, ""
    else:
        template = str(message.get("template") or "")
        params = message.get("params") or {}
        text = str(message.get("text") or message.get("message") or "")
    if not template:
        return text
    words = {key: _phrase(value) if isinstance(value, str) else value for key, value in params.items()}
    try:
        return gettext(template).format(**words)
    except (KeyError, IndexError, ValueError, TypeError):
        return text or template


def _phrase(value: str) -> str:
    """A param's words: as a whole where they are known, else piece by piece between commas."""
    if not value:
        return value
    whole = gettext(value)
    return whole if whole != value else ", ".join(_piece(piece) for piece in value.split(", "))


def _piece(piece: str) -> str:
    if effect := _EFFECT.match(piece):
        size = effect["size"] + (_(" times") if effect["times"] == " times" else "%")
        return _("%(what)s %(size)s %(how)s") % {
            "what": _effect_words().get(effect["what"]) or gettext(effect["what"]),
            "size": size,
            "how": _effect_words().get(effect["how"], effect["how"]),
        }
    if labelled := _LABELLED.match(piece):
        return gettext(labelled["label"]) + labelled["rest"]
    return gettext(piece) if piece else piece


def _effect_words() -> dict[str, str]:
    """What the core's headlines say of an effect."""
    return {
        "decoding": _("decoding"),
        "capacity": _("capacity"),
        "faster": _("faster"),
        "slower": _("slower"),
        "higher": _("higher"),
        "lower": _("lower"),
        "shorter": _("shorter"),
        "longer": _("longer"),
    }
