"""Two partitions without brokers: a source that clients write to, and a copy of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.mirror.partition_copy import PartitionCopy, SourceAnswer, Step
from barnabas.protocol.records.batch import build_batch, split_batches
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.storage.files import OsFiles
from barnabas.storage.log import Log
from barnabas.storage.log.appender import LogAppender
from barnabas.storage.markers import marker_batch
from barnabas.storage.mirror_appender import MirrorAppender

NOW_MS = 1_700_000_000_000
EPOCH_BYTES = slice(12, 16)


def open_partition(folder: Path, name: str, leader_epoch: int, config: TopicConfig | None = None) -> LeaderPartition:
    log = Log.open(
        folder / f"{name}-0",
        config=config or TopicConfig(),
        files=OsFiles(),
        now_ms=NOW_MS,
        clean_shutdown=False,
        topic_id=UUID(int=7),
    )
    return LeaderPartition(log, leader_id=1, leader_epoch=leader_epoch)


class Pair:
    """A source in leader epoch 5, and its copy in leader epoch 2."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.source = open_partition(folder, "source", 5, TopicConfig(**settings))
        self.target = open_partition(folder, "copy", 2, TopicConfig(mirror_link="link", **settings))
        self.target.log.appender = MirrorAppender(self.target.log)
        self.copy = PartitionCopy(self.target, NOW_MS)

    def close(self) -> None:
        """Check both logs, and close them."""
        for log in (self.source.log, self.target.log):
            log.validate()
            log.close()

    def write(
        self, *values: bytes, producer_id: int = -1, sequence: int = -1, transactional: bool = False, epoch: int = 0
    ) -> None:
        fields: dict[str, Any] = {}
        if producer_id >= 0:
            fields = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        made = build_batch([(None, value) for value in values], timestamp_ms=NOW_MS, transactional=transactional, **fields)
        self.source.append_as_leader(memoryview(bytearray(made)), NOW_MS)

    def end(self, producer_id: int, *, commit: bool) -> None:
        batch, ending = marker_batch(producer_id, 0, commit=commit, coordinator_epoch=3, now_ms=NOW_MS)
        self.source.append_own(batch, NOW_MS, ending)

    def round(self, max_bytes: int = 2**20) -> Step:
        """One fetch; returns the step after it. The broker has written its checkpoints before."""
        truncator = self.target.log.truncator
        truncator.start_written(truncator.start_mark)
        assert self.copy.wants_records or not self.copy.is_drained
        asked = self.copy.position
        step = self.copy.receive(asked, self.answer(asked, max_bytes), NOW_MS)
        if step is Step.TAKE:
            for _ in self.copy.take(memoryview(bytearray(self.answer(asked, max_bytes).records)), NOW_MS):
                pass
        elif step is Step.ASK_RANGE:
            step = self.copy.receive_range(self.source.log.log_start_offset, self.source.high_watermark)
        if step is Step.CUT:
            self.cut()
        if self.copy.must_ask_end and self.source.knows_end:
            self.copy.receive_end(self.source.high_watermark)
        return step

    def cut(self) -> int:
        """Write the checkpoints, plan the cut, do it, and write the checkpoints again, as the fetcher does."""
        log = self.target.log
        if not self.copy.divergence.may_cut():
            log.truncator.start_written(log.truncator.start_mark)
        rewind = self.copy.divergence.plan_cut()
        if rewind is not None:
            rewind.run()
        count = self.copy.divergence.cut(rewind)
        log.truncator.start_written(log.truncator.start_mark)
        return count

    def set_state(self, state: str) -> None:
        """Change the setting mirror.state of the topic here."""
        self.target.update_config(replace(self.target.log.config, mirror_state=state))

    def write_here(self, *values: bytes, producer_id: int = -1, sequence: int = -1, transactional: bool = False) -> None:
        """Write to the target, as clients did before it became a copy."""
        log, first = self.target.log, self.target.log.log_end_offset
        fields: dict[str, Any] = {}
        if producer_id >= 0:
            fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        made = build_batch([(None, value) for value in values], timestamp_ms=NOW_MS, transactional=transactional, **fields)
        LogAppender(log).append_as_leader(bytearray(made), leader_epoch=self.target.leader_epoch, now_ms=NOW_MS)
        self.target.took_over(first, len(made))

    def begin_epoch(self) -> None:
        """The leader here gets its next epoch."""
        self.target.leader_epoch += 1

    def answer(self, asked: int, max_bytes: int = 2**20) -> SourceAnswer:
        """The source's answer to a fetch, as a broker gives it to a consumer that tells the epoch of its last batch."""
        log = self.source.log
        try:
            has_diverged = self.source.diverging_epoch(self.copy.source_epoch, asked) is not None
            region = self.source.read(asked, max_bytes, minimum_one=True)
        except KafkaError as error:
            return SourceAnswer(error.code, -1, -1, b"")
        data = b"" if region is None else log.files.pread(region.fileno, region.size, region.position)
        return SourceAnswer(ErrorCode.NONE, self.source.high_watermark, log.log_start_offset, data, has_diverged)

    def rounds(self, most: int = 20) -> None:
        """Fetch until the copy has everything."""
        for _ in range(most):
            self.round()
            if self.copy.source_end == self.target.log.log_end_offset == self.source.high_watermark:
                return
        raise AssertionError(f"the copy ends at {self.target.log.log_end_offset}: {self.copy.reason}")

    def differences(self) -> list[str]:
        """Each batch that differs in more than its leader epoch."""
        theirs, ours = _batches(self.source), _batches(self.target)
        found = [f"{at}: {theirs.get(at)!r} became {ours.get(at)!r}" for at in sorted(theirs.keys() | ours.keys())
                 if theirs.get(at) != ours.get(at)]  # fmt: skip
        return found

    def lose(self, offset: int) -> None:
        """The source loses its records from an offset on, as in an unclean election."""
        self.source.log.truncator.truncate_to(offset)
        self.source.high_watermark = offset

    def restart_source(self) -> None:
        """Another broker leads the source, in the next epoch, with the same log."""
        self.source = LeaderPartition(self.source.log, leader_id=3, leader_epoch=self.source.leader_epoch + 1)

    def restart_copy(self) -> None:
        """Another broker leads the copy: the log is the same, what the leader knew is gone."""
        log = self.target.log
        self.target = LeaderPartition(log, leader_id=2, leader_epoch=self.target.leader_epoch + 1)
        self.copy = PartitionCopy(self.target, NOW_MS)


def _batches(partition: LeaderPartition) -> dict[int, bytes]:
    """The bytes of each batch without its leader epoch, by base offset."""
    log, found, offset = partition.log, {}, partition.log.log_start_offset
    while offset < log.log_end_offset:
        region = log.reader.read(offset, 2**30, limit_offset=log.log_end_offset, minimum_one=True)
        if region is None:
            break
        data = log.files.pread(region.fileno, region.size, region.position)
        for position, header in split_batches(data):
            batch = bytearray(data[position : position + header.size])
            batch[EPOCH_BYTES] = b"\0" * 4
            found[header.base_offset] = bytes(batch)
            offset = header.last_offset + 1
    return found
