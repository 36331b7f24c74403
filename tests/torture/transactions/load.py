"""The input: an idempotent producer that numbers the records of each partition, and gives none up."""

from __future__ import annotations

import time
from collections import Counter
from threading import Event, Thread
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from tests.torture.transactions.plan import PARTITIONS, value_of

TURN_S = 0.05
SETTLE_S = 120.0
PLACES = [(topic, index) for topic, count in PARTITIONS.items() for index in range(count)]


class Load:
    """Writes `rate` records a second, all partitions in turn, until it is settled."""

    def __init__(self, bootstrap: str, rate: int) -> None:
        self.sent: Counter[tuple[str, int]] = Counter()
        self.failed: list[str] = []
        self._per_turn = max(int(rate * TURN_S), 1)
        self._stop = Event()
        self._thread = Thread(target=self._run)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 0,  # no limit
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 200,
                "log_level": 2,
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _told(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))

    def _run(self) -> None:
        at = 0
        while not self._stop.wait(TURN_S):
            for _ in range(self._per_turn):
                place = PLACES[at % len(PLACES)]
                at += 1
                topic, index = place
                self._producer.produce(topic, value_of(index, self.sent[place]), partition=index, on_delivery=self._told)
                self.sent[place] += 1
            self._producer.poll(0)

    def settle(self) -> None:
        """Write no more, and wait until everything is acknowledged."""
        self._stop.set()
        self._thread.join()
        deadline = time.monotonic() + SETTLE_S
        while self._producer.flush(1.0):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self._producer)} records have no answer after {SETTLE_S:g} s with all brokers up")
