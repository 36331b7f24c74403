"""The partition of `__consumer_offsets` of a group.

Clients do not see it, but data folders of Kafka and tools that read the topic depend on it: it must be Java's
`String.hashCode`.
"""

from __future__ import annotations

from functools import lru_cache

CACHED_GROUPS = 65_536  # hostile group ids can fill the cache; this limits it to a few megabytes


@lru_cache(maxsize=CACHED_GROUPS)
def java_hash(text: str) -> int:
    """`String.hashCode` of Java: over the units of UTF-16, in signed 32-bit arithmetic."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_of(group_id: str, partition_count: int) -> int:
    """The partition of `group_id`; the one hash without a positive counterpart counts as 0, as in Kafka."""
    value = java_hash(group_id)
    return 0 if value == -(1 << 31) else abs(value) % partition_count
