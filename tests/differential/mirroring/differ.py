"""Compares all partitions of a link: during the load as a prefix, and as a whole once the copy has caught up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from barnabas.client.blocking import BlockingClient
from barnabas.client.errors import ClientError
from barnabas.client.results import EARLIEST, LATEST
from barnabas.errors import KafkaError
from tests.differential.mirroring.compare import demand_equal
from tests.differential.mirroring.dumps import dump
from tests.differential.mirroring.load import COMPACTED, Ledger
from tests.differential.mirroring.stored import CLEANED_S, PartitionLog, Unequal, in_folder, on_wire
from tests.waiting import wait_through, wait_while

Partition = tuple[str, int]
CAUGHT_UP_S, LOOK_AGAIN_S = 60.0, 0.05


class Differ:
    """See the module.

    Args:
        source, target: `bootstrap.servers`.
        source_folders, target_folders: log directories of the brokers.
        compacted: topics with compaction.
    """

    def __init__(
        self,
        source: str,
        target: str,
        source_folders: Sequence[Path] = (),
        target_folders: Sequence[Path] = (),
        compacted: Iterable[str] = (COMPACTED,),
    ) -> None:
        self._source, self._target = source, target
        self._source_folders, self._target_folders = source_folders, target_folders
        self._compacted = frozenset(compacted)
        self.batches = 0  # compared in all
        self.dumped = 0  # of them, as the dump tool shows them

    def compare_prefix(self, partitions: Iterable[Partition]) -> None:
        """Compare the present contents of the copies, while both clusters are at work.

        Raises:
            Unequal: a copy has something else than its source.
        """
        with BlockingClient.to(self._source) as source, BlockingClient.to(self._target) as target:
            there = target.topics_by_name(sorted({topic for topic, _ in partitions}))
            for topic, index in partitions:
                if topic not in there or index not in there[topic].partitions:
                    continue
                copy = on_wire(target, topic, index)
                original = on_wire(source, topic, index)
                self.batches += demand_equal(original, copy, compacted=topic in self._compacted, is_whole=False)

    def compare(self, partitions: Sequence[Partition], ledger: Ledger | None = None) -> int:
        """Wait until the copies have everything, then compare all of it, over the wire and in the folders; nobody writes to the source
        meanwhile. Returns how many acknowledged records were found in the copies.

        Raises:
            Unequal: a copy is not what its source is.
            AssertionError: a copy does not catch up.
        """
        self.wait_until_caught_up(partitions)
        found = 0
        with BlockingClient.to(self._source) as source, BlockingClient.to(self._target) as target:
            for topic, index in partitions:
                is_compacted = topic in self._compacted
                original, copy = on_wire(source, topic, index), on_wire(target, topic, index)
                self.batches += demand_equal(original, copy, compacted=is_compacted)
                if ledger is not None and not is_compacted:
                    found += ledger.check(copy, topic, index)
                for folder in self._folders(topic, index):
                    self.batches += self._compare_folder(folder, original, compacted=is_compacted)
        return found

    def _compare_folder(self, folder: Path, original: PartitionLog, *, compacted: bool) -> int:
        """Compare the files with what the leader of the source gave. While the cleaner replaces a segment, no file may have its records
        for a moment; so a compacted log is read again before it counts as different."""

        def compare() -> int:
            return demand_equal(original, self._part_of(in_folder(folder), original), compacted=compacted)

        return wait_through(compare, Unequal, within_s=CLEANED_S) if compacted else compare()

    def compare_dumps(self, partitions: Sequence[Partition], bounds: Mapping[Partition, tuple[int, int]]) -> None:
        """Compare the output of Kafka's dump tool for all files; the brokers must have stopped.

        Args:
            bounds: start and end of each partition, as `bounds` gave them before the brokers stopped.
        """
        folders = [folder for topic, index in partitions for folder in self._folders(topic, index)]
        dumped = dump(folders)
        for topic, index in partitions:
            first, *others = self._folders(topic, index)
            start, end = bounds[topic, index]
            for other in others:
                self.dumped += dumped[first].compare(str(other), dumped[other], start, end, compacted=topic in self._compacted)

    def have_gaps(self, partitions: Sequence[Partition]) -> list[tuple[bool, bool]]:
        """Whether compaction has removed records of each partition: in the source, and in the copy."""
        with BlockingClient.to(self._source) as source, BlockingClient.to(self._target) as target:
            return [(_has_gap(on_wire(source, *each)), _has_gap(on_wire(target, *each))) for each in partitions]

    def bounds(self, partitions: Sequence[Partition]) -> dict[Partition, tuple[int, int]]:
        """Start and end of each partition in the source."""
        with BlockingClient.to(self._source) as source:
            starts, ends = (source.list_offsets(dict.fromkeys(partitions, at)) for at in (EARLIEST, LATEST))
        return {each: (starts[each].offset, ends[each].offset) for each in partitions}

    def _folders(self, topic: str, index: int) -> list[Path]:
        places = [place / f"{topic}-{index}" for place in (*self._source_folders, *self._target_folders)]
        return [place for place in places if place.is_dir()]

    @staticmethod
    def _part_of(stored: PartitionLog, original: PartitionLog) -> PartitionLog:
        """Files may have more at the start, because segments are deleted as a whole. Gaps of compaction may be at both ends."""
        if stored.end > original.end:
            raise Unequal(f"{stored.where} ends at {stored.end}, and {original.where} at {original.end}")
        last = max(original.batches.values(), key=lambda each: each.header.base_offset, default=None)
        if last is not None and stored.end < last.header.next_offset:
            raise Unequal(f"{stored.where} ends at {stored.end}, and {original.where} at {original.end}")
        return PartitionLog(stored.where, original.start, original.end, stored.batches)

    def wait_until_caught_up(self, partitions: Sequence[Partition]) -> None:
        """Raises AssertionError."""
        wait_while(lambda: self._lag(partitions), "the copies do not catch up", within_s=CAUGHT_UP_S, look_again_s=LOOK_AGAIN_S)

    def _lag(self, partitions: Sequence[Partition]) -> str:
        """A partition whose copy has not everything, or the reason why that is not known; "" if there is none."""
        try:
            theirs = self.bounds(partitions)
            with BlockingClient.to(self._target) as target:
                found = target.topics_by_name(sorted({topic for topic, _ in partitions}))
                missing = [(t, i) for t, i in partitions if t not in found or i not in found[t].partitions]
                if missing:
                    return f"{missing[0]} is not there"
                starts, ends = (target.list_offsets(dict.fromkeys(partitions, at)) for at in (EARLIEST, LATEST))
        except (ClientError, KafkaError) as error:
            return str(error)
        for each in partitions:
            ours = starts[each].offset, ends[each].offset
            if ours != theirs[each]:
                return f"{each} is {ours}, and {theirs[each]} in the source"
        return ""


def _has_gap(log: PartitionLog) -> bool:
    return sum(batch.header.records_count for batch in log.batches.values()) < log.end - log.start
