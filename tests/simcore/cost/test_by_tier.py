"""The network's bill by tier is the bill of materials, laid out otherwise."""

from __future__ import annotations

import pytest

from simcore.fabric import AnyTopology, Clos, OcsPod, RailOnly
from simcore.fabric.specs import TransceiverConvention
from tests.simcore.cost.test_cost import model_of

BOOKS = ("h100-sheet-2024-08", "rail-only-2024", "deepseek-isca-2025", "default-2026")


def own_rows(spec: AnyTopology, chip_count: int = 32_768, slug: str = "nvidia-h100-sxm"):
    model = model_of(spec, chip_count, slug)
    own = model.network_lines[0].convention
    return model, [line.as_dict() for line in model.network_lines if line.convention == own]


@pytest.mark.parametrize("book", BOOKS)
@pytest.mark.parametrize("convention", ["both_ends", "copper_first_hop", "twin_port"])
@pytest.mark.parametrize("cls", [Clos, RailOnly])
def test_the_lines_of_the_own_convention_sum_to_price_and_power_of_the_fabric(
    cls: type[Clos] | type[RailOnly], convention: TransceiverConvention, book: str
) -> None:
    model, rows = own_rows(cls(radix=128, transceiver_convention=convention, price_book=book))
    assert model.fabric_capex is not None
    priced = sum(row["total_usd"] for row in rows if row["total_usd"] is not None)
    assert priced == pytest.approx(model.fabric_capex.value)
    assert sum(row["power_w"] for row in rows) == pytest.approx(model.network_power.value)


def test_an_optical_pod_buys_switches_fibres_and_no_copper_of_its_own() -> None:
    model, rows = own_rows(OcsPod(price_book="default-2026"), 4096, "tpu-v4")
    assert model.fabric_capex is not None
    assert sum(row["total_usd"] for row in rows) == pytest.approx(model.fabric_capex.value)
    assert {(row["tier"], row["item"]) for row in rows} == {
        ("ocs", "module"),
        ("ocs", "fibre"),
        ("ocs", "ocs"),
    }


def test_all_three_conventions_stand_side_by_side() -> None:
    model = model_of(Clos(radix=128, price_book="rail-only-2024"), 32_768)
    modules = {
        name: sum(
            line.count for line in model.network_lines if (line.convention, line.item) == (name, "module")
        )
        for name in ("both_ends", "copper_first_hop", "twin_port")
    }
    assert modules == {"both_ends": 196_608, "copper_first_hop": 131_072, "twin_port": 114_688}


def test_what_has_no_price_is_counted_and_unpriced() -> None:
    _, rows = own_rows(
        Clos(radix=128, transceiver_convention="copper_first_hop", price_book="rail-only-2024")
    )
    cable = next(row for row in rows if row["item"] == "cable")
    assert (cable["count"], cable["total_usd"]) == (32_768, None)
