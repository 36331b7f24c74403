"""The definition of a table, as its record in the topic of definitions has it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import sqlglot
from msgspec import Struct

from barnabas.errors import BarnabasError
from barnabas.sql.dialect import Barnabas
from barnabas.sql.duck.types import declared, postgres_of

FORMATS = ("json", "text", "raw")


class ColumnDefinition(Struct, frozen=True, omit_defaults=True):
    """A column.

    Args:
        kind: Postgres' word for its type, such as `numeric(10,2)`.
        default: the text of an expression.
        since: the records before a column was added show this value instead of null.
    """

    name: str
    kind: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None


class TableDefinition(Struct, frozen=True, omit_defaults=True):
    """A table.

    Args:
        topic: its records are here.
        key: the columns that a record's key holds; the primary key if `is_keyed`.
        is_keyed: whether it has a primary key, so that a reader sees the newest row of each.
        format: of the values.
        owns_topic: whether the topic was made for it, and goes with it.
        version: grows with each change.
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
    version: int = 1

    @property
    def schema(self) -> pa.Schema:
        """The columns in their order, of Arrow's types."""
        return pa.schema([pa.field(each.name, kind_of(each.kind), each.nullable) for each in self.columns])

    def column(self, name: str) -> ColumnDefinition | None:
        """A column by its name."""
        return next((each for each in self.columns if each.name.lower() == name.lower()), None)


class BadDefinition(BarnabasError):
    """A record of the topic of definitions that this version cannot read."""


def kind_of(word: str) -> pa.DataType:
    """The type of a word of a definition. Raises SqlError."""
    found = _KNOWN.get(word)
    if found is None:
        if len(_KNOWN) > 1_000:
            _KNOWN.clear()
        found = _KNOWN[word] = declared(sqlglot.exp.DataType.build(word, dialect=Barnabas))
    return found


_KNOWN: dict[str, pa.DataType] = {}


def word_of(kind: pa.DataType) -> str:
    """The word of a definition for a type."""
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return "json"
    return postgres_of(kind)


def encode(definition: TableDefinition) -> bytes:
    return msgspec.json.encode(definition)


def decode(payload: bytes) -> TableDefinition:
    """Raises BadDefinition."""
    try:
        return msgspec.json.decode(payload, type=TableDefinition)
    except msgspec.MsgspecError as error:
        raise BadDefinition(str(error)) from None


def unquoted(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return ", ".join(f'"{name}"' for name in names)
