"""Columns for JSON: text that keeps what a person typed, and compressed bytes for what a simulation returned.

Not `JSONField`: PostgreSQL's jsonb reorders keys and refuses NUL, and a scenario must come back as it was
typed.
"""

import json
import math
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db import models

if TYPE_CHECKING:  # the stubs' fields are generic, Django's are not
    TextField = models.TextField[Any, Any]
    BinaryField = models.BinaryField[Any, Any]
else:
    TextField, BinaryField = models.TextField, models.BinaryField

COMPRESSION_LEVEL = 1  # results are long lists of numbers: level 1 is within 10 % of level 9 and much faster


def plain(value: Any) -> Any:
    """The value as JSON and a browser can read it: numpy as lists, NaN and infinity as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        whole = value.dtype.kind != "f" or bool(np.isfinite(value).all())
        return value.tolist() if whole else plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def dump(value: Any) -> str:
    """Compact JSON in ASCII, so that any character is storable: NUL and half surrogates are escapes too."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):
        return json.dumps(plain(value), allow_nan=False, separators=(",", ":"))


class JsonText(TextField):
    """JSON in a text column, keys in the order in which they were given."""

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else json.loads(value)

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else dump(value)

    def to_python(self, value: Any) -> Any:
        return value

    def value_to_string(self, obj: models.Model) -> str:
        return dump(self.value_from_object(obj))


class CompressedJson(BinaryField):
    """JSON, deflated: a result of a megabyte takes about a tenth of it."""

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: bytes | memoryview | None, expression: Any, connection: Any) -> Any:
        return None if value is None else json.loads(zlib.decompress(value))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        packed = None if value is None else zlib.compress(dump(value).encode(), COMPRESSION_LEVEL)
        return super().get_db_prep_value(packed, connection, prepared)

    def to_python(self, value: Any) -> Any:
        return value

    def value_to_string(self, obj: models.Model) -> str:
        return dump(self.value_from_object(obj))
