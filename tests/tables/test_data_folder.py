"""Data folders of stopped brokers, as stops, kills, losses of power and interrupted compactions leave them."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from barnabas import limits
from barnabas.columnar.decode import RecordDecoder
from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import read_header, split_batches
from barnabas.protocol.records.record import build_batch
from barnabas.storage import checkpoints
from barnabas.storage.compaction.swap import CLEANED_SUFFIX, LOG_LAST, SWAP_SUFFIX
from barnabas.storage.files import OsFiles
from barnabas.storage.log_move import MARKER
from barnabas.storage.producer_state import ProducerEntry
from barnabas.storage.segment.file_names import LOG_SUFFIX, file_name
from barnabas.storage.snapshot import encode_snapshot
from barnabas.tables import TableError, table
from barnabas.tables.folder import partition, segments, transactions
from barnabas.tables.folder.segments import HELD, FileId, LogSegment
from barnabas.tables.folder_source import FolderSource
from barnabas.tables.source import Bounds
from barnabas.testing import Broker
from tests.retention import NO_RETENTION_CHECKS
from tests.tables.consumer import CommittedConsumer
from tests.tables.sources import Row, rows_of
from tests.tables.writing import BrokerWriter
from tests.waiting import wait_until

TOPIC = "orders"
FOLDER = f"{TOPIC}-0"
CLOSED = "closed"  # a topic without transactions
CLOSED_ROWS = [Row(each, b"%d" % each) for each in range(3)]
FILES = OsFiles()


class Prepared:
    """A data folder, and the rows that a consumer read before the broker stopped."""

    def __init__(self, path: Path, rows: list[Row], first_segment_end: int) -> None:
        self.path, self.rows, self.first_segment_end = path, rows, first_segment_end


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Segments of a few batches, with committed, aborted and open transactions."""
    path = tmp_path_factory.mktemp("original") / "data"
    with Broker(NO_RETENTION_CHECKS, data_dir=path) as broker, closing(BrokerWriter(broker.bootstrap_servers)) as writer:
        writer.create(TOPIC, internal_segment_bytes="700", index_interval_bytes="1")
        committed, aborted, mixed, opened = (writer.transaction() for _ in range(4))
        for number in range(12):
            writer.append(TOPIC, 0, [(b"key", b"plain %d" % number), (b"key", b"second")], timestamp_ms=number * 10)
            committed.append(TOPIC, 0, [(b"key", b"committed %d" % number)], timestamp_ms=number * 10 + 5)
            aborted.append(TOPIC, 0, [(b"key", b"aborted %d" % number)])
            mixed.append(TOPIC, 0, [(b"key", b"mixed %d" % number)])
            if number % 4 == 3:
                committed.end(commit=True)
                aborted.end(commit=False)
                mixed.end(commit=number == 7)
        opened.append(TOPIC, 0, [(b"key", b"open")])
        writer.append(TOPIC, 0, [(b"key", b"behind")])
        with closing(CommittedConsumer(broker.bootstrap_servers)) as consumer:
            end = writer.last_stable(TOPIC, 0)
            rows = [Row(each.offset, each.value) for each in consumer.read(TOPIC, 0, 0, end)]
        assert len(rows) == 40
        writer.create(CLOSED)
        for number in range(3):
            writer.append(CLOSED, 0, [(None, b"%d" % number)])
        broker.kill()
    bases = sorted(int(each.stem) for each in (path / FOLDER).glob("*.log"))
    assert len(bases) > 5
    return Prepared(path, rows, bases[1])


@pytest.fixture
def prepared(original: Prepared, tmp_path: Path) -> Prepared:
    """A copy to change."""
    shutil.copytree(original.path, tmp_path / "data")
    return Prepared(tmp_path / "data", original.rows, original.first_segment_end)


def read(path: Path, topic: str = TOPIC) -> list[Row]:
    with closing(FolderSource(topic, path)) as source:
        return rows_of(source, source.snapshot())


def logs(prepared: Prepared) -> list[Path]:
    return sorted((prepared.path / FOLDER).glob("*.log"))


def check_all_starts(prepared: Prepared) -> None:
    """Read from every offset and every time."""
    with closing(FolderSource(TOPIC, prepared.path)) as source:
        snapshot = source.snapshot()
        start, end = snapshot.partitions[0]
        for first in range(start, end):
            assert rows_of(source, snapshot, 0, first) == [each for each in prepared.rows if each.offset >= first]
        expected = {0: 0, 10: 5, 25: 12, 31: 17, 2**60: end}  # the markers behind these have the time of the test
        assert {each: source.offsets_from(snapshot, each)[0] for each in expected} == expected


# Stops


def test_a_killed_broker_leaves_all_rows(prepared: Prepared) -> None:
    assert read(prepared.path) == prepared.rows
    check_all_starts(prepared)


def test_a_stopped_broker_leaves_all_rows(prepared: Prepared) -> None:
    with Broker(NO_RETENTION_CHECKS, data_dir=prepared.path) as broker:
        assert read(broker.data_dir) == prepared.rows
    assert read(prepared.path) == prepared.rows


def test_nothing_is_written(prepared: Prepared) -> None:
    def state() -> dict[Path, tuple[int, int, int]]:
        found = [each.stat() for each in sorted(prepared.path.rglob("*"))]
        return dict(zip(sorted(prepared.path.rglob("*")), ((s.st_ino, s.st_size, s.st_mtime_ns) for s in found), strict=True))

    before = state()
    check_all_starts(prepared)
    with table(TOPIC, data_folder=prepared.path) as orders:
        assert orders.count() == orders.arrow().num_rows == len(prepared.rows)
    assert state() == before


@pytest.mark.parametrize("tail", ["half a batch", "a wrong CRC", "zeros", "noise"])
def test_bytes_behind_the_log_are_no_records(prepared: Prepared, tail: str) -> None:
    (last,) = (prepared.path / f"{CLOSED}-0").glob("*.log")
    batch = build_batch([(None, b"torn" * 20)], base_offset=3)
    tails = {"half a batch": batch[:-10], "a wrong CRC": batch[:-10] + bytes(10), "zeros": bytes(500), "noise": b"\x7f" * 500}
    with last.open("ab") as file:
        file.write(tails[tail])
    with closing(FolderSource(CLOSED, prepared.path)) as source:
        assert rows_of(source, source.snapshot()) == CLOSED_ROWS
        with last.open("r+b") as file:
            file.seek(-len(tails[tail]), os.SEEK_END)
            file.write(batch)
            file.truncate()
        assert rows_of(source, source.snapshot()) == [*CLOSED_ROWS, Row(3, b"torn" * 20)]


def test_a_batch_that_is_written_behind_the_log_is_found_later(prepared: Prepared) -> None:
    """The source goes on from where it was; the open transaction still ends the snapshot."""
    last = logs(prepared)[-1]
    data = last.read_bytes()
    end = read_header(data, split_batches(data)[-1][0]).next_offset
    with closing(FolderSource(TOPIC, prepared.path)) as source:
        before = source.snapshot()
        with last.open("ab") as file:
            file.write(build_batch([(None, b"later")], base_offset=end))
        assert source.snapshot().partitions == before.partitions
        assert rows_of(source, before) == prepared.rows


# Files that are missing or damaged


@pytest.mark.parametrize("suffix", ["index", "timeindex", "snapshot"])
@pytest.mark.parametrize("damage", ["missing", "empty", "zeros", "noise", "wrong positions"])
def test_files_beside_the_log_may_be_missing_or_damaged(prepared: Prepared, suffix: str, damage: str) -> None:
    wrong = b"".join((each * 2).to_bytes(4, "big") + (each * 7 + 1).to_bytes(4, "big") for each in range(30))
    contents = {"empty": b"", "zeros": bytes(240), "noise": bytes(range(1, 241)), "wrong positions": wrong}
    for path in (prepared.path / FOLDER).glob(f"*.{suffix}"):
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(contents[damage])
    if suffix == "timeindex":
        assert read(prepared.path) == prepared.rows
    else:
        check_all_starts(prepared)


def test_a_snapshot_of_producers_behind_the_log_is_left_out(prepared: Prepared) -> None:
    """A loss of power may take records whose producers were written down."""
    (prepared.path / FOLDER / f"{9_999:020d}.snapshot").write_bytes(encode_snapshot([ProducerEntry(1)]))
    assert read(prepared.path) == prepared.rows


def test_damage_within_the_log_is_an_error(prepared: Prepared) -> None:
    first = logs(prepared)[0]
    data = bytearray(first.read_bytes())
    data[8:12] = b"\xff" * 4
    first.write_bytes(data)
    with pytest.raises(CorruptLog, match=f"{first.name} is corrupt at byte 0"):
        read(prepared.path)


def test_a_log_that_was_cut_is_an_error(prepared: Prepared) -> None:
    with closing(FolderSource(TOPIC, prepared.path)) as source:
        snapshot = source.snapshot()
        for path in logs(prepared)[1:]:
            os.truncate(path, 0)
        with pytest.raises(TableError, match="the log ends before offset"):
            rows_of(source, snapshot)


def test_small_blocks_give_the_same_rows(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((partition, "CHUNK_BYTES"), (partition, "TIME_BLOCK_BYTES"), (transactions, "BLOCK_BYTES")):
        monkeypatch.setattr(module, name, 100)
    check_all_starts(prepared)


def test_marks_stand_in_for_an_index_that_is_not_written_yet(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    (log,) = (prepared.path / f"{CLOSED}-0").glob("*.log")
    rows = [Row(each, b"%d" % each * 40) for each in range(3, 400)]
    with log.open("ab") as file:
        file.write(b"".join(build_batch([(None, each.value)], base_offset=each.offset) for each in rows))
    size = log.stat().st_size
    read_bytes = []
    preadv = os.preadv

    def counted(fileno: int, buffers: Sequence[memoryview], position: int) -> int:
        read_bytes.append(preadv(fileno, buffers, position))
        return read_bytes[-1]

    monkeypatch.setattr(segments, "MARK_BYTES", 1_000)
    with closing(FolderSource(CLOSED, prepared.path)) as source:
        snapshot = source.snapshot()
        monkeypatch.setattr(os, "preadv", counted)
        for first in range(3, 390, 9):
            read_bytes.clear()
            assert rows_of(source, snapshot, 0, first, first + 4) == rows[first - 3 : first + 1]
            assert sum(read_bytes) < 4_000 < size // 10 or first > 380
        with log.open("r+b") as cut:  # a follower has cut its log, and got other records
            cut.truncate(0)
            cut.write(b"".join(build_batch([(None, b"%d" % each)], base_offset=each) for each in range(400)))
        for first in (0, 3, 200, 390):
            assert rows_of(source, snapshot, 0, first, first + 1) == [Row(first, b"%d" % first)]


@pytest.mark.parametrize("has_index", [False, True])
def test_marks_of_all_batches_give_the_same_rows(prepared: Prepared, monkeypatch: pytest.MonkeyPatch, has_index: bool) -> None:
    monkeypatch.setattr(segments, "MARK_BYTES", 1)
    for path in (prepared.path / FOLDER).iterdir():
        if path.suffix == ".snapshot" or (path.suffix == ".index" and not has_index):
            path.unlink()
    check_all_starts(prepared)


def test_aborted_transactions_are_read_again_beyond_a_limit(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """MAX_FOUND_ABORTS bounds the transactions that are kept beside the files of aborted transactions."""
    for path in (prepared.path / FOLDER).glob("*.snapshot"):
        path.unlink()
    monkeypatch.setattr(partition, "MAX_FOUND_ABORTS", 0)
    with closing(FolderSource(TOPIC, prepared.path)) as source:
        for _ in range(3):
            assert rows_of(source, source.snapshot()) == prepared.rows


# Committed records


def in_a_cluster(prepared: Prepared, high_watermark: int | None) -> Path:
    """The folder as a member of a cluster has it."""
    (prepared.path / "metadata.db").unlink()
    offsets = {} if high_watermark is None else {(TOPIC, 0): high_watermark}
    (prepared.path / checkpoints.HIGH_WATERMARKS).write_bytes(checkpoints.encode_offsets(offsets))
    return prepared.path


def test_a_member_of_a_cluster_ends_at_the_last_stable_offset_below_its_high_watermark(prepared: Prepared) -> None:
    """Transactions begin at 2, 3 and 4 and end at 20, 21 and 22, and so on."""
    path = in_a_cluster(prepared, None)
    ends = {}
    for high_watermark in (0, 1, 2, 8, 20, 21, 22, 23, 25, 26, 10_000):
        in_cluster = {(TOPIC, 0): high_watermark}
        (path / checkpoints.HIGH_WATERMARKS).write_bytes(checkpoints.encode_offsets(in_cluster))
        with closing(FolderSource(TOPIC, path)) as source:
            snapshot = source.snapshot()
            ends[high_watermark] = snapshot.partitions[0].end
            assert rows_of(source, snapshot) == [each for each in prepared.rows if each.offset < snapshot.partitions[0].end]
    last = prepared.rows[-1].offset
    assert [ends[each] for each in (0, 1, 2, 8, 20, 21, 22, 23, 25)] == [0, 1, 2, 2, 2, 3, 4, 23, 25]
    assert ends[10_000] > last


def test_a_high_watermark_may_move_back(prepared: Prepared) -> None:
    path = in_a_cluster(prepared, 25)
    with closing(FolderSource(TOPIC, path)) as source:
        assert source.snapshot().partitions[0].end == 25
        (path / checkpoints.HIGH_WATERMARKS).write_bytes(checkpoints.encode_offsets({(TOPIC, 0): 22}))
        assert source.snapshot().partitions[0].end == 4


def test_without_a_checkpoint_nothing_is_committed(prepared: Prepared) -> None:
    assert read(in_a_cluster(prepared, None)) == []
    (prepared.path / checkpoints.HIGH_WATERMARKS).write_bytes(b"0\n1\nbroken\n")
    with pytest.raises(CorruptLog, match=checkpoints.HIGH_WATERMARKS):
        read(prepared.path)


def test_the_start_of_the_log_is_that_of_its_checkpoint(prepared: Prepared) -> None:
    (prepared.path / checkpoints.LOG_START_OFFSETS).write_bytes(checkpoints.encode_offsets({(TOPIC, 0): 7}))
    assert read(prepared.path) == [each for each in prepared.rows if each.offset >= 7]
    (prepared.path / checkpoints.LOG_START_OFFSETS).write_bytes(b"broken")
    assert read(prepared.path) == prepared.rows


# Compaction


def cleaned_segment(prepared: Prepared) -> tuple[list[Row], list[tuple[Path, Path]]]:
    """Write a cleaned segment for two that have aborted transactions; the rows with it, and the renames that put it in place."""
    folder = prepared.path / FOLDER
    slot = next(slot for slot, each in enumerate(logs(prepared)) if each.with_suffix(".txnindex").exists())
    one, other = logs(prepared)[slot : slot + 2]
    data = one.read_bytes() + other.read_bytes()
    batches = [(read_header(data, at), data[at : at + header.size]) for at, header in split_batches(data)]
    gone = next(header for header, _ in batches if header.producer_id < 0)
    batches = [(header, each) for header, each in batches if header is not gone]
    (folder / (one.name + CLEANED_SUFFIX)).write_bytes(b"".join(each for _, each in batches))
    for suffix in (".index", ".timeindex"):
        (folder / (one.stem + suffix + CLEANED_SUFFIX)).write_bytes(b"")
    aborted = b"".join(path.read_bytes() for each in (one, other) if (path := each.with_suffix(".txnindex")).exists())
    if aborted:
        (folder / (one.stem + ".txnindex" + CLEANED_SUFFIX)).write_bytes(aborted)
    renames = []
    for before, after in ((CLEANED_SUFFIX, SWAP_SUFFIX), ("", ".deleted"), (SWAP_SUFFIX, "")):
        for stem in (one.stem, other.stem) if after == ".deleted" else (one.stem,):
            renames += [(folder / (stem + each + before), folder / (stem + each + after)) for each in LOG_LAST]
    rows = [each for each in prepared.rows if not gone.base_offset <= each.offset < gone.next_offset]
    assert len(rows) < len(prepared.rows)
    return rows, renames


def test_each_step_of_a_compaction_is_read_as_before_or_after_it(prepared: Prepared) -> None:
    """A kill may come between any two renames; the folder then stays so."""
    after, renames = cleaned_segment(prepared)
    before = prepared.rows
    found = [read(prepared.path)]
    with closing(FolderSource(TOPIC, prepared.path)) as held:
        snapshot = held.snapshot()
        for source, target in renames:
            if source.exists():
                source.rename(target)
            found.append(read(prepared.path))
            assert rows_of(held, held.snapshot()) == found[-1]
        assert rows_of(held, snapshot) == before
    assert found[0] == before
    assert found[-1] == after
    changes = [one != other for one, other in pairwise(found)]
    assert changes.count(True) == 1
    assert all(each in (before, after) for each in found)


def test_a_transaction_whose_marker_was_compacted_ends_in_its_place(tmp_path: Path) -> None:
    """A later transaction of the same producer, in the same chunk, is seen."""
    batches = [
        build_batch([(b"k", value)], base_offset=offset, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        for offset, value in ((0, b"aborted"), (2, b"committed"), (4, b"aborted"), (6, b"committed"))
    ]
    path = tmp_path / file_name(0, LOG_SUFFIX)
    path.write_bytes(b"".join(batches))
    aborted = np.array([[7, 0, 1], [7, 4, 5]], np.int64)
    segment = LogSegment(tmp_path, 0, "", FileId.of(path.stat()), aborted)
    view = partition.PartitionView([segment], Bounds(0, 7), aborted, 0)
    decoder = RecordDecoder(TOPIC, 0)
    rows = [batch for chunk in view.chunks(0, 7) for batch in decoder.decode(chunk.records, 0, 7, chunk.aborted)]
    assert [offset for batch in rows for offset in batch.column("offset").to_pylist()] == [2, 6]


# Folders


def test_a_partition_that_moves_is_read_where_its_mark_is(prepared: Prepared, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(prepared.path / FOLDER, other / FOLDER)
    both = [prepared.path, other]
    with closing(FolderSource(TOPIC, both)) as source, pytest.raises(TableError, match="nothing tells which one is in use"):
        source.snapshot()
    (other / FOLDER / MARKER).write_text(FOLDER)
    with closing(FolderSource(TOPIC, f"{prepared.path},{other}")) as source:
        shutil.rmtree(prepared.path / FOLDER)
        assert rows_of(source, source.snapshot()) == prepared.rows


def test_folders_of_deleted_and_unfinished_copies_are_no_partitions(prepared: Prepared) -> None:
    for ending in ("delete", "future", "stray"):
        shutil.copytree(prepared.path / FOLDER, prepared.path / f"{TOPIC}-1.{'0' * 32}-{ending}")
    with closing(FolderSource(TOPIC, prepared.path)) as source:
        assert list(source.snapshot().partitions) == [0]


def test_a_partition_without_files_is_empty(prepared: Prepared) -> None:
    (prepared.path / "new-0").mkdir()
    with closing(FolderSource("new", prepared.path)) as source:
        assert source.snapshot().partitions == {0: Bounds(0, 0)}


def test_a_table_has_one_place(tmp_path: Path) -> None:
    for arguments in ({}, {"bootstrap_servers": "127.0.0.1:1", "data_folder": tmp_path}):
        with pytest.raises(TableError, match="needs either bootstrap servers or a data folder"):
            table(TOPIC, **arguments)  # type: ignore[arg-type]  # of several types
    with pytest.raises(TableError, match="settings of a client have no effect"):
        table(TOPIC, data_folder=tmp_path, settings={"client.id": "me"})
    with pytest.raises(TableError, match="there is no data folder"):
        table(TOPIC, data_folder=tmp_path / "nowhere")


# Retention


@pytest.fixture
def shrinking() -> Iterator[tuple[Broker, BrokerWriter]]:
    soon = {"log.initial.task.delay.ms": 50, "log.retention.check.interval.ms": 50}
    with Broker(soon) as broker, closing(BrokerWriter(broker.bootstrap_servers)) as writer:
        writer.create(TOPIC, internal_segment_bytes="300", file_delete_delay_ms="0", retention_ms="-1")
        for number in range(20):
            writer.append(TOPIC, 0, [(None, b"%d" % number * 50)])
        yield broker, writer


def delete_files(broker: Broker, writer: BrokerWriter) -> None:
    """Delete the records of all segments but the last, and wait until the files are gone."""
    folder = broker.data_dir / FOLDER
    before = sorted(folder.glob("*.log"))
    writer.delete_records(TOPIC, 0, 19)
    wait_until(lambda: not any(each.exists() for each in before[:-1]) and not list(folder.glob("*.deleted")))


def test_a_snapshot_stays_readable_while_its_files_are_removed(shrinking: tuple[Broker, BrokerWriter]) -> None:
    broker, writer = shrinking
    with closing(FolderSource(TOPIC, broker.data_dir)) as source:
        held = HELD.count
        snapshot = source.snapshot()
        assert HELD.count > held
        delete_files(broker, writer)
        assert [each.offset for each in rows_of(source, snapshot)] == list(range(20))
        assert source.offsets_from(snapshot, 0)[0] == 0
        assert [each.offset for each in rows_of(source, source.snapshot())] == [19]
        del snapshot
        source.snapshot()
        gc.collect()
        assert HELD.count == held + 1


def test_beyond_the_limit_removed_files_have_no_records(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """MAX_HELD_SEGMENTS bounds the descriptors of a process; a scan then goes on with what is there."""
    assert HELD.limit == limits.MAX_HELD_SEGMENTS
    monkeypatch.setattr(HELD, "limit", HELD.count + 2)
    monkeypatch.setattr(partition, "CHUNK_BYTES", 200)
    with closing(FolderSource(TOPIC, prepared.path)) as source:
        snapshot = source.snapshot()
        chunks = source.chunks(snapshot, 0, *snapshot.partitions[0])
        assert read_header(next(chunks).records).base_offset == 0
        for path in logs(prepared)[:-2]:
            path.unlink()
        headers = [header for chunk in chunks for _, header in split_batches(chunk.records)]
        offsets = [each for header in headers for each in range(header.base_offset, header.next_offset)]
        start = int(logs(prepared)[0].stem)
        assert {each for each in offsets if each >= start} >= {each.offset for each in prepared.rows if each.offset >= start}
        assert 0 < len([each for each in offsets if each < start]) < start
        assert offsets == sorted(set(offsets))


def test_a_topic_that_was_deleted_is_an_error_beyond_the_limit(
    shrinking: tuple[Broker, BrokerWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, writer = shrinking
    monkeypatch.setattr(HELD, "limit", HELD.count)
    with closing(FolderSource(TOPIC, broker.data_dir)) as source:
        snapshot = source.snapshot()
        writer.delete_topic(TOPIC)
        with pytest.raises(TableError, match="was deleted while it was read"):
            rows_of(source, snapshot)
        writer.create(TOPIC)
        with pytest.raises(TableError, match="was deleted while it was read"):
            rows_of(source, snapshot)
        assert rows_of(source, source.snapshot()) == []
