"""What more of one resource of a chip would cost."""

import pytest

from simcore.catalog import default_catalog
from simcore.cost import Machines, resource_prices
from simcore.cost.resources import cluster_prices

CATALOG = default_catalog()
BOOK = CATALOG.price_book("default-2026")


def test_parts_of_an_h100_by_hand() -> None:
    """80 GB at 65 USD; the rest of 28,000 USD; 450 GB/s at 4 USD; a NIC, two ends and two ports; over 4 years."""
    found = {
        name: term.value for name, term in resource_prices(BOOK, CATALOG.chip("nvidia-h100-sxm")).items()
    }
    memory = 80 * 65
    assert found == pytest.approx(
        {
            "hbm_capacity": memory / 4,
            "hbm_bandwidth": memory / 4,
            "compute": (28_000 - memory) / 4,
            "scaleup": 450 * 4 / 4,
            "scaleout": (1_400 + 2 * 600 + 2 * 470) / 4,
        }
    )


def test_low_prices_are_below_and_a_longer_life_is_cheaper() -> None:
    chip = CATALOG.chip("nvidia-h200-sxm")
    low, high = (resource_prices(BOOK, chip, edge=edge)["hbm_capacity"].value for edge in ("low", "high"))
    mid = resource_prices(BOOK, chip)["hbm_capacity"].value
    assert low < mid < high
    assert resource_prices(BOOK, chip, depreciation_years=8)["hbm_capacity"].value == pytest.approx(mid / 2)


def test_what_has_no_price_is_absent() -> None:
    assert "compute" not in resource_prices(BOOK, CATALOG.chip("tpu-v4"))
    assert resource_prices(CATALOG.price_book("rail-only-2024"), CATALOG.chip("nvidia-h100-sxm")) == {}


def test_logic_is_never_free_where_memory_is_dear() -> None:
    found = resource_prices(BOOK, CATALOG.chip("nvidia-l4"), edge="high")
    assert found["compute"].value == pytest.approx(3_000 * 0.2 / 4)


def test_a_discount_is_on_what_is_bought_and_not_on_what_is_rented() -> None:
    half = BOOK.scaled(0.5)
    for item in ("cloud:nvidia-h100-sxm", "api_input:llama-3.1-70b"):
        assert half.get(item) == BOOK.get(item)
    bought, before = half.get("nic"), BOOK.get("nic")
    assert bought
    assert before
    assert bought.mid_usd == before.mid_usd / 2


def test_a_cluster_pays_for_every_chip_and_only_for_what_all_have_a_price_for() -> None:
    h100, h200, tpu = (CATALOG.chip(slug) for slug in ("nvidia-h100-sxm", "nvidia-h200-sxm", "tpu-v4"))
    server = CATALOG.server("dgx-h100")
    each = [resource_prices(BOOK, chip)["hbm_capacity"].value for chip in (h100, h200)]
    machines = [
        Machines(chip=h100, server=server, chip_count=8),
        Machines(chip=h200, server=server, chip_count=4),
    ]
    found = cluster_prices(BOOK, machines, depreciation_years=4.0)
    assert found["hbm_capacity"].value == pytest.approx(8 * each[0] + 4 * each[1])
    assert "compute" in found
    mixed = [*machines, Machines(chip=tpu, server=server, chip_count=1)]
    assert "compute" not in cluster_prices(BOOK, mixed, depreciation_years=4.0)
