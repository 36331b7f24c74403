"""Prints partition, offset and value of each record, and commits, until it is ended: follow.py HOST:PORT TOPIC GROUP."""

import sys

from confluent_kafka import Consumer, KafkaException

bootstrap, topic, group = sys.argv[1:]
consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 2000,
        "metadata.recovery.strategy": "rebootstrap",
        "metadata.recovery.rebootstrap.trigger.ms": 2000,
    }
)
consumer.subscribe([topic])
while True:
    messages = consumer.consume(100, 0.2)
    for message in messages:
        if message.error() is not None:
            print(message.error(), file=sys.stderr, flush=True)
        else:
            print(message.partition(), message.offset(), (message.value() or b"").decode(), flush=True)
    if messages:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            print(error, file=sys.stderr, flush=True)
