"""Finding records by offset and by time, against a list: with gaps in the offsets and times that go where they like."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch import Record
from barnabas.storage.log import Log
from tests.storage.support import NOW, batch, bytes_of, open_log, read_all, records_in

CONFIG = TopicConfig(segment_bytes=1_200, index_interval_bytes=150, segment_ms=2**50, message_timestamp_after_max_ms=2**50)
TIMES = st.integers(NOW - 50, NOW + 50)


class Times(RuleBasedStateMachine):
    """A follower: its batches have gaps, as in a compacted leader's log."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.log: Log = open_log(self.folder, CONFIG)
        self.records: list[Record] = []
        self.batches: list[tuple[int, int]] = []  # first and last offset
        self.start = self.end = 0

    def teardown(self) -> None:
        self.log.abandon()
        shutil.rmtree(self.folder)

    @rule(times=st.lists(TIMES, min_size=1, max_size=5), gap=st.sampled_from([0, 0, 0, 1, 7, 300]), codec=st.sampled_from([0, 3]))
    def append(self, times: list[int], gap: int, codec: int) -> None:
        """Batches of one record, so that the times of neighbours have nothing to do with each other."""
        base = self.end + gap
        values = [Record(base + i, time, b"key", b"value") for i, time in enumerate(times)]
        data = bytearray()
        for record in values:
            data += batch(b"value", time_ms=record.timestamp, base_offset=record.offset, compression=codec)
        self.log.appender.append_as_follower(memoryview(data), now_ms=NOW)
        self.records += values
        self.batches += [(record.offset, record.offset) for record in values]
        self.end = base + len(values)

    @rule(count=st.integers(2, 6), first=TIMES)
    def append_one_batch(self, count: int, first: int) -> None:
        data = batch(*([b"value"] * count), time_ms=first, base_offset=self.end)
        self.log.appender.append_as_follower(memoryview(data), now_ms=NOW)
        self.records += [Record(self.end + i, first + i, b"key", b"value") for i in range(count)]
        self.batches.append((self.end, self.end + count - 1))
        self.end += count

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.start += round(share * (self.end - self.start))
        self.log.truncator.delete_records_before(self.start)
        for garbage in self.log.truncator.take_garbage():
            garbage.remove()

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        offset = self.start + round(share * (self.end - self.start))
        if offset >= self.end:
            return
        self.log.truncator.truncate_to(offset)
        self.batches = [(first, last) for first, last in self.batches if last < offset]
        kept = self.batches[-1][1] + 1 if self.batches else self.log.log_end_offset
        # An empty segment starts at the offset in its name. After the last record there is a gap.
        assert kept <= self.log.log_end_offset <= offset
        self.end = self.log.log_end_offset
        self.start = min(self.start, self.end)
        self.records = [record for record in self.records if record.offset < kept]

    @rule(clean=st.booleans(), lost_indexes=st.booleans())
    def reopen(self, clean: bool, lost_indexes: bool) -> None:
        if clean:
            self.log.close()
        else:
            self.log.abandon()
        if lost_indexes:
            for path in (self.folder / "topic-0").glob("*index"):
                path.unlink()
        self.log = open_log(self.folder, CONFIG, clean=clean, log_start_offset=self.start)

    @property
    def present(self) -> list[Record]:
        return [record for record in self.records if record.offset >= self.start]

    @rule(time=TIMES, is_apart=st.booleans())
    def find_time(self, time: int, is_apart: bool) -> None:
        """By the log's own segments, or first of the sealed ones as a thread does."""
        wanted = next((record for record in self.present if record.timestamp >= time), None)
        search = self.log.reader.sealed_search(time) if is_apart else None
        if search is not None:
            search.run()
            search.note()
        found = self.log.reader.offset_for_timestamp(time, search)
        assert (found and (found.timestamp, found.offset)) == (wanted and (wanted.timestamp, wanted.offset))

    @rule(is_apart=st.booleans())
    def find_newest(self, is_apart: bool) -> None:
        look = self.log.reader.unknown_times() if is_apart else None
        if look is not None:
            look.run()
            look.note()
        newest = max(self.present, key=lambda record: (record.timestamp, -record.offset), default=None)
        found = self.log.reader.offset_of_max_timestamp()
        assert (found and (found.timestamp, found.offset)) == (newest and (newest.timestamp, newest.offset))

    @rule(share=st.floats(0, 1))
    def find_offset(self, share: float) -> None:
        """Reading at any offset, one in a gap too, begins with the batch that holds it or the next one there is."""
        offset = self.start + round(share * (self.end - self.start))
        region = self.log.reader.read(offset, 1, limit_offset=self.end, minimum_one=True)
        wanted = next(((first, last) for first, last in self.batches if last >= offset), None)
        records = records_in(bytes_of(region))
        assert (records and (records[0].offset, records[-1].offset)) == (wanted or [])

    @invariant()
    def ends_agree(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)

    @rule()
    def all_is_there(self) -> None:
        assert read_all(self.log) == self.present


TestTimes = Times.TestCase
TestTimes.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
