"""The status of a link while it runs: its lag, what holds it back, metrics; and its requests to the source."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.connection import Connection
from barnabas.cli.mirror_requests import LinkView, alter_link
from barnabas.cli.resources import Change, Operation
from barnabas.client.blocking import BlockingClient
from barnabas.mirror.why import Holder, all_times, loss_of, verdict
from barnabas.testing import Broker
from tests.server.in_process import Client, running
from tests.server.mirroring.clusters import LINK, create, create_link, ends, link, promote, status_of, wait_equal, write
from tests.server.scraped import render
from tests.waiting import until, wait_until


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def holder(found: LinkView) -> Holder:
    times = all_times(found.times)
    return verdict(is_paused=found.is_paused, errors=found.errors, partitions=found.partitions, times=times).holder


def test_a_copy_that_has_everything_is_held_back_by_nothing(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "even", 2)
    write(theirs, "even", (f"{number}" for number in range(100)))
    create_link(ours, theirs, topics="even")
    wait_equal(theirs, ours, "even")
    wait_until(lambda: holder(link(ours)) is Holder.NOTHING)
    wait_until(lambda: len(link(ours).partitions) == 2)
    found = link(ours)
    loss = loss_of(found.partitions)
    assert (loss.records, loss.bytes) == (0, 0)
    assert loss.milliseconds >= 0
    assert sum(each.bytes for each in found.times) > 0
    assert all(each.silent_ms >= 0 for each in found.partitions)


def test_the_loss_grows_while_the_source_is_away(target: Broker) -> None:
    ours = target.bootstrap_servers
    with Broker() as lost:
        create(lost.bootstrap_servers, "lost")
        write(lost.bootstrap_servers, "lost", ["1"])
        create_link(ours, lost.bootstrap_servers, topics="lost")
        wait_equal(lost.bootstrap_servers, ours, "lost")
    wait_until(lambda: holder(link(ours)) is Holder.SOURCE)
    before = loss_of(link(ours).partitions).milliseconds
    wait_until(lambda: loss_of(link(ours).partitions).milliseconds > before + 200)
    status = status_of(ours, "lost")
    assert status is not None
    assert (status.lag, status.lag_ms) == (0, 0)


def test_a_paused_link_tells_that_it_is_paused(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "paused")
    create_link(ours, theirs, topics="paused", paused="true")
    assert holder(link(ours)) is Holder.LIMIT
    with Connection(ours).wire() as wire:
        alter_link(wire, LINK, [Change("paused", Operation.SET, "false")])
    wait_until(lambda: ends(ours, "paused") == {0: 0})


def test_a_limit_is_told(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "limited")
    write(theirs, "limited", (b"x" * 10_000 for _ in range(300)), **{"batch.size": 20_000})
    create_link(ours, theirs, topics="limited", io_max_bytes_per_second="200000")

    def behind() -> bool:
        status = status_of(ours, "limited")
        return status is not None and status.lag > 0 and holder(link(ours)) is Holder.LIMIT

    wait_until(behind)
    status = status_of(ours, "limited")
    assert status is not None
    assert status.lag_bytes > status.lag * 9_000


def test_promotion_of_an_idle_copy_needs_no_news_of_its_source(source: Broker, target: Broker) -> None:
    """A session leaves out partitions without news, and the copy still learns that it has everything."""
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "idle", 3)
    write(theirs, "idle", ["1", "2", "3", "4"])
    create_link(ours, theirs, topics="idle")
    wait_equal(theirs, ours, "idle")
    assert {each.lag for each in promote(ours, ["idle"])} == {0}
    write(ours, "idle", ["5"])


def test_answers_of_many_pieces_are_equal_on_both_sides(source: Broker, target: Broker) -> None:
    theirs, ours = source.bootstrap_servers, target.bootstrap_servers
    create(theirs, "large", 2)
    write(theirs, "large", (f"{number}".encode() * 5_000 for number in range(2_000)), **{"linger.ms": 50})
    create_link(ours, theirs, topics="large")
    wait_equal(theirs, ours, "large")
    assert sum(ends(ours, "large").values()) == 2_000


def sample(client: Client, name: str, **labels: str) -> float | None:
    for family in text_string_to_metric_families(render(client.broker).decode()):
        for each in family.samples:
            if each.name == name and labels.items() <= each.labels.items():
                return each.value
    return None


async def test_metrics_tell_of_links(source: Broker, tmp_path: Path) -> None:
    theirs = source.bootstrap_servers
    create(theirs, "measured", 2)
    write(theirs, "measured", (f"{number}" for number in range(50)))
    async with running([tmp_path]) as client:
        ours = f"127.0.0.1:{client.broker.endpoints[0].port}"
        await client.in_thread(lambda: create_link(ours, theirs, topics="measured"))
        await until(lambda: sample(client, "barnabas_mirror_partitions", link=LINK, state="mirroring") == 2)
        await until(lambda: (sample(client, "barnabas_mirror_bytes_total", link=LINK) or 0) > 0)
        await until(lambda: sample(client, "barnabas_mirror_up", link=LINK) == 1)
        await until(lambda: sample(client, "barnabas_mirror_lag_records", link=LINK, topic="measured", partition="1") == 0)
        await until(lambda: (sample(client, "barnabas_mirror_seconds_total", link=LINK, part="idle") or 0) > 0)
        assert sample(client, "barnabas_mirror_errors_total", link=LINK) == 0
        assert sample(client, "barnabas_mirror_refused_topics", link=LINK) == 0
        assert sample(client, "barnabas_mirror_lag_seconds", link=LINK) is not None
        answers = sample(client, "barnabas_mirror_answers_total", link=LINK)
        assert answers is not None
        assert answers >= 1


@pytest.mark.parametrize("turns", range(6))
async def test_a_link_ends_also_as_it_wakes(source: Broker, tmp_path: Path, turns: int) -> None:
    """A cancellation that comes while a wait ends is not lost, at whatever turn of the event loop it comes."""
    theirs = source.bootstrap_servers
    async with running([tmp_path]) as client:
        ours = f"127.0.0.1:{client.broker.endpoints[0].port}"
        await client.in_thread(lambda: create_link(ours, theirs, topics="none"))
        [runner] = client.broker.mirrors._runners.values()
        await until(lambda: runner._stale._waiters)
        runner.look_again()
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await runner.close()
        assert all(task.done() for task in runner._tasks)


async def test_a_source_whose_start_has_passed_the_copy_is_asked_few_times(source: Broker, tmp_path: Path) -> None:
    """Retention overtakes a paused copy again and again; each time the link asks for the range once, and no loop runs."""
    theirs = source.bootstrap_servers
    create(theirs, "overtaken")
    write(theirs, "overtaken", ["first"])
    async with running([tmp_path]) as client:
        ours = f"127.0.0.1:{client.broker.endpoints[0].port}"

        def pause(text: str) -> None:
            with Brokers(Connection(ours)) as brokers:
                alter_link(brokers.first, LINK, [Change("paused", Operation.SET, text)])

        def overtake(number: int) -> None:
            write(theirs, "overtaken", [f"{number}-{each}" for each in range(20)])
            with BlockingClient.to(theirs) as admin:
                admin.delete_records({("overtaken", 0): -1})
            write(theirs, "overtaken", [f"{number}-last"])

        def follows(wanted: object) -> None:
            wait_until(lambda: ends(ours, "overtaken") == wanted)

        await client.in_thread(lambda: create_link(ours, theirs, topics="overtaken"))
        await client.in_thread(lambda: wait_until(lambda: ends(ours, "overtaken") == {0: 1}))
        for number in range(3):
            await client.in_thread(lambda: pause("true"))
            await client.in_thread(partial(overtake, number))
            await client.in_thread(lambda: pause("false"))
            wanted = await client.in_thread(lambda: ends(theirs, "overtaken"))
            await client.in_thread(partial(follows, wanted))
            answers = sample(client, "barnabas_mirror_answers_total", link=LINK)
            assert answers is not None
            assert answers <= 3  # a link starts again after each change: the batch that is compared, and the records
