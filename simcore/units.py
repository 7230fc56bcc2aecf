"""Units: SI inside, printed units at the edge.

`quantity("3.35 TB/s", "bytes_per_s")` converts once, at the edge; `dimension_of("hbm_bytes_per_s")`
reads a field's dimension from its suffix; `printed(3.35e12, "bytes_per_s")` goes back to what people
write. Prefixes are decimal (k, M, G, T, P, E) or binary (Ki, Mi, Gi, Ti); bits are converted to bytes
(`400 Gb/s` is 50 GB/s); "FLOP" counts a multiply-accumulate as two.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from simcore.errors import InputError

_DECIMAL: Final = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY: Final = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}

# Suffix of a field name -> dimension. Longest suffix wins.
SUFFIXES: Final = (
    "flop_per_s",
    "bytes_per_s",
    "request_per_s",
    "token_per_s",
    "tokens_per_s",
    "usd_per_hour",
    "usd_per_year",
    "usd_per_kwh",
    "usd_per_million_tokens",
    "usd_per_million_output_tokens",
    "bytes_per_token",
    "bytes_per_output_token",
    "bytes_per_flop",
    "s_per_token",
    "s_per_sequence",
    "s_per_iteration",
    "joule_per_token",
    "joule_per_output_token",
    "joule_per_byte",
    "fraction",
    "ratio",
    "factor",
    "bytes",
    "flop",
    "usd",
    "tokens",
    "count",
    "hops",
    "hours_per_year",
    "hours",
    "years",
    "minutes",
    "joule",
    "w",
    "s",
)


def _scaled(bases: dict[str, float], *, binary: bool = False) -> dict[str, float]:
    prefixes = {**_DECIMAL, **_BINARY} if binary else _DECIMAL
    return {prefix + base: scale * unit for base, unit in bases.items() for prefix, scale in prefixes.items()}


_BYTES: Final = _scaled({"B": 1.0, "b": 0.125, "bit": 0.125, "byte": 1.0, "bytes": 1.0}, binary=True)
_TIME: Final = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
}

# Dimension -> {printed unit: SI factor}. A bare number is SI already.
UNITS: Final[dict[str, dict[str, float]]] = {
    "bytes": _BYTES,
    "bytes_per_s": {f"{unit}/s": scale for unit, scale in _BYTES.items()}
    | {"Gbps": 0.125e9, "Tbps": 0.125e12, "Mbps": 0.125e6},
    "flop": _scaled({"FLOP": 1.0, "OP": 1.0}),
    "flop_per_s": _scaled({"FLOP/s": 1.0, "FLOPS": 1.0, "OP/s": 1.0, "OPS": 1.0}),
    "s": _TIME,
    "w": _scaled({"W": 1.0}),
    "usd": _scaled({"USD": 1.0, "$": 1.0}),
    "usd_per_hour": {"USD/h": 1.0, "USD/hour": 1.0, "$/h": 1.0, "$/hour": 1.0},
    "usd_per_year": {"USD/year": 1.0, "USD/yr": 1.0},
    "usd_per_kwh": {"USD/kWh": 1.0, "$/kWh": 1.0},
    "request_per_s": {"request/s": 1.0, "req/s": 1.0, "requests/s": 1.0, "/s": 1.0, "request/min": 1 / 60},
    "token_per_s": {"token/s": 1.0, "tokens/s": 1.0, "tok/s": 1.0},
    "tokens": _scaled({"token": 1.0, "tokens": 1.0}, binary=True) | {"k": 1e3},
    "fraction": {"%": 0.01},
    "bytes_per_token": {f"{unit}/token": scale for unit, scale in _BYTES.items()},
    "bytes_per_output_token": {f"{unit}/token": scale for unit, scale in _BYTES.items()},
    "years": {"year": 1.0, "years": 1.0, "yr": 1.0},
    "hours": {"h": 1.0, "hour": 1.0, "hours": 1.0, "day": 24.0, "days": 24.0},
    "minutes": {"min": 1.0, "minute": 1.0, "minutes": 1.0, "h": 60.0},
    "joule_per_byte": {"pJ/B": 1e-12, "pJ/b": 8e-12, "pJ/bit": 8e-12, "J/B": 1.0},
}
_EXAMPLES: Final = {
    "bytes": "80 GB",
    "bytes_per_s": "3.35 TB/s",
    "flop_per_s": "989 TFLOP/s",
    "s": "30 min",
    "w": "700 W",
    "request_per_s": "8 req/s",
    "tokens": "1024",
    "fraction": "0.9",
}
_PATTERN: Final = re.compile(r"^\s*([-+]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*$")

# Printed ladders: dimension -> (unit, SI factor), largest first.
_LADDERS: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    "bytes": (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)),
    "bytes_per_s": (
        ("PB/s", 1e15),
        ("TB/s", 1e12),
        ("GB/s", 1e9),
        ("MB/s", 1e6),
        ("kB/s", 1e3),
        ("B/s", 1.0),
    ),
    "flop": (("PFLOP", 1e15), ("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6), ("FLOP", 1.0)),
    "flop_per_s": (
        ("EFLOP/s", 1e18),
        ("PFLOP/s", 1e15),
        ("TFLOP/s", 1e12),
        ("GFLOP/s", 1e9),
        ("FLOP/s", 1.0),
    ),
    "s": (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)),
    "bytes_per_output_token": (
        ("GB/token", 1e9),
        ("MB/token", 1e6),
        ("kB/token", 1e3),
        ("B/token", 1.0),
    ),
    "joule_per_output_token": (("J/token", 1.0), ("mJ/token", 1e-3), ("µJ/token", 1e-6)),
    "joule_per_byte": (("pJ/B", 1e-12),),
    "w": (("GW", 1e9), ("MW", 1e6), ("kW", 1e3), ("W", 1.0)),
    "usd": (("B USD", 1e9), ("M USD", 1e6), ("k USD", 1e3), ("USD", 1.0)),
}
_PLAIN: Final = {
    "request_per_s": "request/s",
    "token_per_s": "token/s",
    "tokens_per_s": "token/s",
    "tokens": "token",
    "bytes_per_token": "B/token",
    "usd_per_hour": "USD/h",
    "usd_per_year": "USD/year",
    "usd_per_kwh": "USD/kWh",
    "usd_per_million_tokens": "USD per M token",
    "usd_per_million_output_tokens": "USD per M output token",
    "joule_per_token": "J/token",
    "hops": "links",
    "years": "years",
    "hours": "h",
    "hours_per_year": "h/year",
    "minutes": "min",
}


@lru_cache(maxsize=4096)
def dimension_of(name: str) -> str:
    """Dimension of a field or metric by its suffix, "" for a bare number.

    >>> dimension_of("hbm_bytes_per_s"), dimension_of("serving.ttft_s.p95"), dimension_of("radix")
    ('bytes_per_s', 's', '')
    """
    statistics = {"mean", "max", "min", "input", "output", "hbm", "scaleup", "scaleout"}
    statistics |= {"host_dram", "nvme", "remote"}
    parts = [
        part for part in name.split(".") if part not in statistics and not re.fullmatch(r"[pq]\d+", part)
    ]
    last = parts[-1] if parts else name
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if last == suffix or last.endswith("_" + suffix):
            return suffix
    if last.endswith("_per_chip"):
        return dimension_of(last.removesuffix("_per_chip"))
    return ""


def quantity(value: object, dimension: str, *, path: str = "") -> float:
    """A number in SI, or a string with a unit, as a float in SI. Raises InputError with path and example.

    >>> quantity("400 Gb/s", "bytes_per_s")
    50000000000.0
    """
    number, unit = _split(value, dimension, path)
    if unit:
        table = UNITS.get(dimension, {})
        if unit not in table:
            example = _EXAMPLES.get(dimension, "a plain number")
            raise InputError.at(
                path,
                "unit.wrong",
                "got {got!r}, whose unit {unit!r} does not measure {dimension}; write it like {example!r}",
                got=str(value),
                unit=unit,
                dimension=dimension.replace("_", " "),
                example=example,
            )
        number *= table[unit]
    if not math.isfinite(number):
        raise InputError.at(path, "number.not_finite", "got {got}; a finite number is needed", got=str(value))
    return number


def _split(value: object, dimension: str, path: str) -> tuple[float, str]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError.at(
            path,
            "number.wrong_type",
            "got {got} ({kind}); a number or a text such as {example!r} is needed",
            got=repr(value)[:60],
            kind=type(value).__name__,
            example=_EXAMPLES.get(dimension, "1.5"),
        )
    if not isinstance(value, str):
        return float(value), ""
    if value.strip().lower() in {"nan", "inf", "+inf", "-inf", "infinity", "-infinity"}:
        raise InputError.at(path, "number.not_finite", "got {got}; a finite number is needed", got=value)
    match = _PATTERN.match(value)
    if match is None:
        raise InputError.at(
            path,
            "number.unreadable",
            "got {got!r}, which is not a number with a unit; write it like {example!r}",
            got=value[:60],
            example=_EXAMPLES.get(dimension, "1.5"),
        )
    return float(match[1].replace(",", "").replace("_", "")), match[2]


def printed(value: float, dimension: str, *, digits: int = 3) -> tuple[str, str]:
    """Number and unit as people write them, for example ("3.35", "TB/s").

    >>> printed(3.35e12, "bytes_per_s"), printed(0.0121, "s"), printed(0.254, "fraction")
    (('3.35', 'TB/s'), ('12.1', 'ms'), ('25.4', '%'))
    """
    if dimension == "fraction":
        return _significant(value * 100, digits), "%"
    if dimension in ("usd_per_year", "usd_per_hour") and abs(value) >= 1e3:
        number, unit = printed(value, "usd", digits=digits)
        return number, unit + ("/year" if dimension == "usd_per_year" else "/h")
    ladder = _LADDERS.get(dimension)
    if ladder is None:
        return _significant(value, digits), _PLAIN.get(dimension, "")
    magnitude = abs(value)
    for unit, factor in ladder:
        if magnitude >= factor * 0.9995:
            return _significant(value / factor, digits), unit
    unit, factor = ladder[-1] if magnitude else next((u, f) for u, f in ladder if f == 1.0)
    return _significant(value / factor, digits), unit


def printed_text(value: float, dimension: str, *, digits: int = 3) -> str:
    number, unit = printed(value, dimension, digits=digits)
    return f"{number} {unit}".rstrip()


def _significant(value: float, digits: int) -> str:
    """Plain decimal text with thousands separators; whole numbers stay whole."""
    if value == 0:
        return "0"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    exponent = math.floor(math.log10(abs(value)))
    if exponent >= digits - 1:
        return f"{value:,.0f}"
    if exponent < -4:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{digits - 1 - exponent}f}"
