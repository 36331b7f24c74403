"""INSERT of one plain row: the record is that of the general way, and so is everything that a session sees of it."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.batches import whole_batches
from barnabas.client.blocking import BlockingClient
from barnabas.columnar.encode import RecordEncoder, TopicShape
from barnabas.protocol.records.record import iterate_records
from barnabas.protocol.records.seal import Stamp, seal_batch
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.catalog.topics import TopicRelation, declared
from barnabas.sql.statements.rows import _column
from barnabas.sql.writing.one_record import partition_of, room_of
from barnabas.sql.writing.one_row import RowEncoder
from barnabas.sql.writing.records import check_rows, record_batch, records_of
from tests.sql.engine.asking import Asking

TYPES = {
    "id": "bigint", "small": "smallint", "name": "string", "price": "double", "at": "timestamp", "plain": "timestamp_ntz",
    "active": "boolean",
}  # fmt: skip
ZONES = st.sampled_from([None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=5, minutes=30))])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.integers(-5, 5),
    st.floats(),
    st.decimals(allow_nan=True, allow_infinity=True),
    st.text(max_size=8),
    st.sampled_from(["2026-01-02 03:04:05", "2026-01-02T03:04:05.5Z", "2026-01-02 03:04:05+05:30", "0001-01-01 00:00:00+14:00"]),
    st.datetimes(timezones=ZONES),
    st.binary(max_size=4),
)
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(-(2**63), 2**63 - 1),
    "small": st.none() | st.integers(-(2**15), 2**15 - 1),
    "name": st.text(max_size=9),
    "price": st.floats() | st.integers(-9, 9) | st.decimals(-9, 9),
    "at": st.none() | st.datetimes(timezones=ZONES),
    "plain": st.none() | st.datetimes(),
    "active": st.booleans(),
}
KEYS = (("id",), ("name",), ("id", "name"), ())


def relation_of(key: Sequence[str]) -> TopicRelation:
    columns = tuple(ColumnDefinition(name, kind, nullable=name not in (*key, "active")) for name, kind in TYPES.items())
    return declared(TableDefinition("t", "t", columns, key=tuple(key), is_keyed=bool(key)))


def general(relation: TopicRelation, cells: Sequence[Any]) -> tuple[bytes | None, bytes] | None:
    """The key and the value that `INSERT` writes; None where it has an error or needs DuckDB."""
    try:
        columns = [_column([cell], field) for cell, field in zip(cells, relation.columns, strict=True)]
        if any(each is None for each in columns):
            return None
        rows = pa.table(columns, schema=pa.schema([each.with_nullable(True) for each in relation.columns]))
        check_rows(relation, rows)
        (made,) = records_of(relation, rows)
    except Exception:  # noqa: BLE001 - whatever it is, the general way tells it
        return None
    return made.column("key")[0].as_py(), made.column("value")[0].as_py()


@pytest.mark.parametrize("key", KEYS)
@given(cells=st.lists(VALUES, min_size=len(TYPES), max_size=len(TYPES)), data=st.data())
def test_a_record_is_that_of_the_general_way(key: Sequence[str], cells: list[Any], data: st.DataObject) -> None:
    relation = relation_of(key)
    encoder = RowEncoder.of(relation)
    assert encoder is not None
    fitting = [data.draw(FITTING[name]) for name in TYPES]
    mixed = [data.draw(st.sampled_from([one, other])) for one, other in zip(cells, fitting, strict=True)]
    for row in (cells, fitting, mixed):
        found = encoder.record(row)
        assert found is None or found == general(relation, row)


def test_plain_rows_are_taken() -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    for key in KEYS:
        encoder = RowEncoder.of(relation_of(key))
        assert encoder is not None
        assert encoder.record([1, 2, "x", decimal.Decimal("1.5"), moment, "2026-01-02 03:04:05", True]) is not None
    other = TableDefinition("t", "t", (ColumnDefinition("id", "bigint"), ColumnDefinition("parts", "array<bigint>")))
    assert RowEncoder.of(declared(other)) is None


@given(key=st.none() | st.binary(max_size=20), value=st.binary(max_size=300), partitions=st.integers(1, 9))
def test_a_batch_is_that_of_the_kernels(key: bytes | None, value: bytes, partitions: int) -> None:
    made: list[tuple[tuple[str, int], bytes, int]] = []
    encoder = RecordEncoder(lambda _: TopicShape(partitions), lambda place, room, count: made.append((place, bytes(room), count)))
    encoder.write(record_batch([key], [value]), "t")
    encoder.finish()
    ((place, room, count),) = made
    assert place == ("t", partition_of(key, partitions))
    own, kernels = (seal_batch(bytearray(each), count, 1_000, Stamp()) for each in (room_of(key, value), room))
    assert own == kernels
    (record,) = iterate_records(own)
    assert (record.key, record.value) == (key, value)


def test_rows_that_are_there_are_refused_and_those_that_do_not_fit(ask: Asking) -> None:
    ask("create table one_row (id bigint primary key, name text not null, price double)")
    text = "insert into one_row values ($1, $2, $3)"
    assert ask.tag(text, 1, "a", 1.5) == "INSERT 0 1"
    assert ask.error(text, 1, "b", 2.5).sqlstate == "23505"
    assert ask.error(text, 2, None, 2.5).sqlstate == "23502"
    assert ask.error(text, 2**70, "c", 2.5).sqlstate == "22003"
    assert ask.tag(text, 2, "c", float("nan")) == "INSERT 0 1"
    assert ask.tag("insert into one_row values (3, 'it''s', -1.25)") == "INSERT 0 1"
    assert ask.tag("insert into one_row values (4, 'x', -1.25)") == "INSERT 0 1"
    assert ask.tag("insert into one_row values (5, 'y', 2)") == "INSERT 0 1"
    assert ask.error("insert into one_row values (5, 'z', 2)").sqlstate == "23505"
    put = "insert into one_row values ($1, $2, $3) on conflict (id) do update set name = excluded.name, price = excluded.price"
    assert ask.tag(put, 1, "other", None) == "INSERT 0 1"
    assert ask.tag("insert into one_row values ($1, 'no', 1) on conflict do nothing", 1) == "INSERT 0 0"
    assert ask.rows("select * from one_row where id <> 2 order by id") == [
        (1, "other", None), (3, "it's", -1.25), (4, "x", -1.25), (5, "y", 2.0),
    ]  # fmt: skip
    ask("begin read only")
    assert ask.error(text, 9, "a", 1.5).sqlstate == "25006"
    ask("rollback")
    ask("begin")
    ask(text, 9, "a", 1.5)
    ask("rollback")
    assert ask.rows("select * from one_row where id = 9") == []
    ask("set default_transaction_read_only = on")
    assert ask.error(text, 9, "a", 1.5).sqlstate == "25006"


def test_rows_of_a_table_without_a_key_are_all_kept(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    ask("create table keyless (id bigint, name text)")
    text = "insert into keyless values ($1, $2)"
    for _ in range(2):
        assert ask.tag(text, 1, "same") == "INSERT 0 1"
    monkeypatch.setattr(RowEncoder, "record", lambda *_: None)
    assert ask.tag(text, 1, "same") == "INSERT 0 1"
    assert ask.rows("select * from keyless") == [(1, "same")] * 3
    assert ask.tag("delete from keyless") == "DELETE 3"
    assert ask.rows("select count(*) from keyless") == [(0,)]


def test_records_of_one_row_are_written_alike(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    for name in ("alike", "general"):
        options = f"partitions = 4, topic = '{name}'"
        ask(f"create table {name} (id bigint primary key, name text, at timestamptz, price double) with ({options})")
        for number in range(12):
            assert ask.tag(f"insert into {name} values ($1, $2, $3, $4)", number, f"name {number}", moment, number / 7)
        monkeypatch.setattr(RowEncoder, "of", lambda _: None)
    assert written(ask, "alike") == written(ask, "general")
    assert sum(map(len, written(ask, "alike"))) == 12


def written(ask: Asking, topic: str) -> list[list[tuple[bytes | None, bytes | None]]]:
    """The keys and values of each partition."""
    client: BlockingClient = ask.session.client
    found = []
    for partition in sorted(client.topics_by_name([topic])[topic].partitions):
        data = client.fetch(topic, partition, 0).records
        found.append(list[tuple[bytes | None, bytes | None]]())
        for at, _, _ in whole_batches(data):
            found[-1] += [(each.key, each.value) for each in iterate_records(data, at)]
    return found
