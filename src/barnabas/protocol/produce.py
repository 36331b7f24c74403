"""The hot codec of Produce: reads requests in place, and builds answers from precomputed pieces.

A Produce request with one small batch is the most frequent message. The general codec would take longer to create the objects than the
log takes to store the batch. Malformed bytes raise `MalformedMessage`, as in the general codec.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError  # `struct` calls its error just `error`
from typing import NamedTuple

from barnabas import limits
from barnabas.errors import MalformedMessage
from barnabas.protocol.codec import read_varint, skip_tagged_fields, write_varint

FIRST_APPEND_TIME_VERSION = 2  # the first version with the log append time in the answer
FIRST_BATCH_VERSION = 3  # earlier versions have message sets and no transactional id
FIRST_FLEXIBLE_VERSION = 9
FIRST_LEADER_VERSION = 10
FIRST_TOPIC_ID_VERSION = 13
_ACKS_TIMEOUT = Struct(">hi")
_I16, _I32 = Struct(">h"), Struct(">i")
_INDEX_AND_LENGTH = Struct(">ii")
_LEADER = Struct(">ii")
_OK_0 = Struct(">ihq")  # index, error code, base offset
_OK_3 = Struct(">ihqq")  # index, error code, base offset, log append time
_OK_5 = Struct(">ihqqq")  # the same and log start offset
_OK_8 = Struct(">ihqqqih")  # the same, no record errors, no error message


class PartitionRecords(NamedTuple):
    partition: int
    records: memoryview | None


class ProduceHead(NamedTuple):
    """The fields of a Produce request; `topics` pairs each topic (the bytes of its name, or from version 13 the 16 bytes of its id) with
    its partitions."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[bytes, list[PartitionRecords]]]


class PartitionAnswer(NamedTuple):
    """One partition's part of a Produce answer.

    Offsets are -1 if `error_code` is not 0; the fields after them are for errors only. `current_leader` is (broker id, leader epoch),
    for a client that asked the wrong broker (KIP-951).
    """

    partition: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    current_leader: tuple[int, int] | None = None


class NodeEndpoint(NamedTuple):
    """The address of a broker, for clients that do not know it yet (KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None


def read_produce(view: memoryview, position: int, version: int) -> ProduceHead:
    """The request whose body begins at `position`; the record views point into `view`. Bytes after the request are ignored, as in Kafka."""
    try:
        head, _ = (_read_flexible if version >= FIRST_FLEXIBLE_VERSION else _read_plain)(view, position, version)
    except (StructError, IndexError, ValueError) as error:
        raise MalformedMessage("ProduceRequest", version, str(error)) from error
    return head


def _piece(view: memoryview, position: int, length: int) -> memoryview:
    if length > len(view) - position:
        raise ValueError(f"a length of {length} bytes where {len(view) - position} are left")
    return view[position : position + length]


def _check_count(view: memoryview, position: int, count: int, room: int) -> None:
    if not 0 <= count <= min(room, len(view) - position):
        raise ValueError(f"an array of {count} elements where {len(view) - position} bytes and {room} elements are left")


def _read_flexible(view: memoryview, position: int, version: int) -> tuple[ProduceHead, int]:
    transactional_id = None
    length = view[position]
    position += 1
    if length:
        length, position = read_varint(view, position - 1)
        transactional_id = str(_piece(view, position, length - 1), "utf-8")
        position += length - 1
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(view, position)
    count, position = read_varint(view, position + 6)
    room = limits.MAX_REQUEST_ELEMENTS
    _check_count(view, position, count - 1, room)
    topics = []
    for _ in range(count - 1):
        if version >= FIRST_TOPIC_ID_VERSION:
            name = bytes(_piece(view, position, 16))
            position += 16
        else:
            length, position = read_varint(view, position)
            if length == 0:
                raise ValueError("a topic without a name")
            name = bytes(_piece(view, position, length - 1))
            position += length - 1
        partitions, position = _read_flexible_partitions(view, position, room)
        room -= len(partitions)
        topics.append((name, partitions))
        position = skip_tagged_fields(view, position, {}, None) if view[position] else position + 1
    position = skip_tagged_fields(view, position, {}, None) if view[position] else position + 1
    return ProduceHead(transactional_id, acks, timeout_ms, topics), position


def _read_flexible_partitions(view: memoryview, position: int, room: int) -> tuple[list[PartitionRecords], int]:
    count, position = read_varint(view, position)
    _check_count(view, position, count - 1, room)
    partitions = []
    for _ in range(count - 1):
        (index,) = _I32.unpack_from(view, position)
        length, position = read_varint(view, position + 4)
        records = None
        if length:
            records = _piece(view, position, length - 1)
            position += length - 1
        partitions.append(PartitionRecords(index, records))
        position = skip_tagged_fields(view, position, {}, None) if view[position] else position + 1
    return partitions, position


def _read_plain(view: memoryview, position: int, version: int) -> tuple[ProduceHead, int]:
    transactional_id = None
    if version >= FIRST_BATCH_VERSION:
        (length,) = _I16.unpack_from(view, position)
        position += 2
        if length >= 0:
            transactional_id = str(_piece(view, position, length), "utf-8")
            position += length
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(view, position)
    (count,) = _I32.unpack_from(view, position + 6)
    position += 10
    room = limits.MAX_REQUEST_ELEMENTS
    _check_count(view, position, count, room)
    topics = []
    for _ in range(count):
        (length,) = _I16.unpack_from(view, position)
        if length < 0:
            raise ValueError("a topic without a name")
        name = bytes(_piece(view, position + 2, length))
        position += 2 + length
        (partition_count,) = _I32.unpack_from(view, position)
        position += 4
        _check_count(view, position, partition_count, room)
        room -= partition_count
        partitions = []
        for _ in range(partition_count):
            index, length = _INDEX_AND_LENGTH.unpack_from(view, position)
            position += 8
            records = None
            if length >= 0:
                records = _piece(view, position, length)
                position += length
            partitions.append(PartitionRecords(index, records))
        topics.append((name, partitions))
    return ProduceHead(transactional_id, acks, timeout_ms, topics), position


def write_produce_answer(
    version: int,
    correlation_id: int,
    topics: list[tuple[bytes, list[PartitionAnswer]]],
    throttle_time_ms: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """The whole frame of an answer, its size first; `topics` as in `ProduceHead`.

    Args:
        endpoints: addresses of the current leaders in the answer; for versions from FIRST_LEADER_VERSION on.
    """
    if version >= FIRST_FLEXIBLE_VERSION:
        out = bytearray(b"\0\0\0\0" + _I32.pack(correlation_id) + b"\0")
        write_varint(len(topics) + 1, out)
        for name, answers in topics:
            if version < FIRST_TOPIC_ID_VERSION:
                write_varint(len(name) + 1, out)
            out += name
            write_varint(len(answers) + 1, out)
            for answer in answers:
                out += _OK_5.pack(*answer[:5])
                if not answer.error_code:
                    out += b"\1\0\0"  # no record errors, no error message, no tagged fields
                else:
                    _write_flexible_errors(answer, out, with_leader=version >= FIRST_LEADER_VERSION)
            out += b"\0"
        out += _I32.pack(throttle_time_ms)
        write_endpoints(endpoints, out)
    else:
        out = bytearray(b"\0\0\0\0" + _I32.pack(correlation_id) + _I32.pack(len(topics)))
        for name, answers in topics:
            out += _I16.pack(len(name)) + name + _I32.pack(len(answers))
            for answer in answers:
                out += _plain_answer(version, answer)
        if version:
            out += _I32.pack(throttle_time_ms)
    _I32.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def _plain_answer(version: int, answer: PartitionAnswer) -> bytes:
    if version < 5:
        if version < FIRST_APPEND_TIME_VERSION:
            return _OK_0.pack(*answer[:3])
        return _OK_3.pack(*answer[:4])
    if version < 8:
        return _OK_5.pack(*answer[:5])
    if answer.message is None and not answer.record_errors:
        return _OK_8.pack(*answer[:5], 0, -1)
    out = _OK_5.pack(*answer[:5]) + _I32.pack(len(answer.record_errors))
    for index, text in answer.record_errors:
        out += _I32.pack(index) + _plain_string(text)
    return out + _plain_string(answer.message)


def _plain_string(text: str | None) -> bytes:
    encoded = None if text is None else text.encode()
    return _I16.pack(-1) if encoded is None else _I16.pack(len(encoded)) + encoded


def write_endpoints(endpoints: Sequence[NodeEndpoint], out: bytearray) -> None:
    """Write the tagged fields at the end of an answer of Produce or Fetch; tag 0 has the brokers."""
    if not endpoints:
        out.append(0)
        return
    field = bytearray()
    write_varint(len(endpoints) + 1, field)
    for node_id, host, port, rack in endpoints:
        field += _I32.pack(node_id)
        _write_flexible_string(host, field)
        field += _I32.pack(port)
        _write_flexible_string(rack, field)
        field.append(0)
    out += b"\1\0"
    write_varint(len(field), out)
    out += field


def _write_flexible_errors(answer: PartitionAnswer, out: bytearray, *, with_leader: bool) -> None:
    write_varint(len(answer.record_errors) + 1, out)
    for index, text in answer.record_errors:
        out += _I32.pack(index)
        _write_flexible_string(text, out)
        out.append(0)
    _write_flexible_string(answer.message, out)
    if with_leader and answer.current_leader is not None:
        out += b"\1\0\x09" + _LEADER.pack(*answer.current_leader) + b"\0"  # one tagged field with tag 0
    else:
        out.append(0)


def _write_flexible_string(text: str | None, out: bytearray) -> None:
    if text is None:
        out.append(0)
        return
    encoded = text.encode()
    write_varint(len(encoded) + 1, out)
    out += encoded
