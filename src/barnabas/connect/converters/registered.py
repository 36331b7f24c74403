"""Converters with schemas in a registry, by Confluent's class names.

Values are read with the schema whose id they have. They are written with a schema of their columns, registered under `TOPIC-key` or
`TOPIC-value` (`auto.register.schemas`), or with the newest one there (`use.latest.version`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.converters import json_columns
from barnabas.connect.converters.avro_schema import DEFAULT, named, plain_text, record_text
from barnabas.connect.converters.defaults import IGNORED, Defaults, defaults_of, filled
from barnabas.connect.converters.interface import Converted, Metadata
from barnabas.connect.converters.json_schema import name_of, version_of
from barnabas.connect.converters.json_settings import DECIMAL_FORMAT, is_numeric
from barnabas.connect.converters.json_values import lacking
from barnabas.connect.converters.leaves import converted
from barnabas.connect.converters.logical_numbers import avro_numbers, steps_of
from barnabas.connect.converters.registered_json import in_json, in_rows, json_schema_text, of_json, takes, with_types
from barnabas.connect.converters.registered_protobuf import in_messages, of_messages, protobuf_schema_text, with_messages
from barnabas.connect.converters.unions import scattered
from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.schemas.errors import SchemaDataError
from barnabas.schemas.framing import id_prefix
from barnabas.schemas.registered import RegisteredSchema, RegisteredSchemas
from barnabas.schemas.registry_client import RegistryError, RegistryUnreachable
from barnabas.tables.errors import TableError
from barnabas.tables.formats import Decoded
from barnabas.tables.json_format import decode_json
from barnabas.tables.registered_format import OTHER, PREFIX, RegisteredFormat, newest, registered_format, schema_ids
from barnabas.tables.schema_texts import SCHEMA_TYPES, schema_text

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

URL = "schema.registry.url"
OURS = ("auto.register.schemas", "use.latest.version", "enhanced.avro.schema.support", "connect.meta.data", IGNORED)
MAGIC = "Unknown magic byte!"
_KEPT = 256  # formats for writing, and schemas for reading


class Way(NamedTuple):
    """How columns of a type are written.

    Args:
        kind: the type, with what is known of its fields.
        form: the format.
        defaults: in place of nulls.
        steps: the types through which the columns become those of the format.
        is_by_columns: whether they are, without the format's own way.
    """

    kind: Any
    form: RegisteredFormat
    defaults: Defaults
    steps: Sequence[Any]
    is_by_columns: bool


class _Registered:
    """What these converters have in common."""

    format: ClassVar[str]
    own: ClassVar[Sequence[str]] = ()  # settings that are not of the registry's client

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        url = config.get(URL, "").strip()
        if not url:
            raise ConnectError(f'Missing required configuration "{URL}" which has no default value.')
        settings = {name: value for name, value in config.items() if name != URL and name not in (*OURS, *self.own)}
        self._address = RegistryAddress.of(url, settings)
        self._is_key = is_key
        self._registers = config.get("auto.register.schemas", "true").strip().lower() == "true"
        self._latest = config.get("use.latest.version", "false").strip().lower() == "true"
        self._reading: dict[str, Sequence[Any]] = {}
        self._fills = config.get(IGNORED, "false").strip().lower() != "true"
        self._writing: dict[tuple[str, str | None, int | None], list[Way]] = {}

    def decode(self, payloads: Array) -> Converted:
        ids = schema_ids(payloads)
        bad = {int(row): MAGIC for row in np.flatnonzero(ids == OTHER)}
        parts: list[tuple[Any, Array]] = []
        for each in np.unique(ids[ids > 0]):
            rows = np.flatnonzero(ids == each)
            part, reasons = self._decoded(int(each), payloads.take(pa.array(rows, pa.int64())))
            bad |= {int(rows[at]): reason for at, reason in reasons.items()}
            parts.append((rows, part))
        return Converted(scattered(parts, len(payloads)), bad)

    def _decoded(self, schema_id: int, payloads: Array) -> tuple[Array, dict[int, str]]:
        try:
            form = registered_format(self._address, schema_id)
            decoded = self.parsed(form, payloads)
        except RegistryUnreachable as error:
            raise RetriableError(str(error)) from None
        except (TableError, RegistryError, SchemaDataError) as error:
            return pa.nulls(len(payloads)), dict.fromkeys(range(len(payloads)), str(error))
        reasons = [] if decoded.reasons is None else decoded.reasons.to_pylist()
        bad = {row: str(reason) for row, reason in enumerate(reasons) if reason is not None}
        if not form.is_struct:
            return decoded.columns[0], bad
        fields = list(self._fields(form))
        columns = [self.read(each, field.type, bad) for each, field in zip(decoded.columns, fields, strict=True)]
        return pa.StructArray.from_arrays(columns, fields=fields), bad

    def written(self, kind: Any, target: Any) -> Sequence[Any]:
        """The types through which values become those that the format takes."""
        return ()

    def parsed(self, form: RegisteredFormat, payloads: Array) -> Decoded:
        """The values of payloads as the format has them."""
        return form.decode(payloads, None, [each.name for each in form.fields])

    def read(self, column: Any, target: Any, bad: dict[int, str]) -> Any:
        """Values of the format as those of a type that the schema tells. Rows whose values do not fit go to `bad`."""
        del bad
        return column.cast(target)

    def known(self, schema: RegisteredSchema, fields: Sequence[Any]) -> Sequence[Any]:
        """The fields of a record with what its schema says about them beside the types of values."""
        del schema
        return fields

    def is_by_columns(self, schema: RegisteredSchema, kind: Any) -> bool:
        """Whether values of a type can be written with a schema without the format's own way."""
        del schema, kind
        return False

    def payloads(self, way: Way, values: Any) -> Array:
        """Values that have the types of a format as payloads. Raises TableError, SchemaDataError, pa.ArrowException."""
        form = way.form
        names = [each.name for each in form.fields]
        for kind in way.steps:
            values = values.cast(kind, safe=False)
        if form.is_struct:
            fields = dict(zip([each.name for each in values.type], values.flatten(), strict=True))
            columns = [fields.get(each.name, pa.nulls(len(values), each.type)) for each in form.fields]
        else:
            columns = [values]
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        made: Array = form.encode(batch, values.is_null())
        return made

    def _fields(self, form: RegisteredFormat) -> Sequence[Any]:
        text = form.schema.text
        if text not in self._reading:
            if len(self._reading) >= _KEPT:
                self._reading.clear()
            try:
                self._reading[text] = self.known(form.schema, form.fields)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # values can be read without it
                self._reading[text] = form.fields
        return self._reading[text]

    def encode(self, column: Array, topic: str, metadata: Metadata = None) -> Array:
        if pa.types.is_null(column.type):
            return column.cast(pa.binary())
        way = self._way(topic, column.type, name_of(metadata), version_of(metadata))
        values: Any = filled(column, way.defaults)
        try:
            return self.payloads(way, values)
        except (TableError, SchemaDataError, pa.ArrowException) as error:
            raise ConnectError(f"the records for {topic} do not fit to their schema: {error}") from None

    def _way(self, topic: str, kind: pa.DataType, name: str | None, version: int | None) -> Way:
        known = self._writing.get((topic, name, version), [])
        for each in known:
            if each.kind.equals(kind, check_metadata=True):
                return each
        if len(self._writing) + len(known) >= _KEPT:
            self._writing.clear()
        try:
            form = RegisteredFormat(self._address, self._schema(topic, kind, name, version), is_key=self._is_key)
        except RegistryUnreachable as error:
            raise RetriableError(str(error)) from None
        except RegistryError as error:
            raise ConnectError(f"the registry refuses the schema of {self._subject(topic)}: {error.message}") from None
        except (SchemaDataError, TableError) as error:
            raise ConnectError(str(error)) from None
        target = pa.struct(list(form.fields)) if form.is_struct else form.fields[0].type
        defaults = defaults_of(kind) if self._fills else ()
        made = Way(kind, form, defaults, steps_of(kind, target, self.written), self.is_by_columns(form.schema, kind))
        self._writing.setdefault((topic, name, version), []).append(made)
        return made

    def _subject(self, topic: str) -> str:
        return f"{topic}-{'key' if self._is_key else 'value'}"

    def _schema(self, topic: str, kind: pa.DataType, name: str | None, version: int | None) -> RegisteredSchema:
        if self._latest or not self._registers:
            return newest(self._address, topic, is_key=self._is_key)
        with self._address.client() as client:
            return RegisteredSchemas(client).register(
                self._subject(topic), self._text(kind, name, version), SCHEMA_TYPES[self.format]
            )

    def _text(self, kind: Any, name: str | None, version: int | None) -> str:
        if pa.types.is_struct(kind):
            return self.record(kind, name or DEFAULT, version)
        return self.plain(pa.field("value", kind, nullable=False))

    def record(self, kind: Any, name: str, version: int | None) -> str:
        """The schema of a struct. Raises TableError."""
        del version
        return schema_text(self.format, name.rpartition(".")[2], list(kind))

    def plain(self, field: Any) -> str:
        """The schema of a value that is no struct. Raises ConnectError."""
        raise ConnectError(f"a value of the type {field.type} has no schema in {self.format}: only structs have")


class AvroConverter(_Registered):
    """`io.confluent.connect.avro.AvroConverter`."""

    format = "avro"

    def written(self, kind: Any, target: Any) -> Sequence[Any]:
        return avro_numbers(kind, target)

    def record(self, kind: Any, name: str, version: int | None) -> str:
        return record_text(kind, name, version)

    def plain(self, field: Any) -> str:
        return plain_text(field.type)

    def known(self, schema: RegisteredSchema, fields: Sequence[Any]) -> Sequence[Any]:
        return named(schema.text, fields)


class JsonSchemaConverter(_Registered):
    """`io.confluent.connect.json.JsonSchemaConverter`."""

    format = "json_schema"
    own = (DECIMAL_FORMAT,)

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._is_numeric = is_numeric(config)

    def record(self, kind: Any, name: str, version: int | None) -> str:
        del version
        return json_schema_text(kind, name.rpartition(".")[2], numeric=self._is_numeric)

    def is_by_columns(self, schema: RegisteredSchema, kind: Any) -> bool:
        return pa.types.is_struct(kind) and takes(json.loads(schema.text), pa.field("value", kind, nullable=False))

    def payloads(self, way: Way, values: Any) -> Array:
        if not way.is_by_columns:
            return super().payloads(way, in_rows(values, pa.struct(list(way.form.fields))))
        missing = lacking(values)
        if missing is not None:
            raise TableError(f"the required field {missing} is null")
        texts: Any = json_columns.texts(values, numeric=self._is_numeric).cast(pa.binary())
        schema_id = way.form.schema.id
        assert schema_id is not None  # a schema of a subject has one
        begin: Any = pa.scalar(id_prefix(schema_id), pa.binary())
        made: Array = pc.binary_join_element_wise(begin, texts, pa.scalar(b"", pa.binary()))
        return made

    def parsed(self, form: RegisteredFormat, payloads: Array) -> Decoded:
        if not form.is_struct:
            return super().parsed(form, payloads)
        return decode_json([in_json(each) for each in self._fields(form)], payloads, PREFIX)

    def read(self, column: Any, target: Any, bad: dict[int, str]) -> Any:
        return converted(column, target, of_json, bad)

    def known(self, schema: RegisteredSchema, fields: Sequence[Any]) -> Sequence[Any]:
        return with_types(schema.text, fields)


class ProtobufConverter(_Registered):
    """`io.confluent.connect.protobuf.ProtobufConverter`."""

    format = "protobuf"

    def record(self, kind: Any, name: str, version: int | None) -> str:
        del version
        return protobuf_schema_text(kind, name.rpartition(".")[2])

    def payloads(self, way: Way, values: Any) -> Array:
        target = pa.struct(list(way.form.fields))
        return super().payloads(way, in_messages(values, target))

    def read(self, column: Any, target: Any, bad: dict[int, str]) -> Any:
        return converted(column, target, of_messages, bad)

    def known(self, schema: RegisteredSchema, fields: Sequence[Any]) -> Sequence[Any]:
        return with_messages(schema, fields)
