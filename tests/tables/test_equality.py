"""A scan gives the rows of a read_committed consumer, whatever was written, aborted, left open, deleted, rolled and compacted before.

Compaction runs meanwhile. It only takes rows away, so a scan lies between the consumer's rows before it and after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from operator import eq, ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from barnabas.client.config import ClientConfig
from barnabas.tables import Table
from barnabas.tables.client_source import ClientSource
from barnabas.tables.folder_source import FolderSource
from barnabas.tables.formats import Raw
from barnabas.tables.predicate import Among, Comparison, Every, Predicate, Some, Unknown
from barnabas.tables.scan import Columns
from barnabas.tables.source import TopicSource
from barnabas.testing import Broker
from tests.retention import NO_RETENTION_CHECKS
from tests.tables.consumer import CommittedConsumer, ConsumedRow
from tests.tables.writing import BrokerWriter, Pair, Producer

PARTITIONS = 2
SETTINGS: dict[str, str | int | bool] = {
    **NO_RETENTION_CHECKS,
    "log.cleaner.backoff.ms": 20,
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.delete.retention.ms": 0,
    "log.segment.delete.delay.ms": 0,
}
NAMES = count()
RECORDS = st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.binary(max_size=40)), min_size=1, max_size=4)
PARTITION = st.integers(0, PARTITIONS - 1)
TIMES = st.integers(0, 60)
COMPARED = st.one_of(
    st.builds(Comparison, st.just("_partition"), st.sampled_from(["=", "<", "<=", ">", ">="]), st.integers(-1, PARTITIONS)),
    st.builds(Comparison, st.just("_offset"), st.sampled_from(["=", "<", "<=", ">", ">="]), st.integers(-1, 60)),
    st.builds(
        Comparison, st.just("_timestamp"), st.sampled_from(["=", "<", "<=", ">", ">="]), TIMES.map(lambda each: each * 1000 + 500)
    ),
    st.builds(
        Comparison, st.just("_timestamp"), st.sampled_from(["=", "<", "<=", ">", ">="]), TIMES.map(lambda each: each * 1000)
    ),
    st.builds(Comparison, st.just("_key"), st.just("="), st.sampled_from([b"a", b"b", b"z"])),
    st.builds(Among, st.just("_offset"), st.tuples(st.integers(0, 50), st.integers(0, 50))),
    st.just(Unknown()),
)
PREDICATES = st.recursive(
    COMPARED,
    lambda part: st.one_of(
        st.builds(Every, st.tuples(part, part)), st.builds(Some, st.tuples(part, part)), st.builds(Some, st.tuples(part))
    ),
    max_leaves=4,
)
OPERATORS = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


def holds(predicate: Predicate, row: dict[str, Any]) -> bool:
    """Whether the whole filter is true; an unknown part is one that looks at the value's length."""
    match predicate:
        case Comparison(column, op, value):
            return bool(OPERATORS[op](row[column], value))
        case Among(column, values):
            return row[column] in values
        case Every(parts):
            return all(holds(each, row) for each in parts)
        case Some(parts):
            return any(holds(each, row) for each in parts)
        case _:
            return len(row["value"]) % 2 == 0


def rows_of(table: Table, predicate: Predicate | None = None) -> list[dict[str, Any]]:
    rows = []
    for batch in table.read(["value", "_key", "_partition", "_offset", "_timestamp"], predicate).batches():
        for row in batch.to_pylist():
            row["_timestamp"] = row["_timestamp"].timestamp() * 1_000_000
            rows.append(row)
    return rows


class Logs(RuleBasedStateMachine):
    """Topics of one broker; each example has a topic of its own."""

    broker: Broker
    writer: BrokerWriter
    consumer: CommittedConsumer

    def __init__(self) -> None:
        super().__init__()
        self._ends = ExitStack()
        self.topic = f"logs-{next(NAMES)}"
        self.transactions: dict[int, Producer] = {}

    @initialize(compacts=st.booleans(), segment_bytes=st.sampled_from([300, 2_000]))
    def create(self, compacts: bool, segment_bytes: int) -> None:
        policy = "compact,delete" if compacts else "delete"
        self.writer.create(
            self.topic, PARTITIONS, cleanup_policy=policy, internal_segment_bytes=str(segment_bytes), index_interval_bytes="1"
        )
        config = ClientConfig.from_options({"bootstrap.servers": self.broker.bootstrap_servers})
        self.sources: list[TopicSource] = [ClientSource(self.topic, config), FolderSource(self.topic, self.broker.data_dir)]
        for source in self.sources:
            self._ends.callback(source.close)
        self.idempotent = self.writer.idempotent()

    def teardown(self) -> None:
        for producer in self.transactions.values():
            producer.end(commit=False)  # an open transaction would hold compaction up for the examples that follow
        self._ends.close()

    @rule(partition=PARTITION, records=RECORDS, time=TIMES, codec=st.sampled_from([0, 0, 1, 4]))
    def write(self, partition: int, records: list[Pair], time: int, codec: int) -> None:
        self.writer.append(self.topic, partition, records, timestamp_ms=time, compression=codec)

    @rule(partition=PARTITION, records=RECORDS, time=TIMES)
    def write_idempotent(self, partition: int, records: list[Pair], time: int) -> None:
        self.idempotent.append(self.topic, partition, records, timestamp_ms=time)

    @rule(name=st.integers(0, 2), partition=PARTITION, records=RECORDS, time=TIMES)
    def write_in_transaction(self, name: int, partition: int, records: list[Pair], time: int) -> None:
        if name not in self.transactions:
            self.transactions[name] = self.writer.transaction()
        self.transactions[name].append(self.topic, partition, records, timestamp_ms=time)

    @rule(name=st.integers(0, 2), commit=st.booleans())
    def end_transaction(self, name: int, commit: bool) -> None:
        if name in self.transactions:
            self.transactions[name].end(commit=commit)

    @rule(partition=PARTITION, share=st.floats(0, 1))
    def delete_records(self, partition: int, share: float) -> None:
        start, end = self.writer.earliest(self.topic, partition), self.writer.last_stable(self.topic, partition)
        self.writer.delete_records(self.topic, partition, start + int((end - start) * share))

    def consumed(self, source: TopicSource) -> dict[int, list[ConsumedRow]]:
        bounds = source.snapshot().partitions
        return {each: self.consumer.read(self.topic, each, *bounds[each]) for each in bounds}

    @rule(predicate=PREDICATES)
    def compare(self, predicate: Predicate) -> None:
        for source in (*self.sources, FolderSource(self.topic, self.broker.data_dir)):
            before = self.consumed(source)
            snapshot = source.snapshot()
            table = Table(source, Columns(Raw("_key"), Raw("value")), snapshot)
            every = rows_of(table)
            assert rows_of(table, Some()) == []
            after = self.consumed(source)
            for partition, bounds in snapshot.partitions.items():
                found = [
                    ConsumedRow(row["_offset"], row["_timestamp"] // 1000, row["_key"], row["value"])
                    for row in every
                    if row["_partition"] == partition
                ]
                if before[partition] == after[partition]:
                    assert found == before[partition]
                else:
                    assert set(after[partition]) <= set(found) <= set(before[partition])
                assert [each.offset for each in found] == sorted({each.offset for each in found})
                assert bounds.end == self.writer.last_stable(self.topic, partition)
            filtered = [row for row in every if holds(predicate, row)]
            pushed = [row for row in rows_of(table, predicate) if holds(predicate, row)]
            counted = table.count()
            if before == after == self.consumed(source):
                assert pushed == filtered
                assert counted == len(every)

    @rule(time=TIMES)
    def compare_times(self, time: int) -> None:
        before = self.listed(time)
        for source in self.sources:
            snapshot = source.snapshot()
            found = source.offsets_from(snapshot, time)
            for partition, bounds in snapshot.partitions.items():
                possible = {before[partition], self.listed(time)[partition]}
                clamped = {bounds.end if each < 0 else min(max(each, bounds.start), bounds.end) for each in possible}
                assert min(clamped) <= found[partition] <= max(clamped)

    def listed(self, time: int) -> list[int]:
        return [self.writer.first_from(self.topic, each, time) for each in range(PARTITIONS)]


@pytest.fixture(scope="module")
def machine() -> Iterator[type[Logs]]:
    with Broker(SETTINGS) as broker, ExitStack() as ends:
        Logs.broker = broker
        Logs.writer = BrokerWriter(broker.bootstrap_servers)
        ends.callback(Logs.writer.close)
        Logs.consumer = CommittedConsumer(broker.bootstrap_servers)
        ends.callback(Logs.consumer.close)
        yield Logs


def test_scans_equal_a_consumer(machine: type[Logs]) -> None:
    """Without shrinking: a broker takes time, and compaction runs when it likes."""
    run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=25, phases=[Phase.generate]))
