"""Producing while a consumer reads data that is no longer in the page cache: the effect on the slowest percent of requests.

The effect of the machine itself is measured too: a loop of bare system calls receives the requests. At the same time another
process, without a connection to the loop, reads as many bytes a second from the disk.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from multiprocessing.synchronize import Event
from pathlib import Path

from barnabas.signals import die_with_parent
from bench.bare import RECEIVE, TOPIC, Bare
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
STEP_BYTES = 1 << 20
TARGET = 2.0
LIVE_PARTITIONS = 8
READ_BYTES_PER_S = 100e6  # the rate of a consumer that catches up over a fast network
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
    return [*results, _bare(repeat, seconds, cold_bytes)]


def _bare(repeat: int, seconds: float, cold_bytes: int) -> Result:
    figures: dict[str, list[float]] = {ALONE: [], COLD: []}
    with Bare(RECEIVE) as loop, tempfile.TemporaryDirectory(prefix="barnabas-bench-cold-") as folder:
        path = Path(folder) / "cold.log"
        _write(path, cold_bytes)
        _bare_p99(loop, 2.0)
        for _ in range(repeat):
            figures[ALONE].append(_bare_p99(loop, seconds))
            with _beside(_read_file, path):
                figures[COLD].append(_bare_p99(loop, seconds))
    result = Result("cold", f"p99 of requests at {RATE:,}/s, {loop.name}", "ms", figures)
    result.ratio = ratio(result, COLD, ALONE)
    result.remark = "the process that reads shares nothing with the loop but the machine"
    return result


def _bare_p99(loop: Bare, seconds: float) -> float:
    found = measure_latency(loop.address, TOPIC, partitions=1, batch=record_batch(1, 100), acks=1, rate=RATE, seconds=seconds)
    return found.by_percentile["p99"]


def _write(path: Path, size: int) -> None:
    data = os.urandom(STEP_BYTES)
    with path.open("wb") as file:
        for _ in range(size // STEP_BYTES):
            file.write(data)


def _read_file(path: Path, begun: Event, stop: Event) -> None:
    """Read a file repeatedly, each time from the disk, at the rate of the consumer."""
    with path.open("rb", buffering=0) as file:
        while not stop.is_set():
            _drop_from_cache(path.parent)
            begun.set()
            file.seek(0)
            started, taken = time.perf_counter(), 0
            while not stop.is_set() and (data := file.read(STEP_BYTES)):
                taken += len(data)
                time.sleep(max(0.0, started + taken / READ_BYTES_PER_S - time.perf_counter()))


def _fill(server: AnyServer, batch: bytes, wanted_bytes: int) -> int:
    """Fill the topic `cold`; returns its number of records."""
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
    """During the block, another process repeatedly reads the topic from beginning to end. With `cold`, it first drops the files
    from the page cache each time."""
    folders = [str(partition_folder(server, "cold", index)) for index in range(PARTITIONS)] if cold else []
    with _beside(_read_cold, server.address, records, batch_bytes, folders):
        yield


@contextmanager
def _beside(work: Callable[..., None], *arguments: object) -> Iterator[None]:
    """During the block, another process runs `work`; `work` gets an event to stop, and sets one when it has begun."""
    context = multiprocessing.get_context("spawn")
    stop, begun = context.Event(), context.Event()
    process = context.Process(target=_ending_with_parent, args=(work, *arguments, begun, stop))
    process.start()
    try:
        begun.wait()
        yield
    finally:
        stop.set()
        process.join()


def _ending_with_parent(work: Callable[..., None], *arguments: object) -> None:
    die_with_parent()
    work(*arguments)


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
    """The bytes that a process has read from the disk so far."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("read_bytes")).split()[1])


def _drop_from_cache(folder: Path) -> None:
    for path in folder.glob("*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # the kernel cannot drop pages that were not written back
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
