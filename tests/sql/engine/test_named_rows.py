"""Tables without a primary key, whose topic other programs write to as well: in comparison with a list of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas import limits
from barnabas.sql.engine import SqlEngine
from barnabas.tables import table as table_of
from barnabas.tables.row_names import name_of
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of
from tests.sql.engine.named_rows import COLUMNS, Rows


@pytest.mark.parametrize("seed", range(4))
def test_a_table_is_a_list_of_rows_for_all_its_readers(broker: Broker, ask: Asking, seed: int) -> None:
    rows = Rows(ask, f"listed_{seed}", seed)
    for _ in range(25):
        rows.step()
        rows.check()
    rows.check_stream()
    started_again = engine_of(broker)
    try:
        again = asking(started_again)
        rows.check(again)
        rows.check_stream(again)
        again.session.close()
    finally:
        started_again.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MAX_SQL_LIVE_BYTES", 0)
        scanning = engine_of(broker)
        try:
            other = asking(scanning)
            rows.check(other)
            name = other.rows(f"select min(_row) from {rows.name}")[0][0]
            assert len(other.rows(f"select * from {rows.name} where _row = $1", name)) == (name is not None)
            assert other.tag(f"update {rows.name} set n = 0 where _row = '{name}'") == f"UPDATE {int(name is not None)}"
            other.session.close()
        finally:
            scanning.close()
    expected = Counter(ask.rows(f"select * from {rows.name}"))
    for place in ({"bootstrap_servers": broker.bootstrap_servers}, {"data_folder": broker.data_dir}):
        with table_of(rows.name, **place, format="json", columns=COLUMNS, key="row") as table:
            assert Counter((row["n"], row["s"]) for row in table.arrow().to_pylist()) == expected
            assert table.count() == sum(expected.values())


@pytest.fixture
def birds(ask: Asking) -> Iterator[Asking]:
    ask("create table birds (name text, n int)")
    ask("insert into birds values ('wren', 1), ('robin', 2)")
    yield ask
    ask("drop table birds")


def test_a_row_keeps_its_name(birds: Asking) -> None:
    named = "select _row, _partition, _offset, _key, name, n from birds order by 1"
    assert birds.rows(named) == [("0:0", 0, 0, None, "wren", 1), ("0:1", 0, 1, None, "robin", 2)]
    birds("update birds set n = n + 1 where name = 'wren'")
    birds("update birds set n = n + 1 where _row = '0:0'")
    assert birds.rows(named) == [("0:0", 0, 3, None, "wren", 3), ("0:1", 0, 1, None, "robin", 2)]
    assert birds.rows("select key from (select _key as key from stream birds)") == [(None,), (None,)]
    assert birds.rows("update birds set name = 'owl' where n = 3 returning name") == [("owl",)]
    birds("delete from birds where _row = '0:0'")
    assert birds.rows("select name from birds") == [("robin",)]
    assert birds.error("update birds set _row = 'x'").sqlstate == "42703"


def test_keys_of_other_programs_are_columns(broker: Broker, birds: Asking) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in (7, 8):
        producer.produce("birds", b'{"name": "kite", "n": %d}' % number, key=b"k")
    assert producer.flush(60) == 0
    birds("wait for birds")
    assert birds.rows("select n from birds where _key = 'k'::bytea order by n") == [(7,), (8,)]
    birds("update birds set n = 9 where n = 8")
    assert birds.rows("select n, _key from birds where name = 'kite' order by n") == [(7, b"k"), (9, None)]


def test_one_transaction_writes_the_last_form_of_its_rows(birds: Asking) -> None:
    birds("begin")
    birds("insert into birds values ('kite', 3), ('jay', 4)")
    birds("update birds set n = n * 10 where name in ('kite', 'wren')")
    birds("savepoint here")
    birds("update birds set n = n + 1 where name in ('kite', 'wren')")
    birds("delete from birds where name = 'jay'")
    assert birds.rows("select * from birds order by n") == [("robin", 2), ("wren", 11), ("kite", 31)]
    birds("rollback to here")
    assert birds.rows("select * from birds order by n") == [("robin", 2), ("jay", 4), ("wren", 10), ("kite", 30)]
    birds("delete from birds where name = 'jay'")
    birds("update birds set n = n + 1 where name = 'kite'")
    birds("commit")
    assert birds.rows("select * from birds order by n") == [("robin", 2), ("wren", 10), ("kite", 31)]
    assert birds.rows("select name, n from stream birds order by _offset") == [("wren", 1), ("robin", 2), ("kite", 31)]


def test_truncate_and_copy(birds: Asking) -> None:
    birds("update birds set n = 5")
    birds("truncate birds")
    assert birds.rows("select * from birds") == []
    assert birds.copy_in("copy birds from stdin", b"wren\t1\nwren\t1\n") == "COPY 2"
    assert birds.tag("delete from birds where name = 'wren'") == "DELETE 2"
    birds("begin")
    assert birds.copy_in("copy birds from stdin", b"owl\t1\n") == "COPY 1"
    assert birds.tag("update birds set n = 2") == "UPDATE 1"
    birds("commit")
    assert birds.rows("select * from birds") == [("owl", 2)]
    assert birds.copy_out("copy birds to stdout") == b"owl\t2\n"


@pytest.mark.parametrize(("options", "can_change"), [
    ("", True),
    ("with (partitions = 2, replicas = 1)", True),
    ("with (topic = 'of_its_own')", True),
    ("with (mode = 'drop')", True),
    ("with ('compression.type' = 'zstd')", True),
    ("with ('retention.ms' = '-1')", False),
    ("with ('cleanup.policy' = 'delete')", False),
    ("with ('retention.ms' = '-1', append_only = false)", True),
    ("with (key = 'a')", False),
    ("with (append_only = true)", False),
    ("append only", False),
])  # fmt: skip
def test_what_makes_a_table_append_only(ask: Asking, options: str, can_change: bool) -> None:
    ask(f"create table optional (a int, b int) {options}")
    ask("insert into optional values (1, 1)")
    outcome = ask.tag if can_change else lambda text: ask.error(text).sqlstate
    assert outcome("update optional set b = 2") == ("UPDATE 1" if can_change else "55000")
    (text,) = ask.rows("show create table optional")[0][-1:]
    ask("drop table optional")
    ask(text)
    ask("insert into optional values (1, 1)")
    assert outcome("delete from optional") == ("DELETE 1" if can_change else "55000")
    ask("drop table optional")
    if "of_its_own" in options:
        assert "of_its_own" in text


def test_a_table_over_a_topic_that_is_there(broker: Broker, ask: Asking) -> None:
    ask("create table log (a int) append only")
    ask("insert into log values (1), (1), (2)")
    ask("create table seen (a int) with (topic = 'log')")
    error = ask.error("update seen set a = 5")
    assert (error.sqlstate, "append_only = false" in (error.hint or "")) == ("55000", True)
    ask("create table changed (a int) with (topic = 'log', append_only = false)")
    assert ask.tag("update changed set a = 5 where a = 1") == "UPDATE 2"
    assert sorted(ask.rows("select a from changed")) == [(2,), (5,), (5,)]
    assert sorted(ask.rows("select a from changed union all select a from log")) == [(1,), (1,), (2,), (2,), *[(5,)] * 4]
    ask("drop table changed")
    assert len(ask.rows("select a from log")) == 5
    ask("create table keyed (a int primary key)")
    assert ask.error("create table over (a int) with (topic = 'keyed', append_only = false)").sqlstate == "42P16"
    assert ask.error("create table other (a int) with ('cleanup.policy' = 'compact', append_only = false)").sqlstate == "42P16"
    assert ask.error("create table other (a int) with (key = 'a', append_only = false)").sqlstate == "42P16"
    ask("drop table log, seen, keyed")


@pytest.mark.parametrize("format_name", ["text", "raw"])
def test_values_of_one_column(ask: Asking, format_name: str) -> None:
    kind = "text" if format_name == "text" else "bytea"
    ask(f"create table lines (line {kind}) with (format = '{format_name}')")
    ask("insert into lines values ('one'), ('two'), ('')")
    assert ask.error("insert into lines values (null)").sqlstate == "23502"
    ask("update lines set line = '2' where line = 'two'")
    ask("delete from lines where line = 'one'")
    values: list[Any] = [row[0] for row in ask.rows("select line from lines order by 1")]
    assert values == (["", "2"] if format_name == "text" else [b"", b"2"])
    assert ask.error("update lines set line = null").sqlstate == "23502"
    ask("drop table lines")


def test_records_that_do_not_fit(broker: Broker, ask: Asking) -> None:
    ask("create table strict (a int) with (mode = 'drop')")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in (b'{"a": 1}', b"no", b'{"a": 2}'):
        producer.produce("strict", value)
    assert producer.flush(60) == 0
    ask("wait for strict")
    ask("update strict set a = a + 10")
    assert sorted(ask.rows("select a from strict")) == [(11,), (12,)]
    ask("drop table strict")


def test_a_name_that_a_program_makes_up_changes_no_other_row(broker: Broker, birds: Asking) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("birds", b'{"name": "later"}', key=name_of(None, 0, 50))
    producer.produce("birds", b'{"name": "elsewhere"}', key=name_of(None, 1, 0))
    producer.produce("birds", b'{"name": "itself"}', key=name_of(None, 0, 4))
    assert producer.flush(60) == 0
    birds("wait for birds")
    names = ["elsewhere", "itself", "later", "robin", "wren"]
    assert [name for (name,) in birds.rows("select name from birds order by 1")] == names


def test_a_definition_of_an_earlier_version_is_a_clear_error(engine: SqlEngine, ask: Asking) -> None:
    from msgspec import structs

    ask("create table old (a int)")
    session = ask.session
    old = structs.replace(session.definitions.tables["old"], has_row_names=False)
    session.definitions.change(session.client, session.running, lambda _: {"old": old})
    assert "made by an earlier version" in ask.error("select * from old").message
    assert ("old",) in ask.rows("show tables") or "old" in str(ask.rows("show tables"))
    ask("drop table old")
