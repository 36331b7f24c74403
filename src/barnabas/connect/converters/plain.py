"""Converters without a schema: bytes, strings and numbers in the forms of Kafka's serializers."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.converters.connect_texts import texts_of
from barnabas.connect.converters.interface import Converted
from barnabas.connect.converters.json_text import text_of
from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array, Metadata


class ByteArrayConverter:
    """`org.apache.kafka.connect.converters.ByteArrayConverter`."""

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        del config, is_key

    def decode(self, payloads: Array) -> Converted:
        return Converted(payloads)

    def encode(self, column: Array, topic: str, metadata: Metadata = None) -> Array:
        if pa.types.is_null(column.type):
            return column.cast(pa.binary())
        if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
            raise ConnectError(f"Invalid schema type for ByteArrayConverter: {column.type}")
        return column.cast(pa.binary())


class StringConverter:
    """`org.apache.kafka.connect.storage.StringConverter`: UTF-8; other types as their texts."""

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        encoding = config.get("converter.encoding", "UTF-8")
        if encoding.upper().replace("-", "") != "UTF8":
            raise ConnectError(f"converter.encoding {encoding} is not supported; UTF-8 is")
        del is_key

    def decode(self, payloads: Array) -> Converted:
        """Bytes that are no UTF-8 become the replacement character, as in Java."""
        try:
            return Converted(payloads.cast(pa.string()))
        except pa.ArrowInvalid:
            texts = [None if each is None else each.decode("utf-8", "replace") for each in payloads.to_pylist()]
            return Converted(pa.array(texts, pa.string()))

    def encode(self, column: Array, topic: str, metadata: Metadata = None) -> Array:
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
            return column.cast(pa.string()).cast(pa.binary())
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
            return column.cast(pa.string()).cast(pa.binary())
        if pa.types.is_floating(kind):
            return pa.array(texts_of(column), pa.string()).cast(pa.binary())
        return pa.array([None if each is None else text_of(each) for each in column.to_pylist()], pa.binary())


class _Number:
    """A number of a fixed size in big endian."""

    form: ClassVar[str]
    kind: ClassVar[pa.DataType]

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        del config, is_key
        self._struct = struct.Struct(f">{self.form}")

    def decode(self, payloads: Array) -> Converted:
        found, bad = [], {}
        for row, each in enumerate(payloads.to_pylist()):
            if each is not None and len(each) != self._struct.size:
                bad[row] = f"Size of data received by {type(self).__name__} is not {self._struct.size}"
                each = None
            found.append(None if each is None else self._struct.unpack(each)[0])
        return Converted(pa.array(found, self.kind), bad)

    def encode(self, column: Array, topic: str, metadata: Metadata = None) -> Array:
        try:
            cast: Array = pc.cast(column, self.kind)
            values = cast.to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ConnectError(f"{type(self).__name__}: {error}") from None
        return pa.array([None if each is None else self._struct.pack(each) for each in values], pa.binary())


class ShortConverter(_Number):
    """`org.apache.kafka.connect.converters.ShortConverter`."""

    form, kind = "h", pa.int16()


class IntegerConverter(_Number):
    """`org.apache.kafka.connect.converters.IntegerConverter`."""

    form, kind = "i", pa.int32()


class LongConverter(_Number):
    """`org.apache.kafka.connect.converters.LongConverter`."""

    form, kind = "q", pa.int64()


class FloatConverter(_Number):
    """`org.apache.kafka.connect.converters.FloatConverter`."""

    form, kind = "f", pa.float32()


class DoubleConverter(_Number):
    """`org.apache.kafka.connect.converters.DoubleConverter`."""

    form, kind = "d", pa.float64()


class BooleanConverter(_Number):
    """`org.apache.kafka.connect.converters.BooleanConverter`."""

    form, kind = "?", pa.bool_()
