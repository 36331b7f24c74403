"""A copier with confluent-kafka: `python -m tests.torture.transactions.confluent BOOTSTRAP NAME SEED`; it runs until it is killed.

It ends with exit code 3 if its producer cannot continue. Its parent then starts it again.
"""

from __future__ import annotations

import random
import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.torture.transactions.plan import (
    ABORTED_SHARE,
    BATCH_RECORDS,
    GROUP,
    SESSION_TIMEOUT_MS,
    SHARED,
    TRANSACTION_TIMEOUT_MS,
    output_of,
)

CALL_S = 30.0
POLL_S = 0.2
FAILED = 3


class Copier:
    def __init__(self, bootstrap: str, name: str, seed: int) -> None:
        common = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200, "log_level": 2}
        self._random = random.Random(seed)
        self._consumer = Consumer(
            {
                **common,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": SESSION_TIMEOUT_MS,
            }
        )
        self._producer = Producer(
            {**common, "transactional.id": name, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS, "linger.ms": 2}
        )

    def run(self) -> None:
        self._producer.init_transactions(CALL_S)
        self._consumer.subscribe([SHARED])
        while True:
            messages = [each for each in self._consumer.consume(BATCH_RECORDS, POLL_S) if not each.error()]
            if messages:
                self._copy(messages)

    def _copy(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        try:
            for each in messages:
                self._producer.produce(output_of(SHARED), each.value(), partition=each.partition() or 0)
            ends = {each.partition() or 0: (each.offset() or 0) + 1 for each in messages}
            offsets = [TopicPartition(SHARED, partition, offset) for partition, offset in ends.items()]
            self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), CALL_S)
            if self._random.random() < ABORTED_SHARE:
                self._abort()
            else:
                self._commit()
        except KafkaException as error:
            if error.args[0].fatal() or not error.args[0].txn_requires_abort():
                raise
            self._abort()

    def _commit(self) -> None:
        while True:
            try:
                self._producer.commit_transaction(CALL_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return

    def _abort(self) -> None:
        self._producer.abort_transaction(CALL_S)
        for place in self._consumer.committed(self._consumer.assignment(), CALL_S):
            self._consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))


def main() -> int:
    bootstrap, name, seed = sys.argv[1:]
    try:
        Copier(bootstrap, name, int(seed)).run()
    except KafkaException as error:
        print(f"copier {name} ends: {error}", file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
