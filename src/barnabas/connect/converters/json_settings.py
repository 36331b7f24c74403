"""The setting that converters to JSON have for decimals."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.errors import ConnectError

DECIMAL_FORMAT = "decimal.format"
BASE64, NUMERIC = "BASE64", "NUMERIC"


def is_numeric(config: Mapping[str, str]) -> bool:
    """Whether decimals are numbers, not bytes in base64. Raises ConnectError for another word."""
    given = config.get(DECIMAL_FORMAT, BASE64).strip().upper()
    if given not in (BASE64, NUMERIC):
        raise ConnectError(f"Invalid value {config[DECIMAL_FORMAT]} for configuration {DECIMAL_FORMAT}: {BASE64} or {NUMERIC}")
    return given == NUMERIC
