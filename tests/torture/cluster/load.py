"""The load: producers and consumer groups in two languages, and the probe; each a process, and what they say is written down.

Two producers without limits to their patience send numbered records to every partition. Two groups, one of each language and each of two
members, read everything and commit.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType

from tools.kafka import fetch

from barnabas.protocol.messages.create_topics import CreatableTopic
from barnabas.testing.children import Guard
from tests.torture.cluster import wire
from tests.torture.cluster.clusters import Cluster
from tests.torture.ledger import Lane

TOPIC, PROBED = "load", "probe"
PARTITIONS = 6
RATE = 100  # records/s of each producer
LANGUAGES = ("python", "java")
MEMBERS = 2
STOP_TIMEOUT_S = 120.0
JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Otherwise Kafka's client logs to standard output, between the lines of the program.
LOGGING = """\
appenders = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
rootLogger.level = warn
rootLogger.appenderRefs = err
rootLogger.appenderRef.err.ref = err
"""
Command = Callable[..., list[str]]
CLIENT = Path(__file__).parent / "java" / "Client.java"


class Reading:
    """The records that one member of a group got, and the answers to its commits.

    Args:
        group: its group.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self.records: dict[int, list[tuple[int, str]]] = defaultdict(list)  # by partition: offset and value, not checked yet
        # the offset that must come next; None after an assignment: any offset may come
        self.following: dict[int, int | None] = {}
        self.skips: list[str] = []
        self.committed: dict[int, int] = {}

    def heard(self, words: list[str]) -> None:
        kind, index = words[0], int(words[1])
        if kind == "+":
            self.following[index] = None
        elif kind == "C":
            self.committed[index] = int(words[2])
        elif kind == "R":
            offset, wanted = int(words[2]), self.following.get(index)
            if wanted is not None and offset != wanted:
                self.skips.append(f"partition {index}: {offset} came, not {wanted}")
            self.following[index] = offset + 1
            self.records[index].append((offset, words[3]))


class Book:
    """All that the clients said. `lock` is held by whoever looks at more than one thing."""

    def __init__(self, languages: Sequence[str] = LANGUAGES) -> None:
        self.languages = languages
        self.lock = Lock()
        self.lanes: dict[tuple[str, int], Lane] = {(name, index): Lane() for name in languages for index in range(PARTITIONS)}
        self.readings: dict[str, Reading] = {}
        # times of the probe's writes; the lists only grow
        self.written: dict[int, list[float]] = {index: [] for index in range(PARTITIONS)}

    def of_producer(self, name: str) -> Callable[[str], None]:
        def heard(line: str) -> None:
            kind, index, rest = line.split(" ", 2)
            lane = self.lanes[name, int(index)]
            with self.lock:
                if kind == "E":
                    lane.sent = int(rest)
                    return
                sequence, what = rest.split(" ", 1)
                if kind == "A":
                    lane.acknowledged[int(sequence)] = int(what)
                else:
                    lane.failed.append((int(sequence), what))

        return heard

    def of_member(self, name: str, group: str) -> Callable[[str], None]:
        reading = self.readings[name] = Reading(group)

        def heard(line: str) -> None:
            with self.lock:
                reading.heard(line.split(" ", 3))

        return heard

    def of_probe(self, line: str) -> None:
        when, index = line.split()
        self.written[int(index)].append(float(when))


class Load:
    """The processes, from `__enter__` to `__exit__`."""

    def __init__(self, cluster: Cluster, folder: Path, guard: Guard, languages: Sequence[str]) -> None:
        self.book = Book(languages)
        self._cluster, self._folder, self._guard = cluster, folder, guard
        self._running: dict[str, tuple[subprocess.Popen[str], Thread]] = {}
        self._not_understood: list[str] = []

    def __enter__(self) -> Load:
        wanted = [CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=3) for name in (TOPIC, PROBED)]
        wire.create_topics(self._cluster.addresses[0], wanted)
        self._cluster.wait_whole()
        bootstrap = self._cluster.bootstrap
        self._cluster.groups = self.book.languages
        try:
            self._run("probe", _python("probe", bootstrap, PROBED, str(PARTITIONS)), self.book.of_probe)
            for language in self.book.languages:
                command = self._java() if language == "java" else partial(_python, "client")
                words = ("produce", bootstrap, TOPIC, str(PARTITIONS), language, str(RATE))
                self._run(f"{language}-producer", command(*words), self.book.of_producer(language))
                for number in range(MEMBERS):
                    name = f"{language}-consumer-{number + 1}"
                    self._run(name, command("consume", bootstrap, TOPIC, language), self.book.of_member(name, language))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _java(self) -> Command:
        path = f"{self._folder / 'classes'}:{fetch()}/*"
        subprocess.run(["javac", "-d", str(self._folder / "classes"), "-cp", path, str(CLIENT)], check=True)
        logging = self._folder / "log4j2.properties"
        logging.write_text(LOGGING)
        return lambda *words: ["java", *JVM, f"-Dlog4j2.configurationFile={logging}", "-cp", path, "Client", *words]

    def _run(self, name: str, command: list[str], heard: Callable[[str], None]) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1)
        self._guard.watch(process.pid)
        assert process.stdout is not None
        lines = process.stdout

        def read() -> None:
            for line in lines:
                try:
                    heard(line.rstrip("\n"))
                except (ValueError, IndexError, KeyError):
                    self._not_understood.append(f"{name}: {line}")

        thread = Thread(target=read, name=f"reads {name}")
        thread.start()
        self._running[name] = process, thread

    def stop_producers(self) -> None:
        """Until everything they sent is acknowledged; AssertionError if it never is."""
        for name in [name for name in self._running if name.endswith("-producer")]:
            self._end(name)

    def _end(self, name: str) -> None:
        process, thread = self._running.pop(name)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"{name} did not end within {STOP_TIMEOUT_S:g} s: {self._words(name)}") from None
        finally:
            thread.join()
            process.stdout.close()
            self._guard.forget(process.pid)
        assert code == 0, f"{name} ended with {code}: {self._words(name)}"

    def _words(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def wait_for(self, what: str, condition: Callable[[], bool], within_s: float) -> None:
        """AssertionError that names `what` if it does not come about, or if a client ended."""
        deadline = time.monotonic() + within_s
        while not condition():
            assert not self._not_understood, f"a client said {self._not_understood[0]}"
            for name, (process, _) in self._running.items():
                assert process.poll() is None, f"{name} ended: {self._words(name)}"
            assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
            time.sleep(0.05)

    def progress(self) -> dict[tuple[str, int], int]:
        with self.book.lock:
            return {key: len(lane.acknowledged) for key, lane in self.book.lanes.items()}

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for name, (process, thread) in list(self._running.items()):
            del self._running[name]
            process.kill()
            process.wait()
            thread.join()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            self._guard.forget(process.pid)


def _python(module: str, *words: str) -> list[str]:
    return [sys.executable, "-m", f"tests.torture.cluster.{module}", *words]
