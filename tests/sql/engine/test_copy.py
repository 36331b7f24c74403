"""COPY both ways, as text and CSV."""

from __future__ import annotations

import pytest

from barnabas import limits
from barnabas.sql.interface import SqlError
from tests.sql.engine.asking import Asking, pieces

WHOLE = "id,name,v,ok,at\n"


@pytest.fixture
def ask(ask: Asking) -> Asking:
    ask("drop table if exists t")
    ask(
        "create table t (id int primary key, name text not null default 'x', v numeric(10,2), ok boolean, at timestamp, tags text[])"
    )
    return ask


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_text_in_pieces_of_any_size(ask: Asking, size: int) -> None:
    data = b"1\ta\\tb\\\\\t1.5\tt\n2\t\\x41\\101\t\\N\tf\n3\t\xc3\xa9\\\ty\t\\N\t\\N\n\\.\nrest"
    assert ask.copy_in("copy t (id, name, v, ok) from stdin", *pieces(data, size)) == "COPY 3"
    assert ask.rows("select id, name, v::text, ok from t order by id") == [
        (1, "a\tb\\", "1.50", True), (2, "AA", None, False), (3, "é\ty", None, None),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 1000])
def test_csv(ask: Asking, size: int) -> None:
    data = (WHOLE + '1,"a ""b"",\nc",1.5,t,2020-01-01 10:00:00\n2,"",,false,\n').encode()
    assert ask.copy_in("copy t (id, name, v, ok, at) from stdin with (format csv, header)", *pieces(data, size)) == "COPY 2"
    assert ask.rows("select name, v::text, ok, at::text from t order by id") == [
        ('a "b",\nc', "1.50", True, "2020-01-01 10:00:00"), ("", None, False, None),
    ]  # fmt: skip
    assert ask.copy_in("copy t (id, name) from stdin csv delimiter ';' null 'NIL' quote ''''", b"5;'a;b'\n") == "COPY 1"
    assert ask.rows("select name from t where id = 5") == [("a;b",)]
    assert ask.copy_in("copy t from stdin csv") == "COPY 0"
    assert ask.copy_in("copy t from stdin") == "COPY 0"


@pytest.mark.parametrize(
    ("text", "data", "state"),
    [
        ("copy t (id, name) from stdin", b"1\n", "22P04"),
        ("copy t (id) from stdin", b"1\t2\n", "22P04"),
        ("copy t (id) from stdin csv", b"1,2\n", "22P04"),
        ("copy t (id) from stdin", b"x\n", "22P02"),
        ("copy t (id) from stdin", b"7\n8\n7\n", "23505"),
        ("copy t (id) from stdin", b"0\n", "23505"),
        ("copy t (id, name) from stdin", b"1\t\\N\n", "23502"),
        ("copy t (id, name) from stdin", b"1\t\xff\n", "22021"),
        ("copy t (nope) from stdin", b"", "42703"),
        ("copy nope from stdin", b"", "42P01"),
        ("copy t from stdin with (format binary)", b"", "0A000"),
        ("copy t from stdin with (foo 1)", b"", "42601"),
        ("copy t from stdin with (delimiter 'ab')", b"", "22023"),
        ("copy t from stdin with (quote 'a')", b"", "22023"),
        ("copy t from stdin with (encoding 'latin1')", b"", "0A000"),
    ],
)
def test_data_that_is_refused(ask: Asking, text: str, data: bytes, state: str) -> None:
    ask("insert into t (id) values (0)")
    with pytest.raises(SqlError) as caught:
        ask.copy_in(text, data)
    assert caught.value.sqlstate == state
    assert ask.rows("select id from t") == [(0,)]


def test_in_a_transaction(ask: Asking) -> None:
    ask("begin")
    assert ask.copy_in("copy t (id) from stdin", b"1\n2\n") == "COPY 2"
    assert ask.rows("select count(*) from t") == [(2,)]
    ask("rollback")
    assert ask.rows("select count(*) from t") == [(0,)]


def test_out(ask: Asking) -> None:
    ask("insert into t values (1, E'a\\tb\\\\', 1.5, true, '2020-01-01 10:00:00', array['p', 'q r', null])")
    ask("insert into t (id, name) values (2, '')")
    assert ask.copy_out("copy (select * from t order by id) to stdout") == (
        b'1\ta\\tb\\\\\t1.50\tt\t2020-01-01 10:00:00\t{p,"q r",NULL}\n2\t\t\\N\t\\N\t\\N\t\\N\n'
    )
    assert ask.copy_out(
        "copy (select id, name, ok from t order by id) to stdout with (format csv, header, force_quote (id))"
    ) == (b'id,name,ok\n"1",a\tb\\,t\n"2","",\n')
    text = "copy (select 1.0::float8, 'NaN'::float8, interval '1 day 02:00:00', true, '\\x01'::bytea) to stdout csv"
    assert ask.copy_out(text).startswith(b"1,NaN,1 day 02:00:00,t,")
    assert ask.copy_out("copy t (id) to stdout").count(b"\n") == 2
    ask.copy_in("copy t from stdin csv", ask.copy_out("copy (select 9, name, v, ok, at, null from t where id = 1) to stdout csv"))
    assert ask.rows("select a.name = b.name, a.at = b.at from t a, t b where a.id = 1 and b.id = 9") == [(True, True)]


def test_the_limit_of_a_line(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_COPY_LINE_BYTES", 100)
    with pytest.raises(SqlError, match="more than 100 bytes"):
        ask.copy_in("copy t (name) from stdin", b"x" * 200)


def test_a_header_is_not_compared(ask: Asking) -> None:
    with pytest.raises(SqlError) as caught:
        ask.copy_in("copy t from stdin with (format csv, header match)", b"id,name\n1,one\n")
    assert caught.value.sqlstate == "0A000"
