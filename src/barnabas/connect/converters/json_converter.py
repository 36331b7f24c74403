"""`org.apache.kafka.connect.json.JsonConverter`: JSON, in an envelope of schema and payload or without one.

Without a schema (`schemas.enable=false`) the columns of a batch have the types of its values: objects become a struct of all fields that
they have together. A field that an object lacks is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.converters import json_columns
from barnabas.connect.converters.defaults import Filler
from barnabas.connect.converters.interface import Converted
from barnabas.connect.converters.json_parsing import FEW_ROWS, parsed
from barnabas.connect.converters.json_schema import (
    DECIMAL,
    OPTIONAL,
    WITHOUT_SCHEMA,
    arrow_type,
    extras_of,
    metadata_of,
    schema_of,
)
from barnabas.connect.converters.json_settings import BASE64, DECIMAL_FORMAT, NUMERIC
from barnabas.connect.converters.json_values import MISFITS, filled, fitting
from barnabas.connect.converters.unions import scattered
from barnabas.connect.errors import ConnectError
from barnabas.connect.validators import ValidString

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array, Metadata

ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. If you are '
    "trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
SAMPLE = 256  # rows whose types are those of a batch


class Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """A value with its schema."""

    schema: msgspec.Raw
    payload: msgspec.Raw


_ENVELOPE = msgspec.json.Decoder(Envelope)  # made at import, because threads must not make it at once
_ANY = msgspec.json.Decoder()
_EXACT = msgspec.json.Decoder(float_hook=Decimal)  # for decimals that are numbers
_DEFAULT = b'"default"'
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class JsonConverter:
    """See the module."""

    config: ClassVar[ConfigDef] = (
        ConfigDef()
        .define(
            DECIMAL_FORMAT, Type.STRING, BASE64, importance=Importance.LOW, group="Serialization",
            validator=ValidString((BASE64, NUMERIC), is_case_sensitive=False),
            documentation="The form of decimals: bytes in base64, or numbers. Both are read.",
        )
        .define(
            "schemas.enable", Type.BOOLEAN, True, importance=Importance.HIGH, group="Schemas",
            documentation="Whether each value is an object with its schema and the payload.",
        )
        .define(
            "schemas.cache.size", Type.INT, 1000, importance=Importance.HIGH, group="Schemas",
            documentation="Without effect: a batch has one schema.",
        )
        .define(
            "replace.null.with.default", Type.BOOLEAN, True, importance=Importance.LOW, group="Schemas",
            documentation="Whether a field that is null gets the default of its schema.",
        )
    )  # fmt: skip

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        try:
            given = self.config.parse(config)
        except ConfigError as error:
            raise ConnectError(str(error)) from None
        self.has_schemas: bool = given["schemas.enable"]
        self._is_numeric = given[DECIMAL_FORMAT].upper() == NUMERIC
        self._fills: bool = given["replace.null.with.default"]
        self._filler = Filler()
        del is_key

    def decode(self, payloads: Array) -> Converted:
        return self._decode_envelopes(payloads) if self.has_schemas else self._decode_plain(payloads)

    def _decode_plain(self, payloads: Array) -> Converted:
        found = _alike(payloads)
        if found is not None:
            return Converted(found, metadata={WITHOUT_SCHEMA: b""})
        values, bad = [], {}
        for row, each in enumerate(payloads.to_pylist()):
            try:
                values.append(_ANY.decode(each) if each else None)
            except UNREADABLE as error:
                values.append(None)
                bad[row] = f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}"
        return Converted(_column(values), bad, {WITHOUT_SCHEMA: b""})

    def _decode_envelopes(self, payloads: Array) -> Converted:
        found = _of_one_schema(payloads, fills=self._fills)
        if found is not None:
            return found
        parts: dict[bytes, tuple[list[int], list[Any]]] = {}
        bad: dict[int, str] = {}
        for row, each in enumerate(payloads.to_pylist()):
            if each is None:
                continue
            try:
                envelope = _ENVELOPE.decode(each)
                text = bytes(envelope.schema)
                value = (_EXACT if DECIMAL in text else _ANY).decode(envelope.payload)
            except UNREADABLE:
                bad[row] = ENVELOPE
                continue
            rows, values = parts.setdefault(text, ([], []))
            rows.append(row)
            values.append(value)
        metadata = _metadata(next(iter(parts))) if len(parts) == 1 else None
        columns = [
            found for text, (rows, values) in parts.items() for found in _columns_of(text, rows, values, bad, fills=self._fills)
        ]
        return Converted(_scattered(columns, len(payloads)), bad, metadata)

    def encode(self, column: Array, topic: str, metadata: Metadata = None) -> Array:
        del topic
        if self._fills:
            column = self._filler.filled(column)
        texts: Any = json_columns.texts(column, numeric=self._is_numeric)
        if self.has_schemas:
            schema = {**schema_of(column.type, optional=OPTIONAL in (metadata or {})), **extras_of(metadata)}
            begin = '{"schema":' + msgspec.json.encode(schema).decode() + ',"payload":'
            texts = pc.binary_join_element_wise(begin, texts, "}", "")
        payloads: Array = texts.cast(pa.binary())
        return payloads


def _alike(payloads: Any) -> Array | None:
    """The objects of a batch whose texts are all like some of them; None if they must be read one by one."""
    if len(payloads) < FEW_ROWS:
        return None
    try:
        some = _column([_ANY.decode(each) if each else None for each in payloads[:: len(payloads) // SAMPLE].to_pylist()])
    except UNREADABLE:
        return None
    return parsed(payloads, some.type, "error")


def _of_one_schema(payloads: Any, *, fills: bool) -> Converted | None:
    """The payloads of a batch whose envelopes begin with the same bytes; None if they must be read one by one."""
    if len(payloads) < FEW_ROWS or payloads.null_count == len(payloads):
        return None
    first = payloads[pc.index(pc.is_valid(payloads), True).as_py()].as_py()
    try:
        text = bytes(_ENVELOPE.decode(first).schema)
        schema = _ANY.decode(text)
        kind = None if schema is None else arrow_type(schema)
    except (*UNREADABLE, *MISFITS):
        return None
    begin: Any = b'{"schema":' + text + b',"payload":'  # the stubs of Arrow know texts alone
    end: Any = b"}"
    if (
        kind is None
        or (fills and _DEFAULT in text)
        or not pc.all(pc.starts_with(payloads, begin)).as_py()
        or not pc.all(pc.ends_with(payloads, end)).as_py()
    ):
        return None
    found = parsed(pc.binary_slice(payloads, len(begin), -1), kind, "ignore")
    return None if found is None else Converted(found, metadata=_metadata(text))


def _column(values: list[Any]) -> Array:
    """A column of values without a schema. Values of different kinds become their JSON texts: those of a field, if all are objects."""
    found: Array
    try:
        found = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        if all(each is None or isinstance(each, dict) for each in values):
            return _objects(values)
        texts = [
            None if each is None else each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in values
        ]
        found = pa.array(texts, pa.string())
    return found


def _objects(values: list[Any]) -> Array:
    """A column of objects, field by field."""
    names = dict.fromkeys(name for each in values if each is not None for name in each)
    fields = [_column([None if each is None else each.get(name) for each in values]) for name in names]
    mask = pa.array([each is None for each in values], pa.bool_())
    made: Array = pa.StructArray.from_arrays(fields, names=list(names), mask=mask)
    return made


def _columns_of(
    text: bytes, rows: list[int], values: list[Any], bad: dict[int, str], *, fills: bool
) -> Iterator[tuple[list[int], Array]]:
    """Columns of the values that have this schema, with their rows. Rows whose values do not fit go to `bad`."""
    try:
        schema = _ANY.decode(text)
        kind = None if schema is None else arrow_type(schema)
        if fills and _DEFAULT in text:
            values = [filled(each, schema) for each in values]
    except (*UNREADABLE, *MISFITS) as error:
        bad |= dict.fromkeys(rows, f"the schema cannot be read: {error!r}")
        return
    if kind is None:
        yield rows, _column(values)
        return
    field = pa.field("value", kind, schema.get("optional") is True)
    rows, found = fitting(rows, values, field, bad)
    if rows:
        yield rows, found


def _metadata(text: bytes) -> Metadata:
    """What a schema has beside its type."""
    schema = _ANY.decode(text)
    if not isinstance(schema, dict):
        return None
    return {**(metadata_of(schema) or {}), **({OPTIONAL: b""} if schema.get("optional") is True else {})}


def _scattered(columns: list[tuple[list[int], Array]], count: int) -> Array:
    """Columns of some rows each as one; those of types that have nothing in common become texts."""
    try:
        return scattered(columns, count)
    except pa.ArrowException:
        values: list[Any] = [None] * count
        for rows, column in columns:
            for row, value in zip(rows, column.to_pylist(), strict=True):
                values[row] = value
        return _column(values)
