"""Failing over and back under load: consumers of four languages go on at the other site, each at its own offset.

A client knows one address, as it knows a name in the DNS. Behind it is a forwarder that leads to one site or the other.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tools.kafka import fetch

from barnabas.testing import Broker
from tests.server.mirroring.clusters import create, create_link, ends, failback, promote
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
HERE = Path(__file__).parent
TOPIC = "orders"
LANGUAGES = ("go", "java", "js", "python")
MOST_REPEATED = 100  # read and not committed yet at a switch
RESTARTED = {"js"}  # kafkajs does not find its first address again after every loss of its brokers


class Forwarder:
    """Passes connections on to `target`."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.getsockname()[1]}"

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                host, _, port = self.target.rpartition(":")
                try:
                    there = socket.create_connection((host, int(port)), timeout=5)
                except OSError:
                    client.close()
                    continue
                threading.Thread(target=_pass_on, args=(client, there), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with one, other, selectors.DefaultSelector() as selector, contextlib.suppress(OSError):
        selector.register(one, selectors.EVENT_READ, other)
        selector.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in selector.select():
                data = key.fileobj.recv(65536)  # type: ignore[union-attr]  # only sockets are registered
                if not data:
                    return
                key.data.sendall(data)


class Follower:
    """A consumer in a process of its own, and the records that it has printed."""

    def __init__(self, command: list[str], folder: Path, name: str) -> None:
        self.name = name
        self._command, self._folder = command, folder
        self.read: dict[int, list[int]] = defaultdict(list)  # offsets by partition, in their order
        self.values: dict[tuple[int, int], str] = {}
        self.changed: list[tuple[int, int]] = []  # places at which two different values were read
        self.start()

    def start(self) -> None:
        self._errors = (self._folder / f"{self.name}.log").open("ab")
        self._process = subprocess.Popen(self._command, cwd=self._folder, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            partition, offset, value = line.split()
            place = int(partition), int(offset)
            if self.values.setdefault(place, value) != value:
                self.changed.append(place)
            self.read[place[0]].append(place[1])

    def has_all(self, wanted: dict[int, int]) -> bool:
        return all({*range(end)} <= set(self.read[partition]) for partition, end in wanted.items())

    def repeated(self) -> int:
        return sum(len(offsets) - len(set(offsets)) for offsets in self.read.values())

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


class Load:
    """A writer that goes on until `stop`; every record was acknowledged."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5})
        self._is_over = threading.Event()
        self.failures: list[str] = []
        self.count = 0
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._is_over.wait(0.002):
            self._producer.produce(TOPIC, f"v{self.count}", key=str(self.count), on_delivery=self._told)
            self._producer.poll(0)
            self.count += 1

    def _told(self, error: object, _: object) -> None:
        if error is not None:
            self.failures.append(str(error))

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        assert self.failures == []


@pytest.fixture
def sites() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as first, Broker() as second:
        create(first.bootstrap_servers, TOPIC, 3)
        yield first, second


@pytest.fixture
def followers(
    tmp_path: Path, go_program: Path, js_program: Path, sites: tuple[Broker, Broker]
) -> Iterator[tuple[Forwarder, list[Follower]]]:
    forwarder = Forwarder(sites[0].bootstrap_servers)
    started: list[Follower] = []
    java = [
        "java",
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{fetch()}/*",
        str(HERE / "java" / "Follow.java"),
    ]
    programs = {
        "go": [str(go_program), "follow"],
        "java": java,
        "js": ["node", str(js_program / "follow.js")],
        "python": [sys.executable, str(HERE / "python" / "follow.py")],
    }
    try:
        started += [Follower([*programs[name], forwarder.address, TOPIC, name], tmp_path, name) for name in LANGUAGES]
        yield forwarder, started
    finally:
        for follower in started:
            follower.close()
        forwarder.close()


def wait_read(followers: list[Follower], wanted: dict[int, int]) -> None:
    assert [follower.name for follower in followers if follower.has_ended] == []
    for follower in followers:
        wait_until(
            partial(follower.has_all, wanted), f"{follower.name} has not read {wanted}: {_lacks(follower, wanted)}", within_s=150
        )


def _lacks(follower: Follower, wanted: dict[int, int]) -> dict[int, int]:
    return {partition: end - len(set(follower.read[partition])) for partition, end in wanted.items()}


def begun(consumers: list[Follower]) -> bool:
    """Whether all consumers have read something; none may have ended."""
    assert [follower.name for follower in consumers if follower.has_ended] == []
    return all(follower.values for follower in consumers)


def lead_to(servers: str, forwarder: Forwarder, consumers: list[Follower]) -> None:
    forwarder.target = servers
    for follower in consumers:
        if follower.name in RESTARTED:
            follower.close()
            follower.start()


def wait_some(load: Load, count: int) -> None:
    wanted = load.count + count
    wait_until(lambda: load.count >= wanted)


def test_consumers_of_four_languages_go_on_after_failover_and_failback(
    sites: tuple[Broker, Broker], followers: tuple[Forwarder, list[Follower]], record_property: Callable[[str, object], None]
) -> None:
    first, second = sites
    forwarder, consumers = followers
    theirs, ours = first.bootstrap_servers, second.bootstrap_servers
    create_link(ours, theirs, topics=TOPIC, sync_group_offsets_interval_seconds="1")
    load = Load(theirs)
    wait_until(lambda: begun(consumers), "not all consumers read", within_s=120)
    wait_some(load, 1000)
    load.stop()
    wait_read(consumers, ends(theirs, TOPIC))
    promote(ours, [TOPIC])
    copied = ends(ours, TOPIC)
    first.kill()
    lead_to(ours, forwarder, consumers)
    load = Load(ours)
    wait_some(load, 1000)
    wait_read(consumers, copied)
    load.stop()
    wait_read(consumers, ends(ours, TOPIC))
    # and back
    first.start()
    create_link(theirs, ours, name="back", topics=TOPIC, sync_group_offsets_interval_seconds="1")
    load = Load(ours)
    parts = failback(theirs, [TOPIC])
    assert sum(part.records or 0 for part in parts) == 0
    wait_some(load, 1000)
    load.stop()
    wait_read(consumers, ends(ours, TOPIC))
    promote(theirs, [TOPIC], link="back")
    second.kill()
    lead_to(theirs, forwarder, consumers)
    load = Load(theirs)
    wait_some(load, 1000)
    load.stop()
    wait_read(consumers, ends(theirs, TOPIC))
    for follower in consumers:
        assert follower.changed == []
        assert follower.repeated() <= MOST_REPEATED, follower.name
        record_property(f"repeated_{follower.name}", follower.repeated())
