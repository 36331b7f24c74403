"""The layout of a Fetch request of a session, to recognise repeated requests by their bytes.

A request of a session differs from the previous one in the correlation id, the session's epoch and the partitions that it names. This
module finds the position of the epoch and reads the named partitions; the caller compares all other bytes without reading them. The
general codec reads the whole request.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from struct import Struct

from barnabas.protocol.fetch import FIRST_FLEXIBLE_VERSION, FIRST_TOPIC_ID_VERSION

MAX_EPOCH = 2**31 - 1  # of a fetch session; 1 follows
NO_EPOCH = -1  # the leader epoch is unknown, or no batch was fetched
FIRST_SESSION_VERSION = 7  # the first version with fetch sessions (KIP-227)
FIRST_LEADER_EPOCH_VERSION = 9  # the first version with the leader epoch of each partition (KIP-320)
FIRST_REPLICA_STATE_VERSION = 15  # earlier versions begin with the replica id
Named = tuple[int, int, int, int, int, int]
"""A partition as a request names it: index, the leader's epoch, offset, the last epoch fetched, the fetcher's log start, most bytes."""
NamedIn = tuple[bytes, Named]
"""A partition in its topic: the bytes of the topic's id, or of its name below FIRST_TOPIC_ID_VERSION."""
EPOCH_BYTES = 4
_BEFORE_EPOCH_BYTES = 4 + 4 + 4 + 1 + 4  # max wait, min bytes, max bytes, isolation level, session id
_REPLICA_ID_BYTES = 4
_ID_BYTES = 16
_FLEXIBLE = Struct(">iiqiqiB")  # `Named`, and the number of tagged fields
_WITH_EPOCH = Struct(">iiqqi")  # `Named` without the last fetched epoch
_PLAIN = Struct(">iqqi")  # `Named` without both epochs
_I16, _I32 = Struct(">h"), Struct(">i")
_ONE_BYTE_LENGTHS = 0x7F  # a compact length up to this value takes one byte


def session_epoch_at(body: int, version: int) -> int:
    """The position of the session's epoch in a request whose body begins at `body`; the topics follow the epoch."""
    return body + _BEFORE_EPOCH_BYTES + (0 if version >= FIRST_REPLICA_STATE_VERSION else _REPLICA_ID_BYTES)


def read_named(data: bytes, position: int, version: int) -> tuple[list[NamedIn], int] | None:
    """Read the topics of a request, from FIRST_SESSION_VERSION on.

    Returns:
        The named partitions, and the position after them. None if the bytes end early, if there are tagged fields, or if there are more
        than 126 topics, or partitions of one topic; the last two are rare.
    """
    try:
        if version >= FIRST_FLEXIBLE_VERSION:
            return _read_flexible(data, position, _read_id if version >= FIRST_TOPIC_ID_VERSION else _read_name)
        return _read_plain(data, position, _WITH_EPOCH if version >= FIRST_LEADER_EPOCH_VERSION else _PLAIN)
    except (IndexError, struct.error):
        return None


def _read_id(data: bytes, position: int) -> tuple[bytes, int]:
    end = position + _ID_BYTES
    return data[position:end], end


def _read_name(data: bytes, position: int) -> tuple[bytes, int]:
    size = data[position]
    if not 0 < size <= _ONE_BYTE_LENGTHS:
        raise IndexError("a longer name, or none")
    end = position + size
    return data[position + 1 : end], end


def _read_flexible(
    data: bytes, position: int, read_topic: Callable[[bytes, int], tuple[bytes, int]]
) -> tuple[list[NamedIn], int] | None:
    found: list[NamedIn] = []
    topics, position = data[position], position + 1
    if not 0 < topics <= _ONE_BYTE_LENGTHS:
        return None
    for _ in range(topics - 1):
        topic, position = read_topic(data, position)
        partitions, position = data[position], position + 1
        if not 0 < partitions <= _ONE_BYTE_LENGTHS:
            return None
        end = position + (partitions - 1) * _FLEXIBLE.size
        if end >= len(data) or data[end]:  # the topic has tagged fields
            return None
        for *named, tagged in _FLEXIBLE.iter_unpack(data[position:end]):
            if tagged:
                return None
            found.append((topic, tuple(named)))
        position = end + 1
    return found, position


def _read_plain(data: bytes, position: int, layout: Struct) -> tuple[list[NamedIn], int] | None:
    found: list[NamedIn] = []
    (topics,), position = _I32.unpack_from(data, position), position + _I32.size
    if not 0 <= topics < _ONE_BYTE_LENGTHS:
        return None
    for _ in range(topics):
        (size,), position = _I16.unpack_from(data, position), position + _I16.size
        if size < 0:
            return None
        topic, position = data[position : position + size], position + size
        (partitions,), position = _I32.unpack_from(data, position), position + _I32.size
        end = position + partitions * layout.size
        if not 0 <= partitions < _ONE_BYTE_LENGTHS or end > len(data):
            return None
        for index, *epoch, offset, log_start, most in layout.iter_unpack(data[position:end]):
            leader_epoch = epoch[0] if epoch else NO_EPOCH
            found.append((topic, (index, leader_epoch, offset, NO_EPOCH, log_start, most)))
        position = end
    return found, position
