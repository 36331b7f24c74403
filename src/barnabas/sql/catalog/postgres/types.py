"""Postgres' types, with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.sql.duck.enums import enum_of
from barnabas.sql.duck.types import UNBOUND, duckdb_of, sized_type
from barnabas.tables.column_types import JSON, UUID, mark_of, word_of


class PgType(NamedTuple):
    """A type.

    Args:
        shown: as `format_type` has it.
        size: in bytes; -1 if it varies.
        category: one letter, as in `pg_type.typcategory`.
        array: the number of the type of its arrays; 0 if it has none.
    """

    oid: int
    name: str
    shown: str
    size: int
    category: str
    array: int


TYPES: Sequence[PgType] = [
    PgType(*row)
    for row in (
        (16, "bool", "boolean", 1, "B", 1000),
        (17, "bytea", "bytea", -1, "U", 1001),
        (18, "char", '"char"', 1, "Z", 1002),
        (19, "name", "name", 64, "S", 1003),
        (20, "int8", "bigint", 8, "N", 1016),
        (21, "int2", "smallint", 2, "N", 1005),
        (22, "int2vector", "int2vector", -1, "A", 1006),
        (23, "int4", "integer", 4, "N", 1007),
        (24, "regproc", "regproc", 4, "N", 1008),
        (25, "text", "text", -1, "S", 1009),
        (26, "oid", "oid", 4, "N", 1028),
        (28, "xid", "xid", 4, "U", 1011),
        (30, "oidvector", "oidvector", -1, "A", 1013),
        (114, "json", "json", -1, "U", 199),
        (142, "xml", "xml", -1, "U", 143),
        (700, "float4", "real", 4, "N", 1021),
        (701, "float8", "double precision", 8, "N", 1022),
        (705, "unknown", "unknown", -2, "X", 0),
        (869, "inet", "inet", -1, "I", 1041),
        (1042, "bpchar", "character", -1, "S", 1014),
        (1043, "varchar", "character varying", -1, "S", 1015),
        (1082, "date", "date", 4, "D", 1182),
        (1083, "time", "time without time zone", 8, "D", 1183),
        (1114, "timestamp", "timestamp without time zone", 8, "D", 1115),
        (1184, "timestamptz", "timestamp with time zone", 8, "D", 1185),
        (1186, "interval", "interval", 16, "T", 1187),
        (1266, "timetz", "time with time zone", 12, "D", 1270),
        (1560, "bit", "bit", -1, "V", 1561),
        (1562, "varbit", "bit varying", -1, "V", 1563),
        (1700, "numeric", "numeric", -1, "N", 1231),
        (2205, "regclass", "regclass", 4, "N", 2210),
        (2206, "regtype", "regtype", 4, "N", 2211),
        (2249, "record", "record", -1, "P", 2287),
        (2275, "cstring", "cstring", -2, "P", 1263),
        (2276, "any", '"any"', 4, "P", 0),
        (2278, "void", "void", 4, "P", 0),
        (2279, "trigger", "trigger", 4, "P", 0),
        (2950, "uuid", "uuid", 16, "U", 2951),
        (3802, "jsonb", "jsonb", -1, "U", 3807),
    )
]
BY_NAME = {each.name: each for each in TYPES} | {each.shown: each for each in TYPES}
ALIASES = {
    "int": "int4",
    "float": "float8",
    "decimal": "numeric",
    "string": "text",
    "varchar": "varchar",
    "timestamp": "timestamp",
}
_BY_WORD = {
    "BOOLEAN": 16, "SMALLINT": 21, "INTEGER": 23, "BIGINT": 20, "REAL": 700, "DOUBLE": 701, "VARCHAR": 25, "BLOB": 17, "DATE": 1082,
    "TIME": 1083, "TIMESTAMP": 1114, "TIMESTAMPTZ": 1184, "INTERVAL": 1186,
}  # fmt: skip
_ARRAYS = {each.oid: each.array for each in TYPES}


def oid_of(field: pa.Field[Any]) -> int:
    """The number of a column's type."""
    labels = enum_of(field)
    if labels is not None:
        return labels.array if pa.types.is_list(field.type) else labels.oid
    mark = mark_of(field)
    if mark == JSON:
        return 3802 if word_of(field) else 114
    if mark == UUID:
        return 2950
    kind: Any = field.type
    sized = sized_type(field)
    if sized is not None:
        found = BY_NAME[sized[0]]
        return found.array if pa.types.is_list(kind) else found.oid
    if pa.types.is_uint32(kind):  # only the catalogue has them
        return 26
    if pa.types.is_list(kind):
        return _ARRAYS.get(oid_of(kind.value_field), 1009) or 1009
    word = duckdb_of(kind)
    return 1700 if word.startswith("DECIMAL") else _BY_WORD.get(word, 114)


def modifier_of(field: pa.Field[Any]) -> int:
    """`atttypmod`: digits and scale of a numeric, the size of texts and times; -1 for other types."""
    kind: Any = field.type
    sized = sized_type(field)
    if sized is not None:
        return sized[1]
    if pa.types.is_list(kind):
        return modifier_of(kind.value_field)
    return ((kind.precision << 16) | kind.scale) + 4 if pa.types.is_decimal(kind) and kind not in UNBOUND else -1


def oid_named(name: str) -> int | None:
    """The number of a type by any of its names; arrays end with `[]`."""
    name = name.strip().lower().removeprefix("pg_catalog.").strip('"')
    if name.endswith("[]"):
        return _ARRAYS.get(oid_named(name[:-2]) or 0) or None
    if name.startswith("_") and name[1:] in BY_NAME:
        return BY_NAME[name[1:]].array or None
    found = BY_NAME.get(ALIASES.get(name, name))
    return None if found is None else found.oid


def type_words(field: pa.Field[Any]) -> str:
    """The words of a column's type without its size."""
    labels = enum_of(field)
    if labels is not None:
        return labels.shown + "[]" * pa.types.is_list(field.type)
    return shown(oid_of(field))


def shown(oid: int) -> str:
    """The words of a number."""
    for each in TYPES:
        if each.oid == oid:
            return each.shown
        if each.array == oid:
            return f"{each.shown}[]"
    return "???"
