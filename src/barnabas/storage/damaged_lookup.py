"""Finds the batch with an offset if bytes before it are damaged.

Rules
  1. Damage is skipped, unless it contained the offset. Then the damage is the result, so that a reader gets the error and does
     not skip records.
  2. A header may have a wrong length or offset, and an index entry a wrong position: it is used only if its neighbours agree.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import BatchHeader
from barnabas.storage.integrity import NOTHING_FOLLOWS, Damage
from barnabas.storage.verify import measure

if TYPE_CHECKING:
    from barnabas.storage.segment.batch_scan import BatchScan
    from barnabas.storage.segment.segment_file import SegmentFile

logger = logging.getLogger(__name__)

MAX_SEARCH_BYTES = 1024 * 1024  # the loop searches only this far for the end of damage


def find_around(segment: SegmentFile, scan: BatchScan, offset: int, start: int) -> tuple[int, int] | None:
    """Like `SegmentLookup.find` from the batch at `start` on, in a damaged segment.

    Returns:
        Position and base offset, as in `Position`.

    Raises:
        CorruptLog: the end of the damage is unknown.
    """
    position, least = start, segment.base_offset
    while position < segment.size:
        before: tuple[int, BatchHeader, int] | None = None  # the previous batch: position, header, expected offset
        try:
            for position, header in scan.walk(position):  # noqa: B020 - the search continues where the walk ended
                damage = (segment.integrity.damages or {}).get(position)
                if damage is not None:
                    break
                if header.base_offset < least:
                    raise CorruptLog(str(segment.path), position, "the base offset goes back")
                if header.next_offset > segment.next_offset:
                    raise CorruptLog(str(segment.path), position, "the offsets lead past the segment")
                if header.base_offset + header.last_offset_delta >= offset:
                    if header.base_offset > offset and before is not None:
                        least = before[2]
                        scan.read_batch(*before[:2])
                        least = before[1].next_offset
                    return position, min(header.base_offset, least)
                before = position, header, least
                least = header.next_offset
            else:
                return None
        except CorruptLog as error:
            if error.position == start and start:  # the index entry may be wrong
                return find_around(segment, scan, offset, 0)
            damage = (segment.integrity.damages or {}).get(error.position) or _measured(segment, error, least)
        if offset < damage.next_offset:
            return damage.position, damage.first_offset
        position, least = damage.end, damage.next_offset
    return None


def _measured(segment: SegmentFile, error: CorruptLog, least_offset: int) -> Damage:
    """Measure the damage that a search met. It reads little, because later index entries find later offsets."""
    following = segment.index.ceiling_by_value(error.position)
    bound = (error.position if following is None else following[1]) + MAX_SEARCH_BYTES
    damage = measure(segment.files, segment.fileno, error.position, least_offset, error.reason, within=min(bound, segment.size))
    if damage.next_offset == NOTHING_FOLLOWS:
        if damage.end < segment.size:
            raise error
        damage = damage._replace(next_offset=segment.next_offset)
    if segment.integrity.note(damage):
        logger.error(
            "event=corrupt-data file=%s first_offset=%d last_offset=%d position=%d bytes=%d reason=%r",
            segment.path,
            damage.first_offset,
            damage.next_offset - 1,
            damage.position,
            damage.end - damage.position,
            damage.reason,
        )
    return damage
