"""Producing while somebody reads what is not in the page cache any more: what that does to the slowest percent of requests."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from multiprocessing.synchronize import Event
from pathlib import Path

from bench.consume import consume
from bench.latency import measure as measure_latency
from bench.load import Pattern, produce
from bench.servers import create_topic
from bench.storage.result import Result, ratio
from bench.storage.servers import OURS, AnyServer, Ours, Theirs, partition_folder
from bench.wire import record_batch

PARTITIONS = 4
RECORDS = 500
RATE = 2_000
TARGET = 2.0
LIVE_PARTITIONS = 8
READ_BYTES_PER_S = 100e6  # a consumer that catches up over a good network
ALONE, CACHED, COLD = "alone", "beside reading from the page cache", "beside reading from the disk"
_numbers = count()


def measure(repeat: int, *, quick: bool) -> list[Result]:
    seconds, cold_bytes = (3.0, 400_000_000) if quick else (8.0, 1_000_000_000)
    batch = record_batch(RECORDS, 100)
    results = []
    for make in (Ours, Theirs):
        figures: dict[str, list[float]] = {ALONE: [], CACHED: [], COLD: []}
        read: list[float] = []
        with make() as server:
            records = _fill(server, batch, cold_bytes)
            _p99(server, 2.0)
            for _ in range(repeat):
                figures[ALONE].append(_p99(server, seconds))
                with _reading(server, records, len(batch), cold=False):
                    figures[CACHED].append(_p99(server, seconds))
                with _reading(server, records, len(batch), cold=True):
                    before = _bytes_from_disk(server.pid)
                    figures[COLD].append(_p99(server, seconds))
                    read.append((_bytes_from_disk(server.pid) - before) / 1e6 / seconds)
        result = Result("cold", f"p99 of produce at {RATE:,}/s, {server.name}", "ms", figures)
        result.ratio = ratio(result, COLD, ALONE)
        result.remark = f"{min(read):.0f} MB/s or more came from the disk meanwhile"
        if server.name == OURS:
            result.target, result.met = f"<= {TARGET:g}x", result.ratio <= TARGET
        results.append(result)
    return results


def _fill(server: AnyServer, batch: bytes, wanted_bytes: int) -> int:
    """How many records the topic `cold` holds then."""
    create_topic(server, "cold", PARTITIONS)
    pattern = Pattern(PARTITIONS, batch, RECORDS, 1, 16, 4)
    records = 0
    while records * len(batch) < wanted_bytes * RECORDS:
        records += produce(server.address, "cold", PARTITIONS, pattern, 0.2).records
    return records


def _p99(server: AnyServer, seconds: float) -> float:
    topic = f"live-{next(_numbers)}"
    create_topic(server, topic, LIVE_PARTITIONS)
    found = measure_latency(
        server.address, topic, partitions=LIVE_PARTITIONS, batch=record_batch(1, 100), acks=1, rate=RATE, seconds=seconds
    )
    return found.by_percentile["p99"]


@contextmanager
def _reading(server: AnyServer, records: int, batch_bytes: int, *, cold: bool) -> Iterator[None]:
    """Another process reads the topic from beginning to end again and again; if `cold`, the files leave the cache before each time."""
    folders = [str(partition_folder(server, "cold", index)) for index in range(PARTITIONS)] if cold else []
    context = multiprocessing.get_context("spawn")
    stop, begun = context.Event(), context.Event()
    reader = context.Process(target=_read_cold, args=(server.address, records, batch_bytes, folders, begun, stop))
    reader.start()
    try:
        begun.wait()
        yield
    finally:
        stop.set()
        reader.join()


def _read_cold(address: tuple[str, int], records: int, batch_bytes: int, folders: list[str], begun: Event, stop: Event) -> None:
    while not stop.is_set():
        for folder in folders:
            _drop_from_cache(Path(folder))
        begun.set()
        consume(
            address,
            "cold",
            partitions=PARTITIONS,
            records=records,
            records_per_batch=RECORDS,
            batch_bytes=batch_bytes,
            bytes_per_s=READ_BYTES_PER_S,
        )


def _bytes_from_disk(pid: int) -> int:
    """What a process has caused to be read from the disk so far."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("read_bytes")).split()[1])


def _drop_from_cache(folder: Path) -> None:
    for path in folder.glob("*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # what is not written back cannot be dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
