"""The hot path of the Fetch codec: answers whose records are regions of files, which go to the socket without being read.

The general codec decodes requests. An answer here is a list of buffers and of objects that stand for record data, so that the records
never pass through Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from barnabas.protocol.codec import write_varint
from barnabas.protocol.produce import NodeEndpoint, write_endpoints
from barnabas.tuples import new_tuple

FIRST_SHAPED_VERSION = 5  # `FetchAnswerShape` needs the log start offset, which earlier versions lack
FIRST_FLEXIBLE_VERSION = 12
FIRST_REPLICA_VERSION = 11  # the first version with a preferred read replica (KIP-392)
FIRST_TOPIC_ID_VERSION = 13
FIRST_ENDPOINTS_VERSION = 16
_I16, _I32 = Struct(">h"), Struct(">i")
_HEAD_4 = Struct(">ihqq")  # index, error code, high watermark, last stable offset
_HEAD_5 = Struct(">ihqqq")  # the same and log start offset
_ABORTED = Struct(">qq")
_MARKS = Struct(">qqq")  # high watermark, last stable offset, log start offset
_SIZE_AND_ID = Struct(">ii")
Buffer = bytes | bytearray | memoryview
JOINED_BYTES = 8 * 1024  # copying records up to this size costs less than sending them as a separate piece


class RecordData(Protocol):
    """Record data of known size: a file region or a buffer."""

    @property
    def size(self) -> int: ...


class Copied:
    """Record data that was read at the look-up, because it is small."""

    __slots__ = ("data", "size")

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self.size = len(data)


D = TypeVar("D", bound=RecordData)


class FetchedData(NamedTuple, Generic[D]):
    """One partition's part of a Fetch answer.

    `aborted` holds (producer id, first offset) pairs; None for a read_uncommitted fetch. `diverging` is the epoch and end offset at
    which the fetcher's log diverges from ours (KIP-595); None if it does not.
    """

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: D | None = None
    aborted: Sequence[tuple[int, int]] | None = None
    preferred_read_replica: int = -1
    diverging: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None

    def with_records(self, records: D) -> FetchedData[D]:
        """This part with other records; `_replace` takes three times as long."""
        return new_tuple(FetchedData, (*self[:5], records, *self[6:]))

    def without_records(self) -> FetchedData[D]:
        """This part without records, because another answer gets them."""
        return self._replace(records=None, aborted=None if self.aborted is None else ())


Parts = list[bytes | bytearray | memoryview | D]
Given = tuple[int, int, int, D | None]  # of one partition: high watermark, last stable offset, log start offset, records


def write_fetch_answer(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[str | UUID, Sequence[FetchedData[D]]]],
    *,
    error_code: int = 0,
    session_id: int = 0,
    throttle_time_ms: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
) -> Parts[D]:
    """The frame of an answer, its size first, in parts that are sent one after the other.

    Args:
        endpoints: addresses of the current leaders in the answer; for versions from FIRST_ENDPOINTS_VERSION on.
    """
    flexible = version >= FIRST_FLEXIBLE_VERSION
    out = _start(version, correlation_id, throttle_time_ms, error_code, session_id)
    parts: Parts[D] = []
    payload = 0
    _write_count(len(topics), flexible, out)
    for topic, partitions in topics:
        _write_topic(topic, flexible, out)
        _write_count(len(partitions), flexible, out)
        for data in partitions:
            _write_partition(version, data, out)
            if data.records is not None and data.records.size:
                payload += data.records.size
                parts += (out, data.records)
                out = bytearray()
            if flexible:
                _write_partition_tags(data, out)
        if flexible:
            out.append(0)
    if flexible:
        write_endpoints(endpoints, out)
    if out:
        parts.append(out)
    first = parts[0]
    assert isinstance(first, bytearray)
    _I32.pack_into(first, 0, payload - 4 + sum(len(p) for p in parts if isinstance(p, bytearray)))
    return parts


class FetchAnswerShape(Generic[D]):
    """The bytes that all answers without errors for the same partitions have in common.

    Args:
        topics: each topic with its partitions, in the order of the answer.
        is_committed: the fetches are read_committed, and their records have no aborted transactions.
        session_id: 0 outside of a session.
    """

    __slots__ = ("_before", "_flexible", "_middle", "_tail")

    def __init__(
        self, version: int, topics: Sequence[tuple[str | UUID, Sequence[int]]], *, is_committed: bool, session_id: int = 0
    ) -> None:
        self._flexible = flexible = version >= FIRST_FLEXIBLE_VERSION
        before: list[bytes] = []  # per partition: the bytes between the previous partition and this high watermark
        out = _start(version, 0, 0, 0, session_id)
        _write_count(len(topics), flexible, out)
        for topic, partitions in topics:
            _write_topic(topic, flexible, out)
            _write_count(len(partitions), flexible, out)
            for index in partitions:
                before.append(bytes(out) + _I32.pack(index) + b"\0\0")
                out = bytearray(b"\0" if flexible else b"")
            if flexible:
                out.append(0)
        if flexible:
            out.append(0)
        self._before, self._tail = before, bytes(out)
        aborted = (b"\1" if flexible else b"\0\0\0\0") if is_committed else (b"\0" if flexible else b"\xff\xff\xff\xff")
        # The bytes between the log start offset and the length of the records.
        self._middle = aborted + (_I32.pack(-1) if version >= FIRST_REPLICA_VERSION else b"")

    def write(self, correlation_id: int, given: Sequence[Given[D]]) -> tuple[Parts[D], int]:
        """The frame of an answer, as from `write_fetch_answer`, and the number of bytes of records in it; small records are copied."""
        flexible, middle = self._flexible, self._middle
        parts: Parts[D] = []
        out, payload, joined, length = bytearray(), 0, 0, 0
        for before, (high_watermark, last_stable_offset, log_start_offset, records) in zip(self._before, given, strict=True):
            out += before
            out += _MARKS.pack(high_watermark, last_stable_offset, log_start_offset)
            out += middle
            size = 0 if records is None else records.size
            if flexible:
                write_varint(size + 1, out)
            else:
                out += _I32.pack(size)
            if isinstance(records, Copied) and size <= JOINED_BYTES:
                out += records.data
                joined += size
            elif records is not None and size:
                parts += (out, records)
                length += len(out)
                payload += size
                out = bytearray()
        out += self._tail
        if out:
            parts.append(out)
        first = parts[0]
        assert isinstance(first, bytearray)
        _SIZE_AND_ID.pack_into(first, 0, payload + length + len(out) - 4, correlation_id)
        return parts, payload + joined


def _start(version: int, correlation_id: int, throttle_time_ms: int, error_code: int, session_id: int) -> bytearray:
    """The first bytes of an answer, with space for its size."""
    flexible = version >= FIRST_FLEXIBLE_VERSION
    out = bytearray(b"\0\0\0\0" + _I32.pack(correlation_id) + (b"\0" if flexible else b"") + _I32.pack(throttle_time_ms))
    if version >= 7:
        out += _I16.pack(error_code) + _I32.pack(session_id)
    return out


def _write_count(count: int, flexible: bool, out: bytearray) -> None:
    if flexible:
        write_varint(count + 1, out)
    else:
        out += _I32.pack(count)


def _write_topic(topic: str | UUID, flexible: bool, out: bytearray) -> None:
    if isinstance(topic, UUID):
        out += topic.bytes
        return
    name = topic.encode()
    if flexible:
        write_varint(len(name) + 1, out)
    else:
        out += _I16.pack(len(name))
    out += name


def _write_partition(version: int, data: FetchedData[D], out: bytearray) -> None:
    flexible = version >= FIRST_FLEXIBLE_VERSION
    out += _HEAD_5.pack(*data[:5]) if version >= 5 else _HEAD_4.pack(*data[:4])
    if data.aborted is None:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
    else:
        _write_count(len(data.aborted), flexible, out)
        for producer_id, first_offset in data.aborted:
            out += _ABORTED.pack(producer_id, first_offset) + (b"\0" if flexible else b"")
    if version >= FIRST_REPLICA_VERSION:
        out += _I32.pack(data.preferred_read_replica)
    size = 0 if data.records is None else data.records.size
    if flexible:
        write_varint(size + 1, out)
    else:
        out += _I32.pack(size)


def _write_partition_tags(data: FetchedData[D], out: bytearray) -> None:
    if data.diverging is None and data.current_leader is None:
        out.append(0)
        return
    tags = bytearray()
    count = 0
    if data.diverging is not None:
        tags += b"\0\x0d" + Struct(">iq").pack(*data.diverging) + b"\0"
        count += 1
    if data.current_leader is not None:
        tags += b"\1\x09" + Struct(">ii").pack(*data.current_leader) + b"\0"
        count += 1
    out.append(count)
    out += tags
