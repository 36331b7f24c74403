"""Registered schemas in Spark: converts records that name schemas of a registry to columns, and rows to records.

The driver reads the schema of a column from the registry, so the column's type is fixed for a query. Tasks read the schemas
that records name, and each process reads a schema only once. Records of several versions become rows of the one version of the
query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from barnabas.pipelines.offsets import OptionError
from barnabas.schemas.registered import RegisteredSchema, RegisteredSchemas
from barnabas.schemas.registry_client import DEFAULT_URL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from barnabas.schemas.arrow.columns import Reader, RegistryAddress, Writer

CORRUPT_REASON = "_corrupt_reason"
IDS = ("payload", "headers")


class Registered(Struct, frozen=True):
    """A version of a subject, as read by the driver; `registered` creates it."""

    address: RegistryAddress
    subject: str
    schema: RegisteredSchema
    message: str | None = None

    def reader(self, *, is_key: bool) -> Reader:
        from barnabas.schemas.arrow.columns import Reader

        context = self.subject if self.subject.startswith(":.") else None
        return Reader(self.address, self.schema, context, self.message, is_key)

    def writer(self, *, in_headers: bool) -> Writer:
        from barnabas.schemas.arrow.columns import Writer

        return Writer(self.schema, self.message, in_headers)

    def data_type(self) -> DataType:
        """The type of the column in Spark. Raises SchemaDataError if the schema has no such type."""
        from pyspark.sql.pandas.types import from_arrow_type

        return from_arrow_type(self.reader(is_key=False).type())

    def has_field(self, name: str) -> bool:
        from pyspark.sql.types import StructType

        kind = self.data_type()
        return isinstance(kind, StructType) and name in kind.names


def registered(
    subject: str,
    *,
    version: int | str = "latest",
    url: str = DEFAULT_URL,
    settings: Mapping[str, str] | None = None,
    schema: str | None = None,
    schema_type: str = "AVRO",
    references: Sequence[Mapping[str, Any]] = (),
    message: str | None = None,
) -> Registered:
    """A schema of a registry, for `from_barnabas` and `to_barnabas`. This call reads it from the registry.

    Args:
        version: a number, or `latest`.
        url: the registry's URL for executors; several URLs with commas.
        settings: settings of confluent-kafka's client, such as `basic.auth.user.info`.
        schema: the text of a schema, which is registered under the subject if it is not there yet.
        schema_type: the type of the text: `AVRO`, `JSON` or `PROTOBUF`.
        references: the references of the text, each with `name`, `subject` and `version`.
        message: the Protobuf message; None: the first one of the schema.

    Raises:
        SchemaDataError: there is no such version, or Spark has no type for it.
        RegistryError, RegistryUnreachable: the registry refused, or did not answer.
    """
    from barnabas.schemas.arrow.columns import RegistryAddress

    address = RegistryAddress.of(url, settings)
    with address.client() as client:
        schemas = RegisteredSchemas(client)
        if schema is None:
            found = schemas.version(subject, version)
        else:
            found = schemas.register(subject, schema, schema_type, [dict(each) for each in references])
    made = Registered(address, subject, found, message)
    made.reader(is_key=False).type()
    return made


def decoded(frame: DataFrame, value: Registered, key: Registered | None, mode: str) -> DataFrame:
    """The frame with its values, and its keys if `key` is given, decoded; `mode` as for `from_barnabas`."""
    from pyspark.sql import functions as F

    parts = {"value": value} if key is None else {"key": key, "value": value}
    inner = {name: f"_decoded_{name}" for name in parts}
    found = frame.withColumns({inner[name]: _decoding(frame, name, part) for name, part in parts.items()})
    reason = F.coalesce(*(F.concat(F.lit(f"{name}: "), F.col(f"{made}.reason")) for name, made in inner.items()))
    columns = {name: F.col(f"{made}.value") for name, made in inner.items()}
    if mode == "FAILFAST":
        place = [F.concat(F.lit(f"{name} "), F.col(name)) for name in ("topic", "partition", "offset") if name in frame.columns]
        failed = F.raise_error(F.concat_ws(" ", F.lit("cannot decode"), *place, reason))
        strict = {name: F.when(reason.isNotNull(), failed).otherwise(column) for name, column in columns.items()}
        return found.withColumns(strict).drop(*inner.values())
    corrupt = {f"_corrupt_{name}": F.when(reason.isNotNull(), F.col(name)) for name in parts}
    made = found.withColumns({**columns, **corrupt, CORRUPT_REASON: reason}).drop(*inner.values())
    return made.where(F.col(CORRUPT_REASON).isNull()).drop(*corrupt, CORRUPT_REASON) if mode == "DROPMALFORMED" else made


def _decoding(frame: DataFrame, name: str, part: Registered) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    from barnabas.schemas.arrow.columns import decoder

    kind = StructType([StructField("value", part.data_type()), StructField("reason", StringType())])
    sources = [each for each in (name, "headers") if each in frame.columns]
    task = decoder(part.reader(is_key=name == "key"), with_headers="headers" in sources)
    made: Column = F.arrow_udf(task, kind)(*sources)  # type: ignore[attr-defined]  # missing in PySpark's stubs
    return made


def encoded(
    frame: DataFrame, columns: Sequence[str], value: Registered, key: Column | None, key_schema: Registered | None, ids: str
) -> DataFrame:
    """Rows as records: `value`, `key` if it is given, and `headers` for ids in them.

    Raises:
        OptionError: the columns are not fields of the schema, or `ids` is neither `payload` nor `headers`.
    """
    from pyspark.sql import functions as F

    from barnabas.schemas.arrow.columns import headers_of
    from barnabas.schemas.framing import KEY_HEADER, VALUE_HEADER

    if ids not in IDS:
        raise OptionError(f"ids must be {' or '.join(IDS)}, got {ids}")
    in_headers = ids == "headers"
    records = [_encoding(value, _row(columns, value), in_headers).alias("value")]
    parts = [(VALUE_HEADER, value.writer(in_headers=in_headers))]
    if key is not None:
        if key_schema is not None:
            key = _encoding(key_schema, key, in_headers)
            parts.append((KEY_HEADER, key_schema.writer(in_headers=in_headers)))
        records.insert(0, key.alias("key"))
    if in_headers:
        pairs = [F.struct(F.lit(name).alias("key"), F.lit(data).alias("value")) for name, data in headers_of(parts)]
        records.append(F.array(*pairs).alias("headers"))
    return frame.select(*records)


def _row(columns: Sequence[str], part: Registered) -> Column:
    """The columns as one value of the schema."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    kind = part.data_type()
    if not isinstance(kind, StructType):
        if len(columns) != 1:
            raise OptionError(
                f"the schema of {part.subject} is no record, so it takes one column; there are {', '.join(columns)}"
            )
        return F.col(columns[0])
    for name in columns:
        if name not in kind.names:
            raise OptionError(f"the schema of {part.subject} has no field {name}; it has {', '.join(kind.names)}")
    return F.struct(*columns)


def _encoding(part: Registered, row: Column, in_headers: bool) -> Column:
    from pyspark.sql import functions as F

    from barnabas.schemas.arrow.columns import encoder

    task = encoder(part.writer(in_headers=in_headers))
    made: Column = F.arrow_udf(task, "binary")(row)  # type: ignore[attr-defined]  # missing in PySpark's stubs
    return made
