"""What is refused because nothing models it says so, instead of counting tuple items."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.errors import InputError
from simcore.scenario import Scenario


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"hardware": {"pools": [{"name": "a"}]}}, "hardware.pools: got .* nothing of this kind is modelled"),
    ],
)
def test_what_is_not_modelled_is_named(section: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Scenario.parse({"name": "x"} | section)
