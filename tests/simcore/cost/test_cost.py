"""Bills, power, running cost and cost per token."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from simcore.catalog import default_catalog
from simcore.cost import (
    CostModel,
    EconomicsSpec,
    Machines,
    cost_model,
    full_load,
    saving_bounds,
    saving_fraction,
    switch_for,
)
from simcore.fabric import AnyTopology, Clos, Fabric, OcsPod, RailOnly, RailOptimized, build_fabric
from simcore.why import evaluate, leaf

UNHURRIED = settings(deadline=None)


def fabric_of(spec: AnyTopology, chip_count: int, slug: str = "nvidia-h100-sxm") -> Fabric:
    catalog = default_catalog()
    chip = catalog.chip(slug)
    server = catalog.server(chip.default_server)
    return build_fabric(
        spec, chip_count=chip_count, server=server, scaleup_bytes_per_s=chip.scaleup_bytes_per_s
    )


def model_of(
    spec: AnyTopology,
    chip_count: int,
    slug: str = "nvidia-h100-sxm",
    economics: EconomicsSpec | None = None,
) -> CostModel:
    catalog, economics = default_catalog(), economics or EconomicsSpec()
    chip = catalog.chip(slug)
    fabric = fabric_of(spec, chip_count, slug)
    radix = fabric.tiers[0].radix if fabric.tiers else 0
    return cost_model(
        economics=economics,
        chip=chip,
        server=catalog.server(chip.default_server),
        chip_count=chip_count,
        fabric=fabric,
        book=catalog.price_book(economics.price_book),
        fabric_book=catalog.price_book(spec.price_book),
        switch=switch_for(catalog.switches, radix=radix, port_bytes_per_s=fabric.link_bytes_per_s),
        optic=catalog.optics["optical-400g"],
        optical_switch=catalog.optical_switches["palomar-136"] if fabric.ocs_count else None,
    )


def test_a_priced_cluster_has_every_number() -> None:
    terms = model_of(RailOptimized(), 1024).terms()
    assert set(terms) == {
        "cost.capex_usd",
        "cost.opex_usd_per_hour",
        "cost.tco_usd_per_year",
        "cost.power_w",
        "cost.idle_power_w",
        "cost.peak_power_w",
        "cost.chip_usd_per_hour",
        "cost.cloud_chip_usd_per_hour",
        "cost.cloud_break_even_fraction",
        "cost.priced_fraction",
        "fabric.fabric_capex_usd",
        "fabric.fabric_power_w",
    }
    assert terms["cost.priced_fraction"].value == 1


def test_capex_is_the_sum_of_the_lines_and_lies_in_its_band() -> None:
    model = model_of(RailOptimized(), 1024)
    assert model.capex is not None
    assert model.capex.value == pytest.approx(sum(row["total_usd"] for row in model.bill_table()))
    low, high = model.capex_band() or (0, 0)
    assert low <= model.capex.value <= high


def test_a_switch_of_twice_the_ports_costs_twice_the_books_switch() -> None:
    row = next(row for row in model_of(Clos(radix=128), 32_768).bill_table() if row["label"] == "switches")
    assert (row["count"], row["unit_usd"]) == (1280, 72_000)


def test_a_book_may_price_links_between_switches_instead_of_optics() -> None:
    rows = {
        row["label"]: row
        for row in model_of(RailOptimized(price_book="deepseek-isca-2025"), 2048).bill_table()
    }
    assert rows["links_between_switches"]["total_usd"] == 2048 * 478
    assert "transceivers" not in rows


def test_copper_first_hop_pays_for_cables() -> None:
    spec = RailOptimized(transceiver_convention="copper_first_hop", price_book="default-2026")
    labels = {row["label"] for row in model_of(spec, 1024).bill_table()}
    assert {"copper_cables", "transceivers"} <= labels


def test_what_has_no_price_is_flagged_and_the_total_is_partial() -> None:
    model = model_of(OcsPod(), 4096, "tpu-v4")
    assert model.terms()["cost.priced_fraction"].value < 1
    assert "no price for chips" in model.warnings[0].text
    unpriced = [row for row in model.bill_table() if not row["priced"]]
    assert all(row["total_usd"] is None for row in unpriced)


def test_a_busy_chip_draws_more_and_pue_multiplies() -> None:
    model = model_of(RailOptimized(), 64)
    idle, full = model.power(leaf(0.0, "u")), model.power(full_load())
    assert idle.value < full.value
    assert full.value == pytest.approx(model.it_power(full_load()).value * 1.25)


@UNHURRIED
@given(price=st.floats(0.01, 1), years=st.floats(1, 10))
def test_total_cost_is_capex_written_off_plus_running(price: float, years: float) -> None:
    economics = EconomicsSpec(electricity_usd_per_kwh=price, depreciation_years=years)
    model = model_of(RailOptimized(), 64, economics=economics)
    assert model.capex is not None
    expected = model.capex.value / years + 8760 * model.opex(full_load()).value
    assert model.tco(full_load()).value == pytest.approx(expected)


def test_cost_per_token_counts_all_cost_over_the_tokens() -> None:
    model = model_of(RailOptimized(), 8)
    rates = {"input_token_per_s": leaf(3000, "in"), "output_token_per_s": leaf(1000, "out")}
    terms = model.token_terms(**rates, utilisation=full_load())
    per_output = terms["cost.usd_per_million_output_tokens"].value
    assert per_output == pytest.approx(model.tco(full_load()).value / (8760 * 3600) / 1000 * 1e6)
    assert terms["cost.usd_per_million_tokens"].value == pytest.approx(per_output / 4)
    assert terms["cost.joule_per_token"].value == pytest.approx(model.power(full_load()).value / 1000)


def test_the_split_by_chip_seconds_keeps_the_whole() -> None:
    model = model_of(RailOptimized(), 8)
    rates = {"input_token_per_s": leaf(3000, "in"), "output_token_per_s": leaf(1000, "out")}
    split = model.split_terms(prefill_share=leaf(0.3, "share"), **rates, utilisation=full_load())
    paid = 3000 * split["cost.usd_per_million_tokens.input"].value
    paid += 1000 * split["cost.usd_per_million_tokens.output"].value
    per_second = model.tco(full_load()).value / (8760 * 3600)
    assert paid / 1e6 == pytest.approx(per_second)


def test_no_token_no_cost_per_token() -> None:
    model = model_of(RailOptimized(), 8)
    rates = {"input_token_per_s": leaf(0, "in"), "output_token_per_s": leaf(0, "out")}
    assert model.token_terms(**rates, utilisation=full_load()) == {}


def test_one_server_pays_for_no_network() -> None:
    terms = model_of(RailOptimized(), 8).terms()
    assert "fabric.fabric_capex_usd" not in terms
    assert terms["fabric.fabric_power_w"].value == 0


def test_the_tree_of_capex_follows_the_chip_count() -> None:
    small, large = model_of(Clos(radix=128), 16_384), model_of(Clos(radix=128), 32_768)
    assert small.capex is not None
    assert large.capex is not None
    assert evaluate(small.capex, {"chip_count": 32_768}) == pytest.approx(large.capex.value)


@UNHURRIED
@given(ratio=st.floats(1e-6, 1e6))
def test_any_price_ratio_saves_within_the_bounds(ratio: float) -> None:
    clos = fabric_of(Clos(radix=128), 32_768)
    rails = fabric_of(RailOnly(radix=128, hb_domain_size=256), 32_768)
    bounds = saving_bounds(clos, rails)
    assert bounds == pytest.approx((2 / 3, 4 / 5))
    saved = saving_fraction(clos, rails, port_to_transceiver_ratio=ratio)
    assert bounds is not None
    assert bounds[0] - 1e-9 <= saved <= bounds[1] + 1e-9


def test_no_bounds_without_a_network() -> None:
    single = fabric_of(Clos(), 8)
    assert saving_bounds(single, single) is None


@pytest.mark.parametrize(
    "wrong", [{"pue": 0.5}, {"depreciation_years": 0}, {"electricity_usd_per_kwh": "1 kg"}, {"rent": 1}]
)
def test_wrong_economics_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EconomicsSpec.model_validate(wrong)


def test_chips_of_further_pools_are_bought_and_fed_at_their_own_figures() -> None:
    """The fabric apart, a cluster of two kinds costs and draws what the two clusters do."""
    fabric, book = (
        fabric_of(RailOptimized(), 128, "nvidia-h100-sxm"),
        default_catalog().price_book("default-2026"),
    )
    kinds = [
        Machines(
            chip=(chip := default_catalog().chip(slug)),
            server=default_catalog().server(chip.default_server),
            chip_count=64,
            path=path,
        )
        for slug, path in (("nvidia-h100-sxm", "hardware"), ("nvidia-b200-sxm", "hardware.pools.0"))
    ]

    def priced(first: Machines, *further: Machines) -> CostModel:
        return cost_model(
            economics=EconomicsSpec(),
            chip=first.chip,
            server=first.server,
            chip_count=first.chip_count,
            fabric=fabric,
            book=book,
            fabric_book=book,
            further=further,
        )

    both, alone = priced(*kinds), [priced(kind) for kind in kinds]
    assert both.compute_capex is not None
    assert both.compute_capex.value == pytest.approx(
        sum(one.compute_capex.value for one in alone if one.compute_capex)
    )
    network = both.network_power.value
    assert both.it_power(full_load()).value - network == pytest.approx(
        sum(one.it_power(full_load()).value - network for one in alone)
    )
    chips = [row for row in both.bill_table() if row["label"] == "chips"]
    assert [row["item"] for row in chips] == ["chip:nvidia-h100-sxm", "chip:nvidia-b200-sxm"]
    assert chips[0]["power_w"] < chips[1]["power_w"]
