"""The loop: records go in all the time, somebody is killed in each round, and in the end each window is in the output once
(in update mode: each of its states once, and the last one)."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.testing import Broker
from tests.spans import until_random_moment
from tests.torture.spark import plan
from tests.torture.spark.drive import WAIT_S, Driver
from tests.torture.spark.plan import Sink
from tests.waiting import wait_until

BROKER = {"transaction.two.phase.commit.enable": True, "transaction.state.log.num.partitions": 4}
RECORDS_AT_ONCE = 200
PAUSE_S = 0.1  # between two sends: 2,000 records/s on an idle machine


class Kind(Enum):
    """The victim of a kill."""

    DRIVER = "driver"
    WORKER = "Python worker"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Round:
    number: int
    kind: Kind
    batches: int  # batches of all processes, finished before the kill


class Load:
    """A thread that sends record after record until it is stopped; `close` sends what closes every window."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "on_delivery": self._on_delivery,
                "reconnect.backoff.max.ms": 500,
                "delivery.timeout.ms": int(WAIT_S * 1000),
                "log_level": 2,
            }
        )
        self._stop = threading.Event()
        self._failed: list[str] = []
        self.count = 0
        self._thread = threading.Thread(target=self._run)

    def _on_delivery(self, error: object, _message: object) -> None:
        if error is not None:
            self._failed.append(str(error))

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_S):
            for number in range(self.count, self.count + RECORDS_AT_ONCE):
                self._producer.produce(plan.IN, plan.value_of(number), partition=number % plan.PARTITIONS)
            self.count += RECORDS_AT_ONCE
            self._producer.flush(WAIT_S)  # keeps the partitions close in event time

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for partition in range(plan.PARTITIONS):
            self._producer.produce(plan.IN, plan.closing_value(self.count), partition=partition)
        left = self._producer.flush(WAIT_S)
        assert not self._failed, self._failed[:3]
        assert not left, f"{left} records were not sent in time"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()


def torture(rounds: int, seed: int, sink: Sink = Sink.STREAM) -> Iterator[Round]:
    """Run it; one item after each kill.

    Raises:
        AssertionError: the output is not what it must be, or nothing goes on.
    """
    rng = random.Random(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-torture-spark-")))
        broker = stack.enter_context(Broker(BROKER))
        with BlockingClient.to(broker.bootstrap_servers) as client:
            keep = {"retention.ms": "-1"}
            client.create_topics([NewTopic(name, plan.PARTITIONS, 1, keep) for name in (plan.IN, plan.OUT)])
        driver = Driver(broker.bootstrap_servers, folder, sink)
        stack.callback(driver.stop)
        load = stack.enter_context(Load(broker.bootstrap_servers))
        driver.start()
        driver.wait_for_batches(2)
        for number, kind in enumerate(_kinds(rounds, rng), 1):
            before = driver.batches
            until_random_moment(rng, 1.0)
            _kill(kind, driver, broker, rng)
            driver.wait_for_batches(2)
            yield Round(number, kind, before)
        load.close()
        _demand(plan.expected(load.count), broker.bootstrap_servers, driver, sink)
        driver.stop()
        _demand_nothing_open(broker.bootstrap_servers)


def _kinds(rounds: int, rng: random.Random) -> Iterator[Kind]:
    """Each kind as often as the others, in an order that the seed decides."""
    kinds: list[Kind] = []
    for _ in range(rounds):
        if not kinds:
            kinds = list(Kind)
            rng.shuffle(kinds)
        yield kinds.pop()


def _kill(kind: Kind, driver: Driver, broker: Broker, rng: random.Random) -> None:
    if kind is Kind.BROKER:
        broker.kill()
        broker.start()
    elif kind is Kind.WORKER:
        wait_until(lambda: driver.kill_worker(rng), "no Python worker to kill", within_s=WAIT_S)
    else:
        driver.kill()
        driver.start()


def _demand(wanted: list[plan.Row], bootstrap: str, driver: Driver, sink: Sink) -> None:
    """Every row, and none twice, as soon as all can be there; waits as long as the pipeline goes on."""
    reader = Reader(bootstrap)
    try:
        seen, deadline = (0, 0), time.monotonic() + WAIT_S
        while plan.missing(wanted, reader.rows) and time.monotonic() < deadline:
            reader.read()
            if (len(reader.rows), driver.batches) != seen:
                seen, deadline = (len(reader.rows), driver.batches), time.monotonic() + WAIT_S
        reader.read()
    finally:
        reader.close()
    missing, wrong = plan.missing(wanted, reader.rows), plan.wrong(wanted, reader.rows, sink)
    if missing or wrong:
        raise AssertionError(
            f"{len(missing)} rows are missing, {len(wrong)} are there twice or are wrong: {missing[:3]} {wrong[:3]}"
        )


class Reader:
    """A plain reader of committed records."""

    def __init__(self, bootstrap: str) -> None:
        self.rows: list[plan.Row] = []
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(plan.OUT, partition, 0) for partition in range(plan.PARTITIONS)])

    def read(self) -> None:
        """The present data; waits for a second at most."""
        for message in self._consumer.consume(10_000, timeout=1.0):
            assert message.error() is None, message.error()
            self.rows.append(plan.row_of(message.value() or b""))

    def close(self) -> None:
        self._consumer.close()


def _demand_nothing_open(bootstrap: str) -> None:
    from barnabas.client import transactions

    with BlockingClient.to(bootstrap) as client:
        listed = client.run(transactions.list_transactions(client.config, client.cluster, ["Ongoing"]))
    assert listed == {}, f"transactions were left open: {listed}"
