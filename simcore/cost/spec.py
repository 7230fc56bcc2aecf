"""What a scenario may say about money."""

from __future__ import annotations

from pydantic import Field

from simcore.spec import Spec


class Alternative(Spec):
    """Another design that the owner may move to, and how likely that is: input of the change tax."""

    name: str = Field(min_length=1, max_length=200)
    probability_fraction: float = Field(default=0.0, ge=0, le=1)
    cost_usd: float = Field(default=0.0, ge=0, le=1e12, description="stranded gear, re-cabling, downtime")


class EconomicsSpec(Spec):
    """Prices, energy, depreciation, labour."""

    price_book: str = Field(default="default-2026", min_length=1, max_length=80, description="chips, servers")
    price_ratio: float = Field(default=1.0, gt=0, le=100, description="on all prices of that book")
    network_price_ratio: float = Field(default=1.0, gt=0, le=100, description="on all prices of the fabric's")
    electricity_usd_per_kwh: float = Field(default=0.08, ge=0, le=10)
    pue: float = Field(default=1.25, ge=1, le=5, description="facility power over IT power")
    depreciation_years: float = Field(default=4.0, gt=0, le=50)
    labour_usd_per_hour: float = Field(default=120.0, ge=0, le=10_000)
    minutes_per_suspect: float = Field(default=10.0, ge=0, le=10_000)
    connection_load_threshold_fraction: float = Field(default=0.05, ge=0, le=1)
    alternatives: tuple[Alternative, ...] = Field(default=(), max_length=20)
