"""The three published fabric price books give back the sums they were read from."""

import pytest

from simcore.catalog import default_catalog

CATALOG = default_catalog()


def usd(book: str, item: str) -> float:
    price = CATALOG.price_book(book).get(item)
    assert price is not None
    return price.mid_usd


def test_h100_sheet_gives_its_sum_at_32768_gpus() -> None:
    """F13: 2,560 switches at 36,000 USD and 124,518,400 USD of cables: 216.68 M USD, 6,612 USD per GPU."""
    cables = 6 * 32_768 * usd("h100-sheet-2024-08", "transceiver")
    assert cables == pytest.approx(124_518_400, abs=1)
    total = 2560 * usd("h100-sheet-2024-08", "switch") + cables
    assert total == pytest.approx(216.68e6, abs=0.01e6)
    assert total / 32_768 == pytest.approx(6_612, abs=1)


@pytest.mark.parametrize(
    ("switches", "links", "million_usd"),
    [
        (96, 2_048, 9),
        (768, 16_384, 72),
        (5_120, 131_072, 491),
        (1_568, 32_928, 146),
        (16_352, 384_272, 1_522),
    ],
)
def test_deepseek_fit_gives_the_papers_five_costs(switches: int, links: int, million_usd: float) -> None:
    """F21 over F16 to F20; the paper prints whole millions."""
    total = switches * usd("deepseek-isca-2025", "switch") + links * usd(
        "deepseek-isca-2025", "link_interswitch"
    )
    assert total == pytest.approx(million_usd * 1e6, rel=0.02)


def test_rail_only_prices_give_its_clos_and_lie_in_the_published_ratio() -> None:
    """F09: about 153 M USD for 32k GPUs (5N ports of three tiers); F06: port over transceiver 3.37 to 4.13."""
    end, port = usd("rail-only-2024", "transceiver"), usd("rail-only-2024", "switch_port")
    assert 6 * 32_768 * end + 5 * 32_768 * port == pytest.approx(153e6, rel=0.05)
    assert 3.37 <= port / end <= 4.13


def test_a_book_holds_only_what_its_source_prices() -> None:
    assert set(CATALOG.price_book("h100-sheet-2024-08").prices) == {"switch", "transceiver"}
    assert set(CATALOG.price_book("deepseek-isca-2025").prices) == {"switch", "link_interswitch"}
    assert set(CATALOG.price_book("rail-only-2024").prices) == {"transceiver", "switch_port"}


def test_default_book_has_a_range_for_every_price_and_calls_it_assumed() -> None:
    for item, price in CATALOG.price_book("default-2026").prices.items():
        assert price.low_usd < price.mid_usd < price.high_usd, item
        assert price.source.kind in ("assumption", "estimate"), item
