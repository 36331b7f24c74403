"""Columns as text, in the words of Spark and of Postgres, and the columns of a table from a user's words."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given

from barnabas.tables.column_types import JSONB, UTC, Field, columns_text, json_field, table_field, uuid_field
from barnabas.tables.declaration import declared
from barnabas.tables.declared import columns_of
from barnabas.tables.errors import TableError
from tests.tables.formats.json_texts import COLUMNS


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("boolean", pa.bool_()), ("BOOL", pa.bool_()), ("tinyint", pa.int8()), ("smallint", pa.int16()), ("int4", pa.int32()),
        ("Integer", pa.int32()), ("bigint", pa.int64()), ("long", pa.int64()), ("int8", pa.int64()), ("real", pa.float32()),
        ("double precision", pa.float64()), ("float8", pa.float64()), ("numeric(12, 3)", pa.decimal128(12, 3)),
        ("decimal(5)", pa.decimal128(5, 0)), ("character varying(20)", pa.string()), ("varchar(9)", pa.string()), ("text", pa.string()),
        ("bytea", pa.binary()), ("date", pa.date32()), ("time(3)", pa.time64("us")), ("time without time zone", pa.time64("us")),
        ("timestamptz", UTC), ("timestamp with time zone", UTC), ("timestamp(6) without time zone", pa.timestamp("us")),
        ("timestamp_ntz", pa.timestamp("us")), ("int[]", pa.list_(pa.int32())), ("array<array<int>>", pa.list_(pa.list_(pa.int32()))),
        ("map<string, int>[]", pa.list_(pa.map_(pa.string(), pa.int32()))),
        ("struct<city: string, `zip code` int not null>", pa.struct([("city", pa.string()), pa.field("zip code", pa.int32(), False)])),
    ],
)  # fmt: skip
def test_names_of_types(text: str, kind: pa.DataType) -> None:
    assert declared(f"x {text}") == [pa.field("x", kind)]


def test_json_and_uuid_are_marked_texts() -> None:
    fields = declared("a jsonb, b uuid, c json not null")
    expected = [json_field("a", JSONB), uuid_field("b"), json_field("c").with_nullable(False)]
    assert [field.equals(other, check_metadata=True) for field, other in zip(fields, expected, strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("name", "spark", "postgres"),
    [
        ("timestamp", UTC, pa.timestamp("us")),
        ("float", pa.float32(), pa.float64()),
        ("decimal", pa.decimal128(10, 0), pa.decimal128(38, 18)),
    ],
)
def test_names_that_differ_between_dialects(name: str, spark: pa.DataType, postgres: pa.DataType) -> None:
    assert declared(f"x {name}")[0].type == spark
    assert declared(f"x {name}", dialect="postgres")[0].type == postgres


def test_names_of_columns_may_be_quoted() -> None:
    fields = declared('"a ""b""" int, `c``d` int, "from" int, größe int')
    assert [field.name for field in fields] == ['a "b"', "c`d", "from", "größe"]


@given(COLUMNS)
def test_the_text_of_columns_declares_them(fields: list[Field]) -> None:
    wanted = [table_field(field) for field in fields if field.name]
    if wanted and all(_has_names(field.type) for field in wanted):
        found = declared(columns_text(wanted))
        assert pa.schema(found).equals(pa.schema(wanted), check_metadata=True)


def _has_names(kind: pa.DataType) -> bool:
    return all(kind.field(n).name and _has_names(kind.field(n).type) for n in range(kind.num_fields))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no columns"),
        ("id", "its end, where a type should be"),
        ("id flot", "'flot' at character 4, where a type should be"),
        ("id int name text", "'name' at character 8, where a comma should be"),
        ("id int,", "its end, where another column should be"),
        ("id int,, x int", "',' at character 8"),
        ("id int, id text", "the column id is declared twice"),
        ("id decimal(39)", "1 to 38 digits"),
        ("id decimal(5,6)", "1 to 38 digits"),
        ("id decimal(99999999999)", "where a number should be"),
        ("id int not", "where null should be"),
        ("id array<int", "where > should be"),
        ("id array int", "where < should be"),
        ("id struct<>", "has no fields"),
        ("id map<double, int>", "the column id cannot have the type"),
        ("id time with time zone", "time with time zone"),
        ("id " + "array<" * 33 + "int", "more than 32 types"),
        ("'id' int", "where the name of a column should be"),
        ("id int; drop table x", "';' at character 7"),
    ],
)
def test_what_is_no_declaration_has_a_reason(text: str, said: str) -> None:
    with pytest.raises(TableError, match=said):
        declared(text)


def test_columns_of_a_table() -> None:
    names = ["_partition", "_offset", "_timestamp"]
    assert columns_of("t").schema.names == ["value", "_key", *names]
    assert columns_of("t", format="text", key="text").schema.field("_key").type == pa.string()
    made = columns_of("t", format="json", columns="id bigint, x text[]", key="k uuid", mode="drop")
    assert (made.schema.names, made.mode) == (["id", "x", "k", *names], "drop")
    assert columns_of("t", format="json").schema.field("value").metadata == json_field("x").metadata
    assert columns_of("t", format="json", columns=pa.schema([("a", pa.large_string())])).schema.field("a").type == pa.string()
    assert columns_of("t", key="a int, b text").schema.names == ["value", "a", "b", *names]
    assert columns_of("t", format="auto").schema.names == ["value", "_key", *names]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"format": "xml"}, "the format is 'xml'; it can be raw, text, json"),
        ({"mode": "skip"}, "the mode is 'skip'"),
        ({"columns": "a int"}, "only json takes declared columns"),
        ({"format": "avro"}, "cannot be read without the URL"),
        ({"key": "registered"}, "cannot be read without the URL"),
        ({"format": "json", "columns": "_offset int"}, "two columns _offset"),
        ({"format": "json", "columns": "id int", "key": "id int"}, "two columns id"),
        ({"format": "json", "columns": [pa.field("x", pa.duration("s"))]}, "the column x cannot have the type"),
        ({"key": "nonsense"}, "where a type should be"),
    ],
)
def test_words_that_do_not_fit_each_other(words: dict[str, str], said: str) -> None:
    with pytest.raises(TableError, match=said):
        columns_of("t", **words)
