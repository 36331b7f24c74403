"""The demo's topics: names, settings, and creating them again.

The records have timestamps of 2013, so retention by time is off: otherwise a broker would delete them at once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.data import DemoError

FLIGHTS = "flights"
WEATHER = "weather"
RESULTS = "carrier-delays"
REFERENCE = {"airlines": "carrier", "airports": "faa", "planes": "tailnum"}  # topic -> the key column
CONTACT_TIMEOUT_S = 5.0  # for the first response of a broker, which may not exist
TIMEOUT_S = 30.0
QUIET = {"log_level": 2}  # otherwise librdkafka reports each failed connection on standard error; the demo reports it once


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    config: dict[str, str] = field(default_factory=lambda: {"retention.ms": "-1"})


COMPACTED = {"cleanup.policy": "compact", "retention.ms": "-1"}
ALL = [
    Topic(FLIGHTS, partitions=3),
    Topic(WEATHER, partitions=1),
    Topic(RESULTS, partitions=3),
    *(Topic(name, 1, COMPACTED) for name in REFERENCE),
]


def create_topics(bootstrap: str, *, again: bool = False) -> None:
    """Create every topic of the demo.

    Raises:
        DemoError: topics of an earlier run exist, and `again` is not set.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    try:
        present = _present(admin)
    except KafkaException as error:
        raise DemoError(f"no answer from {bootstrap}: {error.args[0].str()}") from error
    if present and not again:
        raise DemoError(
            f"topics of an earlier run are there ({', '.join(sorted(present))}); --again deletes and creates them again"
        )
    if present:
        _delete(admin, present)
    made = admin.create_topics([NewTopic(t.name, t.partitions, 1, config=t.config) for t in ALL], operation_timeout=TIMEOUT_S)
    for future in made.values():
        future.result(TIMEOUT_S)


def end_offsets(bootstrap: str, topic: str) -> dict[int, tuple[int, int]]:
    """The first and the next offset of each partition.

    Raises:
        DemoError: the topic does not exist.
    """
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "demo-offsets", **QUIET})
    try:
        found = consumer.list_topics(topic, timeout=CONTACT_TIMEOUT_S).topics[topic]
        if found.error is not None:
            raise DemoError(f"there is no topic {topic!r} at {bootstrap}: run `python -m demo publish` first")
        return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=TIMEOUT_S) for p in sorted(found.partitions)}
    except KafkaException as error:
        raise DemoError(f"no answer from {bootstrap}: {error.args[0].str()}") from error
    finally:
        consumer.close()


def _present(admin: AdminClient) -> set[str]:
    return {topic.name for topic in ALL} & set(admin.list_topics(timeout=CONTACT_TIMEOUT_S).topics)


def _delete(admin: AdminClient, names: set[str]) -> None:
    """Delete topics and wait until they are gone, because deletion is asynchronous."""
    for future in admin.delete_topics(sorted(names), operation_timeout=TIMEOUT_S).values():
        future.result(TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while left := _present(admin):
        if time.monotonic() > deadline:
            raise DemoError(f"topics are still there {TIMEOUT_S:g} s after their deletion: {', '.join(sorted(left))}")
        time.sleep(0.1)
