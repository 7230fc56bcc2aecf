"""The loader: units are checked against the field, nothing loads without a source, errors name the file."""

import pytest

from simcore.catalog.loader import load_calibration, load_entity, load_price_book
from simcore.catalog.types import Chip, LlmArchitecture, Switch
from simcore.errors import InputError

SWITCH = """
name: A switch
shape: {radix: 64, source: sheet}
figures:
  port_bytes_per_s: {value: 400 Gb/s, source: sheet}
  power_w: {value: 1.1 kW, source: sheet, note: typical}
sources:
  sheet: {title: a datasheet, kind: vendor, read_on: 2026-11-30}
"""


def load(text: str) -> Switch:
    return load_entity(Switch, text, slug="a-switch", path="switches/a-switch.yaml")


def test_printed_figures_become_si_and_keep_their_source() -> None:
    switch = load(SWITCH)
    assert (switch.radix, switch.port_bytes_per_s, switch.power_w) == (64, 50e9, 1100.0)
    assert switch.figures["power_w"].printed == "1.1 kW"
    assert switch.figures["power_w"].note == "typical"
    assert switch.figures["power_w"].source.read_on == "2026-11-30"
    assert switch.source is switch.figures["power_w"].source


@pytest.mark.parametrize(
    ("before", "after", "where", "says"),
    [
        ("400 Gb/s", "400 W", "figures.port_bytes_per_s", "does not measure bytes per s"),
        ("value: 400 Gb/s", "value: 400", "figures.port_bytes_per_s", "without a unit"),
        ("400 Gb/s", "-400 Gb/s", "figures.port_bytes_per_s", "not negative"),
        ("400 Gb/s", "nan", "figures.port_bytes_per_s", "finite"),
        ("400 Gb/s, source: sheet", "400 Gb/s", "figures.port_bytes_per_s", "no source, no load"),
        ("400 Gb/s, source: sheet", "400 Gb/s, source: rumour", "figures.port_bytes_per_s", "rumour"),
        ("radix: 64, source: sheet", "radix: 64", "shape", "no source, no load"),
        ("radix: 64", "radix: 64.5", "shape.radix", "allowed: int"),
        ("radix: 64", "radix: -64", "shape.radix", "allowed: int"),
        ("radix: 64", "radix: true", "shape.radix", "allowed: int"),
        ("radix: 64, ", "", "switches/a-switch.yaml", "missing: radix"),
        ("  power_w:", "  power:", "figures.power", "unknown key"),
        ("name: A switch", "name: A switch\ncolour: red", "colour", "unknown key"),
        ("name: A switch", "", "switches/a-switch.yaml", "`name` is required"),
        ("kind: vendor", "kind: hearsay", "sources.sheet", "hearsay"),
        ("title: a datasheet, ", "", "sources.sheet", "title"),
        ("name: A switch", "name: [", "switches/a-switch.yaml", "not valid YAML"),
        ("name: A switch", "name: !!python/name:os.system x", "switches/a-switch.yaml", "not valid YAML"),
    ],
)
def test_wrong_file_is_refused_with_its_path(before: str, after: str, where: str, says: str) -> None:
    assert before in SWITCH
    with pytest.raises(InputError) as caught:
        load(SWITCH.replace(before, after, 1))
    assert caught.value.message.path.startswith("switches/a-switch.yaml")
    assert where in caught.value.message.path
    assert says in caught.value.message.text


def test_bare_value_is_not_a_file() -> None:
    with pytest.raises(InputError, match="keys and values"):
        load("42")


def test_a_closed_word_must_be_one_of_its_set() -> None:
    text = (
        "name: x\nshape: {vendor: V, year: 2024, default_server: 7, source: s}\n"
        "sources: {s: {title: t, kind: vendor}}"
    )
    with pytest.raises(InputError, match="allowed: str"):
        load_entity(Chip, text, slug="x", path="chips/x.yaml")


def test_model_shape_takes_texts_only_in_its_list_of_other_names() -> None:
    text = (
        "name: x\nshape: {layers: 1, hidden: 8, heads: 2, kv_heads: 1, head_dim: 4, intermediate: 16, vocab: 32,"
        " also_known_as: [a/b], source: s}\nsources: {s: {title: t, kind: vendor}}"
    )
    assert load_entity(LlmArchitecture, text, slug="x", path="models/x.yaml").also_known_as == ("a/b",)
    with pytest.raises(InputError, match="list of texts"):
        load_entity(LlmArchitecture, text.replace("[a/b]", "[1]"), slug="x", path="models/x.yaml")


SMALL = (
    "name: x\nshape: {{layers: 4, hidden: 8, heads: 2, kv_heads: 1, head_dim: 4, intermediate: 16, vocab: 32,"
    " {extra}, source: s}}\nsources: {{s: {{title: t, kind: vendor}}}}"
)


def test_model_shape_takes_matrices_and_context_groups() -> None:
    extra = (
        "matrices: [{name: mamba_in, fan_in: 8, fan_out: 32, layer_count: 3, group: recurrent}],"
        " context_groups: [{layer_count: 1, cached_layer_count: 1, ratio: 4}]"
    )
    arch = load_entity(LlmArchitecture, SMALL.format(extra=extra), slug="x", path="models/x.yaml")
    assert arch.matrices[0].parameter_count == 256
    assert arch.matrices[0].split == "fan_out"
    assert arch.context_groups[0].ratio == 4


@pytest.mark.parametrize(
    ("extra", "path", "said"),
    [
        ("matrices: {name: a}", "shape.matrices", "a list of mappings"),
        ("matrices: [a]", "shape.matrices", "a list of mappings"),
        ("matrices: [{name: a, fan_in: 8, fan_out: 8}]", "shape.matrices.0", "missing: layer_count"),
        ("matrices: [{name: a, rank: 8}]", "shape.matrices.0.rank", "allowed here"),
        ("matrices: [{name: a, fan_in: x}]", "shape.matrices.0.fan_in", "allowed: int"),
        ("matrices: [{name: a, split: both}]", "shape.matrices.0.split", "fan_in, fan_out, none"),
        ("context_groups: [{layer_count: -1}]", "shape.context_groups.0.layer_count", "allowed: int"),
    ],
)
def test_parts_of_a_shape_that_are_wrong_are_named(extra: str, path: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        load_entity(LlmArchitecture, SMALL.format(extra=extra), slug="x", path="models/x.yaml")
    assert caught.value.message.path == f"models/x.yaml: {path}"


BOOK = """
name: A book
dated: 2026-11
prices:
  switch: {low_usd: 1 kUSD, mid_usd: 2000 USD, high_usd: 3000 $, source: quote}
  link: {mid_usd: 50 USD, source: quote}
sources: {quote: {title: a quotation, kind: vendor}}
"""


def test_price_without_a_range_is_its_own_range_and_an_absent_item_is_unpriced() -> None:
    book = load_price_book(BOOK, slug="book", path="prices/book.yaml")
    switch, link = book.get("switch"), book.get("link")
    assert switch is not None
    assert link is not None
    assert (switch.low_usd, switch.mid_usd, switch.high_usd) == (1000, 2000, 3000)
    assert (link.low_usd, link.mid_usd, link.high_usd) == (50, 50, 50)
    assert book.get("transceiver") is None
    assert book.dated == "2026-11"


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("1 kUSD", "2.5 kUSD", "rise in this order"),
        ("mid_usd: 50 USD, source: quote", "mid_usd: 50 USD", "no source"),
        ("mid_usd: 50 USD", "mid_usd: 50 W", "does not measure usd"),
        ("dated: 2026-11", "", "dated"),
        ("{mid_usd: 50 USD, source: quote}", "50", "a price is"),
    ],
)
def test_wrong_price_is_refused(before: str, after: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_price_book(BOOK.replace(before, after, 1), slug="book", path="prices/book.yaml")


def test_calibration_needs_its_overhead_and_reads_collectives_by_operation_and_ranks() -> None:
    text = """
name: fitted
gemm:
  bf16: {compute_fraction: 0.78, memory_fraction: 82 %, launch_s: 4 us,
         mape_fraction: 6 %, p90_fraction: 13 %, source: fit}
collectives:
  all_reduce:
    8: {alpha_s: 15 us, sqrt_s_per_sqrt_byte: 7.8 ns, bus_bytes_per_s: 511 GB/s, mape_fraction: 5 %, source: fit}
step_overhead: {per_iteration_s: 300 us, per_layer_s: 20 us, per_sequence_s: 4 us, mape_fraction: 15 %, source: fit}
sources: {fit: {title: a fit, kind: measured}}
"""
    calibration = load_calibration(text, slug="x", path="calibration/x.yaml")
    assert calibration.gemm["bf16"].memory_fraction == pytest.approx(0.82)
    assert calibration.gemm["bf16"].launch_s == pytest.approx(4e-6)
    assert calibration.collectives["all_reduce", 8].sqrt_s_per_sqrt_byte == pytest.approx(7.8e-9)
    assert not calibration.is_class_default
    without = "\n".join(line for line in text.splitlines() if not line.startswith("step_overhead"))
    with pytest.raises(InputError, match="step_overhead: this entry is missing"):
        load_calibration(without, slug="x", path="calibration/x.yaml")
