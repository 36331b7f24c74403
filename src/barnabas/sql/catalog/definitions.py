"""The definition of a table, as its record in the topic of definitions has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from barnabas.errors import BarnabasError
from barnabas.sql.catalog.constraints import CheckDefinition, ForeignKeyDefinition, IndexDefinition, UniqueDefinition
from barnabas.sql.catalog.names import shown_name
from barnabas.sql.duck.enums import EnumDefinition
from barnabas.tables.column_types import with_missing
from barnabas.tables.declaration import declared
from barnabas.tables.scan import MODES

REGISTERED = ("avro", "json_schema", "protobuf")  # formats whose values name a schema of the registry
FORMATS = ("json", "text", "raw", *REGISTERED)
PUBLIC = "public"  # the schema whose name is left out of names
ALWAYS, BY_DEFAULT = "a", "d"  # kinds of identity columns, as in `pg_attribute.attidentity`
_FIELDS: dict[str, pa.Field[Any]] = {}
_MOST_KNOWN = 1_000


class BadDefinition(BarnabasError):
    """A record of the topic of definitions that this version cannot read."""


class ColumnDefinition(Struct, frozen=True, omit_defaults=True):
    """A column.

    Args:
        kind: the type, in the words of `tables.declaration`.
        default: the text of an expression.
        added: whether it came after the table, so that older records lack it. If it is not null and has nothing in `missing`, they show
            its default.
        identity: ALWAYS or BY_DEFAULT of an identity column, else empty.
        generated: the text of an expression of the other columns, which gives its value.
        stored: its name in records, if it is another one since the column was renamed.
        missing: the JSON of the value that records without the field have; None: null.
        labels: the type of CREATE TYPE that it was declared with, or its elements; `kind` is then that of texts.
    """

    name: str
    kind: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    added: bool = False
    identity: str = ""
    generated: str | None = None
    stored: str = ""
    missing: str | None = None
    labels: EnumDefinition | None = None

    @property
    def has_default(self) -> bool:
        """Whether it has a row in pg_attrdef: for a default, or for the expression of a generated column."""
        return not self.identity and (self.default is not None or self.generated is not None)

    @property
    def field(self) -> pa.Field[Any]:
        """The column in Arrow. Raises TableError."""
        found = _FIELDS.get(self.kind)
        if found is None:
            if len(_FIELDS) >= _MOST_KNOWN:
                _FIELDS.clear()
            found = _FIELDS[self.kind] = declared(f'"x" {self.kind}')[0]
        if self.labels is not None:
            found = found.with_metadata(self.labels.metadata)
        return with_missing(found.with_name(self.name).with_nullable(self.nullable), self.missing)

    @property
    def is_filled(self) -> bool:
        """Whether a null in records is shown as the default."""
        return self.added and not self.nullable and self.default is not None and self.missing is None


class ViewDefinition(Struct, frozen=True, omit_defaults=True):
    """A query that a name stands for.

    Args:
        query: its text.
        sources: the names of the tables and views that it reads.
        is_materialized: whether a job keeps its result in the topic; otherwise the query runs when it is read.
        hidden: columns that only identify rows.
        created_ms: since the epoch.
        functions: that it calls: their signatures, and the digests of their definitions.
    """

    query: str
    sources: tuple[str, ...]
    is_materialized: bool = True
    hidden: tuple[str, ...] = ()
    created_ms: int = 0
    functions: tuple[tuple[str, str], ...] = ()


class WatermarkDefinition(Struct, frozen=True):
    """How late the rows of a table may come.

    Args:
        column: their time.
        delay: an interval in SQL, as in `INTERVAL '5 seconds'`; empty for none.
    """

    column: str
    delay: str = ""

    @property
    def text(self) -> str:
        """As CREATE TABLE has it."""
        return f"WATERMARK FOR {shown_name(self.column)} AS {self.value}"

    @property
    def value(self) -> str:
        """The watermark that a row gives."""
        return f"{shown_name(self.column)}{f' - {self.delay}' if self.delay else ''}"


class StreamDefinition(Struct, frozen=True, omit_defaults=True):
    """The query of CREATE STREAM.

    Args:
        query: the text of the query whose rows a job appends; empty without one.
    """

    query: str = ""


class TableDefinition(Struct, frozen=True, omit_defaults=True):
    """A table.

    Args:
        topic: its records are here.
        key: the columns that a record's key holds.
        is_keyed: whether they are the primary key, so that a reader sees the newest row of each. Without a key's columns, the rows have
            names: see `has_row_names`.
        format: of the values.
        owns_topic: whether the topic was made for it, and goes with it.
        mode: of records that do not fit.
        is_key_object: whether a record's key is a JSON object even if it holds one column: a key that may be null.
        view: what makes the rows; None for a table that statements write to.
        watermark: which rows come too late for views; None: all of them count.
        stream: for a table of CREATE STREAM, whose rows never change.
        schema_id: of the schema that values are written with, in the registry; 0 without one.
        owns_schema: whether the schema was registered for it.
        dropped: names of columns that records may still have.
        indexes: names of indexes, which have no effect.
        plain_indexes: those of them that are neither unique nor of expressions.
        is_renamed: whether the topic has a name that the table had before.
        unique, checks: the constraints that statements keep.
        foreign_keys: references to other tables, which nothing keeps.
        key_name: of the primary key's constraint; empty: `<table>_pkey`.
        comments: of constraints and indexes, by their names.
        on_conflict: what becomes of a new row whose key is there, `overwrite` or `nothing`; empty: it is refused.
        has_row_names: of a keyed table without a key: whether the hidden column ROW names a row by the partition and the offset of its
            first record (`tables.row_names`). Otherwise the records have keys that an earlier version made, which nothing reads.
    """

    name: str
    topic: str
    columns: tuple[ColumnDefinition, ...]
    key: tuple[str, ...] = ()
    is_keyed: bool = False
    format: str = "json"
    owns_topic: bool = False
    comment: str | None = None
    mode: str = "permissive"
    is_key_object: bool = False
    view: ViewDefinition | None = None
    watermark: WatermarkDefinition | None = None
    stream: StreamDefinition | None = None
    schema_id: int = 0
    owns_schema: bool = False

    @property
    def is_registered(self) -> bool:
        """Whether a schema of the registry describes its values."""
        return self.format in REGISTERED

    dropped: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    is_renamed: bool = False
    unique: tuple[UniqueDefinition, ...] = ()
    checks: tuple[CheckDefinition, ...] = ()
    on_conflict: str = ""
    has_row_names: bool = False
    foreign_keys: tuple[ForeignKeyDefinition, ...] = ()
    plain_indexes: tuple[IndexDefinition, ...] = ()
    key_name: str = ""
    comments: Mapping[str, str] = {}

    @property
    def key_constraint(self) -> str:
        """The name of the primary key's constraint; empty without one."""
        return (self.key_name or f"{self.plain_name}_pkey") if self.key and self.is_keyed else ""

    @property
    def constraints(self) -> list[UniqueDefinition | CheckDefinition | ForeignKeyDefinition]:
        """Those with a name of their own, without indexes, the key and NOT NULL."""
        return [*(each for each in self.unique if not each.is_index), *self.checks, *self.foreign_keys]

    @property
    def constraint_names(self) -> list[str]:
        """Of the key, of constraints and of unique indexes."""
        own = [self.key_constraint] if self.key_constraint else []
        kept = [*(each.name for each in self.unique), *(each.name for each in self.checks)]
        return [*own, *kept, *(each.name for each in self.foreign_keys)]

    @property
    def plain_name(self) -> str:
        """The name without a schema."""
        return self.name.rpartition(".")[2]

    @property
    def is_plain_view(self) -> bool:
        """Whether it is a query without rows of its own."""
        return self.view is not None and not self.view.is_materialized

    @property
    def schema(self) -> pa.Schema:
        """The columns in their order. Raises TableError."""
        return pa.schema([each.field for each in self.columns])

    @property
    def stored_names(self) -> dict[str, str]:
        """The names in records of columns that have others."""
        return {each.name: each.stored for each in self.columns if each.stored}

    def column(self, name: str) -> ColumnDefinition | None:
        """A column by its name, whatever its case."""
        exact = next((each for each in self.columns if each.name == name), None)
        return exact or next((each for each in self.columns if each.name.lower() == name.lower()), None)


_DECODER = msgspec.json.Decoder(TableDefinition)  # made at import, because threads must not make it at once
_ENUMS = msgspec.json.Decoder(EnumDefinition)
TYPE = "\0type "  # before the name of a type in the key of its record; no table has a name with a zero byte
Definition = TableDefinition | EnumDefinition


def type_key(name: str) -> str:
    """The key of the record of a type."""
    return TYPE + name


def decode_type(payload: bytes) -> EnumDefinition:
    """Raises BadDefinition."""
    try:
        return _ENUMS.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadDefinition(str(error)) from None


def with_type(table: TableDefinition, definition: EnumDefinition) -> TableDefinition:
    """The table with another form of a type in its columns."""

    def made(column: ColumnDefinition) -> ColumnDefinition:
        is_of = column.labels is not None and column.labels.oid == definition.oid
        return msgspec.structs.replace(column, labels=definition) if is_of else column

    return msgspec.structs.replace(table, columns=tuple(map(made, table.columns)))


def encode(definition: Definition) -> bytes:
    """The value of its record."""
    return msgspec.json.encode(definition)


def decode(payload: bytes) -> TableDefinition:
    """Raises BadDefinition."""
    try:
        found = _DECODER.decode(payload)
        names = [each.field.name for each in found.columns]
    except (msgspec.MsgspecError, BarnabasError, UnicodeDecodeError) as error:
        raise BadDefinition(str(error)) from None
    if not set(found.key) <= set(names) or found.format not in FORMATS or found.mode not in MODES:
        raise BadDefinition(f"the definition of {found.name} does not fit together")
    return found


def schema_marker(schema: str) -> TableDefinition:
    """The entry of a schema among the definitions. A table in it has the name `schema.table`."""
    return TableDefinition(f"{schema}.", "", ())


def parts_of_name(name: str, schemas: Collection[str]) -> tuple[str, str]:
    """The schema and the plain name of a table."""
    schema, dot, plain = name.partition(".")
    return (schema, plain) if dot and schema in schemas else (PUBLIC, name)


def quoted(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return ", ".join(f'"{name}"' for name in names)
