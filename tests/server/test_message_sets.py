"""Clients of the old record formats at a running broker: requests that wait, conversion in a thread, rights and quotas."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka import Consumer, Producer

from barnabas import limits
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from barnabas.protocol.records.batch import Compression, Record, build_batch, read_header
from barnabas.protocol.records.record import assemble
from barnabas.security.acls import Operation, ResourceType
from barnabas.testing import Broker
from tests.differential.older_formats.script import PAIRS, write
from tests.differential.older_formats.sets import GZIP, message, message_set, wrapped
from tests.differential.older_formats.talk import FETCH, PRODUCE, OldLine, text
from tests.retention import NO_RETENTION_CHECKS
from tests.server.authorization.people import ALICE, acl, guarded
from tests.server.in_process import TOPIC, Client, running
from tests.server.quotas import quota_request
from tests.server.wire import NOW_MS
from tests.waiting import until

T = 1_700_000_000_000
FULL = 1 << 20
VERSIONS = range(4)
Answer = TypeVar("Answer")


@pytest.fixture(scope="module", name="broker")
def _broker() -> Iterator[Broker]:
    with Broker(NO_RETENTION_CHECKS) as broker:
        yield broker


@pytest.fixture(name="line")
def _line(broker: Broker) -> Iterator[OldLine]:
    with OldLine(("127.0.0.1", broker.port)) as line:
        yield line


def offsets(answer: Any) -> list[int]:
    return [each[0] for each in answer[0][3]]


def in_transactions(broker: Broker, topic: str) -> None:
    """Records 0 and 1 committed, marker 2, record 3 aborted, marker 4."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    for values, end in ((("a", "b"), producer.commit_transaction), (("c",), producer.abort_transaction)):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(30)
        end(30)


def test_markers_are_not_told_of_and_hold_nobody_up(broker: Broker, line: OldLine) -> None:
    line.create("markers", 1, {})
    in_transactions(broker, "markers")
    for version in VERSIONS:
        # aborted records too: these versions have no transactions
        assert offsets(line.fetch(version, [("markers", 0, 0, FULL)])) == [
            0,
            1,
            3,
        ]
        assert offsets(line.fetch(version, [("markers", 0, 2, FULL)], max_bytes=1)) == [3]
        assert line.fetch(version, [("markers", 0, 4, FULL)], wait_ms=1) == [[0, 0, 5, []]]


def _pairs(told: list[Any]) -> list[tuple[str, str]]:
    """Keys and values of messages, those in wrappers too."""
    return [pair for each in told for pair in (_pairs(each[4]) if isinstance(each[4], list) else [(each[4], each[5])])]


def test_clients_of_every_age_share_a_partition(broker: Broker, line: OldLine) -> None:
    """Old producers write between current ones; a current consumer gets headers and what is committed, an old one
    every record in its form."""
    topic = "shared"
    line.create(topic, 1, {})
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    current = Producer({**settings, "compression.type": "lz4"})
    line.produce(0, topic, [(0, message_set(0, [(b"old", b"0")]))])
    current.produce(topic, b"1", b"current", headers={"h": b"x"})
    assert current.flush(30) == 0
    transactional = Producer({**settings, "transactional.id": topic, "compression.type": "lz4"})
    transactional.init_transactions(30)
    for value, end in ((b"2", transactional.commit_transaction), (b"aborted", transactional.abort_transaction)):
        transactional.begin_transaction()
        transactional.produce(topic, value, b"transactional", headers={"h": b"y"})
        transactional.flush(30)
        end(30)
    line.produce(2, topic, [(0, wrapped(GZIP, 1, message_set(1, [(b"old", b"3")], time=T), time=T))])
    zstd = Producer({**settings, "compression.type": "zstd"})
    zstd.produce(topic, b"4" * 1000, b"zstd", headers={"h": b"z"})
    assert zstd.flush(30) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
    consumer.subscribe([topic])
    found = consumer.consume(5, 30)
    consumer.close()
    assert [(each.key(), each.value(), each.headers()) for each in found] == [
        (b"old", b"0", None),
        (b"current", b"1", [("h", b"x")]),
        (b"transactional", b"2", [("h", b"y")]),
        (b"old", b"3", None),
        (b"zstd", b"4" * 1000, [("h", b"z")]),
    ]
    place = found[-1].offset()
    assert place is not None
    for version in VERSIONS:
        ((_, error, _, told),) = line.fetch(version, [(topic, 0, 0, FULL)])
        assert (error, _pairs(told)) == (
            0,
            [("old", "0"), ("current", "1"), ("transactional", "2"), ("transactional", "aborted"), ("old", "3")],
        )
        ((_, error, _, told),) = line.fetch(version, [(topic, 0, place, FULL)])
        assert (error, told) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, [])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fetch_behind_the_last_record_waits_for_the_next(broker: Broker, line: OldLine, version: int) -> None:
    """Though there is a marker, which is nothing for it."""
    topic = f"waits-{version}"
    line.create(topic, 1, {})
    in_transactions(broker, topic)
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(line.fetch(version, [(topic, 0, 4, FULL)], wait_ms=30_000)))
    waiting.start()
    with OldLine(("127.0.0.1", broker.port)) as other:
        other.produce(2, topic, [(0, message_set(1, PAIRS[:1], time=T))])
        waiting.join(20)
    assert offsets(found[0]) == [5]


def test_a_fetch_that_waits_gets_nothing_in_the_end(line: OldLine) -> None:
    line.create("nothing", 1, {})
    began = time.monotonic()
    assert line.fetch(1, [("nothing", 0, 0, FULL)], wait_ms=200) == [[0, 0, 0, []]]
    assert time.monotonic() - began >= 0.15


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_much_is_converted_by_a_thread(line: OldLine, codec: Compression) -> None:
    """By which pieces of a long log come one after the other, none missing."""
    topic = f"much-{codec}"
    line.create(topic, 1, {})
    records = [Record(0, T, b"k", b"v" * 200) for _ in range(500)]
    write(line, topic, *(build_batch(records, compression=codec) for _ in range(20)))
    for version in VERSIONS:
        position, seen = 0, []
        while position < 10_000:
            messages = line.fetch(version, [(topic, 0, position, 300_000)])[0][3]
            inner = [each for each in messages if each != "cut"]
            if codec:
                inner = [
                    [wrapper[0] - (one_of[-1][0] - one[0])] for wrapper in inner for one_of in [wrapper[4]] for one in one_of
                ]
            got = [each[0] for each in inner if each[0] >= position]
            assert got
            seen += got
            position = got[-1] + 1
        assert seen == list(range(10_000))


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_what_is_produced_behind_a_large_set_is_stored_behind_it(line: OldLine, codec: Compression) -> None:
    """On one connection, though a thread makes the large one a batch, and the others take nothing."""
    topic = f"order-{codec}"
    line.create(topic, 1, {})
    large = message_set(1, [(b"k", b"v" * 100)] * 2000, time=T)
    assert len(large) > limits.MAX_CONVERTED_AT_ONCE
    large = wrapped(GZIP, 1, large) if codec else large
    for index in range(6):
        records = large if index % 2 == 0 else message(1, b"small", b"v", time=T)
        body = struct.pack(">hii", 1, 10_000, 1) + text(topic) + struct.pack(">iii", 1, 0, len(records)) + records
        line.send(PRODUCE, 2, body)
    answers = [struct.unpack_from(">ihq", line.receive(), 4 + 2 + len(topic) + 4) for _ in range(6)]
    assert answers == [(0, 0, base) for base in (0, 2000, 2001, 4001, 4002, 6002)]


def test_a_large_broken_set_without_acks_ends_the_connection(line: OldLine) -> None:
    line.create("unanswered", 1, {})
    line.produce(1, "unanswered", [(0, wrapped(GZIP, 0, message(0, b"k", b"v", crc=1)))], acks=0)
    with pytest.raises(EOFError):
        line.receive()


def test_null_records_are_none(line: OldLine) -> None:
    """Kafka 3.9 fails on them and does not answer."""
    line.create("null", 1, {})
    assert line.produce(2, "null", [(0, None)]) == [[0, 0, -1, -1]]


@pytest.mark.parametrize("api", [PRODUCE, FETCH])
def test_requests_that_are_cut_off_end_the_connection(broker: Broker, api: int) -> None:
    bodies = {PRODUCE: struct.pack(">hii", 1, 100, 1) + text("t"), FETCH: struct.pack(">iiii", -1, 0, 0, 1) + text("t")}
    for rest in (b"", struct.pack(">i", -1), struct.pack(">i", 1 << 30), struct.pack(">i", 1) + b"\0\0"):
        with OldLine(("127.0.0.1", broker.port)) as line:
            line.send(api, 1, bodies[api] + rest)
            with pytest.raises(EOFError):
                line.receive()


def gap(base: int, time_ms: int) -> bytes:
    """A batch of ten offsets of which compaction has left the first two."""
    batch = build_batch([Record(0, time_ms, b"k", b"v")] * 2)
    return assemble(read_header(batch)._replace(base_offset=base, last_offset_delta=9, partition_leader_epoch=0), batch[61:])


async def old(client: Client, ask: Callable[[OldLine], Answer]) -> Answer:
    """The answer to a client on a connection of its own."""

    def asked() -> Answer:
        with OldLine(("127.0.0.1", client.broker.endpoints[0].port)) as line:
            return ask(line)

    return await client.in_thread(asked)


async def test_a_reader_gets_past_what_compaction_has_taken(tmp_path: Path) -> None:
    async with running([tmp_path]) as client:
        await client.create()
        partition = client.broker.partitions.require(TOPIC, 0)
        partition.log.appender.append_as_follower(gap(0, NOW_MS), now_ms=NOW_MS)
        await client.produce(b"last")
        found = await old(client, lambda line: [line.fetch(version, [(TOPIC, 0, 5, 100)]) for version in VERSIONS])
        assert [offsets(each) for each in found] == [[10]] * 4
        partition.log.appender.append_as_follower(gap(11, NOW_MS), now_ms=NOW_MS)
        partition._advance(21, 0)
        began = time.monotonic()
        assert await old(client, lambda line: line.fetch(3, [(TOPIC, 0, 15, FULL)], wait_ms=200)) == [[0, 0, 21, []]]
        assert time.monotonic() - began >= 0.15  # otherwise the client would ask again without a pause


async def test_partitions_that_are_asked_for_together_have_their_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CONVERTED_BYTES", 1000)
    async with running([tmp_path]) as client:
        await client.create(partitions=3)
        for index in range(3):
            await client.produce(b"v" * 900, index)

        def ask(line: OldLine) -> set[int]:
            seen = set()
            for correlation_id in range(3):
                wanted = [(TOPIC, index, 0, FULL) for index in range(3)]
                seen |= {each[0] for each in line.fetch(1, wanted, correlation_id=correlation_id) if each[3]}
            return seen

        assert await old(client, ask) == {0, 1, 2}


async def test_rights_are_asked_of_old_clients_too(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        await people.admin.create()
        broker, in_thread = people.admin.broker, people.admin.in_thread
        known = set(broker.connections)
        alice = await in_thread(lambda: OldLine(("127.0.0.1", broker.endpoints[0].port)))
        await until(lambda: bool(set(broker.connections) - known))
        for connection in set(broker.connections) - known:
            connection.principal = ALICE

        def produce(line: OldLine) -> Any:
            return line.produce(1, TOPIC, [(0, message_set(0, PAIRS))])

        def fetch(line: OldLine) -> Any:
            return line.fetch(1, [(TOPIC, 0, 0, FULL)])

        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with alice:
            assert await in_thread(lambda: produce(alice)) == [[0, refused, -1]]
            assert await in_thread(lambda: fetch(alice)) == [[0, refused, -1, []]]
            await people.allow(acl(ResourceType.TOPIC, TOPIC, Operation.WRITE), acl(ResourceType.TOPIC, TOPIC, Operation.READ))
            assert await in_thread(lambda: produce(alice)) == [[0, 0, 0]]
            assert offsets(await in_thread(lambda: fetch(alice))) == [0, 1, 2, 3, 4]


async def test_quotas_hold_for_old_clients_too(tmp_path: Path) -> None:
    async with running([tmp_path]) as client:
        await client.create()
        rates = quota_request({"client_id": "old"}, producer_byte_rate=500.0, consumer_byte_rate=100.0)
        await client.ask((49, 1), rates, AlterClientQuotasResponse)
        records = message_set(0, [(b"k", b"v" * 1000)] * 10)

        def produce(line: OldLine) -> int:
            body = struct.pack(">hii", 1, 100, 1) + text(TOPIC) + struct.pack(">iii", 1, 0, len(records)) + records
            line.send(PRODUCE, 1, body)
            return int.from_bytes(line.receive()[-4:], "big")

        def fetch(line: OldLine) -> int:
            line.send(FETCH, 1, struct.pack(">iiii", -1, 0, 0, 1) + text(TOPIC) + struct.pack(">iiqi", 1, 0, 0, FULL))
            return int.from_bytes(line.receive()[:4], "big")

        assert await old(client, produce) > 0
        assert await old(client, fetch) == 0
        assert await old(client, fetch) > 0
