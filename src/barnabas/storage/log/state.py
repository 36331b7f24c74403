"""The state of a partition's log: its segments, its start, its end and its marks.

Owns the fields that the parts of a log work on (`reader`, `appender`, `truncator`); it changes none of them,
except that it cuts off the rest of a failed write. Code outside of this folder only reads them.

Between two calls its marks are in this order (`validate` checks it):

    kept_start_offset
        <= log_start_offset     [log_start_offset, log_end_offset) can be read
        <= log_end_offset       = where the active segment ends
    first_offset                = where the oldest segment begins
        <= log_start_offset
    recovery_point              all of [.., recovery_point) is on the disk, with its indexes
        <= durable_end          the records of [.., durable_end) are
        <= log_end_offset
    cleaned_end
        <= log_end_offset
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from barnabas.config.topic import TopicConfig
from barnabas.errors import Closed, InvariantViolated
from barnabas.storage.epoch_file import EpochFile
from barnabas.storage.files import Files
from barnabas.storage.flushing import Flusher
from barnabas.storage.garbage import Garbage
from barnabas.storage.log_segments import LogSegments
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.producer_state import ProducerEntry, ProducerStates
from barnabas.storage.segment import SNAPSHOT_SUFFIX, Segment, file_name
from barnabas.storage.snapshot import encode_snapshot

PRODUCER_ID_EXPIRATION_MS = 86_400_000  # Kafka's producer.id.expiration.ms
MAX_OFFSET = 2**63 - 1


class LogState:
    """The state of one partition's log."""

    def __init__(
        self, directory: Path, topic: str, partition: int, topic_id: UUID | None, config: TopicConfig, files: Files
    ) -> None:
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.log_start_offset = 0
        self.kept_start_offset = 0  # the log start offset that the disk is known to hold; at most `log_start_offset`
        self.is_overstated = False  # set by a truncation: the offsets in the checkpoint files may be too high
        self.lowest_cut = MAX_OFFSET  # lowest end offset of the truncations that may not be on the disk yet
        self.announced_cuts = 0
        self.log_end_offset = 0
        self.producer_id_expiration_ms = PRODUCER_ID_EXPIRATION_MS
        self.files = files
        self.open_files: OpenFiles | None = None
        self.segments: LogSegments
        self.epoch_file: EpochFile
        self.flusher: Flusher
        self.producer_states = ProducerStates()
        self.roll_size = self.roll_time = self.roll_offset = -1  # a batch past one of these bounds may need another segment
        self.is_torn = False  # a write failed: the file may hold bytes past the active segment's size
        self.was_torn = False  # a write failed since the log was opened: the cut of such bytes may not be on the disk
        self.snapshot_offset = -1  # of the last producer snapshot written since the log was opened or truncated; -1: none
        # Offset of the last roll that left its snapshot to a flush, and the producers at that offset.
        self.rolled_producers: tuple[int, Sequence[ProducerEntry]] = -1, ()
        self.garbage: list[Garbage] = []
        self.as_on_disk: tuple[int, int, int, int] | None = None  # the value of `extent` at which the files were complete
        self.closed = False
        self.swapping: Segment | None = None  # the cleaned segment
        # Compaction may have removed records below this offset whose keys have later records below it.
        self.cleaned_end = 0
        self.lowest_truncation = MAX_OFFSET  # since the log cleaner (`server.cleaning`) last reset this field

    @property
    def extent(self) -> tuple[int, int, int, int]:
        """Differs after every change: appends move the end, removals from the end count as truncations, a roll begins a segment."""
        return self.log_start_offset, self.log_end_offset, self.active_base_offset, self.flusher.truncations

    @property
    def recovery_point(self) -> int:
        """Everything below it is on the disk."""
        return self.flusher.recovery_point

    @property
    def durable_end(self) -> int:
        """Records below it survive the loss of power; at or past `recovery_point`."""
        return self.flusher.durable_end

    @property
    def is_written_down(self) -> bool:
        """Whether the log would begin at the same offset after a crash, with all that is appended from now on."""
        return self.kept_start_offset >= self.log_start_offset and not self.is_overstated

    @property
    def unflushed_bytes(self) -> int:
        """Bytes of the active segment past the recovery point; all its bytes if the number before that point is unknown."""
        base, flushed = self.flusher.position
        active = self.segments.active
        return max(0, active.size - flushed) if base == active.base_offset else active.size

    @property
    def truncations(self) -> int:
        """Grows whenever records were dropped at the end: earlier copies of the log's files are not trusted after that."""
        return self.flusher.truncations

    @property
    def epoch_entries(self) -> list[tuple[int, int]]:
        """(leader epoch, its first offset) pairs, as they should be in the file."""
        return self.epoch_file.epochs.entries

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def active_base_offset(self) -> int:
        """Base offset of the segment that grows; everything below it is sealed."""
        return self.segments.active.base_offset

    @property
    def first_offset(self) -> int:
        """Base offset of the oldest segment; `log_start_offset` is at or past it."""
        return self.segments.bases[0]

    @property
    def is_swapping(self) -> bool:
        """Whether a thread is renaming files: until that is done, it is uncertain which segment a name belongs to.

        It takes a few syncs; retention, truncations and moves wait for the end.
        """
        return self.swapping is not None

    def validate(self) -> None:
        """Raises InvariantViolated if the marks are out of order or the parts disagree; its time grows with the number of segments."""
        segments, end = list(self.segments), self.log_end_offset
        ordered = {
            "starts": (self.kept_start_offset, self.log_start_offset, end),
            "oldest segment": (self.first_offset, self.log_start_offset),
            "flushed": (self.recovery_point, self.durable_end, end),
            "cleaned": (self.cleaned_end, end),
            "segments": [offset for each in segments for offset in (each.base_offset, each.next_offset)],
            "epochs": [0, *(offset for _, offset in self.epoch_entries), end],
        }
        broken = {name: marks for name, marks in ordered.items() if list(marks) != sorted(marks)}
        if broken or segments[-1].next_offset != end or self.size_bytes != sum(each.size for each in segments):
            raise InvariantViolated(
                f"log {self.directory.name} ends at {end}, its last segment at {segments[-1].next_offset}: {broken}"
            )

    def check_open(self) -> None:
        if self.closed:
            raise Closed(f"log {self.directory.name}")

    def cut_torn(self) -> None:
        if self.is_torn or self.segments.active.reserved:
            self.segments.active.give_back()
            self.is_torn = False

    def snapshot(self) -> None:
        """Write a snapshot of the producers at the log's end."""
        path = self.directory / file_name(self.log_end_offset, SNAPSHOT_SUFFIX)
        self.files.replace_file(path, encode_snapshot(self.producer_states), sync=False)
        self.snapshot_offset = self.log_end_offset
