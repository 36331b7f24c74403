"""The content of a log after a cleaning: by both engines, for each kind of batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from barnabas.errors import CorruptLog, SegmentsGone
from barnabas.protocol.records.batch import Compression, iterate_records, split_batches
from barnabas.storage.compaction.cleaner import clean
from barnabas.storage.compaction.engine import Engine
from barnabas.storage.log import Log
from barnabas.storage.producer_state import LastWrite
from barnabas.testing.failing_files import READS, FailingFiles
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
from tests.storage.support import FILES, NOW, bytes_of, open_log, read_all


@pytest.fixture(params=engines(), name="engine")
def _engine(request: pytest.FixtureRequest) -> Engine:
    return engine_of(request.param)


def pairs(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in read_all(log)]


def test_of_each_key_the_last_record_stays_at_its_offset(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"c", b"1"))
    put(log, (b"b", b"2"), (b"d", b"1"))
    roll(log)
    put(log, (b"c", b"2"))  # in the active segment, so it does not count yet
    result = compact(log, engine)
    assert pairs(log) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2"), (5, b"d", b"1"), (6, b"c", b"2")]
    assert (result.cleaned_offset, result.keys, result.records_read, result.records_kept) == (6, 4, 6, 4)
    assert log.reader.read(0, 1000, limit_offset=7, minimum_one=True) is not None
    log.close()
    again = open_log(tmp_path, SMALL)
    assert len(read_all(again)) == 5
    assert (again.log_start_offset, again.log_end_offset) == (0, 7)
    again.close()


@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_keeps_its_codec_its_place_and_its_times(tmp_path: Path, engine: Engine, codec: Compression) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"a", b"x" * 50), (b"b", b"y" * 50), (b"a", None), time_ms=NOW, compression=codec)
    put(log, (b"a", b"z" * 50), compression=codec)
    before = batches(log)
    roll(log)
    compact(log, engine)
    (first, data), (second, untouched) = batches(log)
    assert [(r.offset, r.timestamp, r.key, r.value) for r in iterate_records(data)] == [(1, NOW + 1, b"b", b"y" * 50)]
    assert (first.base_offset, first.last_offset, first.base_timestamp, first.max_timestamp) == (0, 2, NOW, NOW + 1)
    assert (first.compression, second.compression) == (codec, codec)
    assert untouched == before[1][1]
    log.close()


def test_a_tombstone_stays_until_its_horizon(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"))
    put(log, (b"a", None), (b"b", b"1"))
    roll(log)
    compact(log, engine)
    assert pairs(log) == [(1, b"a", None), (2, b"b", b"1")]
    header, data = batches(log)[0]
    assert header.delete_horizon_ms == NOW + HORIZON_MS
    assert [record.timestamp for record in iterate_records(data)] == [NOW, NOW + 1]
    compact(log, engine, first_dirty_offset=3, now_ms=NOW + HORIZON_MS - 1)
    assert len(read_all(log)) == 2
    compact(log, engine, first_dirty_offset=3, now_ms=NOW + HORIZON_MS, keeps_expired=True)
    assert len(read_all(log)) == 2
    compact(log, engine, first_dirty_offset=3, now_ms=NOW + HORIZON_MS)
    assert pairs(log) == [(2, b"b", b"1")]
    assert batches(log)[0][0].delete_horizon_ms == NOW + HORIZON_MS
    log.close()


def test_a_record_without_a_key_goes(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path, replace(SMALL, cleanup_policy=frozenset({"delete"})))  # the policy before the change to compact
    put(log, (None, b"1"), (b"a", b"1"))
    put(log, (None, b"2"))
    roll(log)
    compact(log, engine)
    assert pairs(log) == [(1, b"a", b"1")]
    log.close()


def test_small_segments_grow_together_and_keep_what_producers_need(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path)
    for number in range(200):
        put(log, (b"key", b"%03d" % number), producer_id=7, base_sequence=number, producer_epoch=3)
    roll(log)
    assert len(log.segments) > 10
    compact(log, engine)
    compact(log, engine, first_dirty_offset=log.active_base_offset)
    assert len(log.segments) <= 3
    assert pairs(log) == [(199, b"key", b"199")]
    put(log, (b"key", b"last"), producer_id=7, base_sequence=200, producer_epoch=3)
    roll(log)
    compact(log, engine)
    headers = [header for header, _ in batches(log)]
    assert [(h.last_offset, h.last_sequence, h.producer_epoch) for h in headers if h.records_count] == [(200, 200, 3)]
    log.abandon()
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.unlink()
    again = open_log(tmp_path, SMALL, clean=False)  # recovery rebuilds the producers from the batches alone
    assert again.reader.last_writes() == {7: LastWrite(3, 200)}
    assert [each.last_sequence for each in again.reader.producers()] == [200]
    again.close()


def test_the_last_batch_of_a_producer_leaves_its_header(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"), producer_id=7, base_sequence=0, producer_epoch=1)
    put(log, (b"a", b"2"), (b"b", b"2"))
    put(log, (b"c", b"3"))
    roll(log)
    compact(log, engine)
    (header, _), *others = batches(log)
    assert (header.records_count, header.base_offset, header.last_offset, header.last_sequence) == (0, 0, 1, 1)
    assert (header.producer_id, header.producer_epoch, header.base_timestamp, header.max_timestamp) == (7, 1, -1, NOW + 1)
    assert [h.records_count for h, _ in others] == [2, 1]
    before = file_bytes(log)
    compact(log, engine, first_dirty_offset=5)
    assert file_bytes(log) == before
    log.close()


def test_aborted_records_go_at_once_and_markers_after_their_horizon(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path)
    transaction = {"transactional": True, "producer_id": 7, "producer_epoch": 0}
    put(log, (b"a", b"kept"))
    put(log, (b"a", b"never was"), base_sequence=0, **transaction)
    end_transaction(log, 7, commit=False)
    put(log, (b"b", b"1"), base_sequence=1, **transaction)
    end_transaction(log, 7, commit=True)
    put(log, (b"b", b"2"))
    put(log, (b"c", b"3"), base_sequence=2, **transaction)
    end_transaction(log, 7, commit=True)
    roll(log)
    put(log, (b"z", b"1"), producer_id=7, producer_epoch=0, base_sequence=3)  # so the producer's last batch is a later one
    assert [each.first_offset for each in log.reader.aborted_transactions(0, 100)] == [1]

    compact(log, engine)  # drops the batches of the first and second transaction, but keeps their markers
    data = [(h.base_offset, h.is_control, h.delete_horizon_ms) for h, _ in batches(log)]
    assert data == [
        (0, False, None),
        (2, True, None),
        (4, True, None),
        (5, False, None),
        (6, False, None),
        (7, True, None),
        (8, False, None),
    ]
    assert [each.first_offset for each in log.reader.aborted_transactions(0, 100)] == [1]

    compact(log, engine, first_dirty_offset=8)  # no batch of these transactions is left, so their markers get a delete horizon
    horizons = {h.base_offset: h.delete_horizon_ms for h, _ in batches(log) if h.is_control}
    assert horizons == {2: NOW + HORIZON_MS, 4: NOW + HORIZON_MS, 7: None}
    assert log.reader.aborted_transactions(0, 100) == []

    compact(log, engine, first_dirty_offset=8, now_ms=NOW + HORIZON_MS, keeps_expired=True)
    assert [h.base_offset for h, _ in batches(log) if h.is_control] == [2, 4, 7]
    compact(log, engine, first_dirty_offset=8, now_ms=NOW + HORIZON_MS)
    assert [h.base_offset for h, _ in batches(log) if h.is_control] == [7]
    values = [r.value for h, data in batches(log) if not h.is_control for r in iterate_records(data)]
    assert values == [b"kept", b"2", b"3", b"1"]
    log.close()


def test_keys_beyond_the_memory_take_several_rounds(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path)
    for number in range(300):
        put(log, (b"key-%03d" % (number % 100), b"%d" % number))
    roll(log)
    first_dirty, rounds = 0, 0
    while first_dirty < log.active_base_offset:
        result = compact(log, engine, first_dirty_offset=first_dirty, dedupe_bytes=2_000)
        assert result.cleaned_offset > first_dirty
        first_dirty, rounds = result.cleaned_offset, rounds + 1
    assert rounds > 2
    assert [(offset, value) for offset, _, value in pairs(log)] == [(n, b"%d" % n) for n in range(200, 300)]
    log.close()


def test_one_batch_with_more_keys_than_the_memory_takes_is_cleaned_all_the_same(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path, replace(SMALL, segment_bytes=10**6))
    put(log, *[(b"%05d" % number, b"") for number in range(2000)])
    put(log, *[(b"%05d" % number, b"") for number in range(1000)])
    roll(log)
    result = compact(log, engine, dedupe_bytes=100)
    assert result.cleaned_offset == 2000
    compact(log, engine, dedupe_bytes=100, first_dirty_offset=2000)
    assert [offset for offset, _, _ in pairs(log)] == list(range(1000, 3000))
    log.close()


def test_a_batch_larger_than_what_is_read_at_once(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path, replace(SMALL, segment_bytes=10**6))
    put(log, (b"a", b"x" * 200_000), (b"b", b"y"))
    put(log, (b"a", b"z" * 200_000))
    roll(log)
    compact(log, engine)
    assert [(offset, key) for offset, key, _ in pairs(log)] == [(1, b"b"), (2, b"a")]
    log.close()


@pytest.mark.parametrize("where", ["dirty", "rewritten"])
def test_a_corrupt_batch_ends_the_cleaning_and_changes_nothing(tmp_path: Path, engine: Engine, where: str) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", b"2"))
    roll(log)
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    before = file_bytes(log)
    first_dirty = 0 if where == "dirty" else 2
    with pytest.raises(CorruptLog) as caught:
        compact(log, engine, first_dirty_offset=first_dirty)
    assert (caught.value.path, caught.value.position) == (str(path), 0)
    assert file_bytes(log) == before
    assert not list(log.directory.glob("*.cleaned"))
    log.abandon()


@pytest.mark.parametrize(("at", "bit"), [(6, 1), (22, 0x20)], ids=["base offset, outside of the CRC", "passes for a marker"])
def test_a_header_that_lies_ends_the_cleaning(tmp_path: Path, engine: Engine, at: int, bit: int) -> None:
    log = compacted_log(tmp_path)
    for _ in range(2):
        put(log, (b"a", b"1"), (b"b", b"1"))
    roll(log)
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    position = split_batches(data)[1][0]
    data[position + at] ^= bit
    path.write_bytes(data)
    with pytest.raises(CorruptLog) as caught:
        compact(log, engine)
    assert (caught.value.path, caught.value.position) == (str(path), position)
    log.abandon()


def test_a_sector_that_cannot_be_read_is_as_good_as_corrupt(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    roll(log)
    files = FailingFiles()
    files.fail(READS, log.directory)
    with pytest.raises(CorruptLog):
        list(clean(task_of(log), files, engine, lambda *_: None))
    assert not list(log.directory.glob("*.cleaned"))
    log.abandon()


def test_a_swap_into_a_log_that_has_changed_leaves_it_alone(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path)
    for number in range(60):
        put(log, (b"a", b"%d" % number))
    roll(log)
    task = task_of(log)
    log.truncator.delete_records_before(50)
    log.truncator.detach_below_start()
    with pytest.raises((SegmentsGone, FileNotFoundError)):
        compact(log, engine, task)
    assert [offset for offset, _, _ in pairs(log)] == list(range(50, 60))
    assert not [path for path in log.directory.iterdir() if path.suffix in (".cleaned", ".swap")]
    log.close()


def test_a_cleaning_that_is_stopped_leaves_no_file(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path)
    for number in range(20):
        put(log, (b"%d" % (number % 10), b"1"))
    roll(log)
    names = sorted(path.name for path in log.directory.iterdir())

    def stop(_read: int, written: int) -> None:
        if written:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        list(clean(task_of(log), FILES, engine, stop))
    assert sorted(path.name for path in log.directory.iterdir()) == names
    log.close()


def test_a_reader_is_not_given_emptied_batches_alone(tmp_path: Path, engine: Engine) -> None:
    log = compacted_log(tmp_path, replace(SMALL, segment_bytes=200))
    for number in range(20):
        put(log, (b"a" * 30, b"%d" % number), producer_id=number, producer_epoch=0, base_sequence=0)
    roll(log)
    compact(log, engine, segment_bytes=61)
    assert len(log.segments) > 10
    region = log.reader.read(0, 1000, limit_offset=20, minimum_one=True)
    assert [header.records_count for _, header in split_batches(bytes_of(region))] == [1]
    assert read_all(log) == read_all(log, 19)
    # without other batches the reader gets emptied ones, to make progress
    region = log.reader.read(0, 1000, limit_offset=15, minimum_one=True)
    assert {header.records_count for _, header in split_batches(bytes_of(region))} == {0}
    log.close()
