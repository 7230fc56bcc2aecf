"""What a scenario may say about money."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from simcore.spec import Spec


class Alternative(Spec):
    """Another design that the owner may move to, and how likely that is in a year: input of the change tax."""

    name: str = Field(min_length=1, max_length=200)
    probability_fraction: float = Field(default=0.0, ge=0, le=1)
    cost_usd: float | None = Field(
        default=None, ge=0, le=1e12, description="stranded gear, re-cabling, downtime; else from overrides"
    )
    overrides: dict[str, Any] = Field(default_factory=dict, max_length=50, description="paths that make it")

    @model_validator(mode="after")
    def _costs_something(self) -> Alternative:
        if self.cost_usd is None and not self.overrides:
            raise ValueError("an alternative needs cost_usd, or the overrides that make it")
        return self


class EconomicsSpec(Spec):
    """Prices, energy, depreciation, labour."""

    price_book: str = Field(default="default-2026", min_length=1, max_length=80, description="chips, servers")
    price_ratio: float = Field(default=1.0, gt=0, le=100, description="on all prices of that book")
    network_price_ratio: float = Field(default=1.0, gt=0, le=100, description="on all prices of the fabric's")
    electricity_usd_per_kwh: float = Field(default=0.08, ge=0, le=10)
    pue: float = Field(default=1.25, ge=1, le=5, description="facility power over IT power")
    depreciation_years: float = Field(default=4.0, gt=0, le=50)
    operations_usd_per_year: float = Field(default=0.0, ge=0, le=1e12, description="staff and contracts")
    cloud_usd_per_hour: float | None = Field(
        default=None, gt=0, le=1e4, description="per chip; else the book's"
    )
    api_input_usd_per_million_tokens: float | None = Field(default=None, ge=0, le=1e5)
    api_output_usd_per_million_tokens: float | None = Field(default=None, ge=0, le=1e5)
    labour_usd_per_hour: float = Field(default=120.0, ge=0, le=10_000)
    minutes_per_suspect: float = Field(default=10.0, ge=0, le=10_000)
    software_usd_per_chip_year: float = Field(
        default=0.0, ge=0, le=1e6, description="licences, support and porting, of each chip"
    )
    connection_load_threshold_fraction: float = Field(default=0.05, ge=0, le=1)
    alternatives: tuple[Alternative, ...] = Field(default=(), max_length=20)
