"""Every file of the catalog: it loads, its slug is its name, its sources are used, its links resolve."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from simcore.catalog import default_catalog
from simcore.catalog.loader import DATA
from simcore.catalog.types import Calibration, Entity, PriceBook

FILES = sorted(DATA.glob("*/*.yaml"))
SHELVES = {"prices": "price_books", "calibration": "calibrations"}


def entry(path: Path) -> Entity | PriceBook | Calibration:
    kind = path.parent.name
    found: Entity | PriceBook | Calibration = getattr(default_catalog(), SHELVES.get(kind, kind))[path.stem]
    return found


class _NoRepeats(yaml.SafeLoader):
    """YAML lets a later key silently replace an earlier one; here that is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key stands twice: {keys}"
        return super().construct_mapping(node, deep)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_file_loads_under_its_own_name_with_a_source_for_everything(path: Path) -> None:
    assert re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", path.stem)
    found = entry(path)
    assert found.slug == path.stem
    assert found.name
    document = yaml.load(path.read_text(encoding="utf-8"), Loader=_NoRepeats)
    used = set(re.findall(r"source: ([a-z0-9_]+)", path.read_text(encoding="utf-8")))
    assert used == set(document["sources"]), "every source is named, and every named source is used"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_figure_is_kept_as_printed_beside_its_si_value(path: Path) -> None:
    found = entry(path)
    for name, figure in getattr(found, "figures", {}).items():
        assert getattr(found, name) == figure.value
        assert figure.printed[0].isdigit()
        assert figure.source.title


def test_every_chip_names_a_server_and_a_calibration_that_exist() -> None:
    catalog = default_catalog()
    for chip in catalog.chips.values():
        assert chip.default_server in catalog.servers
        assert chip.default_topology["kind"]
        assert catalog.calibration_for(chip).is_class_default == (not chip.calibration)
        assert catalog.calibration_for(chip).slug == (chip.calibration or "class-default")


def test_two_entries_never_share_a_name() -> None:
    catalog = default_catalog()
    for shelf in (catalog.chips, catalog.servers, catalog.switches, catalog.models, catalog.price_books):
        names = [item.name for item in shelf.values()]
        assert len(names) == len(set(names))


def test_every_chip_and_server_has_a_price_but_for_those_not_sold_or_without_a_known_one() -> None:
    catalog = default_catalog()
    book = catalog.price_book("default-2026")
    not_sold = {slug for slug in catalog.chips if slug.startswith(("tpu", "aws"))}
    unpriced_chips = not_sold | {"nvidia-gh200-96gb", "amd-mi250x"}
    unpriced_servers = {catalog.chips[slug].default_server for slug in unpriced_chips} | {"gaudi-3-baseboard"}
    for slug, chip in catalog.chips.items():
        server = chip.default_server
        assert (book.get(f"chip:{slug}") is None) == (slug in unpriced_chips)
        assert (book.get(f"server:{server}") is None) == (server in unpriced_servers)


def test_the_slugs_that_users_rely_on_are_there() -> None:
    catalog = default_catalog()
    for slug in (
        "nvidia-a100-80gb-sxm nvidia-h100-sxm nvidia-h200-sxm nvidia-b200-sxm nvidia-gb200 nvidia-l40s "
        "nvidia-rtx-4090 nvidia-rtx-pro-6000 amd-mi300x tpu-v4 tpu-v5p"
    ).split():
        assert catalog.chip(slug).slug == slug
    for slug in (
        "llama-2-7b llama-2-70b llama-3.1-8b llama-3.1-70b llama-3.3-70b llama-3.1-405b qwen3-32b qwen3-8b "
        "qwen3-30b-a3b mixtral-8x7b gpt-oss-20b gpt-oss-120b deepseek-v3 gemma-3-27b phi-4 opt-13b"
    ).split():
        assert catalog.model(slug).slug == slug
    for slug in (
        "dgx-h100 dgx-h200 dgx-a100 dgx-b200 gb200-nvl72 l40s-pcie rtx-4090-pcie rtx-pro-6000-pcie "
        "mi300x-platform tpu-v4-pod tpu-v5p-pod"
    ).split():
        assert catalog.server(slug).slug == slug


def test_recalled_figures_say_so() -> None:
    """A figure that nobody read for the file is an assumption in every Why trace."""
    chip = default_catalog().chip("nvidia-h100-sxm")
    assert chip.leaf("l2_bytes").kind == "assumption"
    assert chip.leaf("hbm_bytes_per_s").kind == "catalog"
    assert "3.35 TB/s" in chip.leaf("hbm_bytes_per_s").source
    assert default_catalog().model("llama-3.1-8b").leaf("hidden").kind == "catalog"


def test_link_bandwidth_is_per_direction_and_peaks_are_dense() -> None:
    chips = default_catalog().chips
    assert chips["nvidia-h100-sxm"].scaleup_bytes_per_s == 450e9
    assert chips["nvidia-h100-sxm"].bf16_flop_per_s == 989e12
    assert chips["nvidia-l40s"].scaleup_bytes_per_s is None
    assert chips["nvidia-a100-80gb-sxm"].peak_flop_per_s("fp8") == 312e12
