"""The two that speak Kafka's protocol: one generator and one client for both (`bench.load`, `bench.consume`, `bench.cluster`)."""

from __future__ import annotations

import socket
import string
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from struct import Struct
from types import TracebackType
from typing import Self

import cramjam
from tools.kafka import VERSION, KafkaUnavailable

from bench import consume, load, servers, wire
from bench.cluster import end_to_end
from bench.latency import undisturbed
from bench.load import KafkaLine, Load, Pattern
from bench.peers.peer import Amount, Delays, Message, PeerUnavailable, Setting
from bench.peers.process import family
from bench.peers.streams import connect
from bench.wire import BadAnswer, record_batch

ROOT = Path(__file__).resolve().parents[2]
WINDOW_BYTES = 4_000_000  # in flight at most; for small requests the number of them holds before
ONE_WINDOW, BATCH_WINDOW = 256, 64  # requests in flight of one message, and of more
LEAST_PULL_BYTES = 1024
SETTLE_TIMEOUT_S = 120.0
POLL_S = 0.01  # between two looks at what a system has, which cost it something


def _gzip(data: bytes) -> bytes:
    return bytes(cramjam.gzip.compress(data))


def _snappy(data: bytes) -> bytes:
    """In the frame of the Java library."""
    block = bytes(cramjam.snappy.compress_raw(data))
    return b"\x82SNAPPY\0" + Struct(">iii").pack(1, 1, len(block)) + block


def _lz4(data: bytes) -> bytes:
    """With blocks that do not depend on each other: Kafka's clients read no others."""
    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data))


CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (0, bytes),
    "gzip": (1, _gzip),
    "snappy": (2, _snappy),
    "lz4": (3, _lz4),
    "zstd": (4, _zstd),
}
WORDS = 4_000  # of five letters, so that text compresses to about half


@cache
def batch_of(messages: int, value_bytes: int, codec: str = "none") -> bytes:
    """All values alike, unless they are to be compressed: then they are words."""
    if codec == "none":
        return record_batch(messages, value_bytes)
    number, compress = CODECS[codec]
    chance = Random(1)
    words = ["".join(chance.choices(string.ascii_lowercase, k=5)) for _ in range(WORDS)]
    values = [" ".join(chance.choices(words, k=value_bytes // 6 + 1)).encode()[:value_bytes] for _ in range(messages)]
    return wire.batch_of(values, codec=number, compress=compress)


class _KafkaProtocol:
    """A broker that `bench.servers` starts."""

    name = ""
    settings: Sequence[Setting] = (
        Setting(
            "log.segment.delete.delay.ms",
            servers.CONFIG["log.segment.delete.delay.ms"],
            "files of a deleted topic go before the next case begins",
        ),
    )

    def __init__(self, server: servers.Barnabas | servers.Kafka) -> None:
        self._server = server

    def __enter__(self) -> Self:
        try:
            self._server.__enter__()
        except (KafkaUnavailable, RuntimeError) as error:
            raise PeerUnavailable(str(error).splitlines()[0]) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.__exit__(kind, error, trace)

    @property
    def pids(self) -> Sequence[int]:
        return family(self._server.pid)

    @property
    def address(self) -> tuple[str, int]:
        return self._server.address

    @property
    def data_dir(self) -> Path:
        return self._server.data_dir

    @property
    def ready_after_s(self) -> float:
        return self._server.ready_after_s

    def create(self, topic: str, partitions: int) -> None:
        servers.create_topic(self._server, topic, partitions)

    def delete(self, topic: str) -> None:
        servers.delete_topic(self._server, topic)

    def stored(self, topic: str, partitions: int) -> int:
        return servers.end_offsets(self._server, topic, partitions)

    def produce(self, topic: str, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> Load:
        batch = batch_of(message.batch, message.value_bytes, message.codec)
        window = max(2, min(ONE_WINDOW if message.batch == 1 else BATCH_WINDOW, WINDOW_BYTES // len(batch)))
        chunk = max(1, min(window // 4, int(amount.messages // message.batch) or 1))
        pattern = Pattern(producers, batch, message.batch, message.acks, window, chunk)
        lines = [
            KafkaLine(self.address, pattern, topic, number % partitions, socket.create_connection) for number in range(producers)
        ]
        before = self.stored(topic, partitions) if message.acks == 0 else 0

        def settle(requests: int) -> None:
            if message.acks == 0:
                self._wait_for(topic, partitions, before + requests * message.batch)

        requests, seconds = load.drive(lines, amount.seconds, amount.messages / message.batch, settle)
        return Load(requests, requests * message.batch, seconds)

    def _wait_for(self, topic: str, partitions: int, messages: int) -> None:
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while self.stored(topic, partitions) < messages:
            if time.monotonic() > deadline:
                raise BadAnswer(f"{self.name} does not have what was sent without acknowledgement")
            time.sleep(POLL_S)

    def consume(self, topic: str, message: Message, messages: int, *, partitions: int = 1, pull_bytes: int) -> Load:
        return consume.consume(
            self.address,
            topic,
            partitions=partitions,
            records=messages,
            records_per_batch=message.batch,
            batch_bytes=len(batch_of(message.batch, message.value_bytes, message.codec)),
            partition_max_bytes=max(pull_bytes // partitions, LEAST_PULL_BYTES),
        )

    def end_to_end(self, topic: str, message: Message, rate: int, seconds: float, *, partitions: int = 1) -> Delays:
        with undisturbed():
            found = end_to_end.measure([self.address] * partitions, topic, acks=message.acks, rate=rate, seconds=seconds)
        return Delays(found.consumed)

    @property
    def nudge(self) -> bytes:
        return wire.hello_frame()

    def greet(self) -> socket.socket:
        line = connect(self.address)
        line.sendall(self.nudge)
        line.recv(65_536)
        return line


class Barnabas(_KafkaProtocol):
    """barnabas, as `barnabas broker start` runs it."""

    name = "barnabas"

    def __init__(self) -> None:
        super().__init__(servers.Barnabas())

    @property
    def version(self) -> str:
        found = subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        )
        return f"commit {found.stdout.strip()}" if found.returncode == 0 else "of this checkout"


class ApacheKafka(_KafkaProtocol):
    """One KRaft node."""

    name = servers.Kafka.name
    version = VERSION
    settings = (
        *_KafkaProtocol.settings,
        Setting("-Xms, -Xmx", "1g", "bin/kafka-server-start.sh"),
        Setting("-XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35", "", "documentation, Java version"),
    )

    def __init__(self) -> None:
        super().__init__(servers.Kafka())
