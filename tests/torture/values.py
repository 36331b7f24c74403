"""Records that tell by themselves who sent them, and whether a byte of them is wrong.

A value begins with `<producer> <partition> <sequence> ` and goes on with bytes that follow from these three, so that the checker can make
any of them again and needs to remember none. Sizes vary, so that batches and segments end at ever different places. A tombstone has no
value; its header says the same.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple
from zlib import crc32

ORIGIN_HEADER = "origin"
KEYS = 50  # keys of each producer and partition: a compacted topic keeps this many of its records
TOMBSTONE_SHARE = 6  # in a compacted topic, one of this many records is a tombstone
MAX_FILL = 600


class Origin(NamedTuple):
    """The sender of a record, its target, and its number there."""

    producer: str
    partition: int
    sequence: int


def key_of(origin: Origin) -> bytes:
    return b"%s-%d" % (origin.producer.encode(), crc32(b"%d" % origin.sequence) % KEYS)


def is_tombstone(origin: Origin) -> bool:
    """Whether a record that takes its key away is sent in the place of the value, to topics that are compacted."""
    return crc32(b"%d tombstone" % origin.sequence) % TOMBSTONE_SHARE == 0


def value_of(origin: Origin) -> bytes:
    head = b"%s %d %d " % (origin.producer.encode(), origin.partition, origin.sequence)
    seed = hashlib.blake2b(head, digest_size=16).digest()
    fill = int.from_bytes(seed[:2], "big") % MAX_FILL
    return head + (seed * (fill // len(seed) + 1))[:fill] + b"%08x" % crc32(head)


def origin_of(value: bytes) -> Origin | None:
    """The sender of a value; None if any byte of the value differs from ours."""
    parts = value.split(b" ", 3)
    if len(parts) != 4:
        return None
    try:
        origin = Origin(parts[0].decode(), int(parts[1]), int(parts[2]))
    except ValueError:
        return None
    return origin if value_of(origin) == value else None
