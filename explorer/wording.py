"""The core's words in the reader's language: labels of the glossary, and messages.

A message's template is translated, then filled with its params.

A param may be a label of the glossary, or a few words that the core composed of one: `HBM bandwidth ×2`,
`Compute 35% (27%)`, `decoding 48% faster`. Their label is translated too, the numbers stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from simcore.errors import Message, Phrases
from simcore.glossary import entry, resource_label, statistic
from simcore.term_names import OPERATORS, term_label
from simcore.units import dimension_of

_EFFECT: Final = re.compile(r"^(?P<what>[\w .-]+?) (?P<size>[\d.,]+)(?P<times>%| times) (?P<how>[a-z]+)$")
_LABELLED: Final = re.compile(r"^(?P<label>[A-Za-z][\w ,./()-]*?)(?P<rest>:? [×+−\d(→].*)$")

# Sentences that the core puts together around a citation or a number: how they are read, how they are said.
_SOURCES: Final = tuple(
    (re.compile(pattern), template)
    for pattern, template in (
        (r"(?P<title>.+), recalled", gettext_noop("%(title)s, recalled")),
        (r"(?P<title>.+), standing in", gettext_noop("%(title)s, standing in")),
        (r"(?P<title>.+), implied prices", gettext_noop("%(title)s, implied prices")),
        (
            r"(?P<title>.+), through our reference table of model shapes",
            gettext_noop("%(title)s, through our reference table of model shapes"),
        ),
        (r"your override: (?P<typed>.+)", gettext_noop("your override: %(typed)s")),
        (
            r"memory that the driver reports, in logs of engine starts: (?P<printed>.+)",
            gettext_noop("memory that the driver reports, in logs of engine starts: %(printed)s"),
        ),
        (r"(?P<part>.+): counted", gettext_noop("%(part)s: counted")),
        (
            r"planned again with (?P<count>.+) chips more, less as planned",
            gettext_noop("planned again with %(count)s chips more, less as planned"),
        ),
        (
            r"(?P<part>.+): mean over pairs, counted on the fabric",
            gettext_noop("%(part)s: mean over pairs, counted on the fabric"),
        ),
        (
            r"InfiniBand across leaves less within one, (?P<title>.+), per further switch",
            gettext_noop("InfiniBand across leaves less within one, %(title)s, per further switch"),
        ),
        (
            r"DeepEP as measured by (?P<title>.+), fitted on H100 and H200",
            gettext_noop("DeepEP as measured by %(title)s, fitted on H100 and H200"),
        ),
        (r"result (?P<digest>[0-9a-f]{12})", gettext_noop("result %(digest)s")),
        (r"shape of (?P<model>.+)", gettext_noop("shape of %(model)s")),
        (r"config\.json of (?P<model>.+)", gettext_noop("config.json of %(model)s")),
        (r"start logs of (?P<engine>.+)", gettext_noop("start logs of %(engine)s")),
        (
            r"fit to start logs of vLLM, constants of (?P<version>\S+) and later",
            gettext_noop("fit to start logs of vLLM, constants of %(version)s and later"),
        ),
        (
            r"fit to start logs of vLLM, constants of (?P<version>\S+) and before",
            gettext_noop("fit to start logs of vLLM, constants of %(version)s and before"),
        ),
        (
            r"fit of (?P<count>\d+) decode steps of (?P<engine>.+) on (?P<chip>.+)",
            gettext_noop("fit of %(count)s decode steps of %(engine)s on %(chip)s"),
        ),
        (r"fit of (?P<rows>.+)", gettext_noop("fit of %(rows)s")),
        (r"middle of the fits of (?P<rows>.+)", gettext_noop("middle of the fits of %(rows)s")),
        (
            r"mean error (?P<size>\d+%) on rows not fitted",
            gettext_noop("mean error %(size)s on rows not fitted"),
        ),
        (r"mean error (?P<size>\d+%)", gettext_noop("mean error %(size)s")),
        (
            r"taken from (?P<chip>.+), where it was measured",
            gettext_noop("taken from %(chip)s, where it was measured"),
        ),
        (
            r"mean of (?P<chips>.+), where it was measured",
            gettext_noop("mean of %(chips)s, where it was measured"),
        ),
        (r"as measured on (?P<chip>.+)", gettext_noop("as measured on %(chip)s")),
        (r"(?P<count>[\d,]+) tokens", gettext_noop("%(count)s tokens")),
        (
            r"Daly 2006, for writes of (?P<write>[\d,.]+) s and (?P<between>[\d,.]+) s between failures",
            gettext_noop("Daly 2006, for writes of %(write)s s and %(between)s s between failures"),
        ),
        (
            r"largest goodput reached 97 % of the time, binomial over cubes",
            gettext_noop("largest goodput reached 97 %% of the time, binomial over cubes"),
        ),
        (
            r"mean-field iteration at a batch of (?P<batch>[\d.,e+]+)",
            gettext_noop("mean-field iteration at a batch of %(batch)s"),
        ),
        (r"the most cubic torus of all cubes", gettext_noop("the most cubic torus of all cubes")),
        (r"binomial over (?P<count>[\d,]+) cubes", gettext_noop("binomial over %(count)s cubes")),
        (r"(?P<fabric>\w+), counted", gettext_noop("%(fabric)s, counted")),
        (
            r"(?P<statistic>\w+) of (?P<count>[\d,]+) simulated, seed (?P<seed>\d+)",
            gettext_noop("%(statistic)s of %(count)s simulated, seed %(seed)s"),
        ),
        (
            r"run of (?P<count>[\d,]+) simulated requests, seed (?P<seed>\d+)",
            gettext_noop("run of %(count)s simulated requests, seed %(seed)s"),
        ),
        (r"(?P<title>.+): (?P<printed>.+?)", gettext_noop("%(title)s: %(printed)s")),
    )
)

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


def figure(name: str) -> str:
    """A metric's label where nothing else says that it is money: `Cost per million tokens`."""
    text = label(name)
    if not name.startswith("cost.usd_per_"):
        return text
    return _("Cost %(per)s") % {"per": text[:1].lower() + text[1:]}


def plain_name(name: str) -> str:
    """A name that the glossary does not have, without its unit: `topology.restart_s` -> "Restart"."""
    last = name.rsplit(".", 1)[-1].removesuffix(f"_{dimension_of(name)}")
    words = [word.upper() if word in _ACRONYMS else word for word in last.split("_")]
    return capitalised(" ".join(words))


def operator(name: str) -> str:
    """An operator of a step, or a part of its time, in words; else the name as it reads without its unit."""
    return term(OPERATORS.get(name, "")) or plain_name(name)


def term_name(name: str) -> str:
    """A name of a Why tree in words; one that no table has, as it reads."""
    if "." in name and entry(name):
        return label(name)
    found = term_label(name)
    if found is None:
        return plain_name(name)
    words = {key: gettext(word) for key, word in found.words.items()}
    return capitalised(gettext(found.template).format(**words))


def source(text: str) -> str:
    """Where a value comes from: citations stay, what the core says of them is translated."""
    return _("; ").join(_source_piece(piece) for piece in text.split("; ")) if text else ""


def _source_piece(piece: str) -> str:
    whole = gettext(piece)
    if whole != piece:
        return whole
    for pattern, template in _SOURCES:
        if found := pattern.fullmatch(piece):
            words = {key: _source_piece(word) for key, word in found.groupdict().items()}
            return gettext(template) % words
    return piece


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
    return in_text(resource(name))


def in_text(text: str) -> str:
    """A label inside a sentence or formula: its capital goes, unless it is an acronym's."""
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
    words = {key: _param(value) for key, value in params.items()}
    try:
        return gettext(template).format(**words)
    except (KeyError, IndexError, ValueError, TypeError):
        return text or template


def _param(value: Any) -> Any:
    """A param in the reader's language: messages inside it, words of the core, or a number as it is."""
    if isinstance(value, Phrases):
        return _("; ").join(translated(message) for message in value.messages)
    if isinstance(value, Mapping) and "phrases" in value:
        return _("; ").join(translated(message) for message in value["phrases"])
    return _phrase(value) if isinstance(value, str) else value


def _phrase(value: str) -> str:
    """A param's words: as a whole where they are known, else piece by piece between commas."""
    if not value:
        return value
    for whole in (value, value.replace("_", " ")):
        if gettext(whole) != whole:
            return gettext(whole)
    base, _space, mark = value.rpartition(" ")
    if statistic(f"x.{mark}") and gettext(base) != base:
        return f"{gettext(base)} {_(mark) if mark in ('mean', 'max', 'min') else mark}"
    return ", ".join(_piece(piece) for piece in value.split(", "))


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
