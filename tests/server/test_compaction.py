"""Compaction in a running broker: in its own process, whatever happens to that, to the topic or to the broker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.testing import Broker
from tests.server.compacting import COMPACTED, CONFIG, NOT_YET, Client, cleaner_pids, is_running
from tests.waiting import WITHIN_S, wait_until


@pytest.fixture(name="broker")
def _broker() -> Iterator[Broker]:
    with Broker(config=CONFIG) as broker:
        yield broker
    wait_until(lambda: not any(map(is_running, cleaner_pids(broker))), "the process ended")


def test_of_each_key_the_last_record_stays(broker: Broker) -> None:
    client = Client(broker, "compacted", COMPACTED)
    client.write(2000)
    wait_until(client.is_clean, "clean")
    client.check()
    pid = cleaner_pids(broker)[-1]
    # 19 is the highest value of the kernel
    assert os.getpriority(os.PRIO_PROCESS, pid) >= min(os.getpriority(os.PRIO_PROCESS, 0) + 1, 19)
    client.write(500)
    wait_until(client.is_clean, "clean again")
    client.check()
    assert cleaner_pids(broker) == [pid]
    broker.restart()
    client.reconnect()
    client.check()
    assert not is_running(pid)


def test_a_new_policy_counts_at_once(broker: Broker) -> None:
    client = Client(broker, "not-yet", NOT_YET)
    client.write(1000)
    assert not cleaner_pids(broker)
    client.set(cleanup_policy="compact,delete")
    wait_until(client.is_clean, "clean")
    client.check()


def test_a_process_that_dies_is_replaced(broker: Broker) -> None:
    client = Client(broker, "killed", COMPACTED)
    client.write(1000)
    wait_until(client.is_clean, "clean")
    os.kill(cleaner_pids(broker)[-1], signal.SIGKILL)
    client.write(1000)
    wait_until(client.is_clean, "clean again")
    assert len(cleaner_pids(broker)) == 2
    client.check()


def test_a_killed_broker_takes_its_process_along(broker: Broker) -> None:
    client = Client(broker, "orphan", COMPACTED)
    client.write(1000)
    wait_until(client.is_clean, "clean")
    pid = cleaner_pids(broker)[-1]
    broker.kill()
    wait_until(lambda: not is_running(pid), "the process ended")
    broker.start()
    client.check()


def test_deleting_a_topic_ends_its_cleaning() -> None:
    with Broker(config={**CONFIG, "log.cleaner.io.max.bytes.per.second": 50_000}) as broker:
        client = Client(broker, "short-lived", NOT_YET)
        client.write(2000)
        client.set(cleanup_policy="compact")
        wait_until(lambda: "event=cleaning-begins topic=short-lived" in broker.log, "cleaning")
        client.admin.delete_topics(["short-lived"])["short-lived"].result(WITHIN_S)
        wait_until(lambda: not client.folder.exists(), "deleted")
        other = Client(broker, "short-lived", COMPACTED)
        other.write(300)
        wait_until(lambda: "event=cleaning-given-up" in broker.log, "given up")
        wait_until(lambda: "event=cleaning-begins topic=short-lived" in broker.log.split("event=cleaning-given-up")[-1], "again")
        assert "first_dirty_offset=0" in broker.log.split("event=cleaning-given-up")[-1]
        pids = cleaner_pids(broker)
    wait_until(lambda: not any(map(is_running, pids)), "the process ended")


def test_a_corrupt_log_is_left_alone_and_others_are_not(broker: Broker) -> None:
    bad, good = Client(broker, "bad", NOT_YET), Client(broker, "good", COMPACTED)
    bad.write(300)
    path = min(bad.folder.glob("*.log"))
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff")
    bad.set(cleanup_policy="compact")
    wait_until(lambda: "event=log-not-compacted-any-more topic=bad" in broker.log, "given up")
    assert str(path) in broker.log
    good.write(1000)
    wait_until(good.is_clean, "clean")
    good.check()


def test_committed_offsets_survive_compaction_and_a_restart() -> None:
    with Broker(config={**CONFIG, "log.cleaner.min.cleanable.ratio": "0.01"}) as broker:
        client = Client(broker, "read", {})
        client.write(100)
        consumer = Consumer({**client.servers, "group.id": "committer", "enable.auto.commit": False})
        consumer.committed([TopicPartition("read", 0)], timeout=WITHIN_S)  # waits until the coordinator is ready
        client.topic = "__consumer_offsets"
        client.set(internal_segment_bytes="4096")
        for number in range(1, 101):
            consumer.commit(offsets=[TopicPartition("read", 0, number)], asynchronous=False)
        consumer.close()
        offsets = broker.data_dir / "__consumer_offsets-0"
        wait_until(lambda: "event=cleaned topic=__consumer_offsets" in broker.log, "cleaned")
        size = sum(path.stat().st_size for path in offsets.glob("*.log"))
        assert size < 100 * 100
        broker.restart()
        again = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "committer"})
        assert [place.offset for place in again.committed([TopicPartition("read", 0)], timeout=WITHIN_S)] == [100]
        again.close()
