"""DeleteRecords: acknowledged deletions last, for whatever reason the broker stops next."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaException

from barnabas.server.shared_job import SharedJob
from barnabas.testing import Broker
from tests.server.clients import WAIT_S, Client


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def crash(broker: Broker) -> Client:
    broker.kill()
    broker.start()
    return Client(broker, "t")


def test_what_was_deleted_stays_deleted_after_a_crash(broker: Broker) -> None:
    client = Client(broker, "t").create()
    client.produce(10)
    assert client.delete_before(4) == 4
    client = crash(broker)
    assert client.bounds() == (4, 10)
    assert client.delete_before(3) == 4
    assert client.delete_before(-1) == 10
    client = crash(broker)
    assert client.bounds() == (10, 10)
    with pytest.raises(KafkaException, match="out of range"):
        client.delete_before(11)


def test_a_topic_made_anew_keeps_its_records(broker: Broker) -> None:
    client = Client(broker, "t").create()
    client.produce(10)
    assert client.delete_before(7) == 7
    client.delete()
    client.create()
    client.produce(3)
    client = crash(broker)
    assert client.bounds() == (0, 3)


async def test_all_who_ask_while_a_job_runs_share_the_next_run() -> None:
    runs = 0
    go_on, begun = threading.Event(), threading.Event()

    def job() -> None:
        nonlocal runs
        runs += 1
        begun.set()
        assert go_on.wait(WAIT_S)

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as threads:
        grouped = SharedJob(loop, threads, job)
        first = loop.create_task(grouped.done())
        await loop.run_in_executor(None, begun.wait, WAIT_S)
        others = [loop.create_task(grouped.done()) for _ in range(10)]
        await asyncio.sleep(0)
        assert runs == 1
        go_on.set()
        await asyncio.gather(first, *others)
        assert runs == 2
        await grouped.close()


async def test_a_job_that_fails_fails_for_those_who_waited_for_it_only() -> None:
    outcomes: list[OSError | None] = [OSError("no"), None]

    def job() -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome

    with ThreadPoolExecutor(1) as threads:
        grouped = SharedJob(asyncio.get_running_loop(), threads, job)
        with pytest.raises(OSError, match="no"):
            await grouped.done()
        await grouped.done()
        await grouped.close()
