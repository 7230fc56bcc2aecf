"""Chips, servers, switches, optics, models, prices and calibrations: data files, a source for each figure."""

from simcore.catalog.catalog import (
    Catalog,
    default_catalog,
    load_catalog,
    overridable_figures,
    override_chip,
)
from simcore.catalog.types import Calibration, Chip, LlmArchitecture, PriceBook, Server

__all__ = [
    "Calibration",
    "Catalog",
    "Chip",
    "LlmArchitecture",
    "PriceBook",
    "Server",
    "default_catalog",
    "load_catalog",
    "overridable_figures",
    "override_chip",
]
