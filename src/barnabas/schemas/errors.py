"""Why a value cannot be written or read with a registered schema."""

from __future__ import annotations

from barnabas.errors import BarnabasError


class SchemaDataError(BarnabasError):
    """A value, its id or its schema is wrong. The text is one line."""


class CannotEncode(SchemaDataError):
    """A value does not fit the schema."""


class CannotDecode(SchemaDataError):
    """Bytes are not what their id says."""


class NotFramed(CannotDecode):
    """Neither the bytes nor the headers carry the id of a schema."""
