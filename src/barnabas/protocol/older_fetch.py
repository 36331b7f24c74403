"""Fetch below version 4: requests and answers from before transactions, with message sets instead of batches.

The layouts are those of version 0. Version 1 adds the throttle time to answers, version 3 the maximum bytes of the whole
answer to requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as StructError  # `struct` calls its error just `error`
from typing import NamedTuple

from barnabas import limits
from barnabas.errors import MalformedMessage
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

FIRST_BATCH_VERSION = 4  # the first version that fetches batches
FIRST_THROTTLED_VERSION = 1
FIRST_TIMED_VERSION = 2  # the first version with timestamps in messages (magic 1)
FIRST_BOUNDED_VERSION = 3  # the first version with max bytes of the whole answer; the first message is always sent whole
_HEAD, _I32, _I16 = Struct(">iii"), Struct(">i"), Struct(">h")
_PARTITION, _ANSWER = Struct(">iqi"), Struct(">ihqi")


class FetchedSet(NamedTuple):
    """One partition's part of an answer."""

    partition: int
    error_code: int
    high_watermark: int
    messages: bytes | bytearray


def read_older_fetch(view: memoryview, position: int, version: int) -> FetchRequest:
    """The request whose body begins at `position`, as a request without a session that reads uncommitted records too.

    Raises:
        MalformedMessage: the bytes are not such a request.
    """
    try:
        replica_id, max_wait_ms, min_bytes = _HEAD.unpack_from(view, position)
        position += _HEAD.size
        request = FetchRequest(replica_id=replica_id, max_wait_ms=max_wait_ms, min_bytes=min_bytes)
        if version >= FIRST_BOUNDED_VERSION:
            (request.max_bytes,) = _I32.unpack_from(view, position)
            position += _I32.size
        request.topics = _read_topics(view, position)
    except (StructError, ValueError) as error:
        raise MalformedMessage("FetchRequest", version, str(error)) from error
    return request


def _read_topics(view: memoryview, position: int) -> list[FetchTopic]:
    topics, room = [], limits.MAX_REQUEST_ELEMENTS
    count = _count(view, position, room)
    position += _I32.size
    for _ in range(count):
        (length,) = _I16.unpack_from(view, position)
        position += _I16.size
        if not 0 <= length <= len(view) - position:
            raise ValueError(f"a topic's name of {length} bytes where {len(view) - position} are left")
        name = str(view[position : position + length], "utf-8")
        position += length
        partition_count = _count(view, position, room)
        room -= partition_count
        position += _I32.size
        partitions = []
        for _ in range(partition_count):
            index, offset, max_bytes = _PARTITION.unpack_from(view, position)
            position += _PARTITION.size
            partitions.append(FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes))
        topics.append(FetchTopic(topic=name, partitions=partitions))
    return topics


def _count(view: memoryview, position: int, room: int) -> int:
    (count,) = _I32.unpack_from(view, position)
    if not 0 <= count <= min(room, len(view) - position):
        raise ValueError(f"an array of {count} elements where {len(view) - position} bytes and {room} elements are left")
    return int(count)


def write_older_answer(
    version: int, correlation_id: int, topics: Iterable[tuple[str, Sequence[FetchedSet]]], throttle_time_ms: int
) -> bytes:
    """The frame of an answer, its size first."""
    out = bytearray(_I32.size) + _I32.pack(correlation_id)
    if version >= FIRST_THROTTLED_VERSION:
        out += _I32.pack(throttle_time_ms)
    listed = list(topics)
    out += _I32.pack(len(listed))
    for topic, partitions in listed:
        name = topic.encode()
        out += _I16.pack(len(name)) + name + _I32.pack(len(partitions))
        for partition, error_code, high_watermark, messages in partitions:
            out += _ANSWER.pack(partition, error_code, high_watermark, len(messages))
            out += messages
    _I32.pack_into(out, 0, len(out) - _I32.size)
    return bytes(out)
