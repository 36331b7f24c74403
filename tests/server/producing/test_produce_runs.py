"""Requests that are worked on together get the answers, and leave the records, that they would get and leave one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas import limits
from barnabas.errors import ErrorCode
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records import request_scan
from barnabas.protocol.request_headers import has_flexible_response_header
from barnabas.server.producing import multi_partition, request_template
from barnabas.testing.failing_files import SYNCS, FailingFiles
from tests.server.in_process import STORAGE_ERROR, TOPIC, Client, running
from tests.server.producing.multi_partition_requests import batch_of, with_header
from tests.server.wire import NOW_MS, SIZE, framed

PRODUCE = 0
VERSIONS = (7, 8, 9, 12)  # the broker learns templates from version 7 on; these have no topic ids; the layout changes at 9
OTHER = "one-by-one"


class Sent(NamedTuple):
    batch: bytes
    version: int = 9
    partition: int = 0
    acks: int = 1


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests each run took, with the text of `request_scan` in the place of machine code."""
    taken: list[int] = []

    class Walk:
        answer_requests = staticmethod(request_scan.answer_requests)

        @staticmethod
        def walk_requests(*arguments: Any) -> object:
            found = request_scan.walk_requests(*arguments)
            taken.append(found[1])
            return found

    monkeypatch.setattr(request_template, "compiled", Walk)
    monkeypatch.setattr(request_template, "walker", Walk)
    return taken


def broken(batch: bytes) -> bytes:
    return batch[:-1] + bytes((batch[-1] ^ 1,))


def frame_of(sent: Sent, topic: str, correlation_id: int) -> bytes:
    data = PartitionProduceData(index=sent.partition, records=sent.batch)
    request = ProduceRequest(acks=sent.acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    return framed((PRODUCE, sent.version), request, correlation_id)


async def pipelined(
    client: Client, requests: Sequence[Sent], *, topic: str, at_once: bool, first_id: int = 0
) -> list[tuple[int, int, int, int]]:
    """Correlation id, error code, base offset and log append time that each got, all sent before the first answer is read or one by one."""
    frames = [frame_of(sent, topic, number) for number, sent in enumerate(requests, first_id)]

    def ask() -> list[bytes]:
        line = client.line
        answers = []
        for piece in [b"".join(frames)] if at_once else frames:
            line.socket.sendall(piece)
            answers += [line.receive() for _ in range(len(frames) if at_once else 1)]
        return answers

    answers = await client.in_thread(ask)
    found = []
    for sent, answer in zip(requests, answers, strict=True):
        head = 5 if has_flexible_response_header(PRODUCE, sent.version) else 4
        told = decode(ProduceResponse, sent.version, answer, head).responses[0].partition_responses[0]
        appended = -1 if told.log_append_time_ms == -1 else 0
        found.append((SIZE.unpack_from(answer)[0], told.error_code, told.base_offset, appended))
    return found


ODD_ONES = {
    "nothing": b"",
    "a checksum that is wrong": broken(batch_of(b"x")),
    "a codec": batch_of(b"x" * 500, compression=1),
    "a codec that there is not": with_header(batch_of(b"x"), attributes=5),
    "a codec that did not make it": with_header(batch_of(b"x" * 500), attributes=3),
    "what unfolds to very much": batch_of(b"x" * 500_000, compression=1),
    "a producer id": batch_of(b"x", producer_id=5, producer_epoch=0, base_sequence=0),
    "a producer without sequence": batch_of(b"x", producer_id=5, producer_epoch=0, base_sequence=-1),
    "a transaction": with_header(batch_of(b"x", producer_id=5, producer_epoch=0, base_sequence=0), attributes=0x10),
    "two batches": batch_of(b"x") * 2,
    "a largest time that is wrong": with_header(batch_of(b"x"), max_timestamp=NOW_MS + 5),
    "a count that is wrong": with_header(batch_of(b"x"), last_offset_delta=3),
    "no end": batch_of(b"x")[:-4],
    "a large one": batch_of(b"x" * 90_000),
}
TOPICS: dict[str, dict[str, Any]] = {
    "plain": {},
    "the broker's times": {"message_timestamp_type": "LogAppendTime"},
    "another codec": {"compression_type": "gzip"},
    "flushed each time": {"flush_messages": "1"},
    "flushed sometimes": {"flush_messages": "7"},
    "keys needed": {"cleanup_policy": "compact"},
    "small batches": {"max_message_bytes": "130"},
    "old records refused": {"message_timestamp_before_max_ms": "1000"},
    "two replicas needed": {"min_insync_replicas": "2"},
    "small segments": {"segment_bytes": "1048576"},
}
# topics whose valid requests the broker can append as one run
TOGETHER = (
    "plain",
    "flushed sometimes",
    "flushed each time",
    "two replicas needed",
    "small segments",
)


@pytest.mark.parametrize("topic", TOPICS)
async def test_a_run_is_answered_and_stored_as_its_requests_one_by_one(topic: str, tmp_path: Path, runs: list[int]) -> None:
    size = 30_000 if topic == "small segments" else 60
    requests = [Sent(batch_of(b"first"))]
    for number in range(70):
        values = [b"%d-%d" % (number, index) + b"v" * (size if not number % 3 else 10) for index in range(1 + number % 3)]
        requests.append(Sent(batch_of(*values), acks=1 if number < 35 else -1))
    async with running([tmp_path]) as client:
        answers, records = [], []
        for name in (TOPIC, OTHER):
            assert await client.create(2, name=name, **TOPICS[topic]) == 0
            answers.append(await pipelined(client, requests, topic=name, at_once=name == TOPIC))
            records.append([client.broker.partitions.require(name, 0).log.size_bytes, await client.fetch(name=name)])
    assert answers[0] == answers[1]
    assert [answer[0] for answer in answers[0]] == list(range(len(requests)))
    assert records[0] == records[1]
    together = max(runs, default=0)
    assert (together > 5) == (topic in TOGETHER), "what is good goes together"


@pytest.mark.parametrize("first_id", [-(2**31), -3])
async def test_ids_of_requests_may_be_below_zero(first_id: int, tmp_path: Path, runs: list[int]) -> None:
    """Clients count on past the largest number."""
    async with running([tmp_path]) as client:
        assert await client.create(2) == 0
        answers = await pipelined(client, [Sent(batch_of(b"v"))] * 6, topic=TOPIC, at_once=True, first_id=first_id)
    assert [answer[:3] for answer in answers] == [(first_id + number, 0, number) for number in range(6)]
    assert sum(runs) > 3


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
async def test_requests_that_want_no_answer_get_none_and_are_stored(
    version: int, at_once: bool, tmp_path: Path, runs: list[int]
) -> None:
    values = [b"%d" % number for number in range(60)]
    async with running([tmp_path]) as client:
        assert await client.create(1) == 0
        unanswered = [frame_of(Sent(batch_of(value), version, acks=0), TOPIC, 7) for value in values]
        for piece in [b"".join(unanswered)] if at_once else unanswered:
            await client.in_thread(partial(client.line.socket.sendall, piece))
        answers = await pipelined(client, [Sent(batch_of(b"last"), version)], topic=TOPIC, at_once=True)
        assert await client.fetch() == (0, [*values, b"last"])
    assert answers == [(0, 0, len(values), -1)]
    assert max(runs, default=0) > 5 or not at_once, "what came together is worked on together"


@pytest.mark.parametrize("odd", ODD_ONES)
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_odd_request_in_a_run_is_told_what_it_is_alone(odd: str, version: int, tmp_path: Path, runs: list[int]) -> None:
    good = [Sent(batch_of(b"v" * number), version) for number in range(1, 12)]
    requests = [
        *good,
        Sent(ODD_ONES[odd], version),
        *good,
        Sent(batch_of(b"p"), version, 1),
        *good,
        Sent(batch_of(b"n"), 5),
        *good,
    ]
    async with running([tmp_path]) as client:
        answers, records = [], []
        for name in (TOPIC, OTHER):
            assert await client.create(2, name=name) == 0
            answers.append(await pipelined(client, requests, topic=name, at_once=name == TOPIC))
            records.append([await client.fetch(index, name=name) for index in range(2)])
    assert answers[0] == answers[1]
    assert records[0] == records[1]
    assert max(runs) >= 10


async def test_a_consumer_that_waits_gets_the_whole_run(tmp_path: Path, runs: list[int]) -> None:
    async with running([tmp_path]) as client:
        await client.create()
        requests = [Sent(batch_of(b"%d" % number)) for number in range(40)]
        told: list[int] = []

        class Waiter:
            def records_added(self, size: int) -> None:
                told.append(size)

            def log_start_moved(self) -> None: ...

            def high_watermark_moved(self) -> None: ...

            def partition_closed(self) -> None: ...

        partition = client.broker.partitions.require(TOPIC, 0)
        partition.add_fetch_waiter(Waiter())
        await pipelined(client, requests, topic=TOPIC, at_once=True)
        assert partition.high_watermark == 40
        assert sum(told) == partition.log.size_bytes
        assert len(told) < 40


async def test_a_run_has_an_end(tmp_path: Path, runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_RUN_REQUESTS", 4)
    monkeypatch.setattr(limits, "MAX_RUN_BYTES", 2_000)
    small, large = batch_of(b"s"), batch_of(b"l" * 3_000)
    async with running([tmp_path]) as client:
        await client.create()
        requests = [Sent(small)] * 13 + [Sent(large)] * 3 + [Sent(small)] * 3
        answers = await pipelined(client, requests, topic=TOPIC, at_once=True)
        assert [base_offset for _, _, base_offset, _ in answers] == list(range(19))
    assert max(runs) == 4
    assert sum(runs) == 15, "all small ones but the first, by which they were learnt"


async def test_a_run_that_the_disk_refuses_is_refused_request_by_request(tmp_path: Path, runs: list[int]) -> None:
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        await client.create()
        requests = [Sent(batch_of(b"%d" % number)) for number in range(20)]
        await pipelined(client, requests, topic=TOPIC, at_once=True)
        files.fill(tmp_path)
        refused = await pipelined(client, requests, topic=TOPIC, at_once=True)
        assert [code for _, code, _, _ in refused] == [STORAGE_ERROR] * 20
        files.heal()
        taken = await pipelined(client, requests, topic=TOPIC, at_once=True)
        assert [(code, offset) for _, code, offset, _ in taken] == [(0, 20 + number) for number in range(20)]
        error, values = await client.fetch()
        assert (error, values) == (0, [sent for _ in range(2) for sent in (b"%d" % number for number in range(20))])
        assert max(runs) >= 19


async def test_a_run_that_does_not_get_to_the_disk_is_refused_request_by_request(tmp_path: Path, runs: list[int]) -> None:
    files = FailingFiles()
    async with running([tmp_path / "one", tmp_path / "two"], files) as client:
        home, *others = client.broker.logs.directories
        client.broker.logs.prefer(TOPIC, 0, others[0])  # a broker stops if its first directory fails
        assert home is not others[0]
        await client.create(flush_messages="1")
        requests = [Sent(batch_of(b"%d" % number)) for number in range(20)]
        taken = await pipelined(client, requests, topic=TOPIC, at_once=True)
        assert [(code, offset) for _, code, offset, _ in taken] == [(0, number) for number in range(20)]
        files.fail(SYNCS, others[0].path)
        refused = await pipelined(client, requests, topic=TOPIC, at_once=True)
        assert [(number, code) for number, code, _, _ in refused] == [(number, STORAGE_ERROR) for number in range(20)]
        assert max(runs) >= 19


async def test_requests_of_which_none_can_be_in_a_run_stop_being_tried(tmp_path: Path, runs: list[int]) -> None:
    async with running([tmp_path]) as client:
        await client.create(compression_type="uncompressed")
        answers = await pipelined(client, [Sent(batch_of(b"x", compression=1))] * 30, topic=TOPIC, at_once=True)
    assert [code for _, code, _, _ in answers] == [0] * 30
    assert len(runs) == multi_partition.PATIENCE


async def test_an_idempotent_producer_gets_for_a_run_what_it_gets_one_by_one(tmp_path: Path, runs: list[int]) -> None:
    def batch(sequence: int, *, producer: int = 5, epoch: int = 0) -> Sent:
        return Sent(batch_of(b"%d" % sequence, producer_id=producer, producer_epoch=epoch, base_sequence=sequence))

    requests = [
        *(batch(sequence) for sequence in range(12)),
        *(batch(sequence) for sequence in (9, 10, 11)),  # duplicates
        batch(3),  # a duplicate, too old for the producer state
        *(batch(sequence) for sequence in (13, 14)),  # sequence 12 is missing
        *(batch(sequence) for sequence in range(12, 15)),
        *(batch(sequence, producer=6) for sequence in range(8)),
        *(batch(sequence) for sequence in range(15, 18)),
        *(batch(sequence, epoch=1) for sequence in range(9)),
        *(batch(sequence) for sequence in range(18, 20)),  # fenced: an old epoch
        *(batch(sequence, epoch=1) for sequence in (4, 8, 9, 10, 11, 12)),
    ]
    async with running([tmp_path]) as client:
        answers, states, records = [], [], []
        for name in (TOPIC, OTHER):
            await client.create(name=name)
            answers.append(await pipelined(client, requests, topic=name, at_once=name == TOPIC))
            states.append(client.broker.partitions.require(name, 0).log.reader.producers())
            records.append(await client.fetch(name=name))
    assert answers[0] == answers[1]
    assert states[0] == states[1]
    assert records[0] == records[1]
    assert {code for _, code, _, _ in answers[0]} == {
        0,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
    assert max(runs) >= 11


async def test_a_deleted_topic_is_unknown_to_the_requests_of_a_run(tmp_path: Path, runs: list[int]) -> None:
    async with running([tmp_path]) as client:
        await client.create()
        requests = [Sent(batch_of(b"%d" % number)) for number in range(20)]
        await pipelined(client, requests, topic=TOPIC, at_once=True)
        client.broker.partitions.require(TOPIC, 0).close()
        await client.delete()
        answers = await pipelined(client, requests, topic=TOPIC, at_once=True)
        assert [code for _, code, _, _ in answers] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 20
