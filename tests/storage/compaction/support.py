"""Logs with small segments, compacted without a broker or a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch import Record, build_batch, split_batches
from barnabas.protocol.records.batch_header import BatchHeader
from barnabas.storage.compaction.cleaner import clean
from barnabas.storage.compaction.engine import Engine
from barnabas.storage.compaction.plain import PlainEngine
from barnabas.storage.compaction.segment_replacement import replace_segments
from barnabas.storage.compaction.task import CleaningResult, CleaningTask, SegmentRef
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.log import AppendOrigin, Log
from barnabas.storage.markers import CONTROL_KEY, CONTROL_VALUE
from tests.storage.support import FILES, NOW, bytes_of, open_log

SMALL = TopicConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=1000, index_interval_bytes=100)
HORIZON_MS = 1000
Pair = tuple[bytes | None, bytes | None]


def engines() -> list[str]:
    return ["plain", "compiled"] if find_spec("numba") is not None else ["plain"]


def engine_of(name: str) -> Engine:
    if name == "plain":
        return PlainEngine()
    from barnabas.storage.compaction.compiled import CompiledEngine

    return CompiledEngine(7)


def compacted_log(folder: Path, config: TopicConfig = SMALL, *, clean_shutdown: bool = True, files: OsFiles = FILES) -> Log:
    return open_log(folder, config, clean=clean_shutdown, files=files)


def put(log: Log, *pairs: Pair, time_ms: int = NOW, **fields: Any) -> int:
    """Append one batch, as another broker's copy where it could not be produced (no key, control); its base offset."""
    records = [Record(0, time_ms + index, key, value) for index, (key, value) in enumerate(pairs)]
    data = bytearray(build_batch(records, **fields))
    result = log.appender.append_as_leader(memoryview(data), leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
    return result.first_offset


def end_transaction(log: Log, producer_id: int, *, commit: bool, epoch: int = 0) -> int:
    key, value = CONTROL_KEY.pack(0, int(commit)), CONTROL_VALUE.pack(0, 0)
    return put(log, (key, value), producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True)


def roll(log: Log) -> None:
    """Seal what there is, as the age of a segment does."""
    log.update_config(_with(log.config, segment_ms=1))
    assert log.appender.maybe_roll(log.segments.active.created_ms + 10**9)
    log.update_config(_with(log.config, segment_ms=TopicConfig().segment_ms))


def _with(config: TopicConfig, **fields: Any) -> TopicConfig:
    from msgspec.structs import replace

    return replace(config, **fields)


def task_of(
    log: Log, *, first_dirty_offset: int = 0, now_ms: int = NOW, dedupe_bytes: int = 2**20, **fields: int
) -> CleaningTask:
    """A cleaning of everything that is sealed; it goes through its text, as on the way to the cleaner process."""
    config = log.config
    task = CleaningTask(
        directory=log.directory,
        segments=tuple(SegmentRef(s.base_offset, s.next_offset, s.size) for s in log.segments.sealed),
        later=(log.active_base_offset,),
        first_dirty_offset=first_dirty_offset,
        producers=log.reader.last_writes(),
        now_ms=now_ms,
        delete_retention_ms=HORIZON_MS,
        segment_bytes=fields.get("segment_bytes", config.segment_bytes),
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        dedupe_bytes=dedupe_bytes,
        load_factor=0.9,
        buffer_bytes=fields.get("buffer_bytes", 1),
        keeps_expired=bool(fields.get("keeps_expired", False)),
    )
    return CleaningTask.from_json(task.to_json())


def compact(log: Log, engine: Engine, task: CleaningTask | None = None, *, files: Files = FILES, **fields: int) -> CleaningResult:
    """Clean the log and swap, step by step."""
    if not log.segments.sealed:
        raise ValueError("nothing is sealed")
    task = task or task_of(log, **fields)
    cleaning = clean(task, files, engine, lambda _read, _written: None)
    while True:
        try:
            group = next(cleaning)
        except StopIteration as end:
            result = end.value
            assert isinstance(result, CleaningResult)
            return result
        asyncio.run(replace_segments(log, group, task.now_ms, _at_once))


async def _at_once(job: Callable[[], None]) -> None:
    job()


def batches(log: Log) -> list[tuple[BatchHeader, bytes]]:
    """Every batch of the log, as a consumer would get them."""
    found, at = [], log.log_start_offset
    while at < log.log_end_offset:
        region = log.reader.read(at, 2**20, limit_offset=log.log_end_offset, minimum_one=True)
        if region is None:
            break
        data = bytes_of(region)
        for position, header in split_batches(data):
            found.append((header, data[position : position + header.size]))
            at = header.next_offset
    return found


def last_of_each_key(records: Iterable[Record]) -> Mapping[bytes | None, bytes | None]:
    return {record.key: record.value for record in records if record.value is not None or record.key is not None}


def file_bytes(log: Log) -> dict[str, bytes]:
    """Everything in the folder that compaction writes."""
    kinds = (".log", ".index", ".timeindex", ".txnindex")
    return {path.name: path.read_bytes() for path in sorted(log.directory.iterdir()) if path.suffix in kinds}
