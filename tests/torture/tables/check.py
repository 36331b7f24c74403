"""Compares a scan with a consumer that reads the same offsets afterwards.

Retention and compaction only take records away between the two. So:

    every topic    a record that the consumer has within the bounds is in the scan, and the scan has no aborted record
    kept           both are equal
    short          both are equal from the consumer's first record on
    compacted      a record that only the scan has is followed by a later one of its key, or its key was deleted
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.tables.consumer import ConsumedRow
from tests.torture.check import Broken
from tests.torture.tables.plan import ABORTED, COMPACTED, KEPT, kind_of


def compare(topic: str, partition: int, scanned: Sequence[ConsumedRow], end: int, consumed: Sequence[ConsumedRow]) -> None:
    """Raise Broken unless the rows of a scan are right.

    Args:
        end: of the scan's bounds.
        consumed: the consumer's rows from the start of the log to its end, which is not before `end`.
    """
    place = f"{topic}-{partition}"
    offsets = [each.offset for each in scanned]
    if offsets != sorted(set(offsets)):
        raise Broken(f"{place}: a scan is not in the order of offsets")
    if offsets and offsets[-1] >= end:
        raise Broken(f"{place}: a scan has offset {offsets[-1]}, and its snapshot ends at {end}")
    for row in scanned:
        if row.value is not None and row.value.startswith(ABORTED):
            raise Broken(f"{place}: a scan has a record of an aborted transaction, offset {row.offset}")
    within = [each for each in consumed if each.offset < end]
    missing = set(within) - set(scanned)
    if missing:
        raise Broken(f"{place}: a scan up to {end} lacks {len(missing)} records, such as {min(missing)}")
    more = sorted(set(scanned) - set(within))
    kind = kind_of(topic)
    if kind == COMPACTED:
        newest = {each.key: each.offset for each in consumed}
        more = [each for each in more if newest.get(each.key, -1) <= each.offset]
    elif kind != KEPT and consumed:
        more = [each for each in more if each.offset >= consumed[0].offset]
    elif kind != KEPT:
        more = []
    if more:
        raise Broken(f"{place}: a scan up to {end} has {len(more)} records that a consumer has not, such as {more[0]}")
