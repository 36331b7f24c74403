"""Small helpers for the tests of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from crc32c import crc32c

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch import Record, build_batch, iterate_records, split_batches
from barnabas.protocol.records.batch_header import CRC_START, HEADER_SIZE, LENGTH_OVERHEAD
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import OsFiles
from barnabas.storage.log import AppendOrigin, AppendResult, Log
from barnabas.storage.open_files import OpenFiles

NOW = 1_700_000_000_000
TOPIC_ID = UUID("12345678-1234-5678-1234-567812345678")


class UnsyncedFiles(OsFiles):
    """The real file system, without waiting for the disk: nobody who uses it here loses power."""

    def sync(self, fileno: int, /) -> None:
        pass

    def sync_directory(self, path: Path, /) -> None:
        pass

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        super().replace_file(path, data, sync=False)


class CountingFiles(UnsyncedFiles):
    """Counts the bytes read."""

    def __init__(self) -> None:
        self.bytes_read = 0

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        data = super().pread(fileno, size, position)
        self.bytes_read += len(data)
        return data


FILES = UnsyncedFiles()


def open_log(
    folder: Path,
    config: TopicConfig | None = None,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    files: OsFiles = FILES,
    open_files: OpenFiles | None = None,
) -> Log:
    return Log.open(
        folder / "topic-0",
        config=TopicConfig() if config is None else config,
        files=files,
        now_ms=NOW,
        clean_shutdown=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        topic_id=TOPIC_ID,
        open_files=open_files,
    )


def batch(*values: bytes, time_ms: int = NOW, **fields: Any) -> bytearray:
    records = [Record(0, time_ms + index, b"key", value) for index, value in enumerate(values)]
    return bytearray(build_batch(records, **fields))


def append(log: Log, *values: bytes, epoch: int = 0, time_ms: int = NOW, **fields: int) -> AppendResult:
    data = batch(*(values or (b"value",)), time_ms=time_ms, **fields)
    return log.appender.append_as_leader(memoryview(data), leader_epoch=epoch, now_ms=NOW, origin=AppendOrigin.CLIENT)


def bytes_of(region: FileRegion | None) -> bytes:
    if region is None:
        return b""
    data = FILES.pread(region.fileno, region.size, region.position)
    assert len(data) == region.size
    return data


def records_in(data: bytes) -> list[Record]:
    return [record for position, _ in split_batches(data) for record in iterate_records(data, position)]


def read_all(log: Log, offset: int | None = None, max_bytes: int = 2**20) -> list[Record]:
    """Every record from `offset` to the end, fetched as a consumer would."""
    at = log.log_start_offset if offset is None else offset
    found: list[Record] = []
    while at < log.log_end_offset:
        region = log.reader.read(at, max_bytes, limit_offset=log.log_end_offset, minimum_one=True)
        if region is None:
            break
        data = bytes_of(region)
        found += [record for record in records_in(data) if record.offset >= at]
        at = split_batches(data)[-1][1].next_offset  # also right for a batch without records
    return found


def with_emptied(data: bytes, end_offset: int) -> bytes:
    """The batches of `data`, those before `end_offset` as compaction leaves some: headers without records."""
    kept = b""
    for position, header in split_batches(data):
        batch = bytearray(data[position : position + header.size])
        if header.base_offset < end_offset:
            del batch[HEADER_SIZE:]
            batch[8:12] = (HEADER_SIZE - LENGTH_OVERHEAD).to_bytes(4, "big")
            batch[57:61] = bytes(4)
            batch[17:21] = crc32c(batch[CRC_START:]).to_bytes(4, "big")
        kept += bytes(batch)
    return kept


def retain(log: Log, now_ms: int = NOW) -> int:
    """Do the work of every `log.retention.check.interval.ms`; returns the number of removed segments."""
    count = log.truncator.apply_retention(now_ms)
    log.truncator.detach_below_start()
    return count
