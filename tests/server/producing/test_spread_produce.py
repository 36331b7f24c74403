"""Requests for several partitions that are worked on together get the answers, and leave the records, that they would one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas import limits
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records import spread as walk
from barnabas.protocol.records.batch import HEADER_SIZE, Record, build_batch, read_header
from barnabas.protocol.records.compression import Compression
from barnabas.protocol.records.record import assemble
from barnabas.security.acls import Acl, Operation, ResourceType
from barnabas.server.producing import repeated, spread
from barnabas.testing.failing_files import SYNCS, FailingFiles
from tests.server.authorization.people import ALICE, acl, guarded
from tests.server.in_process import STORAGE_ERROR, Client, running
from tests.server.quotas import ALTER, quota_request
from tests.server.wire import CLIENT_ID, NOW_MS, SIZE, framed
from tests.waiting import until

PRODUCE = 0
VERSIONS = (7, 8, 9, 12, 13)
TOGETHER, ALONE = ("one-at-once", "two-at-once"), ("one-by-self", "two-by-self")  # names of the same lengths
PARTITIONS = 4


class Sent(NamedTuple):
    """A request: for each batch the topic by number, the partition and the bytes."""

    batches: list[tuple[int, int, bytes]]
    version: int = 9
    acks: int = 1
    timeout_ms: int = 10_000


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests were worked on together each time, with the text of `spread` in the place of machine code."""
    seen: list[int] = []

    class Walk:
        read_requests = staticmethod(walk.read_requests)
        check_batches = staticmethod(walk.check_batches)
        answer_spread = staticmethod(walk.answer_spread)

    monkeypatch.setattr(repeated, "compiled", Walk)
    monkeypatch.setattr(spread, "spread_walker", Walk)
    take = spread.SpreadProduce.take

    def counted(self: spread.SpreadProduce, *arguments: Any) -> tuple[int, int]:
        found = take(self, *arguments)
        if found[0]:
            seen.append(found[0])
        return found

    monkeypatch.setattr(spread.SpreadProduce, "take", counted)
    return seen


def batch_of(*values: bytes, **fields: Any) -> bytes:
    return build_batch([Record(0, NOW_MS + index, None, value, ()) for index, value in enumerate(values)], **fields)


def with_header(batch: bytes, **changes: int) -> bytes:
    return assemble(read_header(batch)._replace(**changes), batch[HEADER_SIZE:])


def frame_of(client: Client, sent: Sent, names: Sequence[str], correlation_id: int) -> bytes:
    topics: list[TopicProduceData] = []
    for topic, index, batch in sent.batches:
        if not topics or topics[-1].name != names[topic]:
            topic_id = client.broker.partitions.require(names[topic], 0).topic_id
            topics.append(TopicProduceData(name=names[topic], topic_id=topic_id, partition_data=[]))
        data = list(topics[-1].partition_data)
        topics[-1].partition_data = [*data, PartitionProduceData(index=index, records=batch)]
    request = ProduceRequest(acks=sent.acks, timeout_ms=sent.timeout_ms, topic_data=topics)
    return framed((PRODUCE, sent.version), request, correlation_id)


async def pipelined(
    client: Client, requests: Sequence[Sent], names: Sequence[str] = TOGETHER, *, at_once: bool = True, first_id: int = 0
) -> list[bytes]:
    """The answers, in bytes but for what topics are called, of requests that are sent at once or one by one."""
    frames = [frame_of(client, sent, names, number) for number, sent in enumerate(requests, first_id)]
    answered = sum(sent.acks != 0 for sent in requests)

    def ask() -> list[bytes]:
        if at_once:
            client.line.socket.sendall(b"".join(frames))
            return [client.line.receive() for _ in range(answered)]
        answers = []
        for frame, sent in zip(frames, requests, strict=True):
            client.line.socket.sendall(frame)
            answers += [client.line.receive()] if sent.acks else []
        return answers

    answers = await client.in_thread(ask)
    for number, name in enumerate(names):
        topic_id = client.broker.partitions.require(name, 0).topic_id.bytes
        answers = [
            answer.replace(name.encode(), b"topic %5d" % number).replace(topic_id, b"topic id %7d" % number) for answer in answers
        ]
    return answers


def told(answer: bytes, version: int = 9) -> list[tuple[int, int, int]]:
    """Partition, error code and base offset of each batch."""
    response = decode(ProduceResponse, version, answer, 5 if version >= 9 else 4)
    return [(each.index, each.error_code, each.base_offset) for topic in response.responses for each in topic.partition_responses]


async def create(client: Client, configs: dict[str, Any] | None = None) -> None:
    for name in (*TOGETHER, *ALONE):
        assert await client.create(PARTITIONS, name=name, **(configs or {})) == 0


async def contents(client: Client, names: Sequence[str]) -> list[object]:
    """Of each partition the size, what is known of producers, and the records."""
    found: list[object] = []
    for name in names:
        for index in range(PARTITIONS):
            log = client.broker.partitions.require(name, index).log
            found.append((log.size_bytes, log.producers(), await client.fetch(index, name=name)))
    return found


async def same_both_ways(client: Client, requests: Sequence[Sent]) -> list[bytes]:
    """The answers, which are the same at once and one by one, as the contents are."""
    together = await pipelined(client, requests, TOGETHER)
    alone = await pipelined(client, requests, ALONE, at_once=False)
    assert together == alone
    assert await contents(client, TOGETHER) == await contents(client, ALONE)
    answered = [number for number, sent in enumerate(requests) if sent.acks]
    assert [SIZE.unpack_from(answer)[0] for answer in together] == answered
    return together


def everywhere(value: bytes, version: int = 9, acks: int = 1) -> Sent:
    """A batch for each partition of both topics."""
    return Sent(
        [(topic, index, batch_of(value, b"%d" % index)) for topic in (0, 1) for index in range(PARTITIONS)], version, acks
    )


def mixed(version: int = 9, acks: int = 1) -> list[Sent]:
    """Requests for one partition, or some, in turn."""
    requests = [everywhere(b"first", version, acks)]
    for number in range(40):
        where = [(number % 2, (number + more) % PARTITIONS) for more in range(1 + number % 3)]
        requests.append(Sent([(topic, index, batch_of(b"%d" % number)) for topic, index in where], version, acks))
    return requests


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1, 0])
async def test_what_came_together_is_answered_and_stored_as_one_by_one(
    version: int, acks: int, tmp_path: Path, taken: list[int]
) -> None:
    async with running([tmp_path]) as client:
        await create(client)
        requests = mixed(version, acks)
        if not acks:
            requests.append(everywhere(b"last", version))
        await same_both_ways(client, requests)
    assert max(taken) > 5
    assert sum(taken) >= 40, "all but the first request, in whatever pieces they came"


TOPICS: dict[str, dict[str, str]] = {
    "the broker's times": {"message_timestamp_type": "LogAppendTime"},
    "flushed each time": {"flush_messages": "1"},
    "flushed sometimes": {"flush_messages": "7"},
    "keys needed": {"cleanup_policy": "compact"},
    "two replicas needed": {"min_insync_replicas": "2"},
    "small segments": {"segment_bytes": "1048576"},
}


@pytest.mark.parametrize("kind", TOPICS)
@pytest.mark.parametrize("acks", [1, -1])
async def test_topics_of_all_kinds_get_what_is_theirs(kind: str, acks: int, tmp_path: Path, taken: list[int]) -> None:
    async with running([tmp_path]) as client:
        await create(client, TOPICS[kind])
        if kind == "small segments":
            requests = [Sent([(0, index, batch_of(b"v" * 90_000)) for index in range(PARTITIONS)], acks=acks) for _ in range(15)]
        else:
            requests = mixed(acks=acks)
        answers = await pipelined(client, requests, TOGETHER)
        others = await pipelined(client, requests, ALONE, at_once=False)
        if kind == "the broker's times":
            assert [told(answer) for answer in answers] == [told(answer) for answer in others]
        else:
            assert answers == others
            assert await contents(client, TOGETHER) == await contents(client, ALONE)
    assert (max(taken, default=0) > 2) == (kind not in ("the broker's times", "keys needed"))


ODD_ONES = {
    "nothing": b"",
    "a checksum that is wrong": batch_of(b"x")[:-1] + b"?",
    "a codec that there is not": with_header(batch_of(b"x"), attributes=5),
    "what unfolds to very much": batch_of(b"x" * 200_000, compression=1),
    "a producer id": batch_of(b"x", producer_id=5, producer_epoch=0, base_sequence=0),
    "a producer in the middle of its sequence": batch_of(b"x", producer_id=6, producer_epoch=0, base_sequence=9),
    "two batches": batch_of(b"x") * 2,
    "no end": batch_of(b"x")[:-4],
    "a transaction": with_header(batch_of(b"x", producer_id=5, producer_epoch=0, base_sequence=0), attributes=0x10),
}


@pytest.mark.parametrize("odd", ODD_ONES)
@pytest.mark.parametrize("version", [7, 9, 13])
async def test_an_odd_batch_is_told_what_it_is_and_holds_nothing_up(
    odd: str, version: int, tmp_path: Path, taken: list[int]
) -> None:
    good = [Sent([(0, index, batch_of(b"%d" % index)) for index in range(3)], version)] * 4
    single = [Sent([(1, 0, batch_of(b"s"))], version)] * 2
    requests = [
        everywhere(b"first", version),
        *good,
        Sent([(0, 0, batch_of(b"before")), (0, 1, ODD_ONES[odd]), (1, 2, batch_of(b"behind"))], version),
        *good,
        *single,
        Sent([(0, 2, ODD_ONES[odd])], version),
        *good,
        Sent([(0, 1, batch_of(b"nowhere")), (0, 99, batch_of(b"nowhere"))], version),
        *good,
        Sent([(0, 1, batch_of(b"old"))], 5),
        *good,
    ]
    async with running([tmp_path]) as client:
        await create(client)
        await same_both_ways(client, requests)
    assert sum(taken) >= len(good) * 5


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
async def test_compressed_batches_go_together_where_they_are_stored_as_they_come(
    codec: Compression, tmp_path: Path, taken: list[int]
) -> None:
    requests = [everywhere(b"first")]
    for number in range(20):
        batch = batch_of(b"%d" % number, b"x" * 300, compression=codec if number % 3 else 0)
        requests.append(Sent([(0, number % 3, batch), (1, 1, batch)]))
    for kind, together in (("producer", True), ("uncompressed", False)):
        async with running([tmp_path / kind]) as client:
            await create(client, {"compression_type": kind})
            await same_both_ways(client, requests)
        assert (sum(taken) >= 20) == together
        taken.clear()


async def test_idempotent_producers_get_what_they_get_one_by_one(tmp_path: Path, taken: list[int]) -> None:
    def sent(*where: tuple[int, int], producer: int = 5, epoch: int = 0) -> Sent:
        return Sent(
            [
                (0, index, batch_of(b"%d" % sequence, producer_id=producer, producer_epoch=epoch, base_sequence=sequence))
                for index, sequence in where
            ]
        )

    requests = [
        everywhere(b"first"),
        *(sent(*((index, sequence) for index in range(3))) for sequence in range(8)),
        *(sent((0, 8 + number), (1, 8 + number)) for number in range(3)),
        sent((0, 11), (1, 10), (2, 8)),  # one of them is there already
        sent((0, 12), (1, 11), (2, 10)),  # one is missing
        *(sent((0, 13 + number), (1, 12 + number), (2, 9 + number)) for number in range(3)),
        sent((0, 0), (1, 0), producer=6),
        sent((0, 0), (1, 15), epoch=1),
        sent((0, 16), (1, 15)),
    ]
    async with running([tmp_path]) as client:
        await create(client)
        answers = await same_both_ways(client, requests)
    codes = {code for answer in answers for _, code, _ in told(answer)}
    assert codes == {0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH}
    assert max(taken) >= 8


async def test_what_the_disk_refuses_of_some_partitions_is_refused(tmp_path: Path, taken: list[int]) -> None:
    files = FailingFiles()
    folders = [tmp_path / "home", tmp_path / "full"]
    async with running(folders, files) as client:
        full = client.broker.logs.directories[1]
        for index in range(PARTITIONS):
            client.broker.logs.prefer(TOGETHER[0], index, full)
            client.broker.logs.prefer(TOGETHER[1], index, client.broker.logs.directories[0])
        await create(client)
        requests = [everywhere(b"%d" % number) for number in range(6)]
        assert len(await pipelined(client, requests)) == 6
        files.fill(full.path)
        refused = await pipelined(client, requests)
        for number, answer in enumerate(refused):
            lost = [(index, STORAGE_ERROR, -1) for index in range(PARTITIONS)]
            kept = [(index, 0, 12 + 2 * number) for index in range(PARTITIONS)]
            assert told(answer) == lost + kept
        files.heal()
        again = await pipelined(client, requests)
        assert [told(answer)[0] for answer in again] == [(0, 0, 12 + 2 * number) for number in range(6)]
        assert [told(answer)[-1] for answer in again] == [(PARTITIONS - 1, 0, 24 + 2 * number) for number in range(6)]
    assert sum(taken) >= 15


async def test_without_answers_to_give_a_refusal_of_the_disk_closes_the_connection(
    tmp_path: Path, taken: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        await create(client)
        await pipelined(client, [everywhere(b"v", acks=0), everywhere(b"v")])
        files.fill(tmp_path)
        frame = frame_of(client, everywhere(b"v", acks=0), TOGETHER, 0)
        await client.in_thread(partial(client.line.socket.sendall, frame))
        assert await client.in_thread(client.line.is_closed)
        files.heal()
    assert "acks=0 failed with KAFKA_STORAGE_ERROR" in caplog.text
    assert "met a fault of the broker" not in caplog.text


async def test_what_does_not_get_to_the_disk_is_refused(tmp_path: Path, taken: list[int]) -> None:
    files = FailingFiles()
    async with running([tmp_path / "one", tmp_path / "two"], files) as client:
        broken = client.broker.logs.directories[1]
        for name in TOGETHER:
            for index in range(PARTITIONS):
                client.broker.logs.prefer(name, index, broken)  # a broker without its first directory stops
        await create(client, {"flush_messages": "1"})
        requests = [everywhere(b"%d" % number) for number in range(6)]
        assert [told(answer)[0] for answer in await pipelined(client, requests)] == [(0, 0, 2 * number) for number in range(6)]
        assert sum(taken) >= 5
        files.fail(SYNCS, broken.path)
        frames = b"".join(frame_of(client, each, TOGETHER, number) for number, each in enumerate(requests))

        def ask() -> list[bytes]:
            client.line.socket.sendall(frames)
            return [client.line.receive() for _ in requests]

        for answer in await client.in_thread(ask):
            assert {code for _, code, _ in told(answer)} == {STORAGE_ERROR}


class Slow:
    """Partitions whose batches wait until the test lets them go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[tuple[int, Any]] = []
        monkeypatch.setattr(spread, "must_wait", lambda *_: True)
        monkeypatch.setattr("barnabas.replication.partition.Partition._advance", lambda *_: None)
        monkeypatch.setattr("barnabas.replication.partition.Partition.wait_acknowledged", self._wait)

    def _wait(self, last_offset: int, done: Any, *, acks_all: bool) -> None:
        assert acks_all
        self.waiting.append((last_offset, done))


@pytest.mark.parametrize("version", VERSIONS)
async def test_answers_wait_for_all_partitions_and_tell_of_those_that_failed(
    version: int, tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running([tmp_path]) as client:
        await create(client)
        await pipelined(client, [everywhere(b"v", version, -1)])
        slow = Slow(monkeypatch)
        both = [Sent([(0, 0, batch_of(b"a")), (0, 1, batch_of(b"b"))], version, -1)] * 2
        asked = asyncio.ensure_future(pipelined(client, both))
        await until(lambda: len(slow.waiting) >= 2)
        assert sorted(last for last, _ in slow.waiting[-2:])[-1] == 3
        for round_ in range(len(slow.waiting) // 2):
            (_, first), (_, second) = slow.waiting[2 * round_ : 2 * round_ + 2]
            second(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
            first(None)
            first(None)
        answers = await asked
    late = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert [told(answer, version) for answer in answers] == [[(0, 0, 2), (1, late, -1)], [(0, 0, 3), (1, late, -1)]]


async def test_what_waits_for_too_long_is_told_so(tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    async with running([tmp_path]) as client:
        await create(client)
        short = Sent([(0, 0, batch_of(b"a")), (0, 1, batch_of(b"b"))], acks=-1, timeout_ms=1)
        await pipelined(client, [short])
        slow = Slow(monkeypatch)
        (answer,) = await pipelined(client, [short])
        assert told(answer) == [(0, ErrorCode.REQUEST_TIMED_OUT, -1), (1, ErrorCode.REQUEST_TIMED_OUT, -1)]
        for _, done in slow.waiting:
            done(None)  # too late: nothing comes of it
        monkeypatch.undo()
        assert len(await pipelined(client, [everywhere(b"v")])) == 1


async def test_what_could_never_go_together_stops_being_tried(tmp_path: Path, taken: list[int]) -> None:
    squeezed = Sent([(0, index, batch_of(b"x" * 99, compression=1)) for index in range(PARTITIONS)])
    async with running([tmp_path]) as client:
        await create(client, {"compression_type": "uncompressed"})
        await pipelined(client, [squeezed] * 30)
        (connection,) = client.broker.connections
        assert connection.repeated.spread.count == 0
    assert not taken


async def test_connections_know_more_partitions_while_their_broker_has_room(
    tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("MAX_REPEATED_REQUESTS", 2), ("MAX_REPEATED_REQUESTS_OF_ONE", 5), ("MAX_REPEATED_REQUESTS_OF_ALL", 4)):
        monkeypatch.setattr(limits, name, most)
    async with running([tmp_path]) as client:
        await create(client)
        room = client.broker.repeated_room.spread
        (connection,) = client.broker.connections
        await pipelined(client, [everywhere(b"v")] * 3)
        assert (connection.repeated.spread.count, room.left) == (5, 1)
        assert not taken, "there was room for some of the partitions only"
        few = [Sent([(0, 0, batch_of(b"v")), (0, 1, batch_of(b"v"))])] * 3
        await pipelined(client, few)
        assert sum(taken) == 3
        for name in TOGETHER:
            await client.delete(name)
        await pipelined(client, [everywhere(b"v")], ALONE)
        assert (connection.repeated.spread.count, room.left) == (5, 1), "those of closed partitions made room"
        connection.repeated.forget()
        assert (connection.repeated.spread.count, room.left) == (0, 4)


async def test_a_topic_made_again_is_another_one(tmp_path: Path, taken: list[int]) -> None:
    async with running([tmp_path]) as client:
        await create(client)
        await pipelined(client, [everywhere(b"old")] * 4)
        frames = [frame_of(client, everywhere(b"v"), TOGETHER, number) for number in range(3)]
        for name in TOGETHER:
            await client.delete(name)

        def ask() -> list[bytes]:
            client.line.socket.sendall(b"".join(frames))
            return [client.line.receive() for _ in frames]

        for answer in await client.in_thread(ask):
            assert {code for _, code, _ in told(answer)} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        for name in TOGETHER:
            assert await client.create(PARTITIONS, name=name) == 0
        before = sum(taken)
        answers = await pipelined(client, [everywhere(b"new")] * 4)
        assert [told(answer)[0] for answer in answers] == [(0, 0, 2 * number) for number in range(4)]
        assert sum(taken) > before


def may_write(name: str) -> Acl:
    return acl(ResourceType.TOPIC, name, Operation.WRITE)


async def test_who_may_not_write_any_more_does_not(tmp_path: Path, taken: list[int]) -> None:
    async with guarded(tmp_path) as people:
        await create(people.admin)
        await people.allow(may_write(TOGETHER[0]), may_write(TOGETHER[1]))
        alice = await people.connect(ALICE)
        await pipelined(alice, [everywhere(b"v")] * 4)
        assert sum(taken) == 3
        await people.forget()
        await people.allow(may_write(TOGETHER[1]))
        answers = await pipelined(alice, [everywhere(b"v")] * 4)
        for number, answer in enumerate(answers, 4):
            denied = [(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1) for index in range(PARTITIONS)]
            allowed = [(index, 0, 2 * number) for index in range(PARTITIONS)]
            assert sorted(told(answer), key=lambda each: (-each[1], each[0])) == denied + allowed
        assert sum(taken) == 3


async def test_what_the_audit_log_samples_is_not_learnt(tmp_path: Path, taken: list[int]) -> None:
    async with guarded(tmp_path, audit_log_file=str(tmp_path / "audit"), audit_log_data_sample_rate="1") as people:
        await create(people.admin)
        await people.allow(may_write(TOGETHER[0]), may_write(TOGETHER[1]))
        alice = await people.connect(ALICE)
        await pipelined(alice, [everywhere(b"v")] * 4)
    assert not taken


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_has_a_quota_is_paid_together_and_told_with_the_last_answer(
    version: int, tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    paid: list[int] = []

    def pay(broker: object, connection: object, budget: object, size: int) -> int:
        assert budget is not None
        paid.append(size)
        return 123

    async with running([tmp_path]) as client:
        await create(client)
        quota = quota_request({"client_id": CLIENT_ID}, producer_byte_rate=1e9)
        answer = await client.ask(ALTER, quota, AlterClientQuotasResponse)
        assert [each.error_code for each in answer.entries] == [0]
        await pipelined(client, [everywhere(b"v", version)])
        monkeypatch.setattr(spread, "pay_produced", pay)
        requests = [everywhere(b"v", version)] * 4
        answers = await pipelined(client, requests)
        sizes = [len(frame_of(client, each, TOGETHER, 0)) for each in requests]
    waits = [decode(ProduceResponse, version, answer, 5 if version >= 9 else 4).throttle_time_ms for answer in answers]
    assert sum(paid) == sum(sizes)
    lasts = {sum(taken[: number + 1]) - 1 for number in range(len(taken))}
    assert waits == [123 if number in lasts else 0 for number in range(4)]
