"""SQL text over a table: an error of the table reaches the caller as it is, also from inside DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.errors import TimedOut
from barnabas.tables import BadRecord, Table, TableError
from barnabas.tables.column_types import json_field
from barnabas.tables.formats import Raw
from barnabas.tables.query import BadText, Query
from barnabas.tables.scalar_format import ScalarFormat
from barnabas.tables.scan import Columns
from barnabas.tables.source import Chunk, Snapshot
from tests.tables.memory_source import MemorySource


class FailingSource(MemorySource):
    """A topic whose broker falls silent, at the snapshot or after the first chunk."""

    fails_at = ""

    def snapshot(self) -> Snapshot:
        if self.fails_at == "snapshot":
            raise TimedOut("metadata", 3)
        return super().snapshot()

    def chunks(self, snapshot: Snapshot, partition: int, start: int, end: int) -> Iterator[Chunk]:
        for chunk in super().chunks(snapshot, partition, start, end):
            yield chunk
            if self.fails_at == "chunk":
                raise TimedOut("records", 3)


def made(fails_at: str = "") -> FailingSource:
    source = FailingSource("orders")
    for number in range(50):
        source.append(0, [(b"k%d" % number, b"v")])
    source.fails_at = fails_at
    return source


@pytest.mark.parametrize("where", [None, "_offset >= 0", "value = 'v'::blob"])
@pytest.mark.parametrize(("fails_at", "what"), [("snapshot", "metadata"), ("chunk", "records")])
def test_a_broker_that_falls_silent_is_told_in_one_line(where: str | None, fails_at: str, what: str) -> None:
    table = Table(made(fails_at), Columns(Raw("_key"), Raw("value")))
    with pytest.raises(TimedOut) as raised, Query(table, None, where) as query:
        list(query.batches())
    assert str(raised.value) == f"no {what} within 3 ms"


@pytest.mark.parametrize("where", [None, "_offset >= 0", "value = 'v'"])
def test_a_bad_record_is_named(where: str | None) -> None:
    table = Table(made(), Columns(Raw("_key"), ScalarFormat(json_field("value")), "fail"))
    with pytest.raises(BadRecord) as raised, Query(table, None, where) as query:
        list(query.batches())
    assert (raised.value.partition, raised.value.offset) == (0, 0)


def test_an_error_of_duckdb_has_one_line() -> None:
    table = Table(made(), Columns(Raw("_key"), Raw("value")))
    with pytest.raises(TableError, match=r"^[^\n]*Conversion[^\n]*$"), Query(table, "cast(value::varchar as int)") as query:
        list(query.batches())
    with pytest.raises(BadText) as raised:
        Query(table, None, "nothing = 1")
    assert raised.value.part == "where"
