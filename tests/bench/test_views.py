"""The bench of views: counts and offsets tell when records were due, and its section of the page has the ratio to Spark alone."""

from __future__ import annotations

import time

from bench.servers import Barnabas, create_topic
from bench.storage.result import Result
from bench.views import __main__ as cases
from bench.views import feed, lateness, page
from bench.views.feed import Feed
from confluent_kafka import Producer

from barnabas.engine.jobs import PROGRESS, JobProgress, encode


def test_each_record_of_a_feed_tells_when_it_was_due() -> None:
    records = Feed("nowhere", "stream", rate=500)
    records.began_s = 100.0
    assert records.due_s(1_000) == 102.0
    assert records.due_by_offset_s(1, 500) == records.due_s(1_001)


def test_the_progress_of_jobs_tells_their_delays() -> None:
    with Barnabas() as broker:
        bootstrap = "{}:{}".format(*broker.address)
        create_topic(broker, PROGRESS, 1)
        records = Feed(bootstrap, "stream", rate=10)
        records.began_s = time.time()
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        told = [0]

        def tell(job: str, end: int) -> None:
            progress = JobProgress(job, 1, 1, {"stream": {"0": end}})
            producer.produce(PROGRESS, encode(progress), key=job)
            producer.flush()
            told[0] += 1

        tell("first", 50)
        assert lateness.wait_for_ends(bootstrap, ["first"], 40, lambda: tell("first", 60)) < lateness.FOLLOWS_S
        assert told == [2]


def test_a_feed_sends_its_records_in_turn_to_the_partitions() -> None:
    with Barnabas() as broker:
        bootstrap = "{}:{}".format(*broker.address)
        create_topic(broker, "stream", feed.PARTITIONS)
        with lateness.consuming(bootstrap, "stream") as consumer, Feed(bootstrap, "stream", rate=1_000) as records:
            seen: dict[tuple[int | None, int | None], bytes | None] = {}
            while len(seen) < 20:
                for message in consumer.consume(100, 0.1):
                    seen[message.partition(), message.offset()] = message.value()
            assert all(
                value == b'{"k":%d,"x":%d}' % (number % feed.KEYS, number)
                for (partition, offset), value in seen.items()
                for number in ((offset or 0) * feed.PARTITIONS + (partition or 0),)
            )
            assert records.began_s <= time.time()


def test_the_section_has_the_figures_and_the_ratio() -> None:
    result = Result("backlog", "records", "rows/s", {cases.OURS: [200.0], cases.PLAIN: [100.0]}, ">= 150", met=True, ratio=2.0)
    kept = {
        "date": "2001-02-03",
        "command": "python -m bench.views",
        "quick": True,
        "others_cpu": 0.1,
        "results": [result.as_json()],
    }
    text = page.render(kept)
    assert "| records (rows/s) | a view of barnabas | 200 | >= 150: yes |" in text
    assert "- records: 2.00 times the rate of Spark alone." in text
