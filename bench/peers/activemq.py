"""ActiveMQ Classic with KahaDB: one queue for each partition, and a client in Java (`java/Client.java`) over JMS, its fastest
client.

Its jars are fetched once from Maven Central into `.cache/` of the checkout; the two small classes are compiled there too.
Single messages are confirmed one by one, with many in flight; a batch is a transaction. Reading from a queue removes the
message.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from tools.kafka import free_ports

from barnabas.testing.children import Child
from bench.load import Load
from bench.peers.peer import Amount, CannotDo, Delays, Message, Pace, PeerUnavailable, Setting
from bench.peers.process import OwnProcess, Process, program
from bench.peers.streams import connect, streams_of
from bench.wire import BadAnswer

VERSION = "6.1.7"
SOURCES = Path(__file__).resolve().parent / "java"
HOME = Path(__file__).resolve().parents[2] / ".cache" / f"activemq-{VERSION}"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>barnabas</groupId><artifactId>activemq</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-broker</artifactId><version>{VERSION}</version></dependency>
    <dependency>
      <groupId>org.apache.activemq</groupId><artifactId>activemq-kahadb-store</artifactId><version>{VERSION}</version>
    </dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.16</version></dependency>
  </dependencies>
</project>
"""
HEAP = "1g"
MOST_PRODUCERS = 4  # each producer is a JVM
GREETING = b"ActiveMQ"  # the first message of a broker contains this


def classpath() -> str:
    """The class path of the jars and our classes; fetches and compiles them if they are missing.

    Raises:
        PeerUnavailable: a tool is missing or has failed.
    """
    jars, classes = HOME / "jars", HOME / "classes"
    if not jars.is_dir():
        HOME.mkdir(parents=True, exist_ok=True)
        (HOME / "pom.xml").write_text(POM)
        maven = [program("mvn", "maven"), "-q", "-B", "-f", str(HOME / "pom.xml"), "dependency:copy-dependencies"]
        part = HOME / "part"
        _run([*maven, f"-DoutputDirectory={part}", "-DincludeScope=runtime"])
        part.rename(jars)
    sources = sorted(SOURCES.glob("*.java"))
    newest = max(source.stat().st_mtime for source in sources)
    if not classes.is_dir() or classes.stat().st_mtime < newest:
        shutil.rmtree(classes, ignore_errors=True)
        compiler = program("javac", "openjdk-17-jdk-headless")
        _run([compiler, "-cp", f"{jars}/*", "-d", str(classes), *map(str, sources)])
    return f"{classes}:{jars}/*"


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerUnavailable(
            f"ActiveMQ {VERSION}: {Path(command[0]).name} failed: {' '.join((done.stdout + done.stderr).split())[-300:]}"
        )


class ActiveMq(OwnProcess):
    """One broker, and the client that loads it."""

    name = "ActiveMQ Classic"
    is_made_by_writing = True
    nudge = b""
    version = VERSION
    settings = (
        Setting(
            "journalDiskSyncStrategy",
            "periodic",
            "activemq.apache.org, KahaDB: syncs every second, as the others; the default is each message",
        ),
        Setting(
            "producerFlowControl",
            "false",
            "activemq.apache.org, Producer flow control: producers are not held up by the memory of a queue",
        ),
        Setting("transport", "nio", "activemq.apache.org, Configuring Transports: for many connections"),
        Setting("maximumConnections", "20000", "activemq.apache.org, Configuring Transports: the default is 1,000 by its script"),
        Setting("wireFormat.maxInactivityDuration", "0", "activemq.apache.org, InactivityMonitor: idle clients stay"),
        Setting("-Xms, -Xmx", HEAP, "as much as Apache Kafka has"),
        Setting(
            "useAsyncSend, optimizeAcknowledge, copyMessageOnSend=false",
            "",
            "activemq.apache.org, How can I make my client faster",
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self.address = ("127.0.0.1", 0)
        self._clients: dict[str, Child[str]] = {}
        self._classpath = ""
        self._partitions: dict[str, int] = {}

    @property
    def data_dir(self) -> Path:
        return self.process.folder / "data"

    def __enter__(self) -> Self:
        java = program("java", "openjdk-17-jdk-headless")
        self._classpath = classpath()
        self._running = Process("activemq")
        self.address = ("127.0.0.1", free_ports(1)[0])
        start = [java, f"-Xms{HEAP}", f"-Xmx{HEAP}", "-cp", self._classpath, "Broker", str(self.address[1]), str(self.data_dir)]
        self.ready_after_s = self._running.start(start, self._is_ready)
        return self

    def _is_ready(self) -> bool:
        self.greet().close()
        return True

    def __exit__(self, *_: object) -> None:
        while self._clients:
            client = self._clients.popitem()[1]
            client.terminate()
            client.communicate()
        super().__exit__()

    def _ask(self, command: str, client: str = "asks") -> str:
        """The answer of a client to a command. Each producer and the consumer have a client of their own, since they may work at once."""
        if client not in self._clients:
            start = [
                program("java", "openjdk-17-jdk-headless"),
                "-Xmx512m",
                "-cp",
                self._classpath,
                "Client",
                str(self.address[1]),
            ]
            self._clients[client] = Child(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process = self._clients[client]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(command + "\n")
        process.stdin.flush()
        answer = process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise BadAnswer(f"{command}: {answer or 'the client ended'}")
        return answer

    def create(self, topic: str, partitions: int, *, largest_bytes: int = 0) -> None:
        """Does nothing: the first message creates a queue."""
        self._partitions[topic] = partitions

    def delete(self, topic: str) -> None:
        self._ask(f"delete {topic} {self._partitions.pop(topic)}")

    def stored(self, topic: str, partitions: int) -> int:
        return sum(int(self._ask(f"stored {queue}")) for queue in streams_of(topic, partitions))

    def greet(self) -> socket.socket:
        """Exchange the formats of both sides. The client accepts the format of the broker."""
        line = connect(self.address)
        said = line.recv(4096)
        if GREETING not in said:
            line.close()
            raise ConnectionError("no broker yet")
        line.sendall(said)
        line.recv(65_536)
        return line

    def produce(self, topic: str, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> Load:
        if max(producers, partitions) > MOST_PRODUCERS:
            raise CannotDo(f"a limit of this suite: a producer is a process of its own, {MOST_PRODUCERS} at most")
        if partitions > producers:
            raise CannotDo("a limit of this suite: a producer writes to one queue")
        queues = streams_of(topic, partitions)
        each = int(min(amount.messages, 1e9)) // producers

        def load(number: int) -> tuple[float, ...]:
            words = queues[number % partitions], message.value_bytes, message.batch, message.acks, each, amount.seconds
            return tuple(map(float, self._ask("produce " + " ".join(map(str, words)), f"produces {number}").split()))

        for number in range(producers):
            # makes sure that each producer's JVM runs before the measurement starts
            self._ask(f"stored {queues[0]}", f"produces {number}")
        began = time.perf_counter()
        with ThreadPoolExecutor(producers) as threads:
            found = list(threads.map(load, range(producers)))
        seconds = found[0][2] if producers == 1 else time.perf_counter() - began
        return Load(int(sum(one[0] for one in found)), int(sum(one[1] for one in found)), seconds)

    def consume(self, topic: str, message: Message, messages: int, *, partitions: int = 1, pull_bytes: int) -> Load:
        pull = max(pull_bytes // message.value_bytes, 1)
        requests, records, seconds = map(float, self._ask(f"consume {topic}-0 {messages} {pull}", "consumes").split())
        return Load(int(requests), int(records), seconds)

    def end_to_end(self, topics: Sequence[str], message: Message, pace: Pace, *, partitions: int = 1, waiting: int = 0) -> Delays:
        words = ",".join(topics), message.value_bytes, pace.rate, pace.seconds, partitions, waiting, pace.warm_up_s
        late, came, after, *delays = map(float, self._ask("delays " + " ".join(map(str, words))).split())
        return Delays(array("d", delays), late, (int(came), after))
