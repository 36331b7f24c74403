"""Types of CREATE TYPE … AS ENUM: as DuckDB has them, as types of parameters, and in the metadata of columns.

Columns of such a type are texts in records and in Arrow. A query sees them as DuckDB's ENUM, which has the order of the labels. Two of
DuckDB's types with the same labels are one type; so a last label, which no value has, tells whose type it is.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from barnabas.sql.catalog.names import shown_name

ENUM = b"barnabas.enum"  # in the metadata of a field: the JSON of its type, or of the type of its elements
ENUM_BYTES = 4  # of a value, as Postgres says in `pg_type.typlen`
MAX_LABEL = 63  # bytes, as in Postgres
ENUM_MARK = "barnabas enum "  # how the last label of DuckDB's type begins, which no value has
_WIDTH = MAX_LABEL + 1  # no label is so long


class EnumDefinition(Struct, frozen=True, dict=True):
    """A type of labels in an order.

    Args:
        name: behind the name of its schema and a dot, unless that is `public`.
        oid: the number of the type, which stays when it gets another name.
        array: the number of the type of its arrays.
    """

    name: str
    oid: int
    array: int
    labels: tuple[str, ...]

    @property
    def plain_name(self) -> str:
        """The name without a schema. No schema has a dot in its name."""
        return self.name.partition(".")[2] or self.name

    @property
    def schema(self) -> str:
        return self.name.partition(".")[0] if "." in self.name else "public"

    @property
    def shown(self) -> str:
        """The name as statements have it."""
        schema, dot, _ = self.name.partition(".")
        return f"{shown_name(schema)}.{shown_name(self.plain_name)}" if dot else shown_name(self.name)

    @property
    def shown_plain(self) -> str:
        """The name as statements have it where its schema is on the path."""
        return shown_name(self.plain_name)

    @cached_property
    def duckdb(self) -> str:
        """DuckDB's type."""
        mark = f"{ENUM_MARK}{self.oid} {self.array} {self.name}".ljust(_WIDTH)
        return "ENUM(" + ", ".join("'" + each.replace("'", "''") + "'" for each in (*self.labels, mark)) + ")"

    @cached_property
    def metadata(self) -> dict[bytes | str, bytes | str]:
        """Of a column."""
        return {ENUM: msgspec.json.encode(self)}


class EnumParameter(pa.ExtensionType):
    """The type of a parameter: a text that is a label."""

    def __init__(self, definition: EnumDefinition) -> None:
        self.definition = definition
        super().__init__(pa.string(), "barnabas.enum")

    def __hash__(self) -> int:
        return hash(self.definition)

    def __arrow_ext_serialize__(self) -> bytes:
        return msgspec.json.encode(self.definition)

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> EnumParameter:
        return cls(_decoded(serialized))


class TypeNumber(pa.ExtensionType):
    """The type of a parameter by its number alone, as a client declares it. The session knows the type."""

    def __init__(self, oid: int) -> None:
        self.oid = oid
        super().__init__(pa.string(), "barnabas.oid")

    def __hash__(self) -> int:
        return hash(self.oid)

    def __arrow_ext_serialize__(self) -> bytes:
        return b"%d" % self.oid

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> TypeNumber:
        return cls(int(serialized))


_DECODER = msgspec.json.Decoder(EnumDefinition)  # made at import, because threads must not make it at once


@lru_cache(maxsize=1_000)
def _decoded(data: bytes) -> EnumDefinition:
    return _DECODER.decode(data)


def enum_of(field: pa.Field[Any]) -> EnumDefinition | None:
    """The type of a column, or of the elements of its arrays; None for any other column."""
    found = (field.metadata or {}).get(ENUM)
    return None if found is None else _decoded(found)


def labelled_type(field: pa.Field[Any]) -> Any:
    """The type of a parameter that is compared with a column; None unless it has labels."""
    found = enum_of(field)
    return None if found is None else pa.list_(EnumParameter(found)) if pa.types.is_list(field.type) else EnumParameter(found)


def of_duckdb(kind: Any) -> EnumDefinition | None:
    """The definition that a type of DuckDB was made of; None for other types."""
    while getattr(kind, "id", "") in ("list", "array"):
        kind = dict(kind.children)["child"]
    if getattr(kind, "id", "") != "enum":
        return None
    *labels, mark = kind.children[0][1]
    if not mark.startswith(ENUM_MARK):
        return None
    oid, array, name = mark.removeprefix(ENUM_MARK).rstrip().split(" ", 2)
    return EnumDefinition(name, int(oid), int(array), tuple(labels))
