"""Eight producers with acks=all and `flush.messages=1`, compared with a loop that syncs the disk for every request."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from bench.load import Pattern, produce
from bench.servers import create_topic
from bench.storage.result import Result, ratio
from bench.storage.servers import OURS, THEIRS, AnyServer, Ours, Theirs
from bench.wire import record_batch

PRODUCERS = 8
TARGET = 10.0
NAIVE = "one fsync for each request"
EACH_RECORD = {"flush.messages": "1"}


def measure(repeat: int, *, quick: bool) -> list[Result]:
    seconds = 1.0 if quick else 4.0
    batch = record_batch(1, 100)
    rates: dict[str, list[float]] = {OURS: [], THEIRS: [], NAIVE: []}
    with Ours() as ours, Theirs() as theirs:
        servers: tuple[AnyServer, ...] = (ours, theirs)
        for server in servers:
            _rate(server, "warm-up", batch, seconds)
        for number in range(repeat):
            for server in servers:
                rates[server.name].append(_rate(server, f"synced-{number}", batch, seconds))
            rates[NAIVE].append(_naive(ours.data_dir.parent, batch, seconds))
    result = Result("syncing", "acks=all, flush.messages=1, eight producers", "requests/s", rates)
    result.ratio = ratio(result, OURS, NAIVE)
    result.target, result.met = f">= {TARGET:g}x {NAIVE}", result.ratio >= TARGET
    result.remark = f"{ratio(result, OURS, THEIRS):.2f}x Apache Kafka's rate"
    return [result]


def _rate(server: AnyServer, topic: str, batch: bytes, seconds: float) -> float:
    create_topic(server, topic, PRODUCERS, EACH_RECORD)
    pattern = Pattern(PRODUCERS, batch, 1, -1, 64, 16)
    load = produce(server.address, topic, PRODUCERS, pattern, seconds)
    return load.requests / load.seconds


def _naive(folder: Path, batch: bytes, seconds: float) -> float:
    """The rate of batches that are written to eight files in turn, with a sync after each."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        files = [os.open(Path(name) / str(i), os.O_CREAT | os.O_WRONLY | os.O_APPEND) for i in range(PRODUCERS)]
        try:
            began, count = time.perf_counter(), 0
            while time.perf_counter() - began < seconds:
                os.write(files[count % PRODUCERS], batch)
                os.fsync(files[count % PRODUCERS])
                count += 1
            return count / (time.perf_counter() - began)
        finally:
            for descriptor in files:
                os.close(descriptor)
