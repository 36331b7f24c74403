"""Converters with schemas in a registry, by Confluent's class names.

Values are read with the schema whose id they have. They are written with a schema of their columns, registered under `TOPIC-key` or
`TOPIC-value` (`auto.register.schemas`), or with the newest one there (`use.latest.version`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from barnabas.connect.converters.avro_schema import DEFAULT, named, plain_text, record_text, with_times_as_numbers
from barnabas.connect.converters.interface import Converted, Metadata
from barnabas.connect.converters.json_schema import name_of, version_of
from barnabas.connect.converters.unions import scattered
from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.schemas.errors import SchemaDataError
from barnabas.schemas.registered import RegisteredSchema, RegisteredSchemas
from barnabas.schemas.registry_client import RegistryError, RegistryUnreachable
from barnabas.tables.errors import TableError
from barnabas.tables.registered_format import OTHER, RegisteredFormat, newest, registered_format, schema_ids
from barnabas.tables.schema_texts import SCHEMA_TYPES, schema_text

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

URL = "schema.registry.url"
OURS = ("auto.register.schemas", "use.latest.version", "enhanced.avro.schema.support", "connect.meta.data")
MAGIC = "Unknown magic byte!"
_KEPT = 256  # formats for writing


class _Registered:
    format: ClassVar[str]

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        url = config.get(URL, "").strip()
        if not url:
            raise ConnectError(f'Missing required configuration "{URL}" which has no default value.')
        settings = {name: value for name, value in config.items() if name != URL and name not in OURS}
        self._address = RegistryAddress.of(url, settings)
        self._is_key = is_key
        self._registers = config.get("auto.register.schemas", "true").strip().lower() == "true"
        self._latest = config.get("use.latest.version", "false").strip().lower() == "true"
        self._writing: dict[tuple[str, pa.DataType, str | None, int | None], RegisteredFormat] = {}

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
            decoded = form.decode(payloads, None, [each.name for each in form.fields])
        except RegistryUnreachable as error:
            raise RetriableError(str(error)) from None
        except (TableError, RegistryError, SchemaDataError) as error:
            return pa.nulls(len(payloads)), dict.fromkeys(range(len(payloads)), str(error))
        reasons = [] if decoded.reasons is None else decoded.reasons.to_pylist()
        bad = {row: str(reason) for row, reason in enumerate(reasons) if reason is not None}
        if not form.is_struct:
            return decoded.columns[0], bad
        fields = self.names(form)
        columns: list[Any] = [each.cast(field.type) for each, field in zip(decoded.columns, fields, strict=True)]
        return pa.StructArray.from_arrays(columns, fields=fields), bad

    def as_written(self, column: Array) -> Array:
        """The column with types that the format takes."""
        return column

    def names(self, form: RegisteredFormat) -> list[Any]:
        """The fields of a format with what its schema says about them beside their types."""
        return list(form.fields)

    def encode(self, column: Array, topic: str, metadata: Metadata = None) -> Array:
        if pa.types.is_null(column.type):
            return column.cast(pa.binary())
        form = self._form(topic, column.type, name_of(metadata), version_of(metadata))
        values: Any = self.as_written(column)
        try:
            names = [each.name for each in form.fields]
            if form.is_struct:
                fields = dict(zip([each.name for each in values.type], values.flatten(), strict=True))
                columns = [fields.get(each.name, pa.nulls(len(values), each.type)) for each in form.fields]
            else:
                columns = [values]
            batch = pa.RecordBatch.from_arrays(columns, names=names)
            made: Array = form.encode(batch, values.is_null())
        except (TableError, SchemaDataError, pa.ArrowException) as error:
            raise ConnectError(f"the records for {topic} do not fit to their schema: {error}") from None
        return made

    def _form(self, topic: str, kind: pa.DataType, name: str | None, version: int | None) -> RegisteredFormat:
        known = topic, kind, name, version
        if known not in self._writing:
            if len(self._writing) >= _KEPT:
                self._writing.clear()
            try:
                self._writing[known] = RegisteredFormat(
                    self._address, self._schema(topic, kind, name, version), is_key=self._is_key
                )
            except RegistryUnreachable as error:
                raise RetriableError(str(error)) from None
            except RegistryError as error:
                raise ConnectError(f"the registry refuses the schema of {self._subject(topic)}: {error.message}") from None
            except (SchemaDataError, TableError) as error:
                raise ConnectError(str(error)) from None
        return self._writing[known]

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

    def record(self, kind: Any, name: str, version: int | None) -> str:
        return record_text(kind, name, version)

    def plain(self, field: Any) -> str:
        return plain_text(field.type)

    def as_written(self, column: Array) -> Array:
        found: Array = with_times_as_numbers(column)
        return found

    def names(self, form: RegisteredFormat) -> list[Any]:
        try:
            return named(form.schema.text, form.fields)
        except (ValueError, KeyError, TypeError, RecursionError):  # a schema that nobody can name is still one that can be read
            return list(form.fields)


class JsonSchemaConverter(_Registered):
    """`io.confluent.connect.json.JsonSchemaConverter`."""

    format = "json_schema"


class ProtobufConverter(_Registered):
    """`io.confluent.connect.protobuf.ProtobufConverter`."""

    format = "protobuf"
