"""Decodes arrays of records to columns, and encodes columns to records, in tasks of several processes.

A process keeps one connection to each registry, and requests each schema that its records name only once. Encoding needs no
request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from barnabas.lazy_module import is_loaded
from barnabas.schemas.arrow.shapes import shape_of
from barnabas.schemas.codecs import Codec, TakesRows, codec_of
from barnabas.schemas.errors import CannotDecode, CannotEncode, SchemaDataError
from barnabas.schemas.framing import guid_header, id_prefix
from barnabas.schemas.registered import RegisteredSchema, RegisteredSchemas
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.serializer import Deserializer

if TYPE_CHECKING:
    from barnabas.schemas.arrow.avro_rows import Encoded, Node

VALUE, REASON = "value", "reason"
KERNELS = "barnabas.schemas.arrow.avro_kernels"
FEW_ROWS = 200  # fewer are encoded in less time than a process needs to load the kernels
_KEPT = 64  # registries and readers that a process caches


class RegistryAddress(Struct, frozen=True):
    """The URL and the log-in of a registry; `settings` are pairs of the client's settings."""

    url: str
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, url: str, settings: Mapping[str, str] | None = None) -> RegistryAddress:
        return cls(url, tuple(sorted((settings or {}).items())))

    def client(self) -> RegistryClient:
        return RegistryClient(self.url, dict(self.settings))

    def __repr__(self) -> str:
        return f"RegistryAddress({self.url!r})"  # without the settings, which contain passwords


class Reader(Struct, frozen=True):
    """The settings with which a task decodes keys or values.

    Args:
        schema: the schema of the column.
        context: a subject in the context of the ids; None: the default context.
        message: the Protobuf message of the column; None: the first one.
    """

    address: RegistryAddress
    schema: RegisteredSchema
    context: str | None = None
    message: str | None = None
    is_key: bool = False

    def type(self) -> pa.DataType:
        """Raises SchemaDataError."""
        return shape_of(self.schema, self.message).type


class Writer(Struct, frozen=True):
    """The settings with which a task encodes keys or values.

    Args:
        schema: the schema, with its id.
        in_headers: whether the id is in the headers instead of the payload.
    """

    schema: RegisteredSchema
    message: str | None = None
    in_headers: bool = False


def decode(reader: Reader, data: pa.Array[Any], headers: pa.Array[Any] | None = None) -> pa.StructArray:
    """A struct for each record: `value`, and `reason`, a text if the record cannot be decoded. A null payload is a null value.

    Args:
        data: keys or values.
        headers: lists of structs of `key` and `value`.

    Raises:
        RegistryError, RegistryUnreachable: the registry gave no answer, so records cannot be decoded or refused.
    """
    deserializer = _deserializer(reader)
    shape = _shape(reader.schema, reader.message)
    convert = shape.to_arrow
    values: list[Any] = []
    reasons: list[str | None] = []
    pairs = [None] * len(data) if headers is None else headers.to_pylist()
    wanted = _wanted(reader.schema, reader.message)
    for payload, each in zip(data.to_pylist(), pairs, strict=True):
        value = reason = None
        if payload is not None:
            try:
                value = deserializer.decode(payload, None if each is None else [(pair["key"], pair["value"]) for pair in each])
                if wanted is not None and value.DESCRIPTOR.full_name != wanted:
                    raise CannotDecode(f"the message is a {value.DESCRIPTOR.full_name}, not a {wanted}")
                value = value if convert is None or value is None else convert(value)
            except SchemaDataError as error:
                value, reason = None, str(error)
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
                value, reason = None, _unfit(error)
        values.append(value)
        reasons.append(reason)
    column = _column(values, reasons, shape.type)
    return pa.StructArray.from_arrays([column, pa.array(reasons, pa.string())], [VALUE, REASON])


def encode(writer: Writer, data: pa.Array[Any]) -> pa.Array[Any]:
    """The bytes of each value; null stays null. Raises CannotEncode."""
    codec = _codec(writer.schema, writer.message)
    prefix = b""
    if not writer.in_headers:
        assert writer.schema.id is not None  # a look-up by subject always returns an id
        prefix = id_prefix(writer.schema.id, codec.path)
    found = _in_bulk(writer.schema, data, prefix)
    if found is None:
        return encode_each(writer, data)
    made, later = found
    rows: Any = pa.array(later)
    return _merged(made, later, encode_each(writer, data.take(rows))) if len(later) else made


def _in_bulk(schema: RegisteredSchema, data: pa.Array[Any], prefix: bytes) -> Encoded | None:
    """The rows without a Python object for each value; None if there is no such way for them, or if they are too few to load it."""
    if schema.schema_type != "AVRO" or not (len(data) >= FEW_ROWS or is_loaded(KERNELS)):
        return None
    from barnabas.schemas.arrow.avro_rows import encoded

    plan = _plan(schema, data.type)
    return None if plan is None else encoded(plan, data, prefix)


def encode_each(writer: Writer, data: pa.Array[Any]) -> pa.Array[Any]:
    """`encode` row by row, for any schema and type."""
    codec, shape = _codec(writer.schema, writer.message), _shape(writer.schema, writer.message)
    prefix = b"" if writer.in_headers or writer.schema.id is None else id_prefix(writer.schema.id, codec.path)
    of_row = codec.of_row if isinstance(codec, TakesRows) and codec.takes_rows and data.type == shape.type else None
    made: list[bytes | None] = []
    with_dicts = _maps_of(data.type)
    for found in data.to_pylist():
        if found is None:
            made.append(None)
            continue
        try:
            if of_row is not None:
                made.append(prefix + codec.encode(of_row(found)))
                continue
        except (ValueError, TypeError, KeyError, AttributeError, CannotEncode):  # the other way says what is wrong
            pass
        value = found if with_dicts is None else with_dicts(found)
        try:
            value = value if shape.from_arrow is None else shape.from_arrow(value)
            made.append(prefix + codec.encode(codec.from_json(value)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CannotEncode(f"the value does not fit the schema: {error}") from error
    return pa.array(made, pa.binary())


def _merged(made: Any, rows: Any, others: Any) -> Any:
    """The array with others in place of some of its rows."""
    places = np.arange(len(made))
    places[rows] = np.arange(len(made), len(made) + len(rows))
    return pa.concat_arrays([made, others]).take(pa.array(places))


@lru_cache(_KEPT)
def _codec(schema: RegisteredSchema, message: str | None) -> Codec:
    return codec_of(schema, message=message)


@lru_cache(_KEPT)
def _plan(schema: RegisteredSchema, kind: pa.DataType) -> Node | None:
    from barnabas.schemas.arrow.avro_rows import plan_of
    from barnabas.schemas.avro_codec import parse

    return plan_of(parse(schema), kind)


def _maps_of(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """A function that converts the pairs of `to_pylist` for maps to dicts; None for a type without maps."""
    if pa.types.is_map(kind):
        item = _maps_of(kind.item_type) or _same
        return lambda value: None if value is None else {key: item(each) for key, each in value}
    if pa.types.is_list(kind):
        inner = _maps_of(kind.value_type)
        return inner and (lambda value: None if value is None else [inner(each) for each in value])
    if pa.types.is_struct(kind):
        inside = {field.name: convert for field in kind if (convert := _maps_of(field.type)) is not None}
        return (lambda value: value and {key: inside.get(key, _same)(each) for key, each in value.items()}) if inside else None
    return None


def _same(value: Any) -> Any:
    return value


def decoder(reader: Reader, *, with_headers: bool) -> Callable[..., Any]:
    """`decode` as a function that has only arrays as arguments, with type hints for Spark."""
    if with_headers:

        def decode_both(data: pa.Array, headers: pa.Array) -> pa.Array:  # type: ignore[type-arg]  # Spark evaluates the annotation, and pyarrow's class accepts no type argument
            return decode(reader, data, headers)

        return decode_both

    def decode_payload(data: pa.Array) -> pa.Array:  # type: ignore[type-arg]  # Spark evaluates the annotation, and pyarrow's class accepts no type argument
        return decode(reader, data)

    return decode_payload


def encoder(writer: Writer) -> Callable[..., Any]:
    """`encode` as a function with only an array as argument."""

    def encode_rows(data: pa.Array) -> pa.Array:  # type: ignore[type-arg]  # Spark evaluates the annotation, and pyarrow's class accepts no type argument
        return encode(writer, data)

    return encode_rows


def _column(values: list[Any], reasons: list[str | None], kind: pa.DataType) -> pa.Array[Any]:
    """The values as an array; values that do not fit become null and get a reason."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        for number, value in enumerate(values):
            try:
                pa.array([value], kind)
            except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
                values[number], reasons[number] = None, _unfit(error)
        return pa.array(values, kind)


def _unfit(error: Exception) -> str:
    return f"the value does not fit the column: {(str(error).splitlines() or [type(error).__name__])[0][:500]}"


@lru_cache(_KEPT)
def _deserializer(reader: Reader) -> Deserializer:
    return Deserializer(registered_schemas(reader.address), reader=reader.schema, is_key=reader.is_key, subject=reader.context)


@lru_cache(_KEPT)
def registered_schemas(address: RegistryAddress) -> RegisteredSchemas:
    """The schemas of a registry that this process knows. It is not safe for several threads."""
    return RegisteredSchemas(address.client())


_shape = lru_cache(_KEPT)(shape_of)


@lru_cache(_KEPT)
def _wanted(schema: RegisteredSchema, message: str | None) -> str | None:
    """The full name of the message in a Protobuf column."""
    return codec_of(schema, message=message).record_name if schema.schema_type == "PROTOBUF" else None


def headers_of(parts: Sequence[tuple[str, Writer]]) -> list[tuple[str, bytes]]:
    """The headers for records; `parts` has the name of each header and its writer."""
    made = []
    for name, writer in parts:
        if writer.schema.guid is None:
            raise SchemaDataError("the registry gives schemas no guid, which ids in headers need")
        made.append((name, guid_header(writer.schema.guid, codec_of(writer.schema, message=writer.message).path)))
    return made
