"""The oracle of mirror links: it knows what the source has committed, and looks at every batch that a copy commits.

It looks into the brokers' logs after every event, and shares no code with mirroring. For each partition it keeps the committed batches of
the source. If the source loses the end of its log (all its machines lost power) and commits other batches there, it has two timelines.

Rules (breaking one is a Violation)
  1. A committed batch of a source is replaced by another one only after a loss of power everywhere.
  2. All committed batches of a copy are of one timeline of its source, at the same offsets. Nothing is missing in between, unless the
     source has deleted it. One case is excused: the source has lost its end, and then removed by compaction what it wrote in the place
     of the copy's last batch. A broker that begins to lead the copy then cannot know that the source has another history.
  3. Only a promoted topic has batches of its own: first markers that abort transactions, then those of producers whose ids no copied
     batch has.
  4. A partition that was told to be ready has everything below the end that was told.
  5. A group's offset in the target is never past the committed end of the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from barnabas.protocol.records.batch import BatchHeader, iterate_records, split_batches
from barnabas.storage.markers import parse_marker
from barnabas.testing.simulation.history import TopicPartition, Violation

if TYPE_CHECKING:
    from barnabas.replication.partition import OnlinePartition
    from barnabas.testing.simulation.node import Node

READ_BYTES = 1 << 20
Term = tuple[str, TopicPartition, int, int]  # host, partition, leader epoch, number of the process's start


class Identity(NamedTuple):
    """A batch at an offset; compaction changes the content of a batch, so `crc` is 0 in compacted topics."""

    last_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    crc: int


class Timeline(Struct, eq=False):
    """Committed batches of a source by base offset, up to `end`.

    Args:
        holes: (start, end) of offsets that the source had deleted before the oracle saw them.
        parent: the timeline that the source left at `left_at`.
    """

    batches: dict[int, Identity] = field(default_factory=dict)
    end: int = 0
    holes: list[tuple[int, int]] = field(default_factory=list)
    parent: Timeline | None = None
    left_at: int = 0

    def has(self, offset: int, identity: Identity) -> bool:
        found = self.batches.get(offset)
        return found == identity if found is not None else any(start <= offset < end for start, end in self.holes)

    def until(self, offset: int) -> Timeline:
        """The timeline of a log that lost everything from `offset` on."""
        kept = {at: each for at, each in self.batches.items() if at < offset}
        return Timeline(kept, offset, list(self.holes), self, offset)


class Partition(Struct):
    """The knowledge about one partition."""

    compacted: bool
    timelines: list[Timeline] = field(default_factory=lambda: [Timeline()])
    may_fork: bool = False  # all machines of the source lost power
    source_start: int = 0
    mark: int = 0  # the largest high watermark of the copy
    told: int = -1  # the end that a status told to be ready
    own: int = -1  # offset of the first batch that is no copy
    producer_ids: set[int] = field(default_factory=set)  # of batches in the source
    hidden: set[int] = field(
        default_factory=set
    )  # offsets at which the copy changed to another timeline that it could not tell apart


class Oracle:
    """See the module.

    Args:
        compacted: of each partition, whether it is compacted.
    """

    def __init__(self, compacted: dict[TopicPartition, bool]) -> None:
        self.partitions = {key: Partition(is_compacted) for key, is_compacted in compacted.items()}
        self._seen: dict[Term, int] = {}
        self._sources: dict[TopicPartition, tuple[Node, OnlinePartition]] = {}  # the leaders of the source
        self._alive: dict[Term, list[Timeline]] = {}
        self.copied = 0  # batches that were looked at in copies

    def power_lost(self) -> None:
        """The source may have lost the ends of its logs."""
        for partition in self.partitions.values():
            partition.may_fork = True

    # After an event

    def look_at_source(self, node: Node) -> None:
        for key, replica, term in self._led(node):
            known = self.partitions[key]
            self._sources[key] = node, replica
            known.source_start = max(known.source_start, replica.log.log_start_offset)
            mark = replica.high_watermark
            position = self._seen.get(term, 0)
            if mark > position:
                self._seen[term] = mark
                self._commit(key, known, replica, position, mark)

    def _commit(self, key: TopicPartition, known: Partition, replica: OnlinePartition, position: int, mark: int) -> None:
        start = max(position, replica.log.log_start_offset)
        for header in _batches(replica, start, mark):
            now, at, identity = known.timelines[-1], header.base_offset, _identity(header, compacted=known.compacted)
            if at < now.end:
                if now.has(at, identity):
                    continue
                if not known.may_fork:
                    raise Violation(
                        f"{key}: the committed batch at {at} of the source became {identity}, {now.batches.get(at)} before"
                    )
                now = now.until(at)
                known.timelines.append(now)
            if at > now.end:
                now.holes.append((now.end, at))
            now.batches[at], now.end = identity, header.next_offset
            if header.producer_id >= 0:
                known.producer_ids.add(header.producer_id)
        known.timelines[-1].end = max(known.timelines[-1].end, mark)

    def look_at_target(self, node: Node) -> None:
        for key, replica, term in self._led(node):
            known = self.partitions[key]
            mark = replica.high_watermark
            known.mark = max(known.mark, mark)
            position = self._seen.get(term, 0)
            if mark > position:
                self._seen[term] = mark
                self._check(key, known, replica, term, position, mark)

    def _check(
        self, key: TopicPartition, known: Partition, replica: OnlinePartition, term: Term, position: int, mark: int
    ) -> None:
        log = replica.log
        due = max(position, log.log_start_offset)
        is_copy = log.config.is_mirrored and log.config.mirror_state == "mirroring"
        if log.log_start_offset >= position:  # nothing is left of what was looked at
            self._alive[term] = list(known.timelines)
        alive = self._alive.setdefault(term, list(known.timelines))
        for timeline in known.timelines:
            if timeline not in alive and timeline.parent in alive and timeline.left_at >= due:
                alive.append(timeline)
        for header in _batches(replica, due, mark):
            at, identity = header.base_offset, _identity(header, compacted=known.compacted)
            self.copied += 1
            if at <= log.log_start_offset:  # an empty copy may begin again inside of a batch, before its former end
                alive[:] = known.timelines
            may_be_copied = known.own < 0 or at < known.own
            fitting = [each for each in alive if each.has(at, identity)] if may_be_copied else []
            if not fitting and may_be_copied:
                fitting = self._hidden_by_compaction(key, known, due, at, identity)
            if fitting:
                if at > due and not known.compacted:
                    self._check_gap(key, known, fitting, due, at)
                alive[:] = fitting
            elif is_copy:
                raise Violation(f"{key}: the copy on {replica.log.directory.parent} has {identity} at {at}, which is of no timeline "
                                f"of its source that has the batches before")  # fmt: skip
            else:
                self._check_own(key, known, replica, header)
            due = header.next_offset

    def _hidden_by_compaction(
        self, key: TopicPartition, known: Partition, due: int, at: int, identity: Identity
    ) -> list[Timeline]:
        """The timelines that the copy may change to at `due`, because the source has no batch any more that shows the difference."""
        if known.compacted and known.may_fork and due not in known.hidden and self._is_hidden(key, due):
            known.hidden.add(due)
        return [each for each in known.timelines if each.has(at, identity)] if due in known.hidden else []

    def _is_hidden(self, key: TopicPartition, due: int) -> bool:
        node, source = self._sources.get(key, (None, None))
        if node is None or source is None or source.closed or node.process is None or node.process.files.dead:
            return False
        if not source.log.log_start_offset <= due - 1 < source.log.log_end_offset:
            return False
        found = next(_batches(source, due - 1, source.log.log_end_offset), None)
        return found is None or found.base_offset >= due

    def _check_gap(self, key: TopicPartition, known: Partition, fitting: list[Timeline], due: int, at: int) -> None:
        start = max(due, known.source_start)
        lacking = [each for each in fitting[0].batches if start <= each < at]
        if lacking:
            raise Violation(f"{key}: the copy continues at {at} after {due}, and the source has a batch at {lacking[0]}")

    def _check_own(self, key: TopicPartition, known: Partition, replica: OnlinePartition, header: BatchHeader) -> None:
        if header.is_control and _aborts(replica, header):
            known.own = header.base_offset if known.own < 0 else min(known.own, header.base_offset)
            return
        if replica.log.config.is_mirrored:
            raise Violation(f"{key}: a copy that is promoted has a batch of its own at {header.base_offset}")
        known.own = header.base_offset if known.own < 0 else min(known.own, header.base_offset)
        if header.producer_id in known.producer_ids and not header.is_control:
            raise Violation(f"{key}: producer id {header.producer_id} of the batch at {header.base_offset} is in the copy too")

    def _led(self, node: Node) -> Iterator[tuple[TopicPartition, OnlinePartition, Term]]:
        process = node.process
        if process is None or process.files.dead:
            return
        for replica in process.broker.partitions:
            key = replica.topic, replica.index
            if key in self.partitions and replica.is_leader and not replica.closed:
                yield key, replica, (node.host, key, replica.leader_epoch, node.starts)

    # At the end

    def check_group(self, group: str, key: TopicPartition, offset: int) -> None:
        """A group's committed offset in the target."""
        if offset > self.partitions[key].mark:
            raise Violation(f"{group} is at {offset} in the copy {key}, which ends at {self.partitions[key].mark}")

    def check_told(self, key: TopicPartition, end: int) -> None:
        """The partition of the target ends at `end`."""
        if end < self.partitions[key].told:
            raise Violation(f"lost write: {key} was told to be ready with the end {self.partitions[key].told}, and ends at {end}")

    def is_torn(self, key: TopicPartition) -> bool:
        """Whether the source may have lost records that the copy has."""
        return self.partitions[key].may_fork


def _identity(header: BatchHeader, *, compacted: bool) -> Identity:
    crc = 0 if compacted else header.crc
    return Identity(header.last_offset, header.producer_id, header.producer_epoch, header.base_sequence, crc)


def _read(replica: OnlinePartition, start: int, end: int) -> Iterator[tuple[memoryview, int, BatchHeader]]:
    log, offset = replica.log, start
    while offset < end:
        region = log.reader.read(offset, READ_BYTES, limit_offset=end, minimum_one=True, as_stored=True)
        if region is None:
            return
        data = memoryview(log.files.pread(region.fileno, region.size, region.position))
        for position, header in split_batches(data, allow_partial=True):
            yield data, position, header
            offset = header.next_offset


def _batches(replica: OnlinePartition, start: int, end: int) -> Iterator[BatchHeader]:
    return (header for _, _, header in _read(replica, start, end))


def _aborts(replica: OnlinePartition, wanted: BatchHeader) -> bool:
    for data, position, header in _read(replica, wanted.base_offset, wanted.next_offset):
        decisions = [parse_marker(record) for record in iterate_records(data, position)]
        return header == wanted and all(each is not None and each[0] for each in decisions)
    return False
