"""Reads columns from text, such as `id bigint, price decimal(10,2), tags text[], address struct<city text>`.

The names of types are those of Spark SQL and of Postgres. Two names mean different things there; `dialect` decides.

| name | spark | postgres |
|---|---|---|
| `timestamp` | a moment (UTC) | a date and a time without time zone |
| `float` | 4 bytes | 8 bytes |
| `decimal`, `numeric` without digits | decimal(10,0) | decimal(38,18) |

`default '5'` behind a type is the JSON of the value that a record without the field has; without it, the value is null.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from barnabas.schemas.arrow.shapes import MARK, WORD, map_type
from barnabas.tables.column_types import JSON, JSONB, LOCAL, MAX_DIGITS, TIME, UTC, UUID, Field, table_field, with_missing
from barnabas.tables.errors import TableError
from barnabas.tables.intervals import INTERVAL

MAX_DEPTH = 32  # types inside of each other
MAX_FRACTION = 6  # most digits of seconds
_TOKEN = re.compile(r'\s*(?:("(?:[^"]|"")*"|`(?:[^`]|``)*`|\'(?:[^\']|\'\')*\')|(\w[\w$]*)|([<>(),:]|\[\s*\])|(\S))')
_LIST = re.compile(r"\[\s*\]")
_BASES: dict[str, pa.DataType] = {
    **dict.fromkeys(("boolean", "bool"), pa.bool_()),
    **dict.fromkeys(("tinyint", "byte", "int1"), pa.int8()),
    **dict.fromkeys(("smallint", "short", "int2"), pa.int16()),
    **dict.fromkeys(("int", "integer", "int4"), pa.int32()),
    **dict.fromkeys(("bigint", "long", "int8"), pa.int64()),
    "utinyint": pa.uint8(), "usmallint": pa.uint16(), "uint": pa.uint32(), "uinteger": pa.uint32(), "ubigint": pa.uint64(),
    **dict.fromkeys(("real", "float4"), pa.float32()),
    **dict.fromkeys(("double", "float8"), pa.float64()),
    **dict.fromkeys(("text", "string", "varchar", "char", "character", "bpchar", "name"), pa.string()),
    **dict.fromkeys(("binary", "bytea", "blob", "varbinary", "bytes"), pa.binary()),
    "date": pa.date32(), "time": TIME, "interval": INTERVAL,
    **dict.fromkeys(("timestamptz", "timestamp_ltz"), UTC),
    **dict.fromkeys(("timestamp_ntz", "datetime"), LOCAL),
}  # fmt: skip
_MARKED = {"json": JSON, "jsonb": JSON, "variant": JSON, "uuid": UUID}
_DECIMALS = ("decimal", "numeric", "dec")
DIALECTS = ("spark", "postgres")


def declared(text: str, *, dialect: str = "spark") -> list[Field]:
    """The columns that a text declares.

    Args:
        text: names and types with commas between them; `not null` and `default` may follow a type.
        dialect: `spark` or `postgres`.

    Raises:
        TableError: the text is no declaration; it names the place.
    """
    parser = _Parser(text, dialect)
    fields = parser.columns("")
    if not fields:
        raise TableError("the declaration has no columns; an example is: id bigint, name text")
    return fields


def _words(word: str, kind: pa.DataType, sizes: Sequence[int]) -> dict[bytes | str, bytes | str] | None:
    """The metadata of a type that says more than Arrow's: `varchar`, and types with sizes."""
    if word == "varchar":
        found = "varchar"
    elif word in ("char", "character", "bpchar"):
        found = "char"
    else:
        found = _TIMES.get(kind, "")
    if not found or (not sizes and found != "varchar") or (kind in _TIMES and sizes[0] > MAX_FRACTION):
        return None
    return {WORD: f"{found}({sizes[0]})".encode() if sizes else found.encode()}


_TIMES = {TIME: "time", LOCAL: "timestamp_ntz", UTC: "timestamptz"}


class _Parser:
    def __init__(self, text: str, dialect: str) -> None:
        if dialect not in DIALECTS:
            raise TableError(f"the dialect is {dialect!r}; it can be {' or '.join(DIALECTS)}")
        self._dialect = dialect
        self._tokens = [
            (match[1] or match[2] or match[3] or match[4], match.start(match.lastindex or 0)) for match in _TOKEN.finditer(text)
        ]
        self._at = 0
        self._depth = 0

    def columns(self, end: str) -> list[Field]:
        """Fields up to the token `end`, which is taken; an empty one stands for the end of the text."""
        fields: list[Field] = []
        while self._peek() != end:
            name = self._name()
            if any(each.name == name for each in fields):
                raise TableError(f"the column {name} is declared twice")
            self._maybe(":")
            field = self._type(name)
            nullable = True
            if self._maybe("not"):
                self._take("null")
                nullable = False
            else:
                self._maybe("null")
            if self._maybe("default"):
                field = with_missing(field, self._quoted("the JSON of a value in single quotation marks"))
            fields.append(field.with_nullable(nullable))
            if self._peek() == end:
                break
            if not self._maybe(","):
                raise self._unexpected(f"a comma{f' or {end}' if end else ''}")
            if self._peek() == end:
                raise self._unexpected("another column")
        self._at += 1
        return fields

    def _type(self, name: str) -> Field:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TableError(f"the type of the column {name} has more than {MAX_DEPTH} types inside of each other")
        field = self._base(name)
        while _LIST.fullmatch(self._peek()):
            self._at += 1
            field = pa.field(name, pa.list_(field.with_name("item")))
        self._depth -= 1
        return field

    def _base(self, name: str) -> Field:
        word = self._word("a type")
        if word in ("array", "list"):
            close = self._open()
            item = self._type("item")
            self._take(close)
            return pa.field(name, pa.list_(item))
        if word == "map":
            close = self._open()
            key = self._type("key")
            self._take(",")
            value = self._type("value")
            self._take(close)
            return table_field(pa.field(name, map_type(key.type, value)))
        if word in ("struct", "row"):
            fields = self.columns(self._open())
            if not fields:
                raise TableError(f"the struct {name} has no fields")
            return pa.field(name, pa.struct(fields))
        return self._scalar(name, word)

    def _scalar(self, name: str, word: str) -> Field:
        if word in _MARKED:
            words = {WORD: word.encode()} if word == JSONB else {}
            return pa.field(name, pa.string(), metadata={MARK: _MARKED[word].encode(), **words})
        if word in _DECIMALS:
            return pa.field(name, self._decimal())
        if word == "double":
            self._maybe("precision")
        elif word in ("character", "char") and self._maybe("varying"):
            word = "varchar"
        kind = _BASES.get(word)
        if word == "float":
            kind = pa.float64() if self._dialect == "postgres" else pa.float32()
        elif word == "timestamp":
            kind = LOCAL if self._dialect == "postgres" else UTC
        if kind is None:
            raise self._unexpected("a type", back=True)
        sizes = self._numbers()
        if word in ("timestamp", "time"):
            kind = self._zone(word, kind)
        return pa.field(name, kind, metadata=_words(word, kind, sizes))

    def _zone(self, word: str, kind: pa.DataType) -> pa.DataType:
        has_zone = self._maybe("with")
        if not has_zone and not self._maybe("without"):
            return kind
        self._take("time")
        self._take("zone")
        if word == "time":
            if has_zone:
                raise TableError("a column cannot have the type time with time zone; time has none")
            return kind
        return UTC if has_zone else LOCAL

    def _decimal(self) -> pa.DataType:
        numbers = self._numbers()
        if not numbers:
            return pa.decimal128(38, 18) if self._dialect == "postgres" else pa.decimal128(10, 0)
        digits, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
        if not 1 <= digits <= MAX_DIGITS or scale > digits:
            raise TableError(
                f"a decimal has 1 to {MAX_DIGITS} digits, and not more behind the point; this one is decimal({digits},{scale})"
            )
        return pa.decimal128(digits, scale)

    def _numbers(self) -> Sequence[int]:
        """Up to two numbers in parentheses."""
        found: list[int] = []
        if not self._maybe("("):
            return found
        while len(found) < 2:
            word = self._word("a number")
            if not word.isdecimal() or len(word) > 9:
                raise self._unexpected("a number", back=True)
            found.append(int(word))
            if not self._maybe(","):
                break
        self._take(")")
        return found

    def _open(self) -> str:
        if self._maybe("<"):
            return ">"
        if self._maybe("("):
            return ")"
        raise self._unexpected("<")

    def _name(self) -> str:
        token = self._peek()
        if token[:1] in ('"', "`") and len(token) > 2:
            self._at += 1
            return token[1:-1].replace(token[0] * 2, token[0])
        if not re.fullmatch(r"\w[\w$]*", token):
            raise self._unexpected("the name of a column")
        self._at += 1
        return token

    def _quoted(self, what: str) -> str:
        token = self._peek()
        if len(token) < 2 or token[0] != "'":
            raise self._unexpected(what)
        self._at += 1
        return token[1:-1].replace("''", "'")

    def _word(self, what: str) -> str:
        token = self._peek()
        if not re.fullmatch(r"\w[\w$]*", token):
            raise self._unexpected(what)
        self._at += 1
        return token.lower()

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _maybe(self, wanted: str) -> bool:
        if self._peek().lower() != wanted:
            return False
        self._at += 1
        return True

    def _take(self, wanted: str) -> None:
        if not self._maybe(wanted):
            raise self._unexpected(wanted)

    def _unexpected(self, wanted: str, *, back: bool = False) -> TableError:
        at = self._at - back
        found = f"{self._tokens[at][0]!r} at character {self._tokens[at][1] + 1}" if at < len(self._tokens) else "its end"
        return TableError(f"the declaration of columns has {found}, where {wanted} should be")
