"""A fetch that is recognised is answered as one that is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas import limits
from barnabas.errors import ErrorCode
from barnabas.protocol.codec import decode
from barnabas.protocol.messages import APIS, FIRST_VERSIONS_OF_KAFKA_4
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.server.broker import Broker
from barnabas.server.fetching.request_template import PATIENCE, FetchTemplate
from tests.server.in_process import TOPIC, Client, running
from tests.server.quotas import set_quota_by
from tests.server.wire import Line, framed
from tests.waiting import wait_until

FETCH, LATEST = 1, APIS[1][3]
VERSIONS = range(FIRST_VERSIONS_OF_KAFKA_4[FETCH], LATEST + 1)
FIRST_REPEATED = 5


def request(broker: Broker, offsets: Sequence[int], version: int = LATEST, **fields: Any) -> FetchRequest:
    """Of the first partitions, from these offsets."""
    most = fields.pop("partition_max_bytes", 500)
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=most, current_leader_epoch=-1 + index % 2)
        for index, offset in enumerate(offsets)
    ]
    topic = FetchTopic(topic=TOPIC, topic_id=broker.partitions.topic(TOPIC)[0].topic_id, partitions=partitions)
    if version >= 13:
        topic.topic = ""
    fields = {"max_wait_ms": 5_000, "min_bytes": 1, "max_bytes": 2**20, **fields}
    return FetchRequest(replica_id=-1, topics=[topic], **fields)


def asked(line: Line, version: int, wanted: FetchRequest, correlation_id: int = 7) -> bytes:
    line.socket.sendall(framed((FETCH, version), wanted, correlation_id))
    return line.receive()


def errors(line: Line, wanted: FetchRequest) -> list[int]:
    answer = line.ask((FETCH, LATEST), wanted, FetchResponse)
    return [partition.error_code for topic in answer.responses for partition in topic.partitions]


class Counted:
    """How many requests took the short way, and how many had their answer by it when something had come."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = self.later = 0
        take, answer = FetchTemplate.take, FetchTemplate._answer_of_waiting

        def counting_answer(template: FetchTemplate, *arguments: Any) -> Any:
            found = answer(template, *arguments)
            self.later += found is not None
            return found

        monkeypatch.setattr(FetchTemplate, "_answer_of_waiting", counting_answer)

        def counting(template: FetchTemplate, *arguments: Any) -> tuple[int, int]:
            taken = take(template, *arguments)
            self.taken += taken[0]
            return taken

        monkeypatch.setattr(FetchTemplate, "take", counting)


def run(folder: Path, test: Callable[[Client, Line], None], records: int = 20, **settings: str) -> None:
    """`test`, in a thread, with a broker that has so many records of 100 bytes in each of three partitions."""

    async def with_broker() -> None:
        async with running([folder], **settings) as client:
            await client.create(3, index_interval_bytes="200")
            for _ in range(records):
                for partition in range(3):
                    await client.produce(b"x" * 100, partition)
            with Line(client.broker.endpoints[0].port) as line:
                await asyncio.to_thread(test, client, line)

    asyncio.run(with_broker())


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_a_repeat_has_the_bytes_of_a_first_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation_level: int) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        broker = client.broker
        for version in VERSIONS:
            for bounds in ({}, {"partition_max_bytes": 1}, {"max_bytes": 300}, {"min_bytes": 0}):
                fields = {"isolation_level": isolation_level, **bounds}
                asked(line, version, request(broker, [0, 0, 0], version, **fields))
                before = counted.taken
                for offsets in ([3, 7, 0], [0, 19, 20], [20, 20, 19], [5, 5, 5]):
                    wanted = request(broker, offsets, version, **fields)
                    with Line(broker.endpoints[0].port) as other:
                        assert asked(line, version, wanted) == asked(other, version, wanted), (version, bounds, offsets)
                assert counted.taken - before == (4 if version >= FIRST_REPEATED else 0)

    run(tmp_path, test)


def test_what_waits_and_what_is_wrong_is_answered_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        broker = client.broker
        assert errors(line, request(broker, [0])) == [0]
        assert errors(line, request(broker, [19])) == [0]
        assert errors(line, request(broker, [21])) == [ErrorCode.OFFSET_OUT_OF_RANGE]
        assert errors(line, request(broker, [-1])) == [ErrorCode.OFFSET_OUT_OF_RANGE]
        assert counted.taken == 3
        line.socket.sendall(framed((FETCH, LATEST), request(broker, [20]), 1))
        line.socket.sendall(framed((FETCH, LATEST), request(broker, [0]), 2))
        asyncio.run_coroutine_threadsafe(client.produce(b"news"), broker.loop)
        first, second = line.receive(), line.receive()
        assert (first[:4], second[:4]) == (b"\0\0\0\1", b"\0\0\0\2")
        assert b"news" in first
        assert len(second) > len(first)

    run(tmp_path, test)


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("version", [FIRST_REPEATED, 11, LATEST])
def test_a_repeat_waits_for_records_of_any_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, isolation_level: int
) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        fields = {"isolation_level": isolation_level, "max_wait_ms": 60_000}
        asked(line, version, request(client.broker, [0, 0, 0], version, **fields))
        for round_number in range(3):
            for partition in range(3):
                ends = [20 + round_number + (index < partition) for index in range(3)]
                line.socket.sendall(framed((FETCH, version), request(client.broker, ends, version, **fields), 9))
                wait_until(client.broker.partitions.require(TOPIC, partition)._all_fetch_waiters, "the fetch does not wait")
                told = asyncio.run_coroutine_threadsafe(client.produce(b"n%d" % partition, partition), client.broker.loop)
                assert told.result() == 0
                answer = line.receive()
                assert answer[:4] == b"\0\0\0\x09"
                assert [name in answer for name in (b"n0", b"n1", b"n2")] == [index == partition for index in range(3)]
        assert counted.taken == counted.later == 9

    run(tmp_path, test)


def test_a_repeat_that_waits_hears_that_its_topic_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        wanted = request(client.broker, [20], max_wait_ms=60_000)
        asked(line, LATEST, request(client.broker, [0], max_wait_ms=60_000))
        line.socket.sendall(framed((FETCH, LATEST), wanted))
        wait_until(client.broker.partitions.require(TOPIC, 0)._all_fetch_waiters, "the fetch does not wait")
        asyncio.run_coroutine_threadsafe(client.delete(), client.broker.loop).result()
        answer = decode(FetchResponse, LATEST, memoryview(line.receive()), 5)
        assert [each.error_code for topic in answer.responses for each in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]
        assert (counted.taken, counted.later) == (1, 0)

    run(tmp_path, test)


def test_a_repeat_after_the_topic_was_deleted_finds_nothing(tmp_path: Path) -> None:
    async def with_broker() -> None:
        async with running([tmp_path]) as client:
            await client.create()
            await client.produce(b"x")
            wanted = request(client.broker, [0])
            with Line(client.broker.endpoints[0].port) as line:
                for _ in range(3):
                    assert await client.in_thread(lambda: errors(line, wanted)) == [0]
                await client.delete()
                assert await client.in_thread(lambda: errors(line, wanted)) == [ErrorCode.UNKNOWN_TOPIC_ID]

    asyncio.run(with_broker())


def test_a_request_of_many_bytes_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        size = len(framed((FETCH, LATEST), request(client.broker, [0]))) - 4
        for most, taken in ((size, 1), (size - 1, 0)):
            monkeypatch.setattr(limits, "MAX_REPEATED_FETCH_BYTES", most)
            counted.taken = 0
            with Line(client.broker.endpoints[0].port) as fresh:
                assert [errors(fresh, request(client.broker, [offset])) for offset in (0, 1)] == [[0], [0]]
            assert counted.taken == taken

    run(tmp_path, test)


def test_who_varies_requests_is_not_followed_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        for number in range(PATIENCE):
            assert errors(line, request(client.broker, [0], partition_max_bytes=1000 + number)) == [0]
        for _ in range(3):
            assert errors(line, request(client.broker, [0])) == [0]

    run(tmp_path, test)
    assert counted.taken == 0


def test_a_long_request_is_not_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        wanted = request(client.broker, [0])
        size = len(framed((FETCH, LATEST), wanted)) - 4
        for most, repeated in ((size - 1, 0), (size, 1)):
            monkeypatch.setattr(limits, "MAX_REPEATED_FETCH_BYTES", most)
            for _ in range(2):
                assert errors(line, wanted) == [0]
            assert counted.taken == repeated

    run(tmp_path, test)


def test_sessions_replicas_and_doubled_partitions_are_not_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        broker = client.broker
        session = request(broker, [0], session_epoch=0)
        doubled = request(broker, [0, 0])
        doubled.topics[0].partitions[1].partition = 0
        rack = request(broker, [0])
        rack.rack_id = "r"
        absent = request(broker, [0, 0, 0, 0])
        for wanted in (session, doubled, rack, absent):
            with Line(broker.endpoints[0].port) as other:
                assert len({asked(other, LATEST, wanted)[:4] for _ in range(3)}) == 1
        assert counted.taken == 0

    run(tmp_path, test)


def test_a_quota_that_comes_later_is_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        wanted = request(client.broker, [0], partition_max_bytes=2**20)
        assert [errors(line, wanted) for _ in range(2)] == [[0], [0]]
        with Line(client.broker.endpoints[0].port) as other:
            set_quota_by(other, {"client_id": None}, consumer_byte_rate=100.0)
        assert counted.taken == 1
        waits = [line.ask((FETCH, LATEST), wanted, FetchResponse).throttle_time_ms for _ in range(2)]
        assert counted.taken == 1
        assert waits[1] > 0

    run(tmp_path, test)
