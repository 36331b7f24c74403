"""The two compared servers, each in its own process with a fresh data folder, and the kernel's figures of them.

Both have Kafka's defaults with two exceptions. The files of a deleted topic are removed after a second: with the default of a
minute, this work would fall into the measurement of another case. And the session timeout of Kafka's broker is longer, so that
its controller keeps it while both are stopped (`bench.standstill`).
"""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from tools.kafka import VERSION, KafkaNode, free_ports

from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.testing.children import Child
from bench import wire

READY_TIMEOUT_S, STOP_TIMEOUT_S = 120.0, 60.0
CONFIG = {"log.segment.delete.delay.ms": "1000"}
KAFKA_CONFIG = {**CONFIG, "broker.session.timeout.ms": "3600000"}
DELETED_AFTER_S = 2.5  # log.segment.delete.delay.ms, and the time to remove a few gigabytes
POLL_S = 0.002  # between two attempts to reach a starting server
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TOPIC_TIMEOUT_S = 300.0  # thousands of partitions on a busy disk take long
_CLOCK_PID_SHIFT, _CLOCK_OF_PROCESS = 3, 2  # how Linux derives the id of a process's CPU clock from its pid
LATEST = -1
HELLO = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
SOURCE = Path(__file__).resolve().parent.parent / "src"


@cache
def _compile_source() -> None:
    """Compile the source like an installation by pip. Otherwise each start would compile edited files again, if Python may not
    write the result (PYTHONDONTWRITEBYTECODE)."""
    compileall.compile_dir(SOURCE, quiet=1)


class Server(Protocol):
    """A running broker."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> tuple[str, int]: ...

    @property
    def ready_after_s(self) -> float: ...

    @property
    def pid(self) -> int: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class Barnabas:
    """A broker, started with `barnabas broker start` as by a user.

    Args:
        host: the address of its listener.
        inside: words before the command, such as those that run it in a network namespace.
        settings: in addition to `CONFIG`.
    """

    name = "barnabas"

    def __init__(self, host: str = "127.0.0.1", inside: Sequence[str] = (), settings: Mapping[str, str] | None = None) -> None:
        self.address = (host, 0)
        self._inside, self._more = inside, settings or {}
        self.ready_after_s = 0.0
        self._folder: Path | None = None
        self._process: Child[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def data_dir(self) -> Path:
        assert self._folder is not None
        return self._folder / "data"

    @property
    def bootstrap(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    def _settings(self, port: int) -> dict[str, str]:
        return {**CONFIG, "listeners": f"PLAINTEXT://{self.address[0]}:{port}", **self._more}

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
        self.address = (self.address[0], free_ports(1)[0])
        command = [*self._inside, sys.executable, "-m", "barnabas.cli", "broker", "start"]
        command += [f"--config={key}={value}" for key, value in self._settings(self.address[1]).items()]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        _compile_source()
        began = time.perf_counter()
        with (self._folder / "log").open("wb") as log:
            self._process = Child([*command, "--data-dir", str(self._folder / "data")], stdout=log, stderr=log, env=environment)
        try:
            self.ready_after_s = _wait_ready(self, self._process, began)
        except BaseException:
            print((self._folder / "log").read_text(errors="replace")[-4000:], file=sys.stderr)
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.end()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None


class Kafka(KafkaNode):
    """One KRaft node; formatting its data folder is not part of its time to ready."""

    name = f"Apache Kafka {VERSION}"

    def __init__(self, config: Mapping[str, str] = KAFKA_CONFIG) -> None:
        super().__init__(heap="1g", config=dict(config))

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)

    def __enter__(self) -> Self:
        self.start()
        return self


def _wait_ready(server: Server, process: subprocess.Popen[bytes], began: float) -> float:
    """The seconds from `began` to the first answers to ApiVersions and Metadata."""
    while time.perf_counter() - began < READY_TIMEOUT_S and process.poll() is None:
        try:
            wire.call(server.address, wire.API_VERSIONS, 3, HELLO, ApiVersionsResponse)
            if wire.call(server.address, wire.METADATA, 9, MetadataRequest(topics=[]), MetadataResponse).brokers:
                return time.perf_counter() - began
        except (OSError, wire.BadAnswer):
            pass
        time.sleep(POLL_S)
    raise RuntimeError(f"{server.name} did not start")


def create_topic(server: Server, name: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
    """Create a topic and wait until every partition has a leader: a broker of Kafka learns that it leads only after the topic
    exists."""
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in (settings or {}).items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(TOPIC_TIMEOUT_S * 1000))
    answer = wire.call(server.address, wire.CREATE_TOPICS, 5, request, CreateTopicsResponse, timeout_s=TOPIC_TIMEOUT_S)
    _expect_no_error(answer.topics[0].error_code, f"create topic {name}")
    deadline = time.monotonic() + TOPIC_TIMEOUT_S
    while any(p.error_code for p in _list_end_offsets(server, name, partitions)):
        if time.monotonic() > deadline:
            raise wire.BadAnswer(f"topic {name} did not come up")
        time.sleep(0.02)


def delete_topic(server: Server, name: str) -> None:
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=int(TOPIC_TIMEOUT_S * 1000))
    answer = wire.call(server.address, wire.DELETE_TOPICS, 4, request, DeleteTopicsResponse, timeout_s=TOPIC_TIMEOUT_S)
    _expect_no_error(answer.responses[0].error_code, f"delete topic {name}")


def end_offsets(server: Server, topic: str, partitions: int) -> int:
    """The sum of the end offsets of a topic: the number of records that the server reports."""
    found = _list_end_offsets(server, topic, partitions)
    for partition in found:
        _expect_no_error(partition.error_code, f"end offset of {topic}")
    return sum(partition.offset for partition in found)


def _list_end_offsets(server: Server, topic: str, partitions: int) -> Sequence[ListOffsetsPartitionResponse]:
    wanted = [ListOffsetsPartition(partition_index=i, timestamp=LATEST) for i in range(partitions)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    return wire.call(server.address, wire.LIST_OFFSETS, 6, request, ListOffsetsResponse).topics[0].partitions


def _expect_no_error(code: int, what: str) -> None:
    if code:
        raise wire.BadAnswer(f"{what}: error code {code}")


def busy_seconds() -> float:
    """The CPU time of this machine so far, in seconds, on all cores together."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S


def cpu_seconds(pid: int) -> float:
    """The user and system time of a process so far in seconds, with nanosecond precision, including threads that have ended.

    The kernel has a clock for each process (`clock_getcpuclockid` in the C library). `/proc` rounds to 10 ms: too coarse for a
    server that sends 100 MB in 30 ms.
    """
    return time.clock_gettime(~pid << _CLOCK_PID_SHIFT | _CLOCK_OF_PROCESS)


def resident_mb(pid: int) -> float:
    """The resident memory of a process, in units of 1,000,000 bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} has no resident memory")
