"""The two systems with Kafka's protocol: both have the same generator and client (`bench.load`, `bench.consume`,
`bench.cluster`)."""

from __future__ import annotations

import socket
import string
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from tools.kafka import VERSION, KafkaUnavailable

from barnabas.protocol.records.compression import Compression
from barnabas.protocol.records.scan import compiled_scan
from bench import consume, load, servers, wire
from bench.cluster.end_to_end import Stream, measure_streams
from bench.latency import undisturbed
from bench.load import KafkaLine, Load, Pattern
from bench.peers.peer import Amount, Delays, Message, Pace, PeerUnavailable, Setting, wait_for_stored
from bench.peers.process import family
from bench.peers.streams import ALL_WINDOWS, connect
from bench.wire import record_batch

ROOT = Path(__file__).resolve().parents[2]
WINDOW_BYTES = 4_000_000  # bytes in flight; small requests reach the limit of their number first
ONE_WINDOW, BATCH_WINDOW = 256, 64  # requests in flight: with one message each, and with more
LEAST_PULL_BYTES = 1024
USUAL_BYTES = 1_000_000  # up to this size, a batch of one message fits into the default max.message.bytes
HEAD_BYTES = 1_000  # more than the header of a batch takes
CLIENTS = 4  # maximum number of producers, and of consumers, in end-to-end measurements
CODECS = {
    "none": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
WORDS = 4_000  # words of five letters; with so many, text compresses to about half


@cache
def batch_of(messages: int, value_bytes: int, codec: str = "none") -> bytes:
    """A batch with equal values; if a codec is given, the values are words."""
    if codec == "none":
        return record_batch(messages, value_bytes)
    chance = Random(1)
    words = ["".join(chance.choices(string.ascii_lowercase, k=5)) for _ in range(WORDS)]
    values = [" ".join(chance.choices(words, k=value_bytes // 6 + 1)).encode()[:value_bytes] for _ in range(messages)]
    return wire.batch_of(values, codec=CODECS[codec])


class _KafkaProtocol:
    """A broker of `bench.servers`."""

    name = ""
    is_made_by_writing = False
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

    def create(self, topic: str, partitions: int, *, largest_bytes: int = 0) -> None:
        settings = {"max.message.bytes": str(largest_bytes + HEAD_BYTES)} if largest_bytes >= USUAL_BYTES else None
        servers.create_topic(self._server, topic, partitions, settings)

    def delete(self, topic: str) -> None:
        servers.delete_topic(self._server, topic)

    def stored(self, topic: str, partitions: int) -> int:
        return servers.end_offsets(self._server, topic, partitions)

    def produce(self, topic: str, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> Load:
        batch = batch_of(message.batch, message.value_bytes, message.codec)
        fits = min(WINDOW_BYTES // len(batch), ALL_WINDOWS // producers)
        window = max(2, min(ONE_WINDOW if message.batch == 1 else BATCH_WINDOW, fits))
        chunk = max(1, min(window // 4, int(amount.messages // message.batch) or 1))
        shares = [range(number % partitions, partitions, producers) for number in range(producers)]
        most = max(map(len, shares))
        pattern = Pattern(producers, batch, message.batch, message.acks, max(window, most), max(chunk, most))
        lines = [KafkaLine(self.address, pattern, topic, share, socket.create_connection) for share in shares]
        before = self.stored(topic, partitions) if message.acks == 0 else 0

        def settle(requests: int) -> None:
            if message.acks == 0:
                wait_for_stored(self.name, lambda: self.stored(topic, partitions), before + requests * message.batch)

        requests, seconds = load.drive(lines, amount.seconds, amount.messages / message.batch, settle)
        return Load(requests, requests * message.batch, seconds)

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

    def end_to_end(self, topics: Sequence[str], message: Message, pace: Pace, *, partitions: int = 1, waiting: int = 0) -> Delays:
        return end_to_end(self.address, topics, message, pace, partitions=partitions, waiting=waiting)

    @property
    def nudge(self) -> bytes:
        return wire.hello_frame()

    def greet(self) -> socket.socket:
        line = connect(self.address)
        line.sendall(self.nudge)
        line.recv(65_536)
        return line


class Barnabas(_KafkaProtocol):
    """barnabas, started by `barnabas broker start`."""

    name = "barnabas"

    def __init__(self) -> None:
        super().__init__(servers.Barnabas())

    @property
    def version(self) -> str:
        found = subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        )
        commit = f"commit {found.stdout.strip()}" if found.returncode == 0 else "of this checkout"
        return commit if compiled_scan() is not None else f"{commit}, nothing compiled"


class ApacheKafka(_KafkaProtocol):
    """One KRaft node."""

    name = servers.Kafka.name
    version = VERSION
    settings = (
        *_KafkaProtocol.settings,
        Setting(
            "broker.session.timeout.ms",
            "3600000",
            "it stands still while others are measured, which its controller is not to mind",
        ),
        Setting("-Xms, -Xmx", "1g", "bin/kafka-server-start.sh"),
        Setting("-XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35", "", "documentation, Java version"),
    )

    def __init__(self) -> None:
        super().__init__(servers.Kafka())


def end_to_end(
    address: tuple[str, int], topics: Sequence[str], message: Message, pace: Pace, *, partitions: int = 1, waiting: int = 0
) -> Delays:
    """`Peer.end_to_end` for a server with Kafka's protocol at this address."""
    streams = [Stream(address, topic, number, waiting) for topic in topics for number in range(partitions)]
    shares = [streams[number::CLIENTS] for number in range(min(CLIENTS, len(streams)))]
    with undisturbed():
        found = measure_streams(
            shares,
            shares,
            acks=message.acks,
            rate=pace.rate,
            seconds=pace.seconds,
            value_bytes=message.value_bytes,
            warm_up_s=pace.warm_up_s,
        )
    return Delays(found.consumed, caught_up=found.caught_up)
