"""The region for a consumer's next fetch is found in advance, and equals the region that the fetch would find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.fetch import Copied
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.server.broker import Broker
from barnabas.server.fetching import read_ahead
from barnabas.server.fetching.read_ahead import ReadAhead, Readers
from barnabas.storage.file_region import FileRegion
from barnabas.storage.integrity import SegmentIntegrity
from tests.server.fetching.test_request_template import FETCH, LATEST, asked, errors, request
from tests.server.fetching.test_session_template import Session, wanted
from tests.server.in_process import TOPIC, Client, running
from tests.server.wire import Line, framed
from tests.storage.support import FILES
from tests.waiting import wait_until

VALUE = b"x" * 5_000
RECORDS = 60
PULL = 40_000  # bytes; eight records
EVER = 1e9


class Counted:
    """How often something was looked for, found by a request, and read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looked = self.taken = self.copied = 0
        look, take = ReadAhead._look, ReadAhead.take

        def counting_look(reader: ReadAhead, broker: Broker, isolation_level: int) -> None:
            look(reader, broker, isolation_level)
            self.looked += 1

        def counting_take(reader: ReadAhead, *arguments: Any) -> object:
            found = take(reader, *arguments)
            self.taken += found is not None
            self.copied += found is not None and isinstance(found[1], Copied)
            return found

        monkeypatch.setattr(ReadAhead, "_look", counting_look)
        monkeypatch.setattr(ReadAhead, "take", counting_take)

    def has_looked_since(self, before: int) -> bool:
        return self.looked > before


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Every repeated request counts as quick, and found data never expires."""
    monkeypatch.setattr(read_ahead, "QUICK_S", EVER)
    monkeypatch.setattr(read_ahead, "GOOD_FOR_S", EVER)
    monkeypatch.setattr(read_ahead, "ALONE_AFTER_S", 0.0)
    return Counted(monkeypatch)


def run(folder: Path, test: Callable[[Client, Line], None]) -> None:
    """`test`, in a thread, with a broker that has records in three partitions."""

    async def with_broker() -> None:
        async with running([folder]) as client:
            await client.create(3, index_interval_bytes="6000")
            for _ in range(RECORDS):
                for partition in range(3):
                    await client.produce(VALUE, partition)
            with Line(client.broker.endpoints[0].port) as line:
                await asyncio.to_thread(test, client, line)

    asyncio.run(with_broker())


def pull(client: Client, line: Line, counted: Counted, *offsets: int, **fields: Any) -> bytes:
    """The answer to a consumer, equal to that of a first-time consumer. The broker has looked for its next request by then."""
    looked = counted.looked
    what = request(client.broker, offsets, partition_max_bytes=PULL, **fields)
    answer = asked(line, LATEST, what)
    with Line(client.broker.endpoints[0].port) as other:
        assert answer == asked(other, LATEST, what)
    if len(answer) > PULL // 2 and looked:
        wait_until(partial(counted.has_looked_since, looked))
    return answer


def started(client: Client, line: Line, counted: Counted, *offsets: int, **fields: Any) -> None:
    """A consumer whose second request was answered, so that the third is looked for."""
    for _ in range(2):
        asked(line, LATEST, request(client.broker, offsets, partition_max_bytes=PULL, **fields))
    wait_until(lambda: counted.looked == 1)


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_consumer_in_order_has_all_of_it_found(tmp_path: Path, counted: Counted, partitions: int, isolation_level: int) -> None:
    def test(client: Client, line: Line) -> None:
        fields = {"isolation_level": isolation_level}
        started(client, line, counted, *[0] * partitions, **fields)
        for offset in range(7, RECORDS, 7):
            pull(client, line, counted, *[offset] * partitions, **fields)

    run(tmp_path, test)
    pulls = RECORDS // 7
    assert counted.taken >= (pulls - 3) * partitions, "but at the ends of a segment and of the log"
    assert counted.copied == (counted.taken if partitions == 1 else 0)


def test_what_is_not_asked_for_is_not_given(tmp_path: Path, counted: Counted) -> None:
    def test(client: Client, line: Line) -> None:
        started(client, line, counted, 0)
        for offset in (3, 20, 10, 0):
            pull(client, line, counted, offset)

    run(tmp_path, test)
    assert not counted.taken


def test_what_was_found_under_another_isolation_level_is_not_given(tmp_path: Path, counted: Counted) -> None:
    def test(client: Client, line: Line) -> None:
        started(client, line, counted, 0)
        for _ in range(2):  # the broker parses the first and recognises the second
            asked(line, LATEST, request(client.broker, [7], partition_max_bytes=PULL, isolation_level=1))
        wait_until(partial(counted.has_looked_since, 1), "the second one is not recognised")

    run(tmp_path, test)
    assert not counted.taken


@pytest.mark.parametrize("change", [{"isolation_level": 1}, {"max_wait_ms": 1}])
def test_what_was_found_for_a_session_is_not_given_after_a_request_of_another_kind(
    tmp_path: Path, counted: Counted, change: dict[str, int]
) -> None:
    def test(client: Client, line: Line) -> None:
        session = Session(client.broker, LATEST, line)
        for offset in (0, 0, 0):
            session.ask([wanted(0, offset, partition_max_bytes=PULL)])
        wait_until(lambda: counted.looked == 1)
        session.change(**change)
        for _ in range(2):
            session.ask([wanted(0, 7, partition_max_bytes=PULL)])

    run(tmp_path, test)
    assert not counted.taken


def test_what_was_deleted_is_not_given(tmp_path: Path, counted: Counted) -> None:
    def test(client: Client, line: Line) -> None:
        started(client, line, counted, 0)
        topic = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=9)])
        with Line(client.broker.endpoints[0].port) as other:
            answer = other.ask((21, 2), DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), DeleteRecordsResponse)
        assert answer.topics[0].partitions[0].error_code == 0
        assert errors(line, request(client.broker, [7], partition_max_bytes=PULL)) == [ErrorCode.OFFSET_OUT_OF_RANGE]

    run(tmp_path, test)


def test_who_is_slow_has_nothing_looked_for(tmp_path: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    def test(client: Client, line: Line) -> None:
        monkeypatch.setattr(read_ahead, "QUICK_S", -1.0)
        for offset in range(0, 28, 7):
            pull(client, line, counted, offset)

    run(tmp_path, test)
    assert not counted.looked


def test_what_was_found_long_ago_is_looked_for_again(tmp_path: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    def test(client: Client, line: Line) -> None:
        started(client, line, counted, 0)
        monkeypatch.setattr(read_ahead, "GOOD_FOR_S", -1.0)
        pull(client, line, counted, 7)

    run(tmp_path, test)
    assert not counted.taken


def test_requests_that_come_together_are_not_looked_for(tmp_path: Path, counted: Counted) -> None:
    def test(client: Client, line: Line) -> None:
        asked(line, LATEST, request(client.broker, [0], partition_max_bytes=PULL))
        frames = [framed((FETCH, LATEST), request(client.broker, [offset], partition_max_bytes=PULL), 7) for offset in (0, 7, 14)]
        line.socket.sendall(b"".join(frames))
        for frame in frames:
            with Line(client.broker.endpoints[0].port) as other:
                other.socket.sendall(frame)
                assert line.receive() == other.receive()
        wait_until(lambda: counted.looked == 1)
        pull(client, line, counted, 21)

    run(tmp_path, test)
    assert counted.taken == 1


def test_a_consumer_with_a_session_has_it_found_too(tmp_path: Path, counted: Counted) -> None:
    def test(client: Client, line: Line) -> None:
        session = Session(client.broker, LATEST, line)
        fresh = Session(client.broker, LATEST)
        for number, offset in enumerate(range(0, 49, 7)):
            before = counted.looked
            what = [wanted(0, offset, partition_max_bytes=PULL)]
            answer = session.ask(what)
            assert answer == fresh.ask(what)
            if number > 1:
                wait_until(partial(counted.has_looked_since, before))

    run(tmp_path, test)
    assert counted.taken >= 3


def region() -> FileRegion:
    return FileRegion(0, 0, 4, 0, SegmentIntegrity(FILES, 0))


def test_records_are_kept_of_one_region_and_given_once() -> None:
    readers, first, second = Readers(), region(), region()
    readers.keep(first, b"1234")
    assert readers.take(second) is None
    kept = readers.take(first)
    assert kept is not None
    assert kept.data == b"1234"
    assert readers.take(first) is None
    readers.keep(first, b"1234")
    readers.keep(second, b"5678")
    assert readers.take(first) is None


def test_who_reads_by_turns_with_others_is_not_alone() -> None:
    readers, step_s = Readers(), read_ahead.ALONE_AFTER_S * 0.75
    one, other = object(), object()
    assert [readers.is_alone(one, number * step_s) for number in range(4)] == [False, False, True, True]
    assert not readers.is_alone(other, 4 * step_s)
    assert [readers.is_alone(one, number * step_s) for number in range(4, 8)] == [False, False, True, True]
