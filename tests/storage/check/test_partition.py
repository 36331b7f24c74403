"""Everything beside the batches: each kind of file damaged, what is said of it, and what a repair does."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch import AppendOrigin, Record, build_batch
from barnabas.storage import checkpoints
from barnabas.storage.check.finding import Repair
from barnabas.storage.check.index_check import COSTS_NOTHING as INDEX_COSTS
from barnabas.storage.check.partition import FINISHES_FIRST, PartitionContext, PartitionReport, check_partition
from barnabas.storage.check.repair import repair
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from barnabas.storage.segment import Segment
from tests.storage.compaction.support import compact, compacted_log, engine_of, put, roll
from tests.storage.support import FILES, NOW, TOPIC_ID, append, open_log, read_all

SMALL = TopicConfig(segment_bytes=2000, index_interval_bytes=100)
FIRST = "0" * 20
ANEW = "nothing is lost, it can be made anew from the batches"
MISSES = f"lookups through it may miss records; {ANEW}"
FINISHED = "repaired: finished as the next start would"
Change = Callable[[Path], object]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed log with idempotent producers, an aborted transaction, two epochs, several segments."""
    folder = tmp_path_factory.mktemp("template")
    log = open_log(folder, SMALL)
    for index in range(20):
        time_ms, epoch = NOW + index, index // 10
        append(log, b"v", b"v", b"v", time_ms=time_ms, epoch=epoch, producer_id=7, producer_epoch=0, base_sequence=3 * index)
        append(log, b"x" * 100, time_ms=time_ms, epoch=epoch)
    append(log, b"v", b"v", epoch=1, producer_id=8, producer_epoch=0, base_sequence=0, transactional=1)
    marker = Record(0, NOW, struct.pack(">hh", 0, 0), struct.pack(">hi", 0, 0))
    abort = build_batch([marker], producer_id=8, producer_epoch=0, transactional=True, control=True)
    log.appender.append_as_leader(abort, leader_epoch=1, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
    log.close()
    return folder / "topic-0"


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "topic-0"))


def check(folder: Path) -> PartitionReport:
    return check_partition(FILES, folder, PartitionContext(83, True, TOPIC_ID))


def second(folder: Path, suffix: str) -> Path:
    return sorted(folder.glob(f"*{suffix}"))[1]


def flip(at: int) -> Change:
    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= 0x40
        path.write_bytes(data)

    return change


def test_a_whole_folder(folder: Path) -> None:
    report = check(folder)
    assert [str(finding) for finding in report.findings] == []
    assert (report.end_offset, report.records, report.topic_id) == (83, 83, TOPIC_ID)
    assert len(list(folder.glob("*.snapshot"))) > 2
    assert list(folder.glob("*.txnindex"))


@pytest.mark.parametrize(
    ("name", "change", "line", "outcome"),
    [
        (f"{FIRST}.index", Path.unlink, f": the file is missing; lookups must read the batches; {ANEW}",
         "repaired: both indexes written anew from the batches"),
        (f"{FIRST}.index", flip(3), ", byte 8: entry 1 (10, 534) does not follow (70, 267); " + MISSES,
         "repaired: both indexes written anew from the batches"),
        (f"{FIRST}.timeindex", flip(6), None, "repaired: both indexes written anew from the batches"),
        ("leader-epoch-checkpoint", lambda path: path.write_text("0\n1\n0 0\n"),
         ": the batches from offset 40 on are of epoch 1, it says 0; followers may cut at the wrong offset; " + ANEW,
         "repaired: written anew"),
        ("leader-epoch-checkpoint", lambda path: path.write_text("rubbish"),
         ": it cannot be read: not a line of it: 'rubbish'; followers may cut at the wrong offset; " + ANEW,
         "repaired: written anew"),
        ("partition.metadata", Path.unlink,
         ": the file is missing; the records are there, but nothing says of which topic's id they are", "repaired: written anew"),
        (f"{FIRST}.log.deleted", Path.touch,
         ": a deleted file that is not removed yet; nothing is lost: the next start removes it", "repaired: removed"),
        (f"{FIRST}.index.cleaned", Path.touch,
         ": an unfinished file of a compaction; nothing is lost: the next start removes it", FINISHED),
        ("partition.metadata.tmp", Path.touch,
         ": an unfinished replacement of a small file; nothing is lost: the next start removes it", "repaired: removed"),
        (f"{99:020d}.snapshot", lambda path: path.write_bytes(bytes.fromhex("0001 48674bc7 00000000")),
         ": it is of offset 99, the log ends at 83; nothing: the next start removes it", "repaired: removed"),
        ("notes.txt", Path.touch, ": not a file of a log; nothing reads it", "not repaired: whoever put it there may want it"),
        (f"{7:020d}.index", Path.touch,
         ": it belongs to a segment that is not there; nothing reads it; the records of the segment are gone",
         "not repaired: it is all that is left of the segment"),
    ],
)  # fmt: skip
def test_what_is_said_and_done(folder: Path, name: str, change: Change, line: str | None, outcome: str) -> None:
    before = {path: path.read_bytes() for path in folder.glob("*.log")}
    change(folder / name)
    report = check(folder)
    (finding,) = report.findings
    assert finding.path == folder / name
    if line is not None:
        assert str(finding) == f"{folder / name}{line}"
    assert repair(FILES, report.findings, report.replacements) == [outcome]
    assert (check(folder).findings if outcome.startswith("repaired") else []) == []
    assert {path: path.read_bytes() for path in folder.glob("*.log")} == before


def test_a_broken_snapshot_is_made_anew(folder: Path) -> None:
    path = second(folder, ".snapshot")
    good = path.read_bytes()
    flip(12)(path)
    report = check(folder)
    (finding,) = report.findings
    assert str(finding).startswith(f"{path}, byte 2: the snapshot's CRC does not match; ")
    assert repair(FILES, report.findings, report.replacements) == ["repaired: written anew"]
    assert path.read_bytes() == good


def test_a_snapshot_that_contradicts_the_batches(folder: Path) -> None:
    first, later = sorted(folder.glob("*.snapshot"))[:2]
    good = later.read_bytes()
    later.write_bytes(first.read_bytes())  # valid, but older than its name says
    report = check(folder)
    (finding,) = report.findings
    assert "producer 7 has (epoch, sequence, offset) " in finding.what
    repair(FILES, report.findings, report.replacements)
    assert later.read_bytes() == good


@pytest.mark.parametrize("change", [Path.unlink, flip(9), flip(17), lambda path: path.write_bytes(path.read_bytes()[:-1])])
def test_the_index_of_aborted_transactions(folder: Path, change: Change) -> None:
    (path,) = folder.glob("*.txnindex")
    good = path.read_bytes()
    change(path)
    report = check(folder)
    (finding,) = report.findings
    assert finding.path == path
    assert finding.loss.startswith("readers of committed records may get aborted ones")
    repair(FILES, report.findings, report.replacements)
    assert path.read_bytes() == good


@settings(max_examples=60)
@given(st.data())
def test_a_rebuilt_index_finds_what_the_batches_hold(
    template: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Any byte of an index is damaged: lookups are as good as before, or the damage is found. A repaired index is as good as a new one."""
    folder = Path(shutil.copytree(template, tmp_path_factory.mktemp("copy") / "topic-0"))
    path = data.draw(st.sampled_from(sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])))
    size = path.stat().st_size
    if not size:
        return
    at = data.draw(st.integers(0, size - 1))
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    report = check(folder)
    if report.findings:
        assert {finding.path for finding in report.findings} == {path}
        repair(FILES, report.findings, report.replacements)
        assert check(folder).findings == []
    log = open_log(folder.parent, SMALL)
    records = read_all(log)
    assert [record.offset for record in records] == list(range(83))
    for offset in range(0, 83, 7):
        assert read_all(log, offset)[0].offset == offset
    for time_ms in range(NOW, NOW + 20):
        found = log.reader.offset_for_timestamp(time_ms)
        assert found is not None
        assert found.offset == min(r.offset for r in records if r.timestamp >= time_ms)
    log.close()


def test_entries_of_kafka_that_mean_the_same_are_right(folder: Path) -> None:
    """Kafka's followers name the last offset of several batches with the position of the first of them."""
    path = folder / f"{FIRST}.index"
    entries = list(OFFSET_ENTRY.iter_unpack(path.read_bytes()))
    path.write_bytes(b"".join(OFFSET_ENTRY.pack(offset + 1, position) for offset, position in entries[::2]))
    assert check(folder).findings == []


def test_zeros_are_room_only_while_a_segment_grows(folder: Path) -> None:
    active = max(folder.glob("*.timeindex"))
    active.write_bytes(active.read_bytes() + bytes(TIME_ENTRY.size * 10))
    assert check(folder).findings == []
    sealed = folder / f"{FIRST}.timeindex"
    sealed.write_bytes(sealed.read_bytes() + bytes(TIME_ENTRY.size * 10))
    assert [str(f) for f in check(folder).findings] == [f"{sealed}: 10 empty entries follow the last one; {MISSES}"]


def test_what_a_repair_writes_is_what_a_broker_reads(folder: Path) -> None:
    for path in [*folder.glob("*.index"), *folder.glob("*.timeindex")]:
        path.write_bytes(struct.pack(">q", 5) * 4)
    report = check(folder)
    outcomes = repair(FILES, report.findings, report.replacements)
    assert set(outcomes) == {"repaired: both indexes written anew from the batches"}
    assert check(folder).findings == []
    segment = Segment.existing(FILES, folder, 0, NOW)
    assert isinstance(segment.index, SparseIndex)
    segment.close()


def test_a_folder_without_segments(tmp_path: Path) -> None:
    folder = tmp_path / "topic-0"
    folder.mkdir()
    checkpoints.write_partition_metadata(FILES, folder / checkpoints.PARTITION_METADATA, TOPIC_ID)
    assert [str(f) for f in check(folder).findings] == [f"{folder}: there is no segment; the next start begins an empty log"]


def test_a_compaction_that_a_stop_interrupted_is_finished_first(folder: Path) -> None:
    """Other faults of the segment wait: a repair would meet files whose names are about to change."""
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(folder / (FIRST + suffix), folder / (FIRST + suffix + ".swap"))
    (folder / f"{FIRST}.timeindex.swap").write_bytes(b"rubbish")
    (folder / f"{FIRST}.log").write_bytes(b"what is replaced is not looked at")
    report = check(folder)
    assert all(finding.mended for finding in report.findings[:3])
    said = {str(finding).removeprefix(f"{folder}/{FIRST}"): finding.repair for finding in report.findings}
    waits = ": a compacted segment that has not taken its place yet; nothing is lost: the next start finishes that"
    assert said == {
        ".index.swap" + waits: Repair.FINISH_COMPACTION,
        ".log.swap" + waits: Repair.FINISH_COMPACTION,
        ".timeindex.swap" + waits: Repair.FINISH_COMPACTION,
        f".timeindex.swap: 7 bytes are no whole number of entries of 12 bytes; {INDEX_COSTS}": None,
    }
    assert repair(FILES, report.findings, report.replacements) == [FINISHED] * 3 + [f"not repaired: {FINISHES_FIRST}"]
    again = check(folder)
    assert {finding.path.name for finding in again.findings} == {f"{FIRST}.timeindex"}
    repair(FILES, again.findings, again.replacements)
    assert check(folder).findings == []


def test_a_snapshot_may_know_of_batches_that_compaction_took(tmp_path: Path) -> None:
    """A kill behind the swap leaves the snapshots of segments that became one with others; producers wrote on there."""
    log = compacted_log(tmp_path)
    put(log, (b"stays", b"v"), producer_id=8, producer_epoch=0, base_sequence=0)
    put(log, (b"key", b"v"), producer_id=8, producer_epoch=0, base_sequence=1)
    roll(log)
    put(log, (b"key", b"w"), producer_id=8, producer_epoch=0, base_sequence=2)
    roll(log)
    snapshot = log.directory / f"{2:020d}.snapshot"
    known = snapshot.read_bytes()
    compact(log, engine_of("plain"))
    snapshot.write_bytes(known)
    log.close()
    context = PartitionContext(3, True, log.topic_id, is_compacted=True)
    assert len(log.segments) == 2
    assert [str(finding) for finding in check_partition(FILES, log.directory, context).findings] == []


def test_a_segment_that_is_missing_is_found(folder: Path) -> None:
    bases = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    for path in folder.glob(f"{bases[1]:020d}.*"):
        path.unlink()
    (finding,) = (each for each in check(folder).findings if each.first_offset is not None)
    gone = f"offsets {bases[1]} to {bases[2] - 1}"
    what = f"it ends before offset {bases[1]}, and the next segment begins at {bases[2]}; these records are not there"
    assert str(finding) == f"{folder / FIRST}.log, {gone}: {what}"
    compacted = PartitionContext(83, True, TOPIC_ID, is_compacted=True)
    assert check_partition(FILES, folder, compacted).findings == []


def test_what_a_killed_broker_leaves_is_mended(folder: Path) -> None:
    """Everything that the next start makes anew is said to be so."""
    bases = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    last = folder / f"{bases[-1]:020d}"
    last.with_suffix(".index").write_bytes(b"rubbish!")
    last.with_suffix(".timeindex").unlink()
    (folder / "leader-epoch-checkpoint").unlink()
    (folder / "partition.metadata").write_bytes(b"")
    max(folder.glob("*.snapshot")).write_bytes(b"")
    log = last.with_suffix(".log")
    log.write_bytes(log.read_bytes()[:-3])
    for recovery_point in (0, bases[-1]):
        findings = check_partition(FILES, folder, PartitionContext(recovery_point, False, TOPIC_ID)).findings
        unmended = {finding.path.name for finding in findings if not finding.mended}
        assert unmended == set()
        assert len(findings) > 5
    log_again = open_log(folder.parent, SMALL, clean=False, recovery_point=0)
    end = log_again.log_end_offset
    log_again.close()
    assert check_partition(FILES, folder, PartitionContext(end, True, TOPIC_ID)).findings == []


def test_epochs_need_not_know_of_deleted_records(folder: Path) -> None:
    """Records are deleted within a segment: the file's first epoch begins where the log does, or where it was about to begin."""
    file = folder / "leader-epoch-checkpoint"
    assert file.read_text() == "0\n2\n0 0\n1 40\n"
    for entries, start, is_right in (
        ("0 5\n1 40", 5, True), ("0 5\n1 40", 0, True), ("1 40", 40, True), ("1 45", 45, True), ("1 45", 43, True),
        ("1 40", 5, False), ("0 5\n1 44", 5, False), ("0 5\n1 36", 5, False),
    ):  # fmt: skip
        file.write_text(f"0\n{entries.count(chr(10)) + 1}\n{entries}\n")
        findings = check_partition(FILES, folder, PartitionContext(83, True, TOPIC_ID, log_start_offset=start)).findings
        assert [finding.path for finding in findings] == ([] if is_right else [file]), entries


@pytest.mark.parametrize(("first", "is_mended"), [((1, 40), True), ((1, 70), True), ((4, 80), False)], ids=str)
def test_epochs_may_have_moved_on_with_a_start_of_the_log_that_a_crash_took(
    folder: Path, first: tuple[int, int], is_mended: bool
) -> None:
    """Everything lies below the recovery point, but the start of the log is written down later than the epochs."""
    file = folder / "leader-epoch-checkpoint"
    file.write_bytes(checkpoints.encode_leader_epochs([first]))
    (finding,) = check(folder).findings
    assert (finding.path, finding.mended) == (file, False), "no clean stop leaves that"
    findings = check_partition(FILES, folder, PartitionContext(83, False, TOPIC_ID, log_start_offset=5)).findings
    assert [each.mended for each in findings if each.path == file] == [is_mended]
    log = open_log(folder.parent, SMALL, clean=False, recovery_point=83, log_start_offset=5)
    assert log.epoch_entries == [(0, 5), (1, 40)]
    log.close()
    assert check(folder).findings == []


def test_an_epoch_that_has_one_batch_so_far_need_not_be_written_down(folder: Path) -> None:
    """A broker that was killed after the first append of its epoch leaves it out of the file; the next start reads it in the batch."""
    log = open_log(folder.parent, SMALL)
    end = log.log_end_offset
    append(log, b"v", epoch=7)
    log.close()
    file = folder / "leader-epoch-checkpoint"
    file.write_text("0\n2\n0 0\n1 40\n")
    for recovery_point, is_mended in ((end, True), (end + 1, False)):
        findings = check_partition(FILES, folder, PartitionContext(recovery_point, False, TOPIC_ID)).findings
        assert [each.mended for each in findings if "leader epoch" in each.what or each.path == file] == [is_mended]
    log = open_log(folder.parent, SMALL, clean=False, recovery_point=end)
    assert log.reader.end_offset_for_epoch(1) == (1, end)
    assert log.reader.latest_epoch == 7
    log.close()


def test_damage_past_the_recovery_point_says_what_the_next_start_removes(folder: Path) -> None:
    bases = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    path = folder / f"{bases[1]:020d}.log"
    flip(70)(path)
    findings = check_partition(FILES, folder, PartitionContext(bases[1], False, TOPIC_ID)).findings
    (finding,) = (each for each in findings if each.path == path)
    assert (finding.first_offset, finding.repair, finding.mended) == (bases[1], None, False)
    assert f"the next start ends the log at offset {bases[1]} and removes all that follows" in str(finding)
    log = open_log(folder.parent, SMALL, clean=False, recovery_point=bases[1])
    assert log.log_end_offset == bases[1]
    log.close()
    flip(70)(folder / f"{FIRST}.log")
    (finding, *_) = check_partition(FILES, folder, PartitionContext(bases[1], False, TOPIC_ID)).findings
    assert "the next start" not in str(finding)


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_an_index_without_its_segment_goes_at_the_start_after_a_kill(folder: Path, suffix: str) -> None:
    path = folder / f"{7:020d}.{suffix}"
    path.touch()
    report = check_partition(FILES, folder, PartitionContext(83, False, TOPIC_ID))
    (finding,) = report.findings
    assert finding.mended
    assert str(finding) == (
        f"{path}: it belongs to a segment that is not there; nothing reads it, and the next start removes it:"
        " a removal that was cut off leaves this"
    )
    assert repair(FILES, report.findings, report.replacements) == ["repaired: removed"]
    assert not path.exists()
