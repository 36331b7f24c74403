"""What stands where in a Fetch request of a session, for those that are recognised by their bytes.

A request of a session differs from the one before in the correlation id, the session's epoch and the partitions that it names. Here is
found where the epoch stands and what is said of the partitions; everything else is compared without being read. The whole request
is read by the general codec.
"""

from __future__ import annotations

from struct import Struct

NO_EPOCH = -1  # of a leader, where the fetcher does not know it; of what was fetched, where that is nothing
FIRST_REPLICA_STATE_VERSION = 15  # before, the replica's id stands in front of everything
Named = tuple[int, int, int, int, int, int]
"""A partition as a request names it: index, the leader's epoch, offset, the last epoch fetched, the fetcher's log start, most bytes."""
EPOCH_BYTES = 4
_BEFORE_EPOCH_BYTES = 4 + 4 + 4 + 1 + 4  # longest wait, least and most bytes, isolation level, session id
_REPLICA_ID_BYTES = 4
_ID_BYTES = 16
_NAMED = Struct(">iiqiqiB")  # as `Named`, and how many tagged fields follow
_ONE_BYTE_LENGTHS = 0x7F  # a compact length up to here takes a byte


def session_epoch_at(body: int, version: int) -> int:
    """Where the session's epoch stands in a request whose body begins at `body`; the topics stand behind it."""
    return body + _BEFORE_EPOCH_BYTES + (0 if version >= FIRST_REPLICA_STATE_VERSION else _REPLICA_ID_BYTES)


def read_named(data: bytes, position: int) -> tuple[list[tuple[bytes, Named]], int] | None:
    """Read the topics of a request, from FIRST_TOPIC_ID_VERSION on.

    Returns:
        The topic id of each partition with what is said of it, and where that ends; None where there are tagged fields or more than 126
        topics or partitions of one, which nearly never is, and where the bytes end early.
    """
    found: list[tuple[bytes, Named]] = []
    try:
        topics, position = data[position], position + 1
        if not 0 < topics <= _ONE_BYTE_LENGTHS:
            return None
        for _ in range(topics - 1):
            topic_id, position = data[position : position + _ID_BYTES], position + _ID_BYTES
            partitions, position = data[position], position + 1
            if not 0 < partitions <= _ONE_BYTE_LENGTHS:
                return None
            end = position + (partitions - 1) * _NAMED.size
            if end >= len(data) or data[end]:  # tagged fields of the topic
                return None
            for *named, tagged in _NAMED.iter_unpack(data[position:end]):
                if tagged:
                    return None
                found.append((topic_id, tuple(named)))
            position = end + 1
    except IndexError:
        return None
    return found, position
