"""`python -m bench.startup`: the time until a broker with much data is ready, after a clean stop and after a kill.

Creates a folder of 100 GiB with 2,000 partitions and 20,000 segments (see `bench.folder`), starts the broker on it several
times, and removes it. `--kafka` measures Apache Kafka on a folder filled in the same way.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tools.kafka import KafkaNode, KafkaUnavailable

from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.testing import Broker
from bench import wire
from bench.folder import Shape, as_after_a_kill, fill
from bench.servers import cpu_seconds, resident_mb

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS_PER_TOPIC = 100
READY_TIMEOUT_S = 600.0
GIB = 1024**3


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    topics = {f"topic-{number:03d}": PARTITIONS_PER_TOPIC for number in range(options.partitions // PARTITIONS_PER_TOPIC)}
    shape = Shape(
        segments=options.segments // options.partitions,
        segment_bytes=int(options.gib * GIB) // options.segments,
        tail_bytes=options.tail_kib * 1024,
    )
    print(f"{options.gib:g} GiB, {options.partitions} partitions, {options.segments} segments, tails of {options.tail_kib} KiB")
    for name, serve in (("barnabas", _barnabas), ("kafka", _kafka)):
        if name == "kafka" and not options.kafka:
            continue
        folder = Path(tempfile.mkdtemp(prefix="barnabas-startup-", dir=options.scratch))
        try:
            _measure(name, serve, folder / "data", shape, topics, options.repeat)
        except KafkaUnavailable as error:  # Kafka keeps three files per segment open or mapped
            print(f"{name}: cannot open the folder: {_first_error(str(error))}")
        finally:
            shutil.rmtree(folder)
    return 0


def _first_error(log: str) -> str:
    return next((line for line in log.splitlines() if "Exception" in line), log[:200])


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.startup", description=__doc__)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--segments", type=int, default=20_000, help="of all partitions together")
    parser.add_argument("--gib", type=float, default=100.0, help="of all partitions together; most of it holes")
    parser.add_argument("--tail-kib", type=int, default=64, help="past the recovery point of each partition after a kill")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scratch", help="folder for the data (default: the system's for temporary files)")
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka too")
    return parser.parse_args(arguments)


class Served(NamedTuple):
    """The figures of a server that is ready."""

    bootstrap: str
    pid: int
    ready_after_s: float
    kill: Callable[[], None]


@contextmanager
def _barnabas(data_dir: Path) -> Iterator[Served]:
    broker = Broker(data_dir=data_dir, ready_timeout_s=READY_TIMEOUT_S)
    began = time.perf_counter()
    with broker:
        assert broker.pid is not None
        yield Served(broker.bootstrap_servers, broker.pid, time.perf_counter() - began, broker.kill)


@contextmanager
def _kafka(data_dir: Path) -> Iterator[Served]:
    with KafkaNode(data_dir=data_dir) as node:
        yield Served(node.bootstrap, node.pid, node.ready_after_s, lambda: os.kill(node.pid, signal.SIGKILL))


def _measure(
    name: str,
    serve: Callable[[Path], AbstractContextManager[Served]],
    data_dir: Path,
    shape: Shape,
    topics: Mapping[str, int],
    repeat: int,
) -> None:
    with serve(data_dir) as server:
        began = time.perf_counter()
        _create(server.bootstrap, topics)
        print(f"{name}: {len(topics)} topics made in {time.perf_counter() - began:.2f} s", flush=True)
        began = time.perf_counter()
    print(f"{name}: first stop {time.perf_counter() - began:.2f} s")
    began = time.perf_counter()
    size = fill(data_dir, shape, topics)
    print(f"{name}: folder of {size / GIB:.1f} GiB filled in {time.perf_counter() - began:.1f} s", flush=True)
    for _ in range(repeat):
        with serve(data_dir) as server:
            _report(name, "clean", server)
            began = time.perf_counter()
        print(f"{name}: stop {time.perf_counter() - began:.2f} s", flush=True)
    for _ in range(repeat):
        as_after_a_kill(data_dir, shape, topics)
        with serve(data_dir) as server:
            _report(name, "kill", server)
    with serve(data_dir) as server:
        server.kill()
    with serve(data_dir) as server:
        _report(name, "idle kill", server)


def _report(name: str, how: str, server: Served) -> None:
    descriptors = len(os.listdir(f"/proc/{server.pid}/fd"))
    print(
        f"{name}: ready after {how:9} {server.ready_after_s:6.2f} s, cpu {cpu_seconds(server.pid):6.2f} s, "
        f"{resident_mb(server.pid):5.0f} MB, {descriptors} descriptors",
        flush=True,
    )


def _create(bootstrap: str, topics: Mapping[str, int]) -> None:
    host, _, port = bootstrap.rpartition(":")
    wanted = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics.items()]
    request = CreateTopicsRequest(topics=wanted, timeout_ms=60_000)
    answer = wire.call((host, int(port)), wire.CREATE_TOPICS, 5, request, CreateTopicsResponse)
    failed = [topic.name for topic in answer.topics if topic.error_code]
    if failed:
        raise wire.BadAnswer(f"topics not made: {failed}")


if __name__ == "__main__":
    sys.exit(main())
