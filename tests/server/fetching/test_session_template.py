"""A fetch of a session that is recognised is answered as one that is read."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas import limits
from barnabas.cluster.metadata.image import PartitionState
from barnabas.errors import ErrorCode
from barnabas.protocol.codec import decode
from barnabas.protocol.messages import APIS
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic, ReplicaState
from barnabas.server.broker import Broker
from barnabas.server.fetching import session_template
from barnabas.server.fetching.session_template import SessionFetchTemplate
from tests.server.in_process import TOPIC, Client, running
from tests.server.quotas import set_quota_by
from tests.server.wire import CLIENT_ID, Line, framed
from tests.waiting import wait_until

FETCH, LATEST = 1, APIS[1][3]
PARTITIONS = 3
FOLLOWER = 7
FIRST_SESSION_VERSION, FIRST_FLEXIBLE_VERSION, FIRST_TOPIC_ID_VERSION = 7, 12, 13


class Counted:
    """How many requests were recognised, and of those how many answered at once, and how many when something had come."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = self.at_once = self.later = 0
        take, look = SessionFetchTemplate.take, SessionFetchTemplate._look

        def counting_take(fetch: SessionFetchTemplate, *arguments: Any) -> tuple[int, int]:
            taken = take(fetch, *arguments)
            self.taken += taken[0]
            return taken

        def counting_look(fetch: SessionFetchTemplate, *arguments: Any, is_first: bool = True, **named: Any) -> Any:
            found = look(fetch, *arguments, is_first=is_first, **named)
            if isinstance(found, list):
                self.at_once += is_first
                self.later += not is_first
            return found

        monkeypatch.setattr(SessionFetchTemplate, "take", counting_take)
        monkeypatch.setattr(SessionFetchTemplate, "_look", counting_look)


class Session:
    """One session of a fetcher.

    Args:
        line: which all its requests go by; without one each has a connection of its own, so that nothing is recognised.
    """

    def __init__(self, broker: Broker, version: int, line: Line | None = None, *, replica_id: int = -1, **fields: int) -> None:
        self._broker, self._version, self._line = broker, version, line
        self._client_id = "another" if line is None else CLIENT_ID  # the broker keeps one session for each fetcher of a follower
        self._fields: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 2**20, **fields}
        self._replica_id = replica_id
        # after correlation id, tagged fields, throttle time and error code
        self._id_at = 4 + (version >= FIRST_FLEXIBLE_VERSION) + 4 + 2
        self.session_id = self.epoch = 0

    def request(self, named: Iterable[FetchPartition], forgotten: Iterable[int] = ()) -> FetchRequest:
        topic: dict[str, Any] = {"topic": TOPIC}
        if self._version >= FIRST_TOPIC_ID_VERSION:
            topic = {"topic_id": self._broker.partitions.topic(TOPIC)[0].topic_id}
        partitions, dropped = list(named), list(forgotten)
        return FetchRequest(
            replica_id=self._replica_id,
            replica_state=ReplicaState(replica_id=self._replica_id),
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[FetchTopic(**topic, partitions=partitions)] if partitions else [],
            forgotten_topics_data=[ForgottenTopic(**topic, partitions=dropped)] if dropped else [],
            **self._fields,
        )

    def change(self, **fields: int) -> None:
        """Of the requests that follow."""
        self._fields |= fields

    def ask(self, named: Iterable[FetchPartition], forgotten: Iterable[int] = ()) -> bytes:
        """The answer but for the session's id."""
        frame = framed((FETCH, self._version), self.request(named, forgotten), 7, self._client_id)
        if self._line is not None:
            data = self._exchange(self._line, frame)
        else:
            with Line(self._broker.endpoints[0].port) as line:
                data = self._exchange(line, frame)
        told = self.decoded(data)
        if told.error_code == 0:
            self.session_id, self.epoch = told.session_id, self.epoch + 1
        return data[: self._id_at] + data[self._id_at + 4 :]

    def answer(self, named: Iterable[FetchPartition]) -> FetchResponse:
        data = self.ask(named)
        return self.decoded(data[: self._id_at] + b"\0\0\0\0" + data[self._id_at :])

    def begin_to_wait(self, named: Iterable[FetchPartition]) -> None:
        """Ask for what has not come yet."""
        assert self._line is not None
        self._line.socket.sendall(framed((FETCH, self._version), self.request(named), 0, self._client_id))
        self.epoch += 1
        session = self._broker.fetch_sessions.find(self.session_id)
        assert session is not None
        wait_until(lambda: session.waiters, "the fetch does not wait")

    def decoded(self, data: bytes) -> FetchResponse:
        return decode(FetchResponse, self._version, memoryview(data), 5 if self._version >= FIRST_FLEXIBLE_VERSION else 4)

    def _exchange(self, line: Line, frame: bytes) -> bytes:
        line.socket.sendall(frame)
        return line.receive()


def wanted(index: int, offset: int, **fields: int) -> FetchPartition:
    told: dict[str, Any] = {
        "current_leader_epoch": -1,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 400,
        **fields,
    }
    return FetchPartition(partition=index, fetch_offset=offset, **told)


def run(folder: Path, test: Callable[[Client, Line], None], **settings: str) -> None:
    """`test`, in a thread, with a broker that has twenty records of 100 bytes in each partition."""

    async def with_broker() -> None:
        async with running([folder], **settings) as client:
            await client.create(PARTITIONS, index_interval_bytes="200")
            for _ in range(20):
                for partition in range(PARTITIONS):
                    await client.produce(b"x" * 100, partition)
            with Line(client.broker.endpoints[0].port) as line:
                await asyncio.to_thread(test, client, line)

    asyncio.run(with_broker())


def on_loop(broker: Broker, work: Callable[[], None]) -> None:
    async def worked() -> None:
        work()

    asyncio.run_coroutine_threadsafe(worked(), broker.loop).result()


def produce(client: Client, partition: int) -> None:
    assert asyncio.run_coroutine_threadsafe(client.produce(b"y" * 100, partition, acks=1), client.broker.loop).result() == 0


def follow(broker: Broker, partition: int) -> None:
    """Have a partition led with a follower beside this broker."""
    own, found = broker.config.broker_id, broker.partitions.require_leader(TOPIC, partition)
    state = PartitionState(own, found.leader_epoch + 1, (own, FOLLOWER), (own, FOLLOWER), 1)
    on_loop(broker, lambda: found.lead(state, broker.isr, broker.isr.now_ms()))


@pytest.mark.parametrize("version", range(FIRST_SESSION_VERSION, LATEST + 1))
@pytest.mark.parametrize(("replica_id", "isolation_level"), [(-1, 0), (-1, 1), (FOLLOWER, 0)])
def test_what_is_recognised_has_the_bytes_of_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, replica_id: int, isolation_level: int
) -> None:
    counted = Counted(monkeypatch)
    dice = random.Random(version * 10 + replica_id)

    def strange(client: Client) -> list[FetchPartition]:
        """The request of a fetcher that has lost its position, after records may have come."""
        for partition in dice.sample(range(PARTITIONS), dice.choice((0, 1, 1, 2))):
            produce(client, partition)
        fields: list[Mapping[str, int]] = [
            {}, {"partition_max_bytes": 1}, {"current_leader_epoch": 99}, {"last_fetched_epoch": epoch + 1}, {"log_start_offset": 2},
        ]  # fmt: skip
        named = dice.sample(range(PARTITIONS), dice.choice((0, 1, 2)))
        return [wanted(index, dice.choice((0, 7, 20, 10_000, -1)), **dice.choice(fields)) for index in named]

    def plain() -> list[FetchPartition]:
        return [wanted(0, dice.randrange(20), current_leader_epoch=epoch, last_fetched_epoch=dice.choice((-1, epoch)))]

    def at_end(broker: Broker) -> list[FetchPartition]:
        ends = {index: broker.partitions.require(TOPIC, index).log.log_end_offset for index in range(PARTITIONS)}
        return [wanted(index, end) for index, end in ends.items()]

    epoch = 0

    def test(client: Client, line: Line) -> None:
        nonlocal epoch
        broker = client.broker
        if replica_id >= 0:
            for partition in range(PARTITIONS):
                follow(broker, partition)
        found = broker.partitions.require(TOPIC, 0)
        epoch = found.leader_epoch
        known = Session(broker, version, line, replica_id=replica_id, isolation_level=isolation_level)
        read = Session(broker, version, replica_id=replica_id, isolation_level=isolation_level)
        for _ in range(15):
            for named in (at_end(broker), [], plain(), plain(), strange(client)):
                assert known.ask(named) == read.ask(named)
        assert known.epoch == read.epoch == 75

    run(tmp_path, test)
    assert counted.taken > 60
    assert counted.at_once > 8


@pytest.mark.parametrize("max_bytes", [2**20, 500, 1])
@pytest.mark.parametrize(("replica_id", "isolation_level"), [(-1, 0), (-1, 1), (FOLLOWER, 0)])
def test_news_of_several_partitions_have_the_bytes_of_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int, replica_id: int, isolation_level: int
) -> None:
    counted = Counted(monkeypatch)
    monkeypatch.setattr(session_template, "MOST_SHAPES", 3)
    dice = random.Random(max_bytes + replica_id)

    def test(client: Client, line: Line) -> None:
        broker = client.broker
        logs = [broker.partitions.require(TOPIC, index).log for index in range(PARTITIONS)]
        for partition in range(PARTITIONS if replica_id >= 0 else 0):
            follow(broker, partition)
        known = Session(broker, LATEST, line, replica_id=replica_id, isolation_level=isolation_level, max_bytes=max_bytes)
        read = Session(broker, LATEST, replica_id=replica_id, isolation_level=isolation_level, max_bytes=max_bytes)
        everything = [wanted(index, 0) for index in range(PARTITIONS)]
        assert known.ask(everything) == read.ask(everything)
        for _ in range(60):
            for partition in dice.sample(range(PARTITIONS), dice.randrange(PARTITIONS + 1)):
                produce(client, partition)
            ends = {index: log.log_end_offset for index, log in enumerate(logs)}
            chosen = dice.sample(range(PARTITIONS), dice.randrange(PARTITIONS + 1))
            named = [wanted(index, ends[index] - dice.choice((0, 0, 1, 2, 9))) for index in chosen]
            assert known.ask(named) == read.ask(named)
        assert known.epoch == read.epoch == 61

    run(tmp_path, test)
    assert counted.taken > 50
    assert counted.at_once > 25


def test_where_more_have_news_than_are_looked_at_here_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    monkeypatch.setattr(session_template, "MOST_PARTITIONS", PARTITIONS - 1)

    def test(client: Client, line: Line) -> None:
        session = Session(client.broker, LATEST, line)
        for offset in range(4):
            told = session.answer([wanted(index, offset) for index in range(PARTITIONS)]).responses[0].partitions
            assert [each.partition_index for each in told if each.records] == list(range(PARTITIONS))

    run(tmp_path, test)
    assert (counted.taken, counted.at_once) == (2, 0)


def test_a_follower_that_waits_for_several_partitions_is_counted_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        broker = client.broker
        for partition in range(PARTITIONS):
            follow(broker, partition)
        session = Session(broker, LATEST, line, replica_id=FOLLOWER, max_wait_ms=60_000)
        for offset in (0, 1):
            session.ask([wanted(index, offset) for index in range(PARTITIONS)])
        for partition in range(PARTITIONS):
            produce(client, partition)
        session.begin_to_wait([wanted(index, 21) for index in range(PARTITIONS)])
        wait_until(
            lambda: all(broker.partitions.topic(TOPIC)[index].high_watermark == 21 for index in range(PARTITIONS)),
            "not all partitions know what the follower has",
        )
        produce(client, 1)
        told = session.decoded(line.receive()).responses[0].partitions
        assert {each.partition_index: b"y" * 100 in bytes(each.records or b"") for each in told} == {0: False, 1: True, 2: False}
        assert {each.high_watermark for each in told} == {21}
        assert (counted.taken, counted.at_once, counted.later) == (1, 0, 1)

    run(tmp_path, test)


def test_a_session_that_ended_or_is_elsewhere_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        session = Session(client.broker, LATEST, line)
        for offset in range(4):
            assert session.answer([wanted(0, offset)]).error_code == 0
        assert (counted.taken, counted.at_once) == (2, 2)
        session.epoch += 1
        assert session.answer([wanted(0, 5)]).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        session.epoch -= 1
        assert session.answer([wanted(0, 5)]).error_code == 0
        on_loop(client.broker, lambda: client.broker.fetch_sessions.remove(session.session_id))
        assert session.answer([wanted(0, 6)]).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    run(tmp_path, test)


def test_a_request_with_other_parameters_on_another_connection_looks_at_every_partition_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        def partitions(of: Session) -> list[tuple[int, int]]:
            return [(each.partition_index, each.error_code) for topic in of.answer([]).responses for each in topic.partitions]

        known, another = Session(client.broker, LATEST, line), Session(client.broker, LATEST, replica_id=99)
        known.ask([wanted(index, 20) for index in range(PARTITIONS)])
        assert [partitions(known) for _ in range(3)] == [[], [], []]
        another.session_id, another.epoch = known.session_id, known.epoch
        assert partitions(another) == [(index, ErrorCode.NOT_LEADER_OR_FOLLOWER) for index in range(PARTITIONS)]
        known.epoch = another.epoch
        assert partitions(known) == [(index, ErrorCode.NONE) for index in range(PARTITIONS)]
        assert partitions(known) == []

    run(tmp_path, test)
    assert counted.taken == 4


def test_a_follower_that_is_recognised_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        broker = client.broker
        follow(broker, 0)
        session = Session(broker, LATEST, line, replica_id=FOLLOWER)
        session.ask([wanted(0, 20)])
        produce(client, 0)
        session.ask([wanted(0, 19)])
        produce(client, 0)
        marks = [session.answer([wanted(0, offset)]).responses[0].partitions[0].high_watermark for offset in (20, 21)]
        assert marks == [20, 21]
        assert counted.at_once == 2
        assert broker.isr.heard.keys() == {FOLLOWER}

    run(tmp_path, test)


@pytest.mark.parametrize("version", [FIRST_SESSION_VERSION, 9, FIRST_FLEXIBLE_VERSION, LATEST])
@pytest.mark.parametrize(("replica_id", "isolation_level"), [(-1, 0), (-1, 1), (FOLLOWER, 0)])
def test_a_wait_that_was_recognised_ends_with_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, replica_id: int, isolation_level: int
) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        if replica_id >= 0:
            follow(client.broker, 0)
        session = Session(
            client.broker, version, line, replica_id=replica_id, isolation_level=isolation_level, max_wait_ms=60_000
        )
        for offset in (0, 19):
            session.ask([wanted(0, offset)])
        for offset in (20, 21):
            session.begin_to_wait([wanted(0, offset)])
            produce(client, 0)
            told = session.decoded(line.receive()).responses[0].partitions[0]
            assert b"y" * 100 in bytes(told.records or b"")
            assert told.aborted_transactions == ([] if isolation_level else None)
        assert (counted.taken, counted.at_once, counted.later) == (2, 0, 2)

    run(tmp_path, test)


def test_a_wait_for_more_than_has_come_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        session = Session(client.broker, LATEST, line, max_wait_ms=60_000, min_bytes=300)
        for offset in (0, 1):
            session.ask([wanted(index, offset) for index in range(PARTITIONS)])
        session.begin_to_wait([wanted(index, 20) for index in range(PARTITIONS)])
        for partition in (0, 1, 0):
            produce(client, partition)
        told = session.decoded(line.receive()).responses[0].partitions
        assert sum(bytes(each.records or b"").count(b"y" * 100) for each in told) >= 2
        assert (counted.taken, counted.later) == (1, 1)

    run(tmp_path, test)


def test_a_wait_that_nothing_ends_is_answered_with_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        session = Session(client.broker, LATEST, line, max_wait_ms=1)
        for offset in (0, 1):
            session.ask([wanted(0, offset)])
        assert session.answer([wanted(0, 20)]).responses == []
        assert session.answer([]).responses == []
        produce(client, 0)
        assert b"y" * 100 in bytes(session.answer([]).responses[0].partitions[0].records or b"")
        assert (counted.taken, counted.at_once, counted.later) == (3, 1, 0)

    run(tmp_path, test)


def test_what_was_forgotten_named_anew_or_deleted_goes_the_general_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        session = Session(client.broker, LATEST, line)
        for offset in range(3):
            session.ask([wanted(0, offset)])
        session.ask([wanted(1, 0)])  # not in the session before
        session.ask([], forgotten=[1])
        assert counted.taken == 1
        session.ask([wanted(0, 3)])
        session.ask([wanted(1, 0)])
        assert counted.taken == 1
        session.ask([wanted(1, 1)])
        assert counted.taken == 2
        named = session.request([wanted(1, 2)])
        asyncio.run_coroutine_threadsafe(client.delete(), client.broker.loop).result()
        line.socket.sendall(framed((FETCH, LATEST), named))
        told = session.decoded(line.receive()).responses[0].partitions
        assert {partition.error_code for partition in told} == {ErrorCode.UNKNOWN_TOPIC_ID}

    run(tmp_path, test)


def test_a_partition_whose_disk_failed_is_refused(tmp_path: Path) -> None:
    def test(client: Client, line: Line) -> None:
        broker = client.broker
        session = Session(broker, LATEST, line)
        for offset in range(3):
            session.ask([wanted(0, offset)])
        found = broker.partitions.require(TOPIC, 0)
        on_loop(broker, lambda: broker.partitions.take_offline(found))
        told = session.answer([wanted(0, 3)]).responses[0].partitions[0]
        assert told.error_code == ErrorCode.KAFKA_STORAGE_ERROR

    run(tmp_path, test)


def test_a_long_request_is_not_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        session = Session(client.broker, LATEST, line)
        session.ask([wanted(0, 0)])
        size = len(framed((FETCH, LATEST), session.request([wanted(0, 1)]))) - 4
        for most, taken in ((size - 1, 0), (size, 1)):
            monkeypatch.setattr(limits, "MAX_REPEATED_FETCH_BYTES", most)
            session.ask([wanted(0, 1)])
            session.ask([wanted(0, 2)])
            assert counted.taken == taken

    run(tmp_path, test)


def test_a_quota_that_comes_later_is_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    def test(client: Client, line: Line) -> None:
        session = Session(client.broker, LATEST, line)
        for offset in range(3):
            session.ask([wanted(0, offset, partition_max_bytes=2**20)])
        assert counted.at_once == 1
        with Line(client.broker.endpoints[0].port) as other:
            set_quota_by(other, {"client_id": None}, consumer_byte_rate=100.0)
        waits = [session.answer([wanted(0, 3, partition_max_bytes=2**20)]).throttle_time_ms for _ in range(2)]
        assert counted.at_once == 1
        assert waits[1] > 0

    run(tmp_path, test)
