"""The log against a list of records: append, roll, read, truncate, delete, close and torn writes, in any order."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.records.batch import Record
from barnabas.protocol.records.rows import ROW, Run
from barnabas.storage.log import Log
from barnabas.storage.open_files import OpenFiles
from tests.storage.support import NOW, append, batch, bytes_of, open_log, read_all, records_in

CONFIG = TopicConfig(segment_bytes=1500, index_interval_bytes=200, segment_index_bytes=96, segment_ms=5_000)


class AgainstAList(RuleBasedStateMachine):
    """`batches` is the model: base offset, records and leader epoch of every batch that should be there."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.open_files = OpenFiles(100, lambda _: None)
        self.log: Log = open_log(self.folder, CONFIG, open_files=self.open_files)
        self.batches: list[tuple[int, list[Record], int]] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.flushed = 0
        self.time = NOW

    def teardown(self) -> None:
        self.log.abandon()
        shutil.rmtree(self.folder)

    def expected(self) -> list[Record]:
        return [record for _, records, _ in self.batches for record in records if record.offset >= self.start]

    def took(self, values: list[bytes]) -> None:
        records = [Record(self.end + i, self.time + i, b"key", value) for i, value in enumerate(values)]
        self.batches.append((self.end, records, self.epoch))
        self.end += len(values)

    @rule(values=st.lists(st.binary(max_size=120), min_size=1, max_size=8), codec=st.integers(0, 4), writable=st.booleans())
    def append(self, values: list[bytes], codec: int, writable: bool) -> None:
        data = batch(*values, time_ms=self.time, compression=codec)
        view = memoryview(data) if writable else memoryview(bytes(data))
        result = self.log.appender.append_as_leader(view, leader_epoch=self.epoch, now_ms=self.time)
        assert (result.first_offset, result.last_offset) == (self.end, self.end + len(values) - 1)
        self.took(values)

    @rule(wanted=st.lists(st.lists(st.binary(max_size=60), min_size=1, max_size=3), min_size=1, max_size=6))
    def append_run(self, wanted: list[list[bytes]]) -> None:
        bounds = self.log.appender.bounds_of_run(self.time, 2**20, 100)
        assert bounds is not None
        newest, room, offsets = bounds.newest, bounds.room, bounds.offsets
        buffer, rows, taken, size = bytearray(), b"", [], 0
        for number, values in enumerate(wanted):
            data = batch(*values, time_ms=self.time)
            room, offsets = room - len(data), offsets - len(values)
            if room < 0 or offsets < 0 or self.time + len(values) - 1 > newest:
                break
            buffer += b"between them" + data
            size += len(data)
            rows += ROW.pack(number, len(buffer) - len(data), len(buffer), len(values), self.time + len(values) - 1)
            taken.append(values)
        if not taken:
            return
        whole = Run(rows, len(taken), sum(map(len, taken)), size, len(buffer), has_producer=False)
        admitted = self.log.appender.admits_run(whole, memoryview(buffer), leader_epoch=self.epoch)
        assert admitted == (self.log.reader.latest_epoch >= self.epoch)
        if not admitted:
            return
        assert self.log.appender.append_run(whole, memoryview(buffer), leader_epoch=self.epoch) == self.end
        for values in taken:
            self.took(values)

    @rule(counts=st.lists(st.integers(1, 3), min_size=1, max_size=6), cut=st.booleans())
    def append_as_follower(self, counts: list[int], cut: bool) -> None:
        data = bytearray()
        for count in counts:
            values = [b"follower"] * count
            data += batch(*values, time_ms=self.time, base_offset=self.end, partition_leader_epoch=self.epoch)
            self.took(values)
        if cut:
            data += batch(b"partial", base_offset=self.end)[:-3]
        self.log.appender.append_as_follower(memoryview(data), now_ms=self.time)

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule(passed=st.integers(0, 4_000))
    def time_passes(self, passed: int) -> None:
        self.time += passed
        self.log.appender.maybe_roll(self.time)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        offset = self.start + round(share * (self.end - self.start))
        self.log.truncator.delete_records_before(offset)
        self.log.truncator.detach_below_start()
        self.start = offset
        for garbage in self.log.truncator.take_garbage():
            garbage.remove()

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        offset = self.start + round(share * (self.end - self.start))
        self.log.truncator.truncate_to(offset)
        if offset < self.end:
            self.batches = [entry for entry in self.batches if entry[1][-1].offset < offset]
            self.end = self.log.log_end_offset
            kept = self.batches[-1][1][-1].offset + 1 if self.batches else self.end
            assert self.end == kept
            assert self.end <= offset
            self.start = min(self.start, self.end)
            self.flushed = min(self.flushed, self.end)

    @precondition(lambda self: self.end > 20)
    @rule(skip=st.integers(0, 5))
    def start_over(self, skip: int) -> None:
        self.start = self.end = self.flushed = self.end + skip
        self.log.truncator.truncate_fully_and_start_at(self.end)
        self.batches = []

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end
        assert self.log.recovery_point == self.end

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = open_log(self.folder, CONFIG, log_start_offset=self.start, open_files=self.open_files)
        self.flushed = self.end

    @rule(torn=st.binary(max_size=100), lost_indexes=st.booleans())
    def crash(self, torn: bytes, lost_indexes: bool) -> None:
        self.log.abandon()
        newest = max((self.folder / "topic-0").glob("*.log"))
        with newest.open("ab") as file:
            file.write(torn)
        if lost_indexes:
            for path in (self.folder / "topic-0").glob("*index"):
                path.unlink()
        self.log = open_log(
            self.folder, CONFIG, clean=False, recovery_point=self.flushed, log_start_offset=self.start, open_files=self.open_files
        )

    @rule(share=st.floats(0, 1), max_bytes=st.integers(1, 2000), limit=st.floats(0, 1), minimum_one=st.booleans())
    def read(self, share: float, max_bytes: int, limit: float, minimum_one: bool) -> None:
        offset = self.start + round(share * (self.end - self.start))
        limits = [base for base, _, _ in self.batches] + [self.end]
        limit_offset = limits[round(limit * (len(limits) - 1))]
        data = bytes_of(self.log.reader.read(offset, max_bytes, limit_offset=limit_offset, minimum_one=minimum_one))
        found = records_in(data)
        if not found:
            assert offset >= limit_offset or not minimum_one
            return
        assert found[0].offset <= offset < limit_offset
        assert found[-1].offset < limit_offset
        assert found[-1].offset >= offset
        assert len(data) <= max_bytes or minimum_one
        by_offset = {record.offset: record for _, records, _ in self.batches for record in records}
        assert found == [by_offset[record.offset] for record in found]

    @rule(share=st.floats(0, 1))
    def find_time(self, share: float) -> None:
        records = self.expected()
        if not records:
            assert self.log.reader.offset_of_max_timestamp() is None
            return
        target = records[round(share * (len(records) - 1))].timestamp
        found = self.log.reader.offset_for_timestamp(target)
        first = next(record for record in records if record.timestamp >= target)
        assert found is not None
        assert (found.timestamp, found.offset) == (first.timestamp, first.offset)
        newest = max(records, key=lambda record: (record.timestamp, -record.offset))
        assert self.log.reader.offset_of_max_timestamp() == (newest.timestamp, newest.offset, self.epoch_of(newest.offset))
        assert self.log.reader.offset_for_timestamp(newest.timestamp + 1) is None

    def epoch_of(self, offset: int) -> int:
        return next(epoch for base, records, epoch in reversed(self.batches) if base <= offset)

    @rule(epoch=st.integers(-1, 8))
    def epochs(self, epoch: int) -> None:
        found, end = self.log.reader.end_offset_for_epoch(epoch)
        present = [(base, other) for base, records, other in self.batches if records[-1].offset >= self.start]
        later = [base for base, other in present if other > epoch]
        known = [other for _, other in present if other == epoch]
        if known:
            assert (found, end) == (epoch, max(later[0], self.start) if later else self.end)

    @invariant()
    def ends_agree(self) -> None:
        self.log.validate()
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.log.recovery_point >= min(self.flushed, self.end)
        with pytest.raises(KafkaError) as refused:
            self.log.reader.read(self.end + 1, 100, limit_offset=self.end, minimum_one=True)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert self.log.size_bytes == sum(path.stat().st_size for path in (self.folder / "topic-0").glob("*.log"))

    @rule()
    def everything_is_there(self) -> None:
        assert read_all(self.log) == self.expected()


TestAgainstAList = AgainstAList.TestCase
TestAgainstAList.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)


def test_append_helper_is_what_the_model_uses(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert append(log, b"a", b"b").last_offset == 1
    log.close()
