"""The types of columns: DuckDB's, Arrow's and the words of SQL.

Arrow has no type for some of DuckDB's; the metadata `barnabas.type` of a field then names it (`json`, `uuid`).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.schemas.arrow.shapes import WORD
from barnabas.sql.duck.enums import EnumDefinition, EnumParameter, enum_of, of_duckdb
from barnabas.sql.interface import SqlError
from barnabas.sql.states import INVALID_PARAMETER, NOT_SUPPORTED, SYNTAX_ERROR, UNDEFINED_OBJECT
from barnabas.tables.column_types import type_name, word_of

KIND = b"barnabas.type"
_PLAIN: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int16(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "HUGEINT": pa.int64(),
    "UHUGEINT": pa.decimal128(38, 0),
    "UTINYINT": pa.int16(),
    "USMALLINT": pa.int32(),
    "UINTEGER": pa.int64(),
    "UBIGINT": pa.decimal128(20, 0),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "BLOB": pa.binary(),
    "BIT": pa.string(),
    "UUID": pa.string(),
    "JSON": pa.string(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIME WITH TIME ZONE": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_S": pa.timestamp("us"),
    "TIMESTAMP_MS": pa.timestamp("us"),
    "TIMESTAMP_NS": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", tz="UTC"),
    "INTERVAL": pa.month_day_nano_interval(),
    '"NULL"': pa.string(),
    "NULL": pa.string(),
    "SQLNULL": pa.string(),
}
_OIDS = {"UINTEGER": b"oid", "UINTEGER[]": b"oid"}
_VECTORS = {  # columns of the catalogue that are texts such as `1 2` for clients
    **dict.fromkeys(("indkey", "indoption"), b"int2vector"),
    **dict.fromkeys(("indclass", "indcollation", "proargtypes"), b"oidvector"),
}
_TAGGED = {"JSON": b"json", "UUID": b"uuid", "BIT": b"bit"}


def field_of(name: str, kind: Any, *, of_catalogue: bool = False) -> pa.Field[Any]:
    """The column of a result, of DuckDB's type.

    Args:
        of_catalogue: whether the query reads Postgres' catalogue, where UINTEGER is an oid.
    """
    labels = of_duckdb(kind)
    if labels is not None:
        return pa.field(name, arrow_of(kind), metadata=labels.metadata)
    tag = _TAGGED.get(str(kind))
    if of_catalogue:
        tag = (_VECTORS.get(name) if str(kind) in ("SMALLINT[]", "UINTEGER[]") else None) or tag or _OIDS.get(str(kind))
    return pa.field(name, arrow_of(kind), metadata={KIND: tag} if tag else None)


_EXTENSION: dict[bytes, dict[bytes | str, bytes | str]] = {
    b"json": {b"ARROW:extension:name": b"arrow.json", b"ARROW:extension:metadata": b""}
}


def with_marks(schema: pa.Schema) -> pa.Schema:
    """A schema whose columns of JSON are so for DuckDB, too."""
    marks = [_EXTENSION.get((each.metadata or {}).get(KIND, b"")) for each in schema]
    return pa.schema([each if mark is None else each.with_metadata(mark) for each, mark in zip(schema, marks, strict=True)])


def arrow_of(kind: Any) -> pa.DataType:
    """The type of a column of results. HUGEINT is int64: a sum that exceeds it is an error, as in Spark."""
    text = str(kind)
    if text in _PLAIN:
        return _PLAIN[text]
    parts = dict(kind.children) if hasattr(kind, "children") else {}
    match getattr(kind, "id", ""):
        case "decimal":
            return pa.decimal128(int(parts["precision"]), int(parts["scale"]))
        case "list" | "array":
            return pa.list_(arrow_of(parts["child"]))
        case "struct":
            return pa.struct([pa.field(name, arrow_of(part)) for name, part in parts.items()])
        case "tuple":
            return pa.struct([pa.field(f"element{at}", arrow_of(part)) for at, (_, part) in enumerate(kind.children, 1)])
        case "map":
            return pa.map_(arrow_of(parts["key"]), arrow_of(parts["value"]))
        case "enum":
            return pa.string()
    return pa.string()


JSONB = pa.json_(pa.large_string())  # the type of a parameter that is jsonb; `pa.json_()` is json
_WORDS: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "SMALLINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "SMALLINT",
    pa.uint16(): "INTEGER",
    pa.uint32(): "BIGINT",
    pa.uint64(): "DECIMAL(20,0)",
    pa.float16(): "REAL",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.large_binary(): "BLOB",
    pa.date32(): "DATE",
    pa.date64(): "DATE",
    pa.month_day_nano_interval(): "INTERVAL",
    pa.null(): "VARCHAR",
    pa.uuid(): "UUID",
    pa.json_(): "JSON",
    JSONB: "JSON",
}


def duckdb_of(kind: pa.DataType) -> str:
    """DuckDB's word for a type of Arrow."""
    found = _WORDS.get(kind)
    if found is not None:
        return found
    given: Any = kind
    if isinstance(kind, EnumParameter):
        return kind.definition.duckdb
    if pa.types.is_decimal(kind):
        return f"DECIMAL({given.precision},{given.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ" if given.tz else "TIMESTAMP"
    if pa.types.is_time(kind):
        return "TIME"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"{duckdb_of(given.value_type)}[]"
    if pa.types.is_struct(kind):
        parts = [f'"{given.field(i).name}" {duckdb_of(given.field(i).type)}' for i in range(given.num_fields)]
        return f"STRUCT({', '.join(parts)})"
    if pa.types.is_map(kind):
        return f"MAP({duckdb_of(given.key_type)}, {duckdb_of(given.item_type)})"
    if pa.types.is_dictionary(kind):
        return duckdb_of(given.value_type)
    raise SqlError(NOT_SUPPORTED, f"there is no SQL type for {kind}")


_POSTGRES: dict[str, str] = {
    "BOOLEAN": "boolean",
    "SMALLINT": "smallint",
    "INTEGER": "integer",
    "BIGINT": "bigint",
    "REAL": "real",
    "DOUBLE": "double precision",
    "VARCHAR": "text",
    "BLOB": "bytea",
    "DATE": "date",
    "TIME": "time without time zone",
    "TIMESTAMP": "timestamp without time zone",
    "TIMESTAMPTZ": "timestamp with time zone",
    "INTERVAL": "interval",
}


_POSTGRES_SIZED = {
    "varchar": "varchar",
    "char": "bpchar",
    "timestamp_ntz": "timestamp",
    "timestamptz": "timestamptz",
    "time": "time",
}


def sized_type(field: pa.Field[Any]) -> tuple[str, int] | None:
    """Postgres' name and modifier of a type that has a size, and of `varchar`; None for others. An array has those of its elements."""
    if pa.types.is_list(field.type):
        return sized_type(field.type.value_field)
    name, bracket, size = word_of(field).partition("(")
    found = _POSTGRES_SIZED.get(name)
    if found is None:
        return None
    extra = HEADER_BYTES if pa.types.is_string(field.type) else 0
    return found, int(size.removesuffix(")")) + extra if bracket else -1


HEADER_BYTES = 4  # that modifiers of texts and of numerics count
UNBOUND = tuple(pa.decimal128(38, scale) for scale in (9, 18, 27))  # of `numeric` without digits, and of products of such


def postgres_of(kind: pa.DataType) -> str:
    """Postgres' word for a type, as `format_type` has it."""
    word = duckdb_of(kind)
    if word.endswith("[]"):
        given: Any = kind
        return f"{postgres_of(given.value_type)}[]"
    if word.startswith("DECIMAL"):
        return "numeric" if kind in UNBOUND else "numeric" + word.removeprefix("DECIMAL")
    return _POSTGRES.get(word, "json")


_SQL: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int16(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "OID": pa.uint32(),
    "UINT": pa.uint32(),
    "SMALLSERIAL": pa.int16(),
    "SERIAL": pa.int32(),
    "BIGSERIAL": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "NCHAR": pa.string(),
    "NVARCHAR": pa.string(),
    "NAME": pa.string(),
    "UUID": pa.string(),
    "JSON": pa.string(),
    "JSONB": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "DATE32": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
    "DATETIME": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    "TIMESTAMPLTZ": pa.timestamp("us", tz="UTC"),
    "INTERVAL": pa.month_day_nano_interval(),
    "BPCHAR": pa.string(),
    "POINT": pa.string(),
}


def declared_field(name: str, kind: Any) -> pa.Field[Any]:
    """A column of the type that a word of SQL means; JSON and UUID are marked, and words with sizes kept. Raises SqlError 42704."""
    word = str(getattr(kind.this, "value", kind.this))
    labels = enum_in(kind)
    if labels is not None:
        return pa.field(name, pa.list_(pa.string()) if word in ("ARRAY", "LIST") else pa.string(), metadata=labels.metadata)
    if word in ("ARRAY", "LIST") and kind.expressions and isinstance(kind.expressions[0], exp.DataType):
        item = declared_field("item", kind.expressions[0])
        return pa.field(name, declared(kind) if KIND in (item.metadata or {}) else pa.list_(item))
    mark = _MARKED.get(word)
    found = "jsonb" if word == "JSONB" else _sized_word(word, kind)
    metadata: dict[bytes | str, bytes | str] = {KIND: mark} if mark else {}
    return pa.field(name, declared(kind), metadata={**metadata, WORD: found.encode()} if found else metadata or None)


RESOLVED = "enum"  # in the meta of a type in a tree: the definition that its name stands for


def enum_in(kind: Any) -> EnumDefinition | None:
    """The definition that a type in a tree means, or its elements; None for any other type, and for arrays of arrays."""
    if str(getattr(kind.this, "value", kind.this)) in ("ARRAY", "LIST") and kind.expressions:
        kind = kind.expressions[0]
    found: EnumDefinition | None = kind.meta.get(RESOLVED) if isinstance(kind, exp.DataType) else None
    return found


def shown_type(field: pa.Field[Any]) -> str:
    """The type of a column as CREATE TABLE has it. Raises TableError for a type that tables do not have."""
    labels = enum_of(field)
    return type_name(field) if labels is None else labels.shown + "[]" * pa.types.is_list(field.type)


_TEXTS = {"VARCHAR": "varchar", "NVARCHAR": "varchar", "CHAR": "char", "NCHAR": "char", "BPCHAR": "char"}
_TIMES = {
    "TIMESTAMP": "timestamp_ntz", "TIMESTAMPNTZ": "timestamp_ntz", "DATETIME": "timestamp_ntz", "TIMESTAMPTZ": "timestamptz",
    "TIMESTAMPLTZ": "timestamptz", "TIME": "time",
}  # fmt: skip
MAX_SINGLE = 24  # binary digits
MAX_FRACTION, MAX_LENGTH = 6, 10_485_760  # digits of seconds; characters, as in Postgres


def _sized_word(word: str, kind: Any) -> str:
    """The word that `tables.declaration` has for a type of texts or times with a size, or for `varchar`; empty for others."""
    found = _TEXTS.get(word) or _TIMES.get(word, "")
    sizes = [each.name for each in kind.expressions]
    if not found or (not sizes and found not in ("varchar", "char")):
        return ""
    if not sizes:
        return found if found == "varchar" else "char(1)" if word != "BPCHAR" else ""
    size = int(sizes[0]) if len(sizes) == 1 and sizes[0].isdigit() else -1
    if word in _TIMES:
        if size < 0:
            raise SqlError(INVALID_PARAMETER, f"{word}({', '.join(sizes)}) precision must not be negative")
        return f"{found}({min(size, MAX_FRACTION)})"
    if not 1 <= size <= MAX_LENGTH:
        hint = f"it takes a number from 1 to {MAX_LENGTH}"
        raise SqlError(INVALID_PARAMETER, f"length for type {found} must be at least 1", hint=hint)
    return f"{found}({size})"


_MARKED = {"JSON": b"json", "JSONB": b"json", "UUID": b"uuid"}


def declared(kind: Any) -> pa.DataType:
    """The type that a word of SQL means, from sqlglot's `DataType`. Raises SqlError 42704."""
    if isinstance(kind.this, exp.Interval):  # INTERVAL HOUR TO MINUTE: which parts it has is not checked
        return _SQL["INTERVAL"]
    word = str(getattr(kind.this, "value", kind.this))
    labels: EnumDefinition | None = kind.meta.get(RESOLVED)
    if labels is not None:
        return EnumParameter(labels)
    found = pa.float32() if _is_single(word, kind) else _SQL.get(word)
    if found is not None:
        return found
    try:
        found = _nested(word, kind.expressions)
    except (ValueError, IndexError, KeyError, AttributeError):
        raise SqlError(SYNTAX_ERROR, f'the type "{kind.sql("postgres").lower()}" cannot be read') from None
    if found is None:
        raise SqlError(
            UNDEFINED_OBJECT, f'type "{kind.sql("postgres").lower()}" does not exist', hint="perhaps text, json or bytea fits"
        )
    return found


def _is_single(word: str, kind: Any) -> bool:
    """Whether a type is `float(n)` with so few binary digits that four bytes hold them."""
    sizes = [each.name for each in kind.expressions]
    return word == "DOUBLE" and len(sizes) == 1 and sizes[0].isdigit() and int(sizes[0]) <= MAX_SINGLE


def _nested(word: str, inner: Any) -> pa.DataType | None:
    """A type with others inside, or with numbers; None if there is none of this name."""
    match word:
        case "DECIMAL" | "NUMERIC" | "BIGDECIMAL":
            sizes = [int(each.name) for each in inner]
            precision, scale = (*sizes, 0)[:2] if sizes else (38, 9)
            if not 1 <= precision <= 38 or not 0 <= scale <= precision:
                raise SqlError("22023", f"NUMERIC precision {precision} must be between 1 and 38, and its scale up to it")
            return pa.decimal128(precision, scale)
        case "ARRAY" | "LIST":
            return pa.list_(declared(inner[0]))
        case "STRUCT":
            return pa.struct([pa.field(each.name, declared(each.args["kind"])) for each in inner])
        case "MAP":
            return pa.map_(declared(inner[0]), declared(inner[1]))
    return None
