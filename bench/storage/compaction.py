"""Compaction: its rate and that of Kafka's cleaner on the same data, and its effect on producers and consumers."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.records.batch import Compression
from bench import wire
from bench.consume import consume
from bench.load import Pattern, produce
from bench.servers import create_topic, delete_topic
from bench.storage.keyed import fill, keyed_batches
from bench.storage.result import Result, ratio
from bench.storage.servers import OURS, THEIRS, AnyServer, Ours, Theirs, partition_folder
from bench.wire import BadAnswer, record_batch

TOPIC = 2  # the resource type of a topic
VALUE_BYTES, KEYS, DIFFERENT_RECORDS = 100, 50_000, 100_000
CLEANER = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "1000"}
NOT_YET = {"cleanup.policy": "compact", "segment.bytes": str(2**24), "min.compaction.lag.ms": str(2**62)}
PATIENCE_S = 300.0
LEAST_CPU_S = 0.01  # resolution of the kernel's CPU time
MOST_LOST = 0.2
BESIDE_PARTITIONS = 4
_numbers = count()


class Shape(NamedTuple):
    """The form of a log; its size is `share` of the wanted bytes."""

    title: str
    records: int
    compression: int
    share: float

    def batches(self) -> list[bytes]:
        count = DIFFERENT_RECORDS // self.records
        return keyed_batches(count, self.records, keys=KEYS, value_bytes=VALUE_BYTES, compression=self.compression)


LARGE = Shape("batches of 500", 500, Compression.NONE, 1)
SHAPES = (LARGE, Shape("batches of 10", 10, Compression.NONE, 0.3), Shape("batches of 500, zstd", 500, Compression.ZSTD, 0.3))


def measure(repeat: int, *, quick: bool) -> list[Result]:
    wanted_bytes = 100_000_000 if quick else 500_000_000
    results = []
    with Ours(CLEANER) as ours, Theirs(CLEANER) as theirs:
        for shape in SHAPES:
            results += _rates((ours, theirs), shape, int(wanted_bytes * shape.share), repeat)
    with Ours(CLEANER) as ours:
        results += _beside(ours, LARGE.batches(), wanted_bytes, repeat, seconds=1.0 if quick else 3.0)
    return results


# Speed


def _rates(servers: tuple[AnyServer, ...], shape: Shape, wanted_bytes: int, repeat: int) -> list[Result]:
    batches = shape.batches()
    megabytes: dict[str, list[float]] = {OURS: [], THEIRS: []}
    records: dict[str, list[float]] = {OURS: [], THEIRS: []}
    per_cpu: dict[str, list[float]] = {OURS: [], THEIRS: []}
    for _ in range(repeat):
        for server in servers:
            topic = f"dirty-{next(_numbers)}"
            create_topic(server, topic, 1, NOT_YET)
            written = fill(server, topic, 0, batches, wanted_bytes)
            sealed = _sealed_bytes(server, topic)
            cpu_before = server.cleaner_cpu_s()
            seconds = _time(server, topic)
            per_cpu[server.name].append(sealed / 1e6 / max(server.cleaner_cpu_s() - cpu_before, LEAST_CPU_S))
            megabytes[server.name].append(sealed / 1e6 / seconds)
            records[server.name].append(written * shape.records * sealed / _log_bytes(written, batches) / seconds)
            delete_topic(server, topic)
    results = []
    for unit, figures in (("MB/s", megabytes), ("records/s", records), ("MB per CPU second", per_cpu)):
        result = Result("compaction", f"compacting {wanted_bytes / 1e6:.0f} MB in {shape.title}, {KEYS:,} keys", unit, figures)
        result.ratio = ratio(result, OURS, THEIRS)
        result.target, result.met = "faster than Kafka's", result.ratio >= 1
        results.append(result)
    return results


def _time(server: AnyServer, topic: str) -> float:
    """The seconds from the start of cleaning until the cleaner's checkpoint says that all sealed segments are clean."""
    end = _active_base(server, topic)
    began = time.perf_counter()
    _allow(server, topic)
    _wait(lambda: _cleaned_offset(server, topic) >= end, f"{server.name} to compact {topic}")
    return time.perf_counter() - began


def _allow(server: AnyServer, topic: str) -> None:
    changes = {"min.compaction.lag.ms": "0", "min.cleanable.dirty.ratio": "0.01"}
    configs = [AlterableConfig(name=key, config_operation=0, value=value) for key, value in changes.items()]
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = wire.call(server.address, wire.INCREMENTAL_ALTER_CONFIGS, 1, request, IncrementalAlterConfigsResponse)
    if answer.responses[0].error_code:
        raise BadAnswer(f"settings of {topic}: {answer.responses[0].error_message}")


def _cleaned_offset(server: AnyServer, topic: str) -> int:
    """The offset in the cleaner's checkpoint; both servers write it in the same format."""
    path = Path(server.data_dir) / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), -1)


def _segments(server: AnyServer, topic: str) -> list[Path]:
    return sorted(partition_folder(server, topic, 0).glob("*.log"))


def _active_base(server: AnyServer, topic: str) -> int:
    return int(_segments(server, topic)[-1].stem)


def _sealed_bytes(server: AnyServer, topic: str) -> int:
    return sum(path.stat().st_size for path in _segments(server, topic)[:-1])


def _log_bytes(written: int, batches: list[bytes]) -> int:
    return sum(len(batches[i % len(batches)]) for i in range(written))


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise BadAnswer(f"waited {PATIENCE_S:g} s for {what}")
        time.sleep(0.01)


# Effect on other clients


def _beside(server: AnyServer, batches: list[bytes], wanted_bytes: int, repeat: int, *, seconds: float) -> list[Result]:
    batch = record_batch(50, 100)
    pattern = Pattern(BESIDE_PARTITIONS, batch, 50, 1, 64, 16)
    create_topic(server, "read", BESIDE_PARTITIONS)
    stored = produce(server.address, "read", BESIDE_PARTITIONS, pattern, 2 * seconds).records

    def produced() -> float:
        topic = f"beside-{next(_numbers)}"
        create_topic(server, topic, BESIDE_PARTITIONS)
        rate = produce(server.address, topic, BESIDE_PARTITIONS, pattern, seconds).records_per_s
        delete_topic(server, topic)
        return rate

    def consumed() -> float:
        load = consume(
            server.address, "read", partitions=BESIDE_PARTITIONS, records=stored, records_per_batch=50, batch_bytes=len(batch)
        )
        return load.records_per_s

    results = []
    for title, rate in (("producing batches of 50", produced), ("consuming batches of 50", consumed)):
        figures: dict[str, list[float]] = {"without compaction": [], "while compacting": []}
        rate()
        for _ in range(repeat):
            figures["without compaction"].append(rate())
            figures["while compacting"].append(_while_compacting(server, batches, wanted_bytes, rate))
        result = Result("compaction", title, "records/s", figures)
        result.ratio = ratio(result, "while compacting", "without compaction")
        result.target, result.met = f">= {1 - MOST_LOST:g}x", result.ratio >= 1 - MOST_LOST
        results.append(result)
    return results


def _is_cleaning(folder: Path) -> bool:
    return any(folder.glob("*.cleaned"))


def _while_compacting(server: AnyServer, batches: list[bytes], wanted_bytes: int, rate: Callable[[], float]) -> float:
    """Measure a rate while the cleaner works: the log is so large that cleaning takes longer than the measurement."""
    while True:
        topic = f"dirty-{next(_numbers)}"
        create_topic(server, topic, 1, NOT_YET)
        fill(server, topic, 0, batches, wanted_bytes)
        end = _active_base(server, topic)
        _allow(server, topic)
        folder = partition_folder(server, topic, 0)
        _wait(partial(_is_cleaning, folder), f"the cleaner to begin with {topic}")
        measured = rate()
        still_at_it = _cleaned_offset(server, topic) < end
        delete_topic(server, topic)
        if still_at_it:
            return measured
        wanted_bytes *= 2
