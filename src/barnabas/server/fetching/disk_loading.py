"""Loads the regions of a fetch that are on the disk or unverified: a thread reads them into memory and verifies them.

The answer waits for the thread, while the loop continues. So the broker holds the regions until then. If a log was truncated in between,
its results are void. If many files are held, an answer has its first region, and of the others only those that need no further descriptor.

The results for a follower are void too if it has named the partition again in between. The follower drops this answer. If the leader noted
its values as told, the next answer would not contain them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from barnabas.errors import ErrorCode
from barnabas.server import page_cache
from barnabas.server.fetching.partition_lookup import FetchBroker, Found, PartitionLookup, failed
from barnabas.server.logs.damaged_reads import tell_damage
from barnabas.server.page_cache import Loaded
from barnabas.server.pinned_regions import PinnedRegion
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import Files
from barnabas.storage.verify import Verified

if TYPE_CHECKING:
    from barnabas.server.connection import Connection

logger = logging.getLogger(__name__)
MOST_COPIED_BYTES = 64 * 1024  # of an answer: copies for a slow reader wait in memory


def not_at_hand(files: Files, found: list[Found]) -> list[int]:
    """The slots of regions that must be loaded before they are sent. Copies small regions that are in memory into `found`."""
    doubtful = []
    copied = 0
    for slot, (wanted, data) in enumerate(found):
        region = data.records
        if isinstance(region, FileRegion):
            records = page_cache.at_hand(files, region, may_copy=copied < MOST_COPIED_BYTES)
            if records is None:
                doubtful.append(slot)
            elif records is not region:
                copied += records.size
                found[slot] = wanted, data.with_records(records)
    return doubtful


def hold(broker: FetchBroker, connection: Connection, found: list[Found]) -> dict[int, FileRegion] | None:
    """Hold the found regions until they are sent, because the loop runs before that. Returns them by slot; None if the connection had to
    close.
    """
    held, regions, is_first = broker.pinned_files, dict[int, FileRegion](), True
    try:
        for slot, (wanted, data) in enumerate(found):
            region = data.records
            if isinstance(region, FileRegion):
                if is_first or held.has_room_for(region):
                    regions[slot] = region
                    found[slot] = wanted, data.with_records(held.hold(region))
                else:  # the next answer has it
                    found[slot] = wanted, data.without_records()
            is_first = is_first and region is None
    except OSError as error:  # the process has no free descriptors; the reader retries
        logger.warning("event=cold-read-given-up peer=%s error=%r", connection.peer, str(error))
        connection.close()
        return None
    return regions


class DiskLoading:
    """The part of a fetch that waits for the disk; made only for such a fetch.

    Args:
        lookup: found the regions, and looks again.
        answer: gets the results when all of them are in memory and valid.
        again: gets the results when all partitions need another look.
    """

    def __init__(
        self,
        broker: FetchBroker,
        connection: Connection,
        lookup: PartitionLookup,
        answer: Callable[[list[Found]], None],
        again: Callable[[list[Found]], None],
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._lookup = lookup
        self._answer = answer
        self._again = again

    def start(self, found: list[Found], doubtful: list[int]) -> None:
        """Let a thread load the regions in these slots."""
        files = self._broker.files
        regions = hold(self._broker, self._connection, found)
        if regions is None:
            return
        doubtful = [slot for slot in doubtful if slot in regions]
        if not doubtful:
            self._answer(found)
            return
        pairs = [(regions[slot], cast(PinnedRegion, found[slot][1].records)) for slot in doubtful]
        future = self._broker.loop.run_in_executor(self._broker.reading_threads, page_cache.load, files, pairs)
        asked = [(slot, region, region.integrity.cuts) for slot, (region, _) in zip(doubtful, pairs, strict=True)]
        named = [wanted.named for wanted, _ in found]
        future.add_done_callback(lambda done: self._after_load(found, asked, named, done))

    def _after_load(
        self,
        found: list[Found],
        asked: list[tuple[int, FileRegion, int]],
        named: list[int],
        done: asyncio.Future[list[Loaded | OSError]],
    ) -> None:
        """Take the results of the thread.

        Args:
            asked: slots in `found`, their regions, and the number of cuts of their segments at that time.
            named: for each of `found`, how often requests had named it at that time.
        """
        if done.cancelled() or done.exception() is not None:
            logger.error("event=cold-read-failed peer=%s error=%r", self._connection.peer, done.cancelled() or done.exception())
            self._connection.close()
            return
        for (slot, region, cuts), loaded in zip(asked, done.result(), strict=True):
            minimum_one = all(data.records is None for _, data in found[:slot])
            if region.integrity.cuts == cuts:
                found[slot] = self._loaded(found[slot], region, loaded, minimum_one=minimum_one)
            else:  # the log was truncated while a thread read it
                found[slot] = self._another_look(found[slot], region, minimum_one=minimum_one)
        if self._lookup.replica_id >= 0:
            found = [each for each, count in zip(found, named, strict=True) if each[0].named == count]
        if not self._connection.closed:
            self._again(found)

    def _loaded(self, found: Found, region: FileRegion, loaded: Loaded | OSError, *, minimum_one: bool) -> Found:
        """The answer of a partition after the read of its region: the whole region, the part before damage, or an error."""
        wanted, data = found
        if isinstance(loaded, OSError):
            return wanted, self._lookup.unreadable(wanted, loaded)
        integrity, verified = region.integrity, loaded.verified
        integrity.add(region.position, verified.end)
        if loaded.is_from_disk:
            integrity.forget_behind(verified.end, verified.size, region.position + region.size)
        partition = self._lookup.find(wanted)
        if partition is None:  # the topic was deleted in the meantime
            return wanted, self._lookup.failure(wanted, self._lookup.absence(wanted))
        if partition.is_offline:
            return wanted, self._lookup.failure(wanted, partition.refusal)
        if verified.damage is None:
            return self._sound(found, region, verified, minimum_one=minimum_one)
        damage = partition.log.reader.bounded(verified.damage)
        if integrity.note(damage):
            self._broker.metrics.corrupt_stretches += 1
            tell_damage(partition.topic, partition.index, damage)
        if verified.end > region.position:
            cast(PinnedRegion, data.records).size = verified.end - region.position
            return found
        if wanted.fetch_offset >= damage.next_offset:  # a header with wrong offsets led here
            data = self._lookup.look_at(partition, wanted, region.size, minimum_one=True, is_verified_later=False)
            again = cast("FileRegion | None", data.records)
            if again is None or again.position != region.position:
                return wanted, data
        return wanted, failed(wanted.index, ErrorCode.CORRUPT_MESSAGE)

    def _sound(self, found: Found, region: FileRegion, verified: Verified, *, minimum_one: bool) -> Found:
        """The answer of a partition from a verified region: its whole batches."""
        _, data = found
        # no whole batch, or batches that compaction emptied, which only followers take
        if not verified.has_records and (region.reach or self._lookup.replica_id < 0):
            return self._another_look(found, region, minimum_one=minimum_one)
        if verified.end != region.position + region.size:
            cast(PinnedRegion, data.records).size = verified.end - region.position
        region.integrity.note_end(verified.next_offset, verified.end)
        return found

    def _another_look(self, found: Found, region: FileRegion, *, minimum_one: bool) -> Found:
        """The answer of a partition from another look, which finds the end of the region itself."""
        wanted, _ = found
        partition = self._lookup.find(wanted)
        if partition is None:
            return wanted, self._lookup.failure(wanted, self._lookup.absence(wanted))
        return wanted, self._lookup.look_at(partition, wanted, region.size, minimum_one=minimum_one, is_verified_later=False)
