"""A damaged log file: every damaged byte is found, and named with the batch that it is in."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch_header import BatchHeader, split_batches
from barnabas.storage.check.finding import Repair
from barnabas.storage.check.partition import PartitionContext, PartitionReport, check_partition
from barnabas.storage.check.repair import repair
from barnabas.storage.files import OsFiles
from tests.storage.support import FILES, NOW, append, batch, open_log

SMALL = TopicConfig(segment_bytes=700, index_interval_bytes=100)
VALUES = [b"%03d" % index * 5 for index in range(3)]
CODECS = [0, 1, 2, 3, 4]


class Place(NamedTuple):
    file: Path
    position: int
    header: BatchHeader


class SampleLog:
    """A cleanly closed log of several segments, and where each of its batches lies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "topic-0"
        log = open_log(folder, SMALL)
        for index in range(12):
            append(log, *VALUES, time_ms=NOW + 10 * index, epoch=index // 5, compression=CODECS[index % 5])
        self.end_offset = log.log_end_offset
        log.close()
        self.files = {path: path.read_bytes() for path in sorted(self.folder.glob("*.log"))}
        self.places = [Place(path, *found) for path, data in self.files.items() for found in split_batches(data)]
        self.bytes = [(path, at) for path, data in self.files.items() for at in range(len(data))]

    def check(self, *, clean: bool = True, recovery_point: int | None = None) -> PartitionReport:
        point = self.end_offset if recovery_point is None else recovery_point
        return check_partition(FILES, self.folder, PartitionContext(point, clean))

    def batch_of(self, path: Path, at: int) -> Place:
        return max(place for place in self.places if place.file == path and place.position <= at)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleLog:
    return SampleLog(tmp_path_factory.mktemp("sample"))


def test_a_whole_log_has_no_findings(sample: SampleLog) -> None:
    report = sample.check()
    assert report.findings == []
    assert (report.start_offset, report.end_offset, report.batches, report.records) == (0, 36, 12, 36)
    assert len(sample.files) == report.segments > 2
    assert report.size_bytes == sum(map(len, sample.files.values()))


@settings(max_examples=300)
@given(st.data())
def test_any_damaged_byte_is_found_and_named_with_its_batch(sample: SampleLog, data: st.DataObject) -> None:
    path, at = data.draw(st.sampled_from(sample.bytes))
    flipped = data.draw(st.integers(1, 255))
    damaged = bytearray(sample.files[path])
    damaged[at] ^= flipped
    path.write_bytes(damaged)
    try:
        (finding,) = sample.check().findings
    finally:
        path.write_bytes(sample.files[path])
    place = sample.batch_of(path, at)
    assert (finding.path, finding.position) == (path, place.position)
    assert (finding.first_offset, finding.last_offset) == (place.header.base_offset, place.header.last_offset)
    assert finding.repair is None


@pytest.mark.parametrize(
    ("field", "flip", "what"),
    [
        (6, 1, "the base offset is 259, where its neighbours leave room for 3 to 5; these records are not found by their offsets"),
        (9, 1, "the length is {length_wrong}, where the CRC fits {length}; these records cannot be read"),
        (13, 1, "the leader epoch is 65536, where leader-epoch-checkpoint and its neighbours say 0; "
                "followers may cut at the wrong offset; the records can be read"),
        (16, 3, "the magic is 1, where it must be 2; the CRC fits; these records cannot be read"),
        (17, 1, "the CRC does not match; these records cannot be read"),
        (70, 1, "the CRC does not match; these records cannot be read"),
    ],
)  # fmt: skip
def test_what_is_said(sample: SampleLog, field: int, flip: int, what: str) -> None:
    place = sample.places[1]
    damaged = bytearray(sample.files[place.file])
    damaged[place.position + field] ^= flip
    place.file.write_bytes(damaged)
    try:
        (finding,) = sample.check().findings
    finally:
        place.file.write_bytes(sample.files[place.file])
    length = place.header.batch_length
    what = what.format(length=length, length_wrong=length ^ 0x10000)
    assert str(finding) == f"{place.file}, byte {place.position}, offsets 3 to 5: {what}"


def test_a_torn_tail_past_the_recovery_point_may_be_cut(tmp_path: Path) -> None:
    sample = SampleLog(tmp_path)
    path = max(sample.files)
    last = sample.places[-1]
    path.write_bytes(sample.files[path][:-7])
    (torn,) = (f for f in sample.check(clean=False, recovery_point=33).findings if f.path == path)
    size = last.header.size
    assert str(torn) == (
        f"{path}, byte {last.position}, from offset 33 on: the batch of {size} bytes goes past the end of the file, "
        f"{size - 7} bytes are left; nothing whole follows, and all {size - 7} bytes lie past the recovery point 33; "
        "records that were not said to be on the disk; the next start cuts them off"
    )
    assert torn.repair is Repair.CUT_TAIL
    (synced,) = (f for f in sample.check(clean=False, recovery_point=36).findings if f.path == path)
    assert synced.repair is None
    assert (synced.first_offset, synced.last_offset) == (33, 35)


@pytest.mark.parametrize(("clean", "recovery_point", "is_mended"), [(True, 36, False), (False, 36, False), (False, 0, True)])
def test_bytes_behind_the_records_of_a_sealed_segment_can_go(
    tmp_path: Path, clean: bool, recovery_point: int, is_mended: bool
) -> None:
    sample = SampleLog(tmp_path)
    path = min(sample.files)
    following = int(sorted(sample.files)[1].stem)
    rest = bytes(batch(b"refused", base_offset=following)[:-7])
    path.write_bytes(sample.files[path] + rest)
    findings = {point: sample.check(clean=clean, recovery_point=point).findings for point in {recovery_point, following}}
    assert [each.mended for each in findings[following] if each.path == path] == [not clean]
    (finding,) = (each for each in findings[recovery_point] if each.path == path)
    assert str(finding) == (
        f"{path}, byte {len(sample.files[path])}: {len(rest)} bytes follow its records, and the next segment begins where these end; "
        "nothing is lost: the disk refused the rest of this write"
    )
    assert (finding.repair, finding.mended) == (Repair.CUT_TAIL, is_mended)
    repair(FILES, [finding], {})
    assert [each for each in sample.check(clean=clean, recovery_point=recovery_point).findings if each.path == path] == []


def test_damage_before_whole_batches_is_never_cut(tmp_path: Path) -> None:
    sample = SampleLog(tmp_path)
    place = next(each for each in sample.places if each.file == max(sample.files))
    damaged = bytearray(sample.files[place.file])
    damaged[place.position + 70] ^= 1
    place.file.write_bytes(damaged)
    (finding,) = (f for f in sample.check(clean=False, recovery_point=0).findings if f.position is not None)
    assert finding.repair is None
    assert (finding.first_offset, finding.last_offset) == (place.header.base_offset, place.header.last_offset)


def test_a_stretch_of_garbage_is_named_as_one(tmp_path: Path) -> None:
    sample = SampleLog(tmp_path)
    first, second = sample.places[1], sample.places[2]
    damaged = bytearray(sample.files[first.file])
    end = second.position + second.header.size
    damaged[first.position : end] = b"\xa5" * (end - first.position)
    first.file.write_bytes(damaged)
    (finding,) = sample.check().findings
    assert (finding.position, finding.first_offset, finding.last_offset) == (first.position, 3, 8)
    assert finding.what == f"{end - first.position} bytes are no whole batch"


class BadSector(OsFiles):
    """A disk that refuses to read one stretch of every file."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        if position < self._end and position + size > self._start:
            raise OSError(errno.EIO, "Input/output error")
        return OsFiles.pread(fileno, size, position)


def test_a_sector_that_cannot_be_read(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for index in range(30):
        append(log, b"%04d" % index * 300)
    log.close()
    (path,) = (tmp_path / "topic-0").glob("*.log")
    places = split_batches(path.read_bytes())
    hit = [(position, header) for position, header in places if position < 12288 and position + header.size > 8192]
    report = check_partition(BadSector(8192, 12288), tmp_path / "topic-0", PartitionContext(30, True))
    (finding,) = (f for f in report.findings if f.path == path)
    assert finding.what == "the disk cannot read it"
    assert finding.position == hit[0][0]
    assert (finding.first_offset, finding.last_offset) == (hit[0][1].base_offset, hit[-1][1].last_offset)
    assert report.batches == 30 - len(hit)


def test_records_that_are_not_what_the_header_says(tmp_path: Path) -> None:
    from barnabas.protocol.records.record import assemble

    good = batch(b"a", b"b")
    ((_, header),) = split_batches(good)
    folder = tmp_path / "topic-0"
    folder.mkdir()
    path = folder / f"{0:020d}.log"
    path.write_bytes(assemble(header._replace(records_count=1), good[61:]))
    said = [f.what for f in check_partition(FILES, folder, PartitionContext(2, True)).findings if f.path == path]
    assert len(said) == 1
    assert said[0].startswith("the records are not what the header says: ")
