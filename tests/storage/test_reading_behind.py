"""The next region of a sequential reader, found in advance, equals the region at its request."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch import split_batches
from barnabas.storage.file_region import Behind
from barnabas.storage.log import Log
from barnabas.storage.open_files import OpenFiles
from tests.storage.support import NOW, append, bytes_of, open_log, retain

MOST = 2_000
CONFIG = TopicConfig(segment_bytes=10_000, index_interval_bytes=300)


def filled(folder: Path, *, open_files: OpenFiles | None = None) -> Log:
    """Several segments, of which the last is nearly full."""
    sizes = random.Random(1)
    log = open_log(folder, CONFIG, open_files=open_files)
    while len(log.segments) < 4 or log.segments.active.size < CONFIG.segment_bytes * 0.8:
        append(log, *(b"v" * sizes.randrange(300) for _ in range(sizes.randrange(1, 4))))
    return log


def behind(log: Log, offset: int, limit_offset: int | None = None) -> Behind | None:
    """The records behind those that are read from `offset` on."""
    limit = log.log_end_offset if limit_offset is None else limit_offset
    region = log.reader.read(offset, MOST, limit_offset=limit, minimum_one=True)
    if region is None:
        return None  # the limit is inside a batch
    found = log.reader.read_behind(region, MOST, limit_offset=limit)
    if found is not None:
        assert found.offset == split_batches(bytes_of(region))[-1][1].next_offset
    return found


@pytest.mark.parametrize("is_reopened", [False, True], ids=["recent batches in memory", "by the indexes"])
def test_it_is_what_is_read_there(tmp_path: Path, is_reopened: bool) -> None:
    log = filled(tmp_path)
    if is_reopened:
        log.close()
        log = open_log(tmp_path, CONFIG)
        for segment in log.segments:
            segment.integrity.add(0, segment.size)  # as if an earlier reader had verified it
    found = 0
    for offset in range(log.log_end_offset):
        for limit in (log.log_end_offset, log.log_end_offset - 40):
            ahead = behind(log, offset, limit) if offset < limit else None
            if ahead is not None:
                found += 1
                assert log.reader.read(ahead.offset, MOST, limit_offset=limit, minimum_one=False) == ahead.region
                assert log.reader.still_has(ahead)
    assert found > log.log_end_offset // 2
    log.close()


def test_near_the_end_nothing_is_told_for_there_may_be_more_then(tmp_path: Path) -> None:
    log = filled(tmp_path)
    last = log.active_base_offset
    while (ahead := behind(log, last)) is not None:
        assert ahead.region.size > MOST // 2
        last = ahead.offset
    append(log, b"v" * MOST)
    append(log, b"v" * MOST)
    assert behind(log, last) is None, "it does not fit, and is given only to who asks for it first of all"
    log.close()


def delete_before(log: Log, ahead: Behind) -> None:
    log.truncator.delete_records_before(ahead.offset + 1)


def delete_segment(log: Log, ahead: Behind) -> None:
    log.update_config(replace(CONFIG, retention_bytes=1))
    assert retain(log, NOW) > 0


def cut(log: Log, ahead: Behind) -> None:
    log.truncator.truncate_to(ahead.offset)
    append(log, b"other", epoch=1)


def begin_anew(log: Log, ahead: Behind) -> None:
    log.truncator.truncate_fully_and_start_at(0)


@pytest.mark.parametrize("change", [delete_before, delete_segment, cut, begin_anew])
@pytest.mark.parametrize("is_in_active", [False, True])
def test_what_is_gone_is_not_taken_for_there(tmp_path: Path, change: Callable[[Log, Behind], None], is_in_active: bool) -> None:
    log = filled(tmp_path)
    start = log.active_base_offset if is_in_active else 0
    ahead = behind(log, start)
    assert ahead is not None
    append(log, b"more")
    assert log.reader.still_has(ahead), "what is appended changes nothing"
    if is_in_active and change is delete_segment:
        assert retain(log, NOW) == 0, "the active segment stays"
    else:
        change(log, ahead)
        assert not log.reader.still_has(ahead)
    log.close()


def test_a_descriptor_that_was_closed_is_not_used(tmp_path: Path) -> None:
    later: list[Callable[[], None]] = []
    open_files = OpenFiles(1, later.append)
    log = filled(tmp_path, open_files=open_files)
    ahead = behind(log, 0)
    assert ahead is not None
    fileno = ahead.segment.fileno
    ahead.segment.close()
    taken = log.files.open(tmp_path / "other", create=True)  # the operating system reuses the free descriptor
    assert taken == fileno
    assert not log.reader.still_has(ahead)
    log.files.close(taken)
    log.close()
