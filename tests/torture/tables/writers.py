"""Threads that write until they are stopped: transactions that commit, abort or stay open for a while, and idempotent records."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaException, Producer

from tests.torture.tables.plan import ABORTED, KEYS, PARTITIONS

TURN_S = 0.01
CALL_S = 5.0
QUICK = {"log_level": 0, "linger.ms": 1, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20}


class Writers:
    """Writers of some topics, as long as the `with` block runs."""

    def __init__(self, bootstrap_servers: str, topics: Sequence[str], seed: int, transactional: int = 2) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topics = topics
        self._stop = Event()
        self.written = 0
        runs: list[Any] = [(self._transact, f"writer-{each}", seed + each) for each in range(transactional)]
        runs.append((self._write, "", seed + transactional))
        self._threads = [Thread(target=self._again, args=each) for each in runs]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _again(self, work: Any, name: str, seed: int) -> None:
        """Work with one producer after the other: a kill of the broker ends some."""
        chance = random.Random(seed)
        while not self._stop.is_set():
            with suppress(KafkaException):
                work(name, chance)

    def _transact(self, name: str, chance: random.Random) -> None:
        settings = {"bootstrap.servers": self._bootstrap_servers, "transactional.id": name, "transaction.timeout.ms": 20_000}
        producer = Producer({**QUICK, **settings})
        producer.init_transactions(CALL_S)
        while not self._stop.is_set():
            aborts = chance.random() < 0.4
            producer.begin_transaction()
            for _ in range(chance.randrange(1, 4)):
                self._send(producer, chance, chance.randrange(1, 40), ABORTED if aborts else b"")
                producer.flush(CALL_S)
                if chance.random() < 0.3:
                    self._stop.wait(TURN_S * chance.random())  # the transaction is open meanwhile
            if aborts:
                producer.abort_transaction(CALL_S)
            else:
                producer.commit_transaction(CALL_S)

    def _write(self, _: str, chance: random.Random) -> None:
        producer = Producer({**QUICK, "bootstrap.servers": self._bootstrap_servers, "enable.idempotence": True})
        while not self._stop.wait(TURN_S):
            self._send(producer, chance, chance.randrange(1, 20), b"")
            producer.flush(CALL_S)

    def _send(self, producer: Producer, chance: random.Random, count: int, prefix: bytes) -> None:
        for _ in range(count):
            key = b"key-%d" % chance.randrange(KEYS)
            value = prefix + chance.randbytes(chance.randrange(60)).hex().encode()
            topic = chance.choice(self._topics)
            producer.produce(topic, value, key, partition=chance.randrange(PARTITIONS))
            self.written += 1
