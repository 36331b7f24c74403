"""The work of a source while it is copied: idempotent and transactional writers, keys that repeat, deletions, more partitions.

Each writer is a thread. `pause` stops all of them when what they have sent is answered, so that both clusters can be compared as a whole.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Condition, Thread
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import EARLIEST, LATEST, NewTopic
from tests.differential.mirroring.stored import PartitionLog, Unequal
from tests.spans import keep_rate
from tests.waiting import wait_until

PLAIN, COMPACTED, TRANSACTIONS = "plain", "compacted", "transactions"
SETTINGS: dict[str, dict[str, str]] = {
    PLAIN: {"segment.ms": "1000"},
    COMPACTED: {
        "cleanup.policy": "compact,delete",  # with "compact" alone nobody may delete records
        "retention.ms": "-1",
        "segment.ms": "300",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "1000",
    },
    TRANSACTIONS: {"segment.ms": "1000"},
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COMMON: dict[str, Any] = {"log_level": 2, "socket.timeout.ms": 6_000, "reconnect.backoff.max.ms": 500, "linger.ms": 5}
WITHOUT_END: dict[str, Any] = {"message.timeout.ms": 0, "retries": 2**31 - 1}
KEYS = 12
PARTITIONS = 2  # of each topic at the start
ANSWER_S = 60.0
TRANSACTION_MS = 60_000


class Ledger:
    """The answers to writers: values by topic, partition and offset."""

    def __init__(self) -> None:
        self.acknowledged: dict[tuple[str, int], dict[int, bytes]] = defaultdict(dict)
        self.committed: set[bytes] = set()  # values of transactions whose commit was answered
        self.aborted: set[bytes] = set()

    def told(self, value: bytes, error: KafkaError | None, message: Message) -> None:
        offset, partition = message.offset(), message.partition()
        if error is None and offset is not None and offset >= 0 and partition is not None:  # -1: the broker had it already
            self.acknowledged[str(message.topic()), partition][offset] = value

    @property
    def count(self) -> int:
        return sum(map(len, list(self.acknowledged.values())))

    def check(self, log: PartitionLog, topic: str, partition: int) -> int:
        """Every acknowledged record that was not deleted is in the log at its offset; returns how many.

        Raises:
            Unequal: one is missing, or another record is in its place.
        """
        from tests.differential.mirroring.compare import records_of

        found = records_of(log.batches.values())
        wanted = {at: value for at, value in self.acknowledged[topic, partition].items() if at >= log.start}
        for offset, value in wanted.items():
            record = found.by_offset.get(offset)
            if record is None or record.value != value:
                raise Unequal(f"{log.where}: {value!r} was acknowledged at {offset}, and {record!r} is there")
            is_hidden = offset in found.aborted or offset in found.open
            if (value in self.committed and is_hidden) or (value in self.aborted and offset not in found.aborted):
                raise Unequal(f"{log.where}: the transaction of {value!r} at {offset} has another end than its producer was told")
        return len(wanted)


class Load:
    """See the module.

    Args:
        servers: of the source.
        seed: decides sizes, codecs, and which transactions are aborted.
        pause_s: of each writer between two batches.
        replicas: of the topics.
        plain_partitions: of the topic without transactions and compaction.
    """

    def __init__(
        self, servers: str, seed: int, *, pause_s: float = 0.02, replicas: int = 1, plain_partitions: int = PARTITIONS
    ) -> None:
        self.ledger = Ledger()
        self.failures: list[BaseException] = []
        self._servers, self._seed, self._pause_s, self._replicas = servers, seed, pause_s, replicas
        self._partitions = {**dict.fromkeys(SETTINGS, PARTITIONS), PLAIN: plain_partitions}
        self._state = Condition()
        self._is_over = self._is_paused = False
        self._active = 0
        self._threads: list[Thread] = []

    @property
    def partitions(self) -> list[tuple[str, int]]:
        return [(topic, index) for topic, count in self._partitions.items() for index in range(count)]

    def __enter__(self) -> Self:
        with BlockingClient.to(self._servers) as client:
            for topic, settings in SETTINGS.items():
                client.ensure_topic(NewTopic(topic, self._partitions[topic], self._replicas, settings))
        works = [partial(self._write, PLAIN, number) for number in range(2)]
        works += [partial(self._write, COMPACTED, 2)]
        works += [partial(self._transact, number) for number in range(2)]
        for number, work in enumerate(works):
            thread = Thread(target=self._guarded, args=(work, random.Random(f"{self._seed} {number}")), name=f"writer-{number}")
            self._active += 1
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._state:
            self._is_over, self._is_paused = True, False
            self._state.notify_all()
        for thread in self._threads:
            thread.join()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Nothing is under way, and no transaction is open.

        Raises:
            AssertionError: a writer failed, or does not come to an end.
        """
        with self._state:
            self._is_paused = True
            assert self._state.wait_for(lambda: self._active == 0, ANSWER_S * 2), "the writers do not come to an end"
        try:
            assert not self.failures, f"a writer failed: {self.failures[0]!r}"
            yield
        finally:
            with self._state:
                self._is_paused = False
                self._state.notify_all()

    # The administrator

    def delete_records(self, rng: random.Random, topic: str = PLAIN) -> None:
        """Delete up to half of the records of a partition."""
        key = topic, rng.randrange(self._partitions[topic])
        with BlockingClient.to(self._servers) as client:
            start, end = (client.list_offsets({key: at})[key].offset for at in (EARLIEST, LATEST))
            client.delete_records({key: start + rng.randrange(max(end - start, 2)) // 2})

    def delete_most(self, rng: random.Random) -> None:
        """Delete half or more of the records of each partition without compaction, so that a long run has little to compare."""
        with BlockingClient.to(self._servers) as client:
            keys = [key for key in self.partitions if key[0] != COMPACTED]
            starts, ends = (client.list_offsets(dict.fromkeys(keys, at)) for at in (EARLIEST, LATEST))
            before = {}
            for key in keys:
                start, end = starts[key].offset, ends[key].offset
                before[key] = end - int((end - start) * rng.random() / 2)
            client.delete_records(before)

    def grow(self, topic: str = PLAIN) -> None:
        """Add a partition, and wait until all brokers know it: librdkafka gives records up whose partition an answer lacks."""
        count = self._partitions[topic] + 1

        def is_known() -> bool:
            return len(client.agreed_topics([topic])[topic].partitions) == count

        with BlockingClient.to(self._servers) as client:
            client.create_partitions(topic, count)
            wait_until(is_known, f"not all brokers know {count} partitions of {topic}")
        self._partitions[topic] = count

    # Writers

    def _guarded(self, work: Callable[[random.Random], None], rng: random.Random) -> None:
        try:
            work(rng)
        except BaseException as error:  # noqa: BLE001 - told by `pause`
            self.failures.append(error)
        finally:
            with self._state:
                self._active -= 1
                self._state.notify_all()

    def _goes_on(self) -> bool:
        """False at the end; waits while the load is paused. The caller has nothing under way."""
        with self._state:
            if self._is_paused:
                self._active -= 1
                self._state.notify_all()
                self._state.wait_for(lambda: not self._is_paused)
                self._active += 1
            return not self._is_over

    def _must_rest(self) -> bool:
        return self._is_over or self._is_paused

    def _write(self, topic: str, number: int, rng: random.Random) -> None:
        count = 0
        while self._goes_on():
            # Another producer each time, so that there are many producer ids
            settings = {**COMMON, **WITHOUT_END, "enable.idempotence": True, "compression.type": rng.choice(CODECS)}
            producer = Producer({"bootstrap.servers": self._servers, **settings})
            for _ in range(rng.randint(20, 60)):
                for _ in range(rng.randint(1, 12)):
                    count += 1
                    self._produce(producer, rng, topic, f"{topic}-{number}-{count}".encode())
                producer.poll(0)
                if self._must_rest():
                    break
                keep_rate(self._pause_s)
            self._flush(producer)

    def _produce(self, producer: Producer, rng: random.Random, topic: str, value: bytes) -> None:
        key = str(rng.randrange(KEYS)).encode() if topic == COMPACTED else value
        told = partial(self._told, value, is_idempotent=topic == PLAIN)
        is_tombstone = topic == COMPACTED and rng.random() < 0.1
        headers: list[tuple[str, str | bytes | None]] = [("id", value)] if rng.random() < 0.3 else []
        padded = value + b"." * rng.choice((0, 10, 400)) if topic == COMPACTED else value
        produce = partial(producer.produce, topic, None if is_tombstone else padded, key=key, headers=headers, on_delivery=told)
        try:
            produce(partition=rng.randrange(self._partitions[topic]))
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                raise
            produce(partition=0)  # the client does not know yet that the topic has grown

    def _told(self, value: bytes, error: KafkaError | None, message: Message, *, is_idempotent: bool) -> None:
        if error is not None and is_idempotent:
            self.failures.append(KafkaException(error))
        self.ledger.told(value, error, message)

    def _flush(self, producer: Producer) -> None:
        left = producer.flush(ANSWER_S)
        assert left == 0, f"{left} records are not answered"

    def _transact(self, number: int, rng: random.Random) -> None:
        count, producer = 0, self._transactional(f"t-{number}", rng)
        while self._goes_on():
            values = [f"{TRANSACTIONS}-{number}-{count + each}".encode() for each in range(rng.randint(1, 20))]
            count += len(values)
            try:
                self._transaction(producer, rng, rng.choice((TRANSACTIONS, TRANSACTIONS, COMPACTED)), values)
                is_usable = rng.random() < 0.9
            except KafkaException as error:
                is_usable = error.args[0].txn_requires_abort() and self._abort(producer, values)
            if not is_usable:  # another producer ends the transaction of the one before, whose end may not be known
                producer = self._transactional(f"t-{number}", rng)
            keep_rate(self._pause_s)

    def _abort(self, producer: Producer, values: list[bytes]) -> bool:
        """Returns whether the producer can go on."""
        try:
            producer.abort_transaction(ANSWER_S)
        except KafkaException:
            return False
        self.ledger.aborted |= set(values)
        return True

    def _transactional(self, name: str, rng: random.Random) -> Producer:
        settings = {"transactional.id": name, "transaction.timeout.ms": TRANSACTION_MS, "compression.type": rng.choice(CODECS)}
        deadline = time.monotonic() + ANSWER_S * 2
        while True:
            producer = Producer({"bootstrap.servers": self._servers, **COMMON, **settings})
            try:
                producer.init_transactions(ANSWER_S)
                return producer
            except KafkaException:
                if time.monotonic() > deadline:
                    raise

    def _transaction(self, producer: Producer, rng: random.Random, topic: str, values: list[bytes]) -> None:
        producer.begin_transaction()
        for value in values:
            self._produce(producer, rng, topic, value)
            if rng.random() < 0.2:
                producer.flush(ANSWER_S)  # several batches in one transaction
                keep_rate(self._pause_s)
        if rng.random() < 0.6:
            producer.commit_transaction(ANSWER_S)
            self.ledger.committed |= set(values)
        else:
            producer.flush(ANSWER_S)
            producer.abort_transaction(ANSWER_S)
            self.ledger.aborted |= set(values)
