"""`varchar(n)`, `char(n)` and times with a precision: what definitions keep, what statements refuse, and what the catalogue shows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition, decode, encode
from barnabas.sql.catalog.topics import declared
from barnabas.sql.interface import SqlError
from barnabas.sql.writing.fitting import fitting
from barnabas.sql.writing.one_row import RowEncoder
from barnabas.tables.column_types import columns_text
from barnabas.tables.declaration import declared as fields_of
from tests.sql.engine.asking import Asking

LONG = "22001", "value too long for type character varying(3)"


@pytest.fixture
def sized(ask: Asking) -> Iterator[Asking]:
    ask("create table sized (id int primary key, v varchar(3), c char(5), at timestamp(0), l varchar(2)[])")
    yield ask
    ask("rollback")
    ask("drop table sized cascade")


def error_of(ask: Asking, text: str, *values: object) -> tuple[str, str]:
    error = ask.error(text, *values)
    return error.sqlstate, error.message


def test_values_that_are_too_long(sized: Asking) -> None:
    sized("insert into sized (id, v, c) values (1, 'ab    ', 'ab ')")
    assert sized.rows("select v, c from sized") == [("ab ", "ab")]
    for text in (
        "insert into sized (id, v) values (2, 'abcd')", "insert into sized (id, v) select 2, 'abcd'", "update sized set v = 'abcd'",
        "insert into sized (id) values (1) on conflict (id) do update set v = 'abcd'",
        "merge into sized t using (select 1 as id) s on t.id = s.id when matched then update set v = 'abcd'",
    ):  # fmt: skip
        assert error_of(sized, text) == LONG
    assert error_of(sized, "insert into sized (id, v) values ($1, $2)", 2, "abcd") == LONG
    with pytest.raises(SqlError, match="too long for type character varying"):
        sized.copy_in("copy sized (id, v) from stdin", b"2\tabcd\n")
    assert error_of(sized, "insert into sized (id, c) values (2, 'abcdef')")[1] == "value too long for type character(5)"
    assert error_of(sized, "insert into sized (id, l) values (2, array['abc'])")[1].endswith("varying(2)")
    sized("begin")
    assert error_of(sized, "insert into sized (id, v) values (2, 'abcd')") == LONG
    sized("rollback")
    assert sized.rows("select count(*) from sized") == [(1,)]


def test_texts_of_char_are_compared_without_spaces(sized: Asking) -> None:
    sized("insert into sized (id, c) values (1, 'ab'), (2, 'xyz')")
    assert sized.rows("select id from sized where c = 'ab     '") == [(1,)]
    assert sized.rows("select id from sized where $1 = c", "ab  ") == [(1,)]
    assert sized.rows("select id from sized where c in ('ab ', 'xyz  ') order by id") == [(1,), (2,)]
    sized("create table codes (c char(4) primary key)")
    sized("insert into codes values ('a ')")
    assert sized.error("insert into codes values ('a')").sqlstate == "23505"
    for value in ("a", "a   "):
        assert sized.rows("select c from codes where c = $1", value) == [("a",)]
    sized("drop table codes")


def test_types_in_the_catalogue(sized: Asking) -> None:
    sized(
        "create table typed (a varchar, b text, c numeric, d numeric(5,2), e timestamptz(3), f time(2), g char, h bpchar, i float(9))"
    )
    query = (
        "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = '%s'::regclass and attnum > 0 order by attnum"
    )
    assert [row[0] for row in sized.rows(query % "sized")] == [
        "integer", "character varying(3)", "character(5)", "timestamp(0) without time zone", "character varying(2)[]",
    ]  # fmt: skip
    assert [row[0] for row in sized.rows(query % "typed")] == [
        "character varying", "text", "numeric", "numeric(5,2)", "timestamp(3) with time zone", "time(2) without time zone",
        "character(1)", "text", "real",
    ]  # fmt: skip
    told = sized.rows(
        "select column_name, character_maximum_length, numeric_precision, numeric_scale, datetime_precision"
        " from information_schema.columns where table_name in ('sized', 'typed') order by table_name, ordinal_position"
    )
    assert told[1:4] == [("v", 3, None, None, None), ("c", 5, None, None, None), ("at", None, None, None, 0)]
    assert told[7:10] == [("c", None, None, None, None), ("d", None, 5, 2, None), ("e", None, None, None, 3)]
    text = sized.rows("show create table sized")[0][1]
    assert "v varchar(3),\n  c char(5),\n  at timestamp_ntz(0),\n  l varchar(2)[]" in text
    sized("drop table typed")
    sized(text.replace("TABLE sized", "TABLE typed"))
    assert sized.rows("show create table typed")[0][1] == text.replace("TABLE sized", "TABLE typed")
    sized("drop table typed")


def test_other_sizes(sized: Asking) -> None:
    sized("insert into sized (id, v, at) values (1, 'abc', '2020-01-01 00:00:00.6')")
    assert sized.rows("select at::text from sized") == [("2020-01-01 00:00:01",)]
    assert error_of(sized, "alter table sized alter column v type varchar(2)")[0] == "22001"
    sized("alter table sized alter column v type varchar(4), alter column at type timestamp(3)")
    sized("insert into sized (id, v, at) values (2, 'abcd', '2020-01-01 00:00:00.1234')")
    assert error_of(sized, "alter table sized alter column at type timestamp(0)")[0] == "0A000"
    sized("delete from sized where id = 2")
    sized("alter table sized alter column at type timestamp(0), alter column v type varchar(3)")
    assert error_of(sized, "insert into sized (id, v) values (2, 'abcd')") == LONG
    sized("alter table sized alter column v type text")
    sized("insert into sized (id, v) values (2, 'abcd  ')")
    assert error_of(sized, "alter table sized alter column v type char(9)")[0] == "0A000"
    assert sized.error("create table wrong (a varchar(0))").sqlstate == "22023"
    sized("create table named (k varchar(3) primary key)")
    sized("alter table named alter column k type varchar(10) using k::varchar(10)")
    sized("insert into named values ('abcdefghij')")
    assert sized.error("alter table named alter column k type varchar(3) using upper(k)").sqlstate == "0A000"
    sized("drop table named")


def test_results_and_views_have_the_types_of_columns(sized: Asking) -> None:
    sized("create table copied as select id, v, c, upper(v) as u from sized")
    assert "v varchar(3),\n  c char(5),\n  u text" in sized.rows("show create table copied")[0][1]
    sized("drop table copied")


def test_definitions_of_older_versions_have_no_sizes() -> None:
    old = b'{"name": "t", "topic": "t", "columns": [{"name": "id", "kind": "int", "nullable": false}, {"name": "a", "kind": "text"}]}'
    found = decode(old)
    assert [each.field.type for each in found.columns] == [pa.int32(), pa.string()]
    assert declared(found).sized == ()
    made = TableDefinition("t", "t", (ColumnDefinition("a", "varchar(3)"), ColumnDefinition("b", "int", missing="5")))
    assert decode(encode(made)) == made
    assert declared(made).sized == ("a",)


@pytest.mark.parametrize(
    "text", ["a varchar(3), b char(2)[], c timestamp_ntz(0), d varchar", "a int default '5', b text default '\"it''s\"'"]
)
def test_declarations_are_read_back(text: str) -> None:
    assert columns_text(fields_of(text)) == text


@given(st.lists(st.none() | st.integers(-(10**16), 10**16), min_size=1), st.integers(0, 6))
def test_times_are_rounded_as_postgres_does(values: list[int | None], digits: int) -> None:
    (field,) = fields_of(f"a timestamp_ntz({digits})")
    made = fitting(pa.chunked_array([pa.array(values, pa.int64()).cast(field.type)]), field).cast(pa.int64()).to_pylist()
    epoch, step = 946_684_800_000_000, 10 ** (6 - digits)
    for value, found in zip(values, made, strict=True):
        if value is None:
            assert found is None
            continue
        size = (abs(value - epoch) + step // 2) // step * step
        assert found - epoch == (size if value >= epoch else -size)


@given(st.text("ab é", max_size=6), st.sampled_from(["varchar(3)", "char(3)"]))
def test_one_row_is_written_as_many_are(text: str, kind: str) -> None:
    definition = TableDefinition("t", "t", (ColumnDefinition("a", kind),))
    encoder = RowEncoder.of(declared(definition))
    assert encoder is not None
    record = encoder.record([text])
    try:
        (expected,) = fitting(pa.chunked_array([pa.array([text])]), definition.columns[0].field).to_pylist()
    except SqlError:
        assert record is None
        return
    if record is not None:  # otherwise the general way writes it
        found = RowEncoder.of(declared(TableDefinition("t", "t", (ColumnDefinition("a", "text"),))))
        assert found is not None
        assert record == found.record([expected])
    assert record is not None or len(text) > 3
