"""Random logs, cleaned again and again: a naive model keeps the same records, and both engines write the same bytes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.records.batch import Record, iterate_records
from barnabas.storage.log import Log
from tests.storage.compaction.support import (
    HORIZON_MS,
    SMALL,
    batches,
    compact,
    compacted_log,
    end_transaction,
    engine_of,
    engines,
    file_bytes,
    put,
    roll,
    task_of,
)
from tests.storage.support import NOW, open_log, read_all

KEYS = st.sampled_from([b"a", b"b", b"c", b"dd", b"a long key that takes more bytes than the others", b""])
VALUES = st.none() | st.sampled_from([b"", b"1", b"x" * 40])
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6)
CODECS = st.integers(0, 4)


class Data(NamedTuple):
    pairs: list[tuple[bytes, bytes | None]]
    codec: int
    producer: int  # producer id; 0 means none


class Transaction(NamedTuple):
    data: list[Data]
    commit: bool


class Roll(NamedTuple):
    pass


class Clean(NamedTuple):
    later_ms: int
    dedupe_bytes: int


DATA = st.builds(Data, PAIRS, CODECS, st.integers(0, 2))
STEPS = st.lists(
    st.one_of(
        DATA,
        DATA,
        st.builds(Transaction, st.lists(DATA, min_size=1, max_size=3), st.booleans()),
        st.builds(Roll),
        st.builds(Clean, st.sampled_from([0, HORIZON_MS // 2, HORIZON_MS]), st.sampled_from([300, 2**20])),
    ),
    max_size=30,
)


class Model:
    """Every record that was ever committed, and when each tombstone was first seen by a cleaning."""

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}

    def must_be_there(self, clean_below: int) -> dict[int, Record]:
        """The last record of each key, unless it is a tombstone, and everything that is not clean yet."""
        last = {record.key: offset for offset, record in sorted(self.records.items())}
        return {
            offset: record
            for offset, record in self.records.items()
            if offset >= clean_below or (last[record.key] == offset and record.value is not None)
        }

    def may_be_there(self, clean_below: int) -> dict[int, Record]:
        """The same with tombstones, and with what only records past `clean_below` supersede."""
        clean = {offset: record for offset, record in self.records.items() if offset < clean_below}
        last = {record.key: offset for offset, record in sorted(clean.items())}
        return {o: r for o, r in self.records.items() if o >= clean_below or last[r.key] == o}


class Run:
    """One log, with one engine."""

    def __init__(self, folder: Path, engine: str) -> None:
        self.engine = engine_of(engine)
        self.folder = folder
        self.log: Log = compacted_log(folder)
        self.model = Model()
        self.aborted: set[int] = set()
        self.sequences = dict.fromkeys(range(1, 10), 0)
        self.clean_below = 0
        self.now_ms = NOW

    def put(self, data: Data, *, transactional: bool = False) -> list[int]:
        producer = data.producer + (3 if transactional else 0)
        fields = {"compression": data.codec}
        if producer:
            fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": self.sequences[producer]}
            fields |= {"transactional": transactional}
            self.sequences[producer] += len(data.pairs)
        first = put(self.log, *data.pairs, time_ms=self.now_ms, **fields)
        for index, (key, value) in enumerate(data.pairs):
            self.model.records[first + index] = Record(first + index, self.now_ms + index, key, value)
        return list(range(first, first + len(data.pairs)))

    def transaction(self, step: Transaction) -> None:
        producers = {data.producer + 3 for data in step.data}
        offsets = [offset for data in step.data for offset in self.put(data, transactional=True)]
        for producer in sorted(producers):
            end_transaction(self.log, producer, commit=step.commit)
        if not step.commit:
            for offset in offsets:
                del self.model.records[offset]
                self.aborted.add(offset)

    def clean(self, step: Clean) -> None:
        self.now_ms += step.later_ms
        if not any(segment.next_offset > self.clean_below for segment in self.log.segments.sealed):
            return
        task = task_of(self.log, first_dirty_offset=self.clean_below, now_ms=self.now_ms, dedupe_bytes=step.dedupe_bytes)
        result = compact(self.log, self.engine, task)
        assert self.clean_below < result.cleaned_offset <= self.log.active_base_offset
        self.clean_below = result.cleaned_offset

    def check(self) -> None:
        aborted = self.log.reader.aborted_transactions(0, self.log.log_end_offset)
        left = {}
        for header, data in batches(self.log):
            hidden = any(
                a.producer_id == header.producer_id and a.first_offset <= header.base_offset <= a.last_offset for a in aborted
            )
            if header.is_control or (header.is_transactional and hidden):
                continue
            left.update({record.offset: record for record in iterate_records(data)})
        assert self.model.must_be_there(self.clean_below).items() <= left.items()
        assert left.items() <= self.model.may_be_there(self.clean_below).items()
        assert [record.offset for record in read_all(self.log)] == sorted(record.offset for record in read_all(self.log))


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_against_a_model(steps: list[Data | Transaction | Roll | Clean]) -> None:
    contents = []
    for engine in engines():
        folder = Path(tempfile.mkdtemp())
        try:
            contents.append(_run(folder, engine, steps))
        finally:
            shutil.rmtree(folder)
    # with less memory, the number of keys that fit differs between engines
    if len({step.dedupe_bytes for step in steps if isinstance(step, Clean)} - {2**20}) == 0:
        assert all(each == contents[0] for each in contents)


def _run(folder: Path, engine: str, steps: list[Data | Transaction | Roll | Clean]) -> dict[str, bytes]:
    run = Run(folder, engine)
    for step in [*steps, Roll(), Clean(0, 2**20)]:
        match step:
            case Data():
                run.put(step)
            case Transaction():
                run.transaction(step)
            case Roll():
                if run.log.segments.active.size:
                    roll(run.log)
            case Clean():
                run.clean(step)
                run.check()
    ends = run.log.log_end_offset, run.log.reader.last_writes()
    sequences = {each.producer_id: each.last_sequence for each in run.log.reader.producers()}
    run.log.abandon()
    for snapshot in run.log.directory.glob("*.snapshot"):
        snapshot.unlink()
    again = open_log(folder, SMALL, clean=False)  # recovery reads all batches, and drops none
    run.log = again
    run.check()
    assert (again.log_end_offset, again.reader.last_writes()) == ends
    assert {each.producer_id: each.last_sequence for each in again.reader.producers()} == sequences
    again.close()
    return file_bytes(again)
