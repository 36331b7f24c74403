"""Where a log here parts from its source, and the cut there: for a failback, and for a copy whose source has lost records.

Rules
  1. The offset is searched up to which both logs are the same (`CommonPoint`). A fetcher sends `position`, and passes the
     answer to `search`.
  2. Records are cut off only while the topic's state is `truncating`. The state `comparing` is set before, so nothing else is written here
     in the meantime.
  3. A log that was cut takes nothing before the next leader epoch: by that epoch, replicas that were away and consumers learn of the cut.
"""

from __future__ import annotations

from barnabas.config.mirror_settings import INSPECTING, TRUNCATING
from barnabas.mirror.common_point import NO_LIMIT, READ_BYTES, CommonPoint
from barnabas.protocol.records.batch_header import HEADER_SIZE, Buffer, read_header
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.storage.producer_rewind import ProducerRewind

NO_EPOCH = UNKNOWN = NO_POSITION = -1


class Divergence:
    """Of one partition that this broker leads."""

    def __init__(self, partition: LeaderPartition) -> None:
        self._partition, self._log = partition, partition.log
        self.common_offset = UNKNOWN  # both logs are the same below it
        self._search: CommonPoint | None = None
        self._cut_in_epoch = NO_EPOCH

    # The search

    @property
    def is_known(self) -> bool:
        """Whether `common_offset` is known, for the log as it is."""
        return self.common_offset != UNKNOWN

    @property
    def position(self) -> int | None:
        """The offset to fetch next; None if no search has begun."""
        return None if self._search is None else self._search.position

    @property
    def fetch_bytes(self) -> int | None:
        """The number of bytes that the next fetch needs; None for as many as possible."""
        return None if self._search is None else self._search.probe_bytes

    def forget(self, *, keep_offset: bool = False) -> None:
        """Begin the search anew, or end it with the offset that it has found."""
        self._search = None
        if not keep_offset:
            self.common_offset = UNKNOWN

    def search(self, asked: int, records: Buffer, source_start: int, source_end: int) -> bool:
        """Go on after an answer of the source, whose log is [source_start, source_end); whether the offset is known.

        Args:
            asked: the offset of the fetch; NO_POSITION if the answer has the range alone.
        """
        if self.is_known:
            return True
        if self._search is None:
            self._search = CommonPoint(
                self._read,
                start=self._log.log_start_offset,
                end=self._log.log_end_offset,
                source_start=source_start,
                source_end=source_end,
                limit=self._promoted_end(),
                is_compacted="compact" in self._log.config.cleanup_policy,
            )
        else:
            self._search.begins_at(source_start)
        search = self._search
        if not search.is_done and search.position == asked and _is_usable(records):
            search.receive(records)
        if search.is_done:
            self.common_offset, self._search = search.offset, None
        return self.is_known

    def _promoted_end(self) -> int:
        """The end of the source when it was promoted; NO_LIMIT if it does not tell."""
        for each in self._log.config.mirror_source_promoted_ends:
            partition, _, end = each.partition(":")
            if partition == str(self._partition.index):
                return int(end)
        return NO_LIMIT

    def _read(self, offset: int) -> Buffer:
        log = self._log
        if offset >= log.log_end_offset:
            return b""
        offset = max(offset, log.log_start_offset)
        region = log.reader.read(offset, READ_BYTES, limit_offset=log.log_end_offset, minimum_one=True)
        return b"" if region is None else log.files.pread(region.fileno, region.size, region.position)

    @property
    def beyond(self) -> int:
        """How many offsets of the log lie at or past the common one."""
        return self._log.log_end_offset - max(self.common_offset, self._log.log_start_offset)

    # The cut

    @property
    def must_cut(self) -> bool:
        """Whether the log has records from the common offset on that must be cut off."""
        return self._log.config.mirror_state == TRUNCATING and self.is_known and self.common_offset < self._log.log_end_offset

    @property
    def must_wait(self) -> bool:
        """Whether the log was cut in this leader epoch, so that it takes nothing."""
        return self._cut_in_epoch >= self._partition.leader_epoch

    @property
    def _is_emptied(self) -> bool:
        """Whether the cut leaves nothing, and the log starts again at 0: no record before the common offset is here, or compaction has
        removed some of them in favour of records that are cut off. The copy continues at the start of the source."""
        return self.common_offset <= self._log.log_start_offset or self.common_offset < self._log.cleaned_end

    def may_cut(self) -> bool:
        """Whether the log can be cut now. If not, its checkpoints must be written first, or a swap of segments must end."""
        return not self._log.is_swapping and self._log.truncator.may_cut(0 if self._is_emptied else self.common_offset)

    def plan_cut(self) -> ProducerRewind | None:
        """The slow part of `cut`, for a thread; None if there is none."""
        return None if self._is_emptied else self._log.truncator.plan_truncation(self.common_offset)

    def cut(self, rewind: ProducerRewind | None) -> int:
        """Cut the log at the common offset; returns by how many offsets. 0 if the log or its role has changed since it was planned.

        Raises:
            LogDirFailed: the disk does not work.
        """
        partition, log = self._partition, self._log
        if partition.closed or not self.must_cut or not self.may_cut():
            return 0
        if rewind is not None and not log.truncator.still_holds(rewind):
            return 0
        count = self.beyond
        partition.cut_log(self.common_offset, rewind, start_again_at=0 if self._is_emptied else None)
        self.common_offset = log.log_end_offset
        self._cut_in_epoch = partition.leader_epoch
        return count

    @property
    def state(self) -> str:
        """The state for the status: inspected, compared or truncated once the next step of the failback may follow."""
        partition, log = self._partition, self._log
        state = log.config.mirror_state
        if not self.is_known:
            return state
        is_whole = partition.high_watermark == log.log_end_offset
        if state == TRUNCATING:
            is_done = not self.must_cut and is_whole and partition.is_followed_exactly and not log.is_overstated
            return "truncated" if is_done else state
        if state == INSPECTING:
            return "inspected"
        return "compared" if is_whole else state


def _is_usable(records: Buffer) -> bool:
    """Whether the answer has a whole batch, or shows that there is none."""
    size = len(records)
    return not size or (size >= HEADER_SIZE and read_header(records).size <= size)
