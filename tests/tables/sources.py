"""The conformance suite of `TopicSource`: subclass `SourceConformance` in a test and give it a `house` fixture.

class TestMySource(SourceConformance):
    @pytest.fixture
    def house(self) -> House: ...
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

import pytest

from barnabas.columnar.decode import RecordDecoder
from barnabas.protocol.records.batch_header import read_header, split_batches
from barnabas.protocol.records.record import Record
from barnabas.tables import TableError
from barnabas.tables.source import Bounds, Snapshot, TopicSource
from tests.tables.writing import Pair

LARGE = b"x" * 60_000


class Transaction(Protocol):
    """A producer with a transaction."""

    def append(self, topic: str, partition: int, records: Sequence[Record | Pair], *, timestamp_ms: int = 0) -> int: ...

    def end(self, *, commit: bool) -> None: ...


class House(Protocol):
    """Topics to write to, and sources that read them."""

    def source(self, topic: str) -> TopicSource: ...

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None: ...

    def append(self, topic: str, partition: int, records: Sequence[Record | Pair], *, timestamp_ms: int = 0) -> int: ...

    def transaction(self) -> Transaction: ...

    def delete_records(self, topic: str, partition: int, before: int) -> None: ...

    def delete_topic(self, topic: str) -> None: ...


class Row(NamedTuple):
    """A record that a source gave."""

    offset: int
    value: bytes | None


def rows_of(
    source: TopicSource, snapshot: Snapshot, partition: int = 0, start: int | None = None, end: int | None = None
) -> list[Row]:
    """The rows of a partition, decoded as a scan does."""
    bounds = snapshot.partitions[partition]
    start, end = bounds.start if start is None else start, bounds.end if end is None else end
    decoder = RecordDecoder(source.topic, partition)
    rows: list[Row] = []
    for chunk in source.chunks(snapshot, partition, start, end):
        for batch in decoder.decode(chunk.records, start, end, chunk.aborted):
            rows += [Row(each["offset"], each["value"]) for each in batch.select(["offset", "value"]).to_pylist()]
    return rows


def old_rows(source: TopicSource, snapshot: Snapshot) -> list[Row] | None:
    """The rows of a snapshot of a topic that was deleted; None if the source says so."""
    try:
        return rows_of(source, snapshot)
    except TableError as error:
        if "was deleted" in str(error):
            return None
        raise


def values(*texts: str) -> list[Record | Pair]:
    """Records without keys."""
    return [(None, text.encode()) for text in texts]


class SourceConformance:
    """The tests. Each uses topics of its own."""

    def test_a_topic_that_does_not_exist_is_an_error(self, house: House) -> None:
        with closing(house.source("nowhere")) as source, pytest.raises(TableError, match="there is no topic nowhere"):
            source.snapshot()

    def test_an_empty_topic_has_empty_bounds(self, house: House) -> None:
        house.create("empty", 2)
        with closing(house.source("empty")) as source:
            snapshot = source.snapshot()
            assert (snapshot.topic, dict(snapshot.partitions)) == ("empty", {0: Bounds(0, 0), 1: Bounds(0, 0)})
            assert list(source.chunks(snapshot, 1, 0, 0)) == []
            assert dict(source.offsets_from(snapshot, 5)) == {0: 0, 1: 0}

    def test_records_come_in_the_order_of_offsets(self, house: House) -> None:
        house.create("ordered", 2)
        house.append("ordered", 0, values("a", "b"))
        house.append("ordered", 1, values("c"))
        house.append("ordered", 0, values("d"))
        with closing(house.source("ordered")) as source:
            snapshot = source.snapshot()
            assert dict(snapshot.partitions) == {0: Bounds(0, 3), 1: Bounds(0, 1)}
            assert rows_of(source, snapshot, 0) == [Row(0, b"a"), Row(1, b"b"), Row(2, b"d")]
            assert rows_of(source, snapshot, 1) == [Row(0, b"c")]

    def test_bounds_may_cut_a_batch(self, house: House) -> None:
        house.create("cut")
        for first in range(0, 12, 3):
            house.append("cut", 0, values(*(str(first + each) for each in range(3))))
        with closing(house.source("cut")) as source:
            snapshot = source.snapshot()
            for start in range(13):
                for end in range(start, 13):
                    expected = [Row(each, str(each).encode()) for each in range(start, end)]
                    assert rows_of(source, snapshot, 0, start, end) == expected

    def test_chunks_are_whole_batches_in_order(self, house: House) -> None:
        house.create("chunks")
        for number in range(40):
            house.append("chunks", 0, [(b"%d" % number, LARGE)])
        with closing(house.source("chunks")) as source:
            snapshot = source.snapshot()
            offsets: list[int] = []
            for chunk in source.chunks(snapshot, 0, 5, 35):
                batches = split_batches(chunk.records, allow_partial=True)
                offsets += [header.base_offset for _, header in batches]
            assert [each for each in offsets if 5 <= each < 35] == list(range(5, 35))
            assert offsets == sorted(set(offsets))

    def test_a_snapshot_does_not_grow(self, house: House) -> None:
        house.create("growing")
        house.append("growing", 0, values("a"))
        with closing(house.source("growing")) as source:
            before = source.snapshot()
            house.append("growing", 0, values("b"))
            assert rows_of(source, before) == [Row(0, b"a")]
            after = source.snapshot()
            assert rows_of(source, after) == [Row(0, b"a"), Row(1, b"b")]
            assert rows_of(source, before) == [Row(0, b"a")]

    def test_a_committed_transaction_is_read_and_its_marker_is_no_row(self, house: House) -> None:
        house.create("committed")
        transaction = house.transaction()
        transaction.append("committed", 0, values("a", "b"))
        transaction.end(commit=True)
        house.append("committed", 0, values("c"))
        with closing(house.source("committed")) as source:
            snapshot = source.snapshot()
            assert snapshot.partitions[0] == Bounds(0, 4)
            assert rows_of(source, snapshot) == [Row(0, b"a"), Row(1, b"b"), Row(3, b"c")]

    def test_an_aborted_transaction_is_left_out_wherever_the_reading_begins(self, house: House) -> None:
        house.create("aborted")
        house.append("aborted", 0, values("a"))
        transaction = house.transaction()
        transaction.append("aborted", 0, values("no"))
        house.append("aborted", 0, values("b"))
        transaction.append("aborted", 0, values("no", "no"))
        transaction.end(commit=False)
        transaction.append("aborted", 0, values("c"))
        transaction.end(commit=True)
        with closing(house.source("aborted")) as source:
            snapshot = source.snapshot()
            visible = [Row(0, b"a"), Row(2, b"b"), Row(6, b"c")]
            for start in range(8):
                assert rows_of(source, snapshot, 0, start) == [each for each in visible if each.offset >= start]

    def test_an_open_transaction_ends_the_snapshot(self, house: House) -> None:
        house.create("open", 2)
        house.append("open", 0, values("a"))
        transaction = house.transaction()
        transaction.append("open", 0, values("later"))
        house.append("open", 0, values("behind"))
        house.append("open", 1, values("other"))
        with closing(house.source("open")) as source:
            during = source.snapshot()
            assert dict(during.partitions) == {0: Bounds(0, 1), 1: Bounds(0, 1)}
            assert rows_of(source, during) == [Row(0, b"a")]
            transaction.end(commit=True)
            after = source.snapshot()
            assert after.partitions[0] == Bounds(0, 4)
            assert rows_of(source, after) == [Row(0, b"a"), Row(1, b"later"), Row(2, b"behind")]

    def test_overlapping_transactions(self, house: House) -> None:
        house.create("overlapping")
        one, other, third = house.transaction(), house.transaction(), house.transaction()
        one.append("overlapping", 0, values("one"))
        other.append("overlapping", 0, values("other"))
        third.append("overlapping", 0, values("third"))
        one.append("overlapping", 0, values("one"))
        with closing(house.source("overlapping")) as source:
            assert source.snapshot().partitions[0] == Bounds(0, 0)
            one.end(commit=False)
            assert source.snapshot().partitions[0] == Bounds(0, 1)
            other.end(commit=True)
            assert source.snapshot().partitions[0] == Bounds(0, 2)
            third.end(commit=False)
            snapshot = source.snapshot()
            assert snapshot.partitions[0] == Bounds(0, 7)
            assert rows_of(source, snapshot) == [Row(1, b"other")]

    def test_deleted_records_are_gone_and_no_error(self, house: House) -> None:
        house.create("deleted")
        for number in range(6):
            house.append("deleted", 0, values(str(number)))
        with closing(house.source("deleted")) as source:
            before = source.snapshot()
            house.delete_records("deleted", 0, 4)
            after = source.snapshot()
            assert after.partitions[0] == Bounds(4, 6)
            assert rows_of(source, after) == [Row(4, b"4"), Row(5, b"5")]
            assert rows_of(source, before)[-2:] == [Row(4, b"4"), Row(5, b"5")]

    def test_a_start_within_a_batch(self, house: House) -> None:
        house.create("within")
        house.append("within", 0, values("a", "b", "c"))
        house.delete_records("within", 0, 2)
        with closing(house.source("within")) as source:
            snapshot = source.snapshot()
            assert snapshot.partitions[0] == Bounds(2, 3)
            assert rows_of(source, snapshot) == [Row(2, b"c")]

    def test_offsets_by_time(self, house: House) -> None:
        house.create("times")
        for timestamp in (10, 20, 15, 40):
            house.append("times", 0, values("a"), timestamp_ms=timestamp)
        house.append("times", 0, [Record(0, 60, None, b"x"), Record(0, 50, None, b"y"), Record(0, 70, None, b"z")])
        with closing(house.source("times")) as source:
            snapshot = source.snapshot()
            expected = {-5: 0, 0: 0, 10: 0, 11: 1, 16: 1, 21: 3, 40: 3, 41: 4, 60: 4, 61: 6, 70: 6, 71: 7}
            assert {each: source.offsets_from(snapshot, each)[0] for each in expected} == expected

    def test_times_do_not_pass_the_snapshot(self, house: House) -> None:
        house.create("late")
        house.append("late", 0, values("a"), timestamp_ms=10)
        with closing(house.source("late")) as source:
            snapshot = source.snapshot()
            house.append("late", 0, values("b"), timestamp_ms=20)
            assert source.offsets_from(snapshot, 15)[0] == 1
            assert source.offsets_from(source.snapshot(), 15)[0] == 1
            house.delete_records("late", 0, 2)
            assert source.offsets_from(source.snapshot(), 5)[0] == 2

    def test_a_later_topic_of_the_name_gives_no_records_to_an_earlier_snapshot(self, house: House) -> None:
        house.create("again")
        house.append("again", 0, values("old"))
        with closing(house.source("again")) as source:
            before = source.snapshot()
            house.delete_topic("again")
            house.create("again")
            house.append("again", 0, values("new"))
            after = source.snapshot()
            assert before.topic_id != after.topic_id
            assert old_rows(source, before) in ([Row(0, b"old")], None)
            assert rows_of(source, after) == [Row(0, b"new")]

    def test_the_topic_id_stays(self, house: House) -> None:
        house.create("id")
        with closing(house.source("id")) as one, closing(house.source("id")) as other:
            assert one.snapshot().topic_id == other.snapshot().topic_id != ""

    def test_leader_epochs_end_where_their_records_end(self, house: House) -> None:
        house.create("epochs")
        house.append("epochs", 0, values("a", "b"))
        with closing(house.source("epochs")) as source:
            snapshot = source.snapshot()
            for partition, epoch in snapshot.epochs.items():
                assert source.end_of_epoch(partition, epoch) == 2
                assert source.end_of_epoch(partition, epoch + 5) == -1

    def test_scans_take_turns(self, house: House) -> None:
        house.create("turns")
        for number in range(10):
            house.append("turns", 0, values(str(number)))
        with closing(house.source("turns")) as source:
            snapshot = source.snapshot()
            one, other = source.chunks(snapshot, 0, 0, 10), source.chunks(snapshot, 0, 3, 10)
            assert read_header(next(one).records).base_offset == 0
            assert read_header(next(other).records).base_offset == 3
            for iterator in (one, other):
                iterator.close()  # type: ignore[attr-defined]  # all sources' iterators are generators
            assert len(rows_of(source, snapshot)) == 10

    def test_threads_read_at_the_same_time(self, house: House) -> None:
        house.create("threads", 4)
        for partition in range(4):
            for number in range(20):
                house.append("threads", partition, values(f"{partition}-{number}"))
        with closing(house.source("threads")) as source:
            snapshot = source.snapshot()
            found: dict[int, list[Row]] = {}
            threads = [
                threading.Thread(target=lambda each=each: found.update({each: rows_of(source, snapshot, each)}))
                for each in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert found == {each: [Row(at, f"{each}-{at}".encode()) for at in range(20)] for each in range(4)}

    def test_closing_twice_is_safe(self, house: House) -> None:
        house.create("closed")
        source = house.source("closed")
        source.snapshot()
        source.close()
        source.close()
