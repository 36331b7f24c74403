"""Consumers in processes of their own that follow a topic from one cluster to another, behind one address."""

from __future__ import annotations

import contextlib
import re
import selectors
import socket
import subprocess
import threading
from collections import defaultdict
from functools import partial
from pathlib import Path

from tools.kafka import fetch

from tests.waiting import wait_while

JAVA = Path(__file__).parent / "java"
RECORD = re.compile(r"(\d+) (\d+) (\S+)")  # partition, offset, value


def java_program(name: str, *arguments: str) -> list[str]:
    """The command line of a program below `java`."""
    jvm = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return ["java", *jvm, "-cp", f"{fetch()}/*", str(JAVA / name), *arguments]


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
            record = RECORD.fullmatch(line.rstrip())
            if record is None:  # a library's log
                self._errors.write(line.encode())
                self._errors.flush()
                continue
            place = int(record[1]), int(record[2])
            if self.values.setdefault(place, record[3]) != record[3]:
                self.changed.append(place)
            self.read[place[0]].append(place[1])

    def lacks(self, wanted: dict[int, int]) -> dict[int, int]:
        """How many offsets below the wanted ends it has not read, by partition; empty if none."""
        counts = {partition: len({*range(end)} - set(self.read[partition])) for partition, end in wanted.items()}
        return {partition: count for partition, count in counts.items() if count}

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


def wait_read(followers: list[Follower], wanted: dict[int, int]) -> None:
    assert [follower.name for follower in followers if follower.has_ended] == []
    for follower in followers:
        wait_while(partial(follower.lacks, wanted), f"{follower.name} has not read {wanted}", within_s=150)


def begun(consumers: list[Follower]) -> bool:
    """Whether all consumers have read something; none may have ended."""
    assert [follower.name for follower in consumers if follower.has_ended] == []
    return all(follower.values for follower in consumers)
