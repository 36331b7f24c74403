"""How late records of a feed are in a view: for a consumer of its topic, for a SQL session, and for each of several jobs.

The delay of a record begins when it was due, so that a late producer counts too.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from confluent_kafka import Consumer, Message, TopicPartition

from barnabas.engine.jobs import PROGRESS
from bench.views.feed import KEYS, Feed

LAST_S = 60.0  # for records that were due in the measurement
FOLLOWS_S = 300.0  # for a job to come to the end of its topics
POLLED, POLL_S = 1_000, 0.02
SESSION_POLL_S = 0.005


def of_consumer(bootstrap: str, topic: str, feed: Feed, seconds: float) -> list[float]:
    """The milliseconds until a consumer has the row of each record, sorted. The view counts (n) and sums (s) by key."""
    seen: dict[int, int] = {}

    def records(message: Message) -> Iterator[tuple[str, float]]:
        row = json.loads(message.value() or b"")
        count, total = int(row["n"]), int(row["s"])
        key = (total - KEYS * count * (count - 1) // 2) // count  # the sum of key + KEYS * 0, key + KEYS * 1, …
        before = seen.get(key, count - 1)
        seen[key] = count
        for each in range(before, count):
            yield topic, feed.due_s(key + KEYS * each)

    return sorted(_collected(bootstrap, topic, feed, seconds, records, 1)[topic])


def of_jobs(bootstrap: str, count: int, feed: Feed, seconds: float) -> Mapping[str, list[float]]:
    """The milliseconds by job, each list sorted. The progress of a job is in the transaction with its rows."""
    ends: dict[tuple[str, str], int] = {}

    def records(message: Message) -> Iterator[tuple[str, float]]:
        if message.value() is None:
            return
        progress = json.loads(message.value() or b"")
        for parts in progress["offsets"].values():
            for partition, end in parts.items():
                key = progress["name"], partition
                for offset in range(ends.get(key, end), end):
                    yield progress["name"], feed.due_by_offset_s(int(partition), offset)
                ends[key] = end

    found = _collected(bootstrap, PROGRESS, feed, seconds, records, count)
    return {name: sorted(delays) for name, delays in found.items()}


def _collected(
    bootstrap: str,
    topic: str,
    feed: Feed,
    seconds: float,
    records: Callable[[Message], Iterator[tuple[str, float]]],
    streams: int,
) -> dict[str, list[float]]:
    """The delays of the records that are due in so many seconds from now, until every stream has all of them."""
    found: dict[str, list[float]] = defaultdict(list)
    with consuming(bootstrap, topic) as consumer:
        since = time.time() + 1.0  # the first row of each key tells its last record only
        until = since + seconds
        wanted = int(seconds * feed.rate * 0.99)
        while time.time() < until + LAST_S:
            for message in consumer.consume(POLLED, POLL_S):
                now = time.time()
                for name, due in records(message):
                    if since <= due < until:
                        found[name].append((now - due) * 1e3)
            if time.time() > until and len(found) == streams and all(len(each) >= wanted for each in found.values()):
                return found
    counts = {name: len(each) for name, each in found.items()}
    raise AssertionError(f"{wanted} records were expected from each of {streams}, and came: {counts}")


@contextmanager
def consuming(bootstrap: str, topic: str, *, from_start: bool = False) -> Iterator[Consumer]:
    """A consumer of a topic from its present end; only committed records."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "lateness", "isolation.level": "read_committed", "enable.auto.commit": False,
        "fetch.wait.max.ms": 100,
    })  # fmt: skip
    try:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        places = [TopicPartition(topic, each) for each in partitions]
        for place in places:  # a logical offset would be resolved after the first records
            place.offset = consumer.get_watermark_offsets(place)[0 if from_start else 1]
        consumer.assign(places)
        yield consumer
    finally:
        consumer.close()


def of_session(client: psycopg.Connection[Any], view: str, feed: Feed, seconds: float) -> list[float]:
    """The milliseconds until a session that asks again and again sees each record in the sum of the counts, sorted."""
    found: list[float] = []
    query = f"SELECT sum(n) FROM {view}"
    seen, until = _number(client, query), time.time() + seconds
    while time.time() < until:
        time.sleep(SESSION_POLL_S)
        number = _number(client, query)
        now = time.time()
        found += [(now - feed.due_s(each)) * 1e3 for each in range(seen, number)]
        seen = number
    return sorted(found)


def _number(client: psycopg.Connection[Any], query: str) -> int:
    row = client.execute(query, prepare=True).fetchone()
    assert row is not None
    return int(row[0] or 0)


def wait_for_ends(bootstrap: str, jobs: Collection[str], records: int, start: Callable[[], object] = int) -> float:
    """Call `start`, and return the seconds from then until each job has so many records of its topics in all."""
    missing = set(jobs)
    with consuming(bootstrap, PROGRESS, from_start=True) as consumer:
        began = time.perf_counter()
        start()
        while missing and time.perf_counter() < began + FOLLOWS_S:
            for message in consumer.consume(POLLED, POLL_S):
                progress = json.loads(message.value() or b"{}")
                if progress and sum(end for parts in progress["offsets"].values() for end in parts.values()) >= records:
                    missing.discard(progress["name"])
        assert not missing, f"{sorted(missing)} did not reach {records} records in {FOLLOWS_S:g} s"
        return time.perf_counter() - began
