"""The ways to read a table: snapshots, limits, counts, accounts, and libraries that take it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from barnabas.tables import BadRecord, Table, TableError, table
from barnabas.tables.errors import UnknownColumn
from barnabas.tables.formats import Raw
from barnabas.tables.scan import Columns
from barnabas.tables.source import Chunk, Snapshot
from barnabas.testing import Broker
from tests.tables.memory_source import MemorySource
from tests.waiting import wait_until

COLUMNS = Columns(Raw("_key"), Raw("value", pa.string()))
FAR = pa.scalar(2**62, pa.timestamp("s", "UTC"))  # beyond the microseconds of the column
OFFSET, PARTITION, VALUE = (pc.field(name) for name in ("_offset", "_partition", "value"))


class Watched(MemorySource):
    """Counts the chunks that were taken, and the readings that were closed."""

    taken = closed = 0

    def chunks(self, snapshot: Snapshot, partition: int, start: int, end: int) -> Iterator[Chunk]:
        try:
            for chunk in super().chunks(snapshot, partition, start, end):
                self.taken += 1
                yield chunk
        finally:
            self.closed += 1


@pytest.fixture
def source() -> Watched:
    made = Watched("orders", partitions=2, chunk_batches=1)
    for number in range(20):
        made.append(number % 2, [(b"k", f"v{number}".encode())], timestamp_ms=number)
    return made


@pytest.fixture
def orders(source: Watched) -> Table:
    return Table(source, COLUMNS)


def test_a_local_variable_is_a_table_of_duckdb(orders: Table, source: Watched) -> None:
    relation = duckdb.sql("select value from orders where _offset = 1")
    assert relation is not None
    assert relation.fetchall() == [("v2",), ("v3",)]
    source.requests.clear()
    assert duckdb.execute("select value from orders where _offset between 2 and 3 and value like 'v_'").fetchall() == [
        ("v4",), ("v6",), ("v5",), ("v7",)
    ]  # fmt: skip
    assert source.requests == [(0, 2, 4), (1, 2, 4)]


def test_times_without_end(orders: Table) -> None:
    for condition, rows in [("> '-infinity'", 20), ("< 'infinity'", 20), ("> 'infinity'", 0), ("<= '-infinity'", 0)]:
        assert duckdb.execute(f"select count(*) from orders where _timestamp {condition}::timestamptz").fetchall() == [(rows,)]


def test_a_relation_of_duckdb_sees_one_moment(orders: Table, source: Watched) -> None:
    with duckdb.connect() as connection:
        relation = orders.duckdb(connection)
        source.append(0, [(b"k", b"later")])
        assert relation.aggregate("count(*)").fetchall() == [(20,)]
        assert relation.filter("value = 'later'").fetchall() == []
        assert connection.sql("select count(*) from orders").fetchall() == [(21,)]


def test_a_snapshot_stays(orders: Table, source: Watched) -> None:
    before = orders.snapshot()
    source.append(0, [(b"k", b"later")])
    assert (before.count(), before.snapshot().count(), orders.count()) == (20, 20, 21)


def test_a_limit_reads_little_and_closes_the_reading(orders: Table, source: Watched) -> None:
    assert orders.head(3)["value"].to_pylist() == ["v0", "v2", "v4"]
    assert (source.taken, source.closed) == (3, 1)
    assert orders.scan(limit=0).to_table().num_rows == 0
    assert orders.head(2, ["_offset"], OFFSET > 4).to_pydict() == {"_offset": [5, 6]}
    assert orders.scan().head(2).num_rows == 2
    assert orders.head(100).num_rows == 20


def test_duckdb_and_polars_close_a_reading_that_they_end_early(orders: Table, source: Watched) -> None:
    assert len(duckdb.execute("from orders limit 1").fetchall()) == 1
    wait_until(lambda: source.closed == 1)
    assert orders.scan_polars().head(1).collect().height == 1
    assert source.closed == 2
    assert source.taken < 20


def test_counts(orders: Table) -> None:
    assert [orders.scan(limit=most).count_rows() for most in (0, 3, 20, 30)] == [0, 3, 20, 20]
    assert (orders.count(), orders.count(PARTITION == 1), orders.count_rows(VALUE == "v3")) == (20, 10, 1)


def test_an_account_of_a_reading(orders: Table) -> None:
    planned = orders.explain(["value"], (OFFSET >= 8) & (VALUE != "v16"))
    assert (planned.pushed_down, planned.is_exact, planned.rows_decoded) == ("_offset >= 8", False, 0)
    assert (planned.offsets, planned.skipped_offsets) == (20, 16)
    reading = orders.scan(["value"], (OFFSET >= 8) & (VALUE != "v16"))
    reading.to_table()
    lines = str(reading.explain()).splitlines()
    assert lines[:-1] == [
        "table orders",
        "  columns: value",
        '  filter: ((_offset >= 8) and (value != "v16"))',
        "  pushed down: _offset >= 8",
        "  applied to the rows alone: the rest of the filter",
        "  offsets: 4 of 20 to read",
        "    partition 0: 8 to 9",
        "    partition 1: 8 to 9",
    ]
    assert lines[-1].endswith(" bytes, 4 rows decoded, 0 bad records, 3 rows returned")
    assert reading.explain().bytes > 0


@pytest.mark.parametrize(
    ("expression", "pushed"),
    [
        (VALUE == "x", None),
        (OFFSET + 1 == 3, None),
        (pc.field("_key").isin([b"a", b"b"]), None),  # there is no index of keys
        (pc.field("_partition").isin([0, 1]), "_partition in (0, 1)"),
        ((OFFSET < 2) | (OFFSET > 5), "(_offset < 2) or (_offset > 5)"),
        (pc.field("_timestamp") > pa.scalar(0, pa.timestamp("us", "UTC")), "_timestamp > 1970-01-01T00:00:00+00:00"),
        (~OFFSET.is_valid(), "no row"),
    ],
)
def test_the_text_of_a_pushed_condition(orders: Table, expression: pc.Expression, pushed: str | None) -> None:
    assert orders.explain(None, expression).pushed_down == pushed


def test_the_account_of_newest_rows_has_what_both_passes_use(orders: Table) -> None:
    explained = orders.newest_by_key().explain(None, (OFFSET > 5) & (PARTITION == 1))
    assert (explained.pushed_down, explained.is_exact, explained.skipped_offsets) == ("_partition = 1", False, 10)


def test_columns_by_position_and_functions_without_substrait(orders: Table) -> None:
    assert orders.scan(["_offset"], (pc.field(0) == "v7")).to_table().to_pydict() == {"_offset": [3]}
    upper = pc.utf8_upper(VALUE) == "V7"
    assert orders.scan(["_offset"], upper & (OFFSET == 3)).to_table().to_pydict() == {"_offset": [3]}
    assert orders.explain(["_offset"], upper & (OFFSET == 3)).pushed_down == "_offset = 3"


def test_columns_that_only_a_scan_names(orders: Table) -> None:
    found = orders.scan(["_value", "_headers", "_offset", "_offset"], pc.field("_value") == b"v7").to_table()
    assert found.schema.names == ["_value", "_headers", "_offset", "_offset"]
    assert found.num_rows == 1


def test_libraries_take_a_table(orders: Table, tmp_path: Path) -> None:
    expected = orders.arrow()
    assert pa.table(orders) == expected
    frame = pl.from_arrow(orders)
    assert isinstance(frame, pl.DataFrame)
    assert frame.equals(orders.to_polars())
    assert pl.DataFrame(orders).height == orders.to_polars().height == len(orders.to_pandas()) == 20
    assert pl.scan_pyarrow_dataset(orders).filter(pl.col("_offset") > 8).select("value").collect().height == 2
    assert sum(batch.num_rows for batch in orders.to_batches(batch_size=1)) == orders.scanner().count_rows() == 20
    pads.write_dataset(orders.reader(), tmp_path, format="parquet")
    assert pq.read_table(tmp_path).num_rows == 20
    assert orders.scanner(["_offset"]).projected_schema.names == ["_offset"]


def test_an_empty_table(tmp_path: Path) -> None:
    orders = Table(MemorySource("orders"), COLUMNS)
    assert pl.DataFrame(pl.from_arrow(orders)).columns == orders.schema.names
    assert duckdb.execute("select count(*) from orders").fetchall() == [(0,)]
    assert (orders.scan_polars().collect().height, orders.head(1).num_rows, orders.newest_by_key().count()) == (0, 0, 0)


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda it: pads.Scanner.from_dataset(it).to_table(), TableError, "table.reader"),
    (lambda it: it.sort_by("_offset"), TableError, "table.reader"),
    (lambda it: pads.dataset([it, it]).to_table(), TableError, "table.reader"),
    (lambda it: it.filter(OFFSET == 1), TableError, "give the filter to scan"),
    (pickle.dumps, TypeError, "open it again"),
    (copy.copy, TypeError, "open it again"),
    (lambda it: it.scan(["nope"]), UnknownColumn, "no column nope; it has value, _key"),
    (lambda it: it.scan(filter=pc.field("nope") == 1), UnknownColumn, "no column nope"),
    (lambda it: it.scan(filter=VALUE == 1), TableError, "the filter does not fit the table orders"),
    (lambda it: it.scan(filter=pc.field("_timestamp") > FAR), TableError, "the filter does not fit the table orders"),
    (lambda it: it.scan(filter=OFFSET), TableError, "the filter does not fit the table orders"),
    (lambda it: it.scan(filter="_offset = 1"), TableError, "this is a str"),
    (lambda it: it.scan("value"), TableError, "list of names"),
    (lambda it: it.scan({"a": VALUE}), TableError, "list of names"),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_what_a_table_refuses(orders: Table, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(orders)


def test_bad_records(source: Watched) -> None:
    source.append(0, [(b"k", b"\xff")])
    lenient, strict, brief = (Table(source, Columns(COLUMNS.key, COLUMNS.value, mode)) for mode in ("permissive", "fail", "drop"))
    reading = lenient.scan()
    assert reading.to_table()["value"].null_count == 1
    assert reading.explain().bad_records == 1
    assert brief.count() == 20
    with pytest.raises(BadRecord, match="offset 10"):
        strict.arrow()
    with pytest.raises(duckdb.Error, match="offset 10"):
        duckdb.execute("from strict").fetchall()


def test_a_table_of_a_broker() -> None:
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(50):
            producer.produce("orders", key=f"k{number % 3}", value=f"v{number}")
        producer.flush()
        with table("orders", broker.bootstrap_servers, format="text", key="text") as orders:
            assert orders.count() == 50
            assert orders.newest_by_key().count() == 3
            assert duckdb.execute("select count(*) from orders where _key = 'k1'").fetchall() == [(17,)]
            assert orders.head(2).num_rows == 2  # the connection of a reading that ends early is closed
            assert orders.scan_polars().select(pl.len()).collect().item() == 50
