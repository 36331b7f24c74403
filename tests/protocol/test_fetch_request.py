"""Parsing a fetch request of a session without the general codec."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from barnabas.protocol.codec import encode
from barnabas.protocol.fetch_request import EPOCH_BYTES, FIRST_SESSION_VERSION, NamedIn, read_named, session_epoch_at
from barnabas.protocol.messages import APIS
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

VERSIONS = range(FIRST_SESSION_VERSION, APIS[1][3] + 1)
FIRST_LEADER_EPOCH_VERSION, FIRST_FETCHED_EPOCH_VERSION, FIRST_TOPIC_ID_VERSION = 9, 12, 13


def request_of(dice: random.Random, version: int, topics: int = 3, partitions: int = 4) -> tuple[FetchRequest, list[NamedIn]]:
    """A request, and what it names."""
    asked, named = [], list[NamedIn]()
    for number in range(dice.randrange(topics + 1)):
        name, topic_id = f"topic-{number}-ü", UUID(int=dice.getrandbits(128))
        uses_ids = version >= FIRST_TOPIC_ID_VERSION
        wanted = list[FetchPartition]()
        for index in range(dice.randrange(partitions + 1)):
            epoch = dice.randrange(9) if version >= FIRST_LEADER_EPOCH_VERSION else -1
            fetched = dice.randrange(9) if version >= FIRST_FETCHED_EPOCH_VERSION else -1
            offset, start, most = dice.getrandbits(40), dice.randrange(-1, 9), dice.getrandbits(20)
            wanted.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=fetched,
                    log_start_offset=start,
                    partition_max_bytes=most,
                )
            )
            named.append((topic_id.bytes if uses_ids else name.encode(), (index, epoch, offset, fetched, start, most)))
        asked.append(FetchTopic(topic_id=topic_id, partitions=wanted) if uses_ids else FetchTopic(topic=name, partitions=wanted))
    return FetchRequest(session_id=5, session_epoch=0x0102_0304, topics=asked), named


@pytest.mark.parametrize("version", VERSIONS)
def test_it_names_what_the_codec_has_written(version: int) -> None:
    dice = random.Random(version)
    for _ in range(50):
        request, named = request_of(dice, version)
        data = bytes(encode(request, version))
        epoch_at = session_epoch_at(0, version)
        assert data[epoch_at : epoch_at + EPOCH_BYTES] == b"\1\2\3\4"
        found = read_named(data, epoch_at + EPOCH_BYTES, version)
        assert found is not None
        assert found[0] == named
        assert data[found[1] :] == bytes(encode(FetchRequest(), version))[epoch_at + EPOCH_BYTES + len(_no_topics(version)) :]


def _no_topics(version: int) -> bytes:
    return b"\1" if version >= FIRST_FETCHED_EPOCH_VERSION else b"\0\0\0\0"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_ends_early_or_makes_no_sense_names_nothing(version: int) -> None:
    dice = random.Random(version)
    request, named = request_of(dice, version, topics=3)
    while not named:
        request, named = request_of(dice, version, topics=3)
    data = bytes(encode(request, version))
    start = session_epoch_at(0, version) + EPOCH_BYTES
    whole = read_named(data, start, version)
    assert whole is not None
    for end in range(start, whole[1]):
        assert read_named(data[:end], start, version) is None, end
    for _ in range(2_000):
        broken = bytearray(data)
        broken[dice.randrange(start, whole[1])] = dice.choice((0, 0x7F, 0x80, 0xFF))
        found = read_named(bytes(broken), start, version)
        assert found is None or start < found[1] <= len(broken)


@pytest.mark.parametrize("version", VERSIONS)
def test_more_than_is_short_is_left_to_the_codec(version: int) -> None:
    partitions = [FetchPartition(partition=index) for index in range(127)]
    start = session_epoch_at(0, version) + EPOCH_BYTES
    for topics in ([FetchTopic(partitions=partitions)], [FetchTopic() for _ in range(127)]):
        assert read_named(bytes(encode(FetchRequest(topics=topics), version)), start, version) is None
