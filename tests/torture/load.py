"""The load: confluent-kafka clients that continue while the broker dies and comes back.

Every thread works in short turns and looks at its gate between them, so that `paused()` returns when no turn is running. Producers never
give a record up on their own: unsent records wait for the broker.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.testing import Broker
from tests.server.wire import Line
from tests.spans import keep_rate
from tests.torture.ledger import Fleeting, Ledger, TopicState
from tests.torture.topics import TRIMMED, Promise, TortureTopic
from tests.torture.values import ORIGIN_HEADER, Origin, is_tombstone, key_of, value_of

RECORDS_PER_TURN = 60
MAX_QUEUED = 400  # records of a producer while the broker is down
TURN_S = 0.02
REQUEST_S = 5.0
FLEETING_TOPICS = 4
FLEETING_RECORDS = 40
MOVE_PAUSE_S = 0.2
ALTER_REPLICA_LOG_DIRS = (34, 2)
SETTLE_S = 120.0
GROUP = "committer"
# With these settings a client reconnects to a restarted broker within 100 ms.
FAST_RETRIES = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "log_level": 2, "socket.keepalive.enable": True}


class Gate:
    """Lets threads work, or holds all of them between two turns."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._open = True
        self._closed = False
        self._working = 0

    def run(self, turn: Callable[[], None]) -> None:
        """Call `turn` again and again until the gate is closed for good."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._open or self._closed)
                if self._closed:
                    return
                self._working += 1
            try:
                turn()
            finally:
                with self._changed:
                    self._working -= 1
                    self._changed.notify_all()

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._changed:
            self._open = False
            self._changed.wait_for(lambda: not self._working)
        try:
            yield
        finally:
            with self._changed:
                self._open = True
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Writer:
    """One producer of one topic; all of its partitions in every turn."""

    def __init__(self, topic: TortureTopic, name: str, servers: str, ledger: Ledger, rng: random.Random) -> None:
        self.topic, self.name, self._ledger, self._rng = topic, name, ledger, rng
        settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "acks": "all",
            "enable.idempotence": topic.idempotent,
            # without idempotence, more than one would change the order at retries
            "max.in.flight.requests.per.connection": 5 if topic.idempotent else 1,
            "message.timeout.ms": 0,  # no limit
            "retries": 2**31 - 1,
            "retry.backoff.ms": 20,
            "linger.ms": 2,
            "batch.num.messages": 40,
            "compression.type": topic.compression,
            **FAST_RETRIES,
        }
        self.producer = Producer(settings)

    def turn(self) -> None:
        if len(self.producer) < MAX_QUEUED:
            for _ in range(self._rng.randint(1, RECORDS_PER_TURN)):
                self._send(self._rng.randrange(self.topic.partitions))
        self.producer.poll(TURN_S)

    def _send(self, index: int) -> None:
        lane = self._ledger.lanes[self.topic.name, self.name, index]
        origin = Origin(self.name, index, lane.sent)

        def done(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                lane.failed.append((origin.sequence, str(error)))
            else:
                offset = message.offset()
                lane.acknowledged[origin.sequence] = -1 if offset is None else offset

        lane.sent += 1
        value: bytes | None = value_of(origin)
        headers: list[tuple[str, str | bytes | None]] = []
        if self.topic.promise is Promise.LAST_OF_KEY and is_tombstone(origin):
            value, headers = None, [(ORIGIN_HEADER, value)]
        self.producer.produce(self.topic.name, value, key_of(origin), partition=index, headers=headers, on_delivery=done)

    def settle(self) -> None:
        """Wait until every record is answered."""
        left = self.producer.flush(SETTLE_S)
        if left:
            raise TimeoutError(f"{left} records of {self.name} have no answer after {SETTLE_S:g} s with the broker up")


class Committer:
    """Commits 1, 2, 3, ... for a group; each commit is acknowledged or unknown."""

    def __init__(self, servers: str, ledger: Ledger) -> None:
        self._ledger = ledger
        self.consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP, "enable.auto.commit": False, **FAST_RETRIES})
        ledger.commits[GROUP] = (0, 0)

    def turn(self) -> None:
        acknowledged, tried = self._ledger.commits[GROUP]
        self._ledger.commits[GROUP] = acknowledged, tried + 1
        try:
            self.consumer.commit(offsets=[TopicPartition("synced", 0, tried + 1)], asynchronous=False)
        except KafkaException:
            keep_rate(TURN_S)  # the broker is down, and may or may not have the commit
        else:
            self._ledger.commits[GROUP] = tried + 1, tried + 1

    def close(self) -> None:
        self.consumer.close()


class Trimmer:
    """Deletes the older half of a topic's records, ever again."""

    def __init__(self, servers: str, ledger: Ledger, rng: random.Random, partitions: int) -> None:
        self._ledger, self._rng, self._partitions = ledger, rng, partitions
        self._admin = AdminClient({"bootstrap.servers": servers, **FAST_RETRIES})

    def turn(self) -> None:
        index = self._rng.randrange(self._partitions)
        offsets = [
            max(lane.acknowledged.values(), default=-1)
            for (_, partition), lane in self._ledger.of_topic(TRIMMED).items()
            if partition == index
        ]
        acknowledged, _ = self._ledger.trims.get(index, (0, 0))
        target = (acknowledged + max(offsets, default=0)) // 2
        if target > acknowledged:
            self._ledger.trims[index] = acknowledged, target
            with suppress(KafkaException):
                place = TopicPartition(TRIMMED, index, target)
                next(iter(self._admin.delete_records([place], request_timeout=REQUEST_S).values())).result()
                self._ledger.trims[index] = target, target
        keep_rate(TURN_S)


class Churner:
    """Makes topics, puts records in, deletes some of them and at last the topic, under a few names again and again."""

    def __init__(self, servers: str, ledger: Ledger, rng: random.Random) -> None:
        self._ledger, self._rng = ledger, rng
        self._settings: dict[str, Any] = {"bootstrap.servers": servers, **FAST_RETRIES}
        self._admin = AdminClient(self._settings)
        self._lives = 0
        for number in range(FLEETING_TOPICS):
            self._set(f"fleeting-{number}", Fleeting(TopicState.DELETED))

    def turn(self) -> None:
        name = f"fleeting-{self._rng.randrange(FLEETING_TOPICS)}"
        before = self._ledger.fleeting[name]
        if before.state is TopicState.UNKNOWN:
            keep_rate(TURN_S)  # until the checker knows the state
            return
        self._set(name, replace(before, state=TopicState.UNKNOWN))
        with suppress(KafkaException, TimeoutError):
            if before.state is TopicState.CREATED:
                self._admin.delete_topics([name], request_timeout=REQUEST_S)[name].result()
                self._set(name, Fleeting(TopicState.DELETED))
            else:
                self._admin.create_topics([NewTopic(name, 1, 1)], request_timeout=REQUEST_S)[name].result()
                self._set(name, self._filled(name))

    def _filled(self, name: str) -> Fleeting:
        """Put some records in and take the first of them out."""
        self._lives += 1
        life, count = self._lives, self._rng.randint(1, FLEETING_RECORDS)
        failed: list[KafkaError] = []
        producer = Producer({**self._settings, "message.timeout.ms": int(REQUEST_S * 1000)})
        for sequence in range(count):
            origin = Origin(f"{name}/{life}", 0, sequence)
            producer.produce(
                name, value_of(origin), key_of(origin), on_delivery=lambda error, _: failed.append(error) if error else None
            )
        if producer.flush(2 * REQUEST_S) or failed:
            raise TimeoutError(name)
        start = self._rng.randrange(count)
        if start:
            place = TopicPartition(name, 0, start)
            next(iter(self._admin.delete_records([place], request_timeout=REQUEST_S).values())).result()
        return Fleeting(TopicState.CREATED, life, start, count)

    def _set(self, name: str, state: Fleeting) -> None:
        with self._ledger.lock:
            self._ledger.fleeting[name] = state


class Mover:
    """Sends partitions from one log directory to another, ever again."""

    def __init__(self, broker: Broker, ledger: Ledger, rng: random.Random, topics: Sequence[TortureTopic]) -> None:
        self._broker, self._ledger, self._rng, self._topics = broker, ledger, rng, topics

    def turn(self) -> None:
        topic, folder = self._rng.choice(self._topics), self._rng.choice(self._broker.data_dirs)
        partition = self._rng.randrange(topic.partitions)
        with suppress(OSError, EOFError):  # the broker is down, and may or may not have the request
            self._move(topic.name, partition, folder)
        keep_rate(MOVE_PAUSE_S)

    def _move(self, topic: str, partition: int, folder: Path) -> None:
        before = self._ledger.homes.get((topic, partition), set(self._broker.data_dirs))
        self._ledger.homes[topic, partition] = before | {folder}
        there = AlterReplicaLogDirTopic(name=topic, partitions=[partition])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(folder), topics=[there])])
        with Line(self._broker) as line:
            answer = line.ask(ALTER_REPLICA_LOG_DIRS, request, AlterReplicaLogDirsResponse)
        code = answer.results[0].partitions[0].error_code
        if code:
            raise AssertionError(f"the move of {topic}-{partition} to {folder} was refused: {ErrorCode(code).name}")
        self._ledger.homes[topic, partition] = {folder}


class Load:
    """All of it together; a context that ends every thread."""

    def __init__(self, broker: Broker, topics: tuple[TortureTopic, ...], ledger: Ledger, seed: int) -> None:
        servers = broker.bootstrap_servers
        self._gate = Gate()
        self.errors: list[BaseException] = []
        self._writers = [
            Writer(topic, f"{topic.name}/{number}", servers, ledger, random.Random(f"{seed} {topic.name} {number}"))
            for topic in topics
            for number in range(2)
        ]
        trimmed = next(topic for topic in topics if topic.name == TRIMMED)
        self._committer = Committer(servers, ledger)
        self._others: list[Committer | Trimmer | Churner | Mover] = [
            self._committer,
            Trimmer(servers, ledger, random.Random(f"{seed} trim"), trimmed.partitions),
            Churner(servers, ledger, random.Random(f"{seed} churn")),
            Mover(broker, ledger, random.Random(f"{seed} move"), topics),
        ]
        self._thawed = Event()
        self._thawed.set()
        turns = [writer.turn for writer in self._writers] + [partial(self._unless_frozen, other.turn) for other in self._others]
        self._threads = [Thread(target=self._work, args=(turn,), name=f"torture-{n}") for n, turn in enumerate(turns)]

    def _unless_frozen(self, turn: Callable[[], None]) -> None:
        if self._thawed.wait(TURN_S):
            turn()

    def _work(self, turn: Callable[[], None]) -> None:
        try:
            self._gate.run(turn)
        except BaseException as error:  # noqa: BLE001 - the next check of the load raises it
            self.errors.append(error)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._gate.close()
        for thread in self._threads:
            thread.join()
        self._committer.close()

    def freeze(self) -> None:
        """Only producers go on: nobody commits, deletes or makes topics, so that what was acknowledged before can be looked at."""
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()

    def check(self) -> None:
        """Raise what ended a thread; waits a moment, so that the load can work."""
        self._threads[0].join(TURN_S)
        if self.errors:
            raise self.errors[0]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is sent meanwhile, and everything sent is answered."""
        with self._gate.held():
            self.check()
            for writer in self._writers:
                writer.settle()
            yield
