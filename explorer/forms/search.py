"""The form of a plan search, as the specification that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from simcore.analysis.search.spec import DEFAULT_CHIPS
from simcore.catalog import default_catalog

VERIFIED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchChoices:
    """What the form offers: value, label, whether chosen."""

    objectives: tuple[tuple[str, str], ...]
    chips: tuple[tuple[str, str, bool], ...]
    ttft_ms: float
    tpot_ms: float


def search_choices(document: Mapping[str, Any]) -> SearchChoices:
    """The form with the scenario's own limits in it."""
    slo = document.get("workload", {}).get("slo", {})
    own = document.get("hardware", {}).get("chip", "nvidia-h100-sxm")
    slugs = dict.fromkeys((*DEFAULT_CHIPS, own))
    chips = default_catalog().chips
    return SearchChoices(
        objectives=(
            ("usd_per_million_tokens", _("cheapest: USD per million tokens")),
            ("tco_usd_per_year", _("cheapest: USD per year")),
            ("chip_count", _("fewest chips")),
            ("output_token_per_s_per_chip", _("most tokens per chip")),
            ("tpot_s", _("fastest: time per output token")),
            ("ttft_s", _("fastest: time to first token")),
            ("joule_per_token", _("greenest: energy per token")),
        ),
        chips=tuple((slug, chips[slug].name, True) for slug in slugs if slug in chips),
        ttft_ms=_milliseconds(slo.get("ttft_s"), 1000.0),
        tpot_ms=_milliseconds(slo.get("tpot_s"), 50.0),
    )


def _milliseconds(value: Any, otherwise: float) -> float:
    return 1e3 * value if isinstance(value, int | float) else otherwise


def search_spec(data: QueryDict) -> dict[str, Any]:
    """What was asked for; `parse_study` says what is wrong with it."""
    spec: dict[str, Any] = {
        "kind": "search",
        "objective": data.get("objective", "usd_per_million_tokens"),
        "max_chips": _number(data.get("max_chips", "64")),
        "rate": "free" if data.get("rate") == "free" else "held",
        "verified": VERIFIED,
        "chips": data.getlist("chip"),
    }
    for name in ("ttft", "tpot"):
        if typed := str(data.get(f"{name}_ms") or ""):
            spec[f"{name}_s"] = _seconds(typed)
    return spec


def _number(text: str) -> Any:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _seconds(text: str) -> Any:
    try:
        return float(text) / 1e3
    except ValueError:
        return text
