"""Quantities go in as people write them and come out as people write them."""

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore import units
from simcore.errors import InputError
from simcore.units import UNITS, dimension_of, printed, printed_text, quantity


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(units).failed == 0


@pytest.mark.parametrize(
    ("text", "dimension", "expected"),
    [
        ("3.35 TB/s", "bytes_per_s", 3.35e12),
        ("400 Gb/s", "bytes_per_s", 50e9),
        ("400Gbps", "bytes_per_s", 50e9),
        ("80 GB", "bytes", 80e9),
        ("80 GiB", "bytes", 80 * 2**30),
        ("989 TFLOP/s", "flop_per_s", 989e12),
        ("30 min", "s", 1800.0),
        ("12.5 µs", "s", 12.5e-6),
        ("1,024", "tokens", 1024.0),
        ("32k", "tokens", 32000.0),
        ("95 %", "fraction", 0.95),
        ("600 request/min", "request_per_s", 10.0),
        (5, "s", 5.0),
    ],
)
def test_it_reads_what_people_write(text, dimension, expected):
    assert quantity(text, dimension) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("3.35 TFLOP/s", "unit.wrong"),
        ("80 XB/s", "unit.wrong"),
        ("fast", "number.unreadable"),
        ("nan", "number.not_finite"),
        ("-inf", "number.not_finite"),
        (math.inf, "number.not_finite"),
        (math.nan, "number.not_finite"),
        ("1e999 TB/s", "number.not_finite"),
        (True, "number.wrong_type"),
        (None, "number.wrong_type"),
        ([1], "number.wrong_type"),
    ],
)
def test_it_refuses_what_is_no_bandwidth_and_says_where(value, code):
    with pytest.raises(InputError) as caught:
        quantity(value, "bytes_per_s", path="hardware.chip_overrides.hbm_bytes_per_s")
    assert caught.value.message.code == code
    assert caught.value.message.path == "hardware.chip_overrides.hbm_bytes_per_s"
    assert "Traceback" not in str(caught.value)


@given(
    st.floats(min_value=1e-9, max_value=1e17),
    st.sampled_from(["bytes", "bytes_per_s", "flop_per_s", "s", "w"]),
)
def test_what_is_printed_reads_back_within_its_digits(value, dimension):
    number, unit = printed(value, dimension, digits=6)
    assert quantity(f"{number} {unit}", dimension) == pytest.approx(value, rel=1e-4)


@given(st.sampled_from(sorted(UNITS)), st.floats(min_value=0.001, max_value=1e6))
def test_a_number_without_unit_is_si_already(dimension, value):
    assert quantity(value, dimension) == value


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        ("hbm_bytes_per_s", "bytes_per_s"),
        ("serving.ttft_s.p95", "s"),
        ("serving.output_token_per_s_per_chip", "token_per_s"),
        ("memory.weight_bytes_per_chip", "bytes"),
        ("cost.usd_per_million_tokens.input", "usd_per_million_tokens"),
        ("reliability.slice_goodput_fraction.q97", "fraction"),
        ("radix", ""),
        ("serving.regime", ""),
    ],
)
def test_a_name_says_its_dimension(name, dimension):
    assert dimension_of(name) == dimension


def test_small_and_large_numbers_stay_readable():
    assert printed_text(0.00001234, "s") == "12.3 µs"
    assert printed_text(1_234_567, "usd") == "1.23 M USD"
    assert printed_text(98.3, "usd_per_year") == "98.3 USD/year"
    assert printed_text(0, "bytes") == "0 B"
    assert printed_text(0.953, "fraction") == "95.3 %"
