"""Which Postgres type an Arrow type is, and the reverse.

An Arrow field may name another type of its family in its metadata: `barnabas.type` = `uuid`, `json`, `oid`, `name`, `varchar`, … .

| Arrow | Postgres |
|---|---|
| bool | bool |
| int8, uint8, int16 · uint16, int32 · uint32, int64 · uint64 | int2 · int4 · int8 · numeric |
| float16, float32 · float64 | float4 · float8 |
| decimal | numeric |
| string, dictionary of strings, null | text |
| binary, fixed size binary | bytea |
| date · time · timestamp · timestamp with a zone | date · time · timestamp · timestamptz |
| interval, duration | interval |
| arrow.uuid · arrow.json | uuid · json |
| list | array of its elements' type; lists of lists are arrays of two dimensions |
| struct · map, union | record · json |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.types as kinds

from barnabas.schemas.arrow.shapes import WORD
from barnabas.sql.duck.enums import ENUM_BYTES, EnumParameter, TypeNumber, enum_of
from barnabas.sql.duck.types import JSONB, UNBOUND, sized_type
from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.arrays import Field

TYPE_KEY = b"barnabas.type"
UNKNOWN = 705
VARIABLE = -1
FIRST_OF_USERS = 16_384  # no type of Postgres' own has this number or a higher one


class PgType(NamedTuple):
    """A type of Postgres: its oid, that of its array, its size in bytes (negative for none)."""

    name: str
    oid: int
    array: int
    size: int


_ROWS = """
bool 16 1000 1|bytea 17 1001 -1|char 18 1002 1|name 19 1003 64|int8 20 1016 8|int2 21 1005 2|int2vector 22 1006 -1|int4 23 1007 4
regproc 24 1008 4|text 25 1009 -1|oid 26 1028 4|tid 27 1010 6|xid 28 1011 4|cid 29 1012 4|oidvector 30 1013 -1|json 114 199 -1
xml 142 143 -1|pg_node_tree 194 0 -1|float4 700 1021 4|float8 701 1022 8|unknown 705 0 -2|inet 869 1041 -1|bpchar 1042 1014 -1
varchar 1043 1015 -1|date 1082 1182 4|time 1083 1183 8|timestamp 1114 1115 8|timestamptz 1184 1185 8|interval 1186 1187 16
timetz 1266 1270 12|numeric 1700 1231 -1|regclass 2205 2210 4|regtype 2206 2211 4|record 2249 2287 -1|uuid 2950 2951 16
jsonb 3802 3807 -1|regnamespace 4089 4090 4|regrole 4096 4097 4|aclitem 1033 1034 12|anyarray 2277 0 -1
"""
TYPES = {
    name: PgType(name, int(oid), int(array), int(size))
    for name, oid, array, size in (row.split() for line in _ROWS.split("\n") for row in line.split("|") if row)
}
BY_OID = {each.oid: each for each in TYPES.values()}
ELEMENTS = {each.array: each for each in TYPES.values() if each.array}
TEXTS = frozenset({"text", "varchar", "bpchar", "name", "char", "unknown", "xml", "pg_node_tree"})
NUMBERS = frozenset({"oid", "xid", "cid", "regproc", "regclass", "regtype", "regnamespace", "regrole"})  # unsigned, 4 bytes
VECTORS = frozenset({"int2vector", "oidvector"})
_ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(), "bytea": pa.binary(), "int8": pa.int64(), "int2": pa.int16(), "int4": pa.int32(), "float4": pa.float32(),
    "float8": pa.float64(), "date": pa.date32(), "time": pa.time64("us"), "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"), "interval": pa.month_day_nano_interval(), "numeric": pa.decimal128(38, 18),
    "json": pa.json_(), "jsonb": JSONB, "uuid": pa.uuid(),
    **dict.fromkeys(NUMBERS, pa.int64()),
    **dict.fromkeys(TEXTS - {"unknown"}, pa.string()),
}  # fmt: skip


class Described(NamedTuple):
    """The type of a column: its elements' type for an array."""

    element: PgType
    is_array: bool
    modifier: int

    @property
    def oid(self) -> int:
        """Of the column."""
        return self.element.array if self.is_array else self.element.oid

    @property
    def size(self) -> int:
        """In bytes; negative for no fixed size."""
        return VARIABLE if self.is_array else self.element.size


def describe(field: Field) -> Described:
    """The type of a column."""
    metadata = field.metadata or {}
    named = (metadata.get(WORD) or metadata.get(TYPE_KEY, b"")).decode()
    kind, is_array = field.type, False
    while _is_list(kind):
        kind, is_array = kind.value_type, True
    labels = kind.definition if isinstance(kind, EnumParameter) else enum_of(field)
    if labels is not None:
        return Described(PgType(labels.name, labels.oid, labels.array, ENUM_BYTES), is_array, -1)
    sized = sized_type(field)
    element = TYPES.get(sized[0] if sized is not None else named.removesuffix("[]")) or TYPES[_name(kind)]
    if element.name in VECTORS:
        is_array = False
    if sized is not None:
        return Described(element, is_array, sized[1])
    modifier = ((kind.precision << 16) | kind.scale) + 4 if kinds.is_decimal(kind) and kind not in UNBOUND else -1
    if not element.array and is_array:
        element = TYPES["text"]
    return Described(element, is_array, modifier)


def oid_of(kind: pa.DataType) -> int:
    """Of a parameter; text for one of no known type. An unsigned number of four bytes is an oid: tables have no such columns."""
    element: Any = kind
    while _is_list(element):
        element = element.value_type
    return describe(pa.field("", kind, metadata={TYPE_KEY: b"oid"} if kinds.is_uint32(element) else None)).oid


def oids_of(types: Sequence[pa.DataType], declared: Sequence[int]) -> list[int]:
    """Of the parameters of a statement: as the client declares them, else by their types."""
    found = [oid_of(kind) for kind in types]
    for index, oid in enumerate(declared[: len(found)]):
        if oid not in (0, UNKNOWN):
            found[index] = oid
    return found


def arrow_type(oid: int) -> pa.DataType | None:
    """Of a parameter that a client declares; None for one that the statement decides. Raises SqlError 0A000."""
    if oid in (0, UNKNOWN):
        return None
    if (found := BY_OID.get(oid)) and found.name in _ARROW:
        return _ARROW[found.name]
    if (of_array := ELEMENTS.get(oid)) and of_array.name in _ARROW:
        return pa.list_(_ARROW[of_array.name])
    if oid in BY_OID or oid in ELEMENTS:
        return None
    if oid >= FIRST_OF_USERS:
        return TypeNumber(oid)
    raise SqlError("42704", f"type with OID {oid} does not exist")


def _is_list(kind: pa.DataType) -> bool:
    return (
        kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
        or kinds.is_list_view(kind) or kinds.is_large_list_view(kind)
    )  # fmt: skip


_NAMES = {
    pa.bool_(): "bool", pa.int8(): "int2", pa.uint8(): "int2", pa.int16(): "int2", pa.uint16(): "int4", pa.int32(): "int4",
    pa.uint32(): "int8", pa.int64(): "int8", pa.uint64(): "numeric", pa.float16(): "float4", pa.float32(): "float4",
    pa.float64(): "float8", pa.date32(): "date", pa.date64(): "date", pa.month_day_nano_interval(): "interval", pa.uuid(): "uuid",
    pa.binary(): "bytea", pa.large_binary(): "bytea", pa.binary_view(): "bytea", pa.null(): "text", pa.string(): "text",
}  # fmt: skip


def _name(kind: pa.DataType) -> str:
    found = _NAMES.get(kind)
    if found:
        return found
    if kinds.is_decimal(kind):
        return "numeric"
    if kinds.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if kinds.is_time(kind):
        return "time"
    if kinds.is_duration(kind):
        return "interval"
    if kinds.is_fixed_size_binary(kind):
        return "bytea"
    if kinds.is_dictionary(kind):
        return _name(kind.value_type)
    if kinds.is_struct(kind):
        return "record"
    if kind == JSONB:
        return "jsonb"
    if kinds.is_nested(kind) or isinstance(kind, pa.JsonType):
        return "json"
    return "text"
