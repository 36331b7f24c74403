"""The errors of encoding and decoding values with a registered schema."""

from __future__ import annotations

from barnabas.errors import BarnabasError


class SchemaDataError(BarnabasError):
    """A value, its id or its schema is wrong. The text is one line."""


class CannotEncode(SchemaDataError):
    """A value does not fit the schema."""


class CannotDecode(SchemaDataError):
    """Bytes are not data of the schema that their id names."""


class NotFramed(CannotDecode):
    """Neither the bytes nor the headers have the id of a schema."""
