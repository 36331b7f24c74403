"""Requests for several partitions that are worked on together get the answers, and leave the records, that they would one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.records.compression import Compression
from tests.server.in_process import Client, running
from tests.server.producing.multi_partition_requests import (
    ALONE,
    PARTITIONS,
    TOGETHER,
    VERSIONS,
    Sent,
    batch_of,
    contents,
    create,
    everywhere,
    pipelined,
    told,
    with_header,
)
from tests.server.wire import SIZE


async def same_both_ways(client: Client, requests: Sequence[Sent]) -> list[bytes]:
    """The answers, which are the same at once and one by one, as the contents are."""
    together = await pipelined(client, requests, TOGETHER)
    alone = await pipelined(client, requests, ALONE, at_once=False)
    assert together == alone
    assert await contents(client, TOGETHER) == await contents(client, ALONE)
    answered = [number for number, sent in enumerate(requests) if sent.acks]
    assert [SIZE.unpack_from(answer)[0] for answer in together] == answered
    return together


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
        sent((0, 11), (1, 10), (2, 8)),  # (1, 10) is a duplicate
        sent((0, 12), (1, 11), (2, 10)),  # partition 2 misses sequence 9
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
