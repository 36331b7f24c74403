"""Requests of one connection take effect in their order, also where they come in one write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from barnabas.protocol.messages import APIS
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.server.answer_order import ORDER
from barnabas.server.api_table import BETWEEN_BROKERS, SERVED
from barnabas.server.authorization.access_control import STANDARD
from barnabas.server.request_order import EFFECTS, Effect, effect_of, may_begin
from barnabas.testing import Broker
from tests.differential.runner import load
from tests.server.cluster.in_process import running
from tests.server.in_process import TOPIC
from tests.server.pairs import KEYS, NOT_SHOWN, ON_ITS_LEADER, PAIRS, Asked, ask_together, fetched, latest, run
from tests.server.wire import Line, batch_of

ROUNDS = 5
# everybody may do everything, and the tests can create bindings
OPEN = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(OPEN) as started:
        yield started


def test_every_api_says_what_it_does() -> None:
    assert set(EFFECTS) == SERVED | BETWEEN_BROKERS


def test_every_api_that_changes_something_is_sent_before_one_that_shows_it() -> None:
    in_pairs = {make("any").name for pair in (PAIRS | ON_ITS_LEADER).values() for make in pair.together[:-1]}
    by_kafka = {step.split(" ")[0] for recording in load("pipelined").values() for step in recording}
    changing = {APIS[key][1] for key in SERVED if EFFECTS[key] not in (Effect.READS, Effect.FETCHES)}
    assert changing - in_pairs - by_kafka == set(NOT_SHOWN)


def test_what_changes_or_reads_something_is_alone() -> None:
    for behind in Effect:
        for effect in Effect:
            assert may_begin(effect, behind) == (effect is behind and effect not in (Effect.CHANGES, Effect.READS))


def test_a_broker_asks_for_many_transactions_at_once_and_a_client_for_its_own() -> None:
    add = KEYS["AddPartitionsToTxn"]
    assert [effect_of(add, version) for version in (3, 4)] == [Effect.CHANGES, Effect.RELAYS]


@pytest.mark.parametrize("name", [*PAIRS, *ON_ITS_LEADER])
def test_the_second_sees_what_the_first_has_changed(broker: Broker, name: str) -> None:
    slug = "".join(each if each.isalnum() else "-" for each in name)
    with Line(broker) as line:
        assert [run(line, (PAIRS | ON_ITS_LEADER)[name], f"{slug}-{n}") for n in range(ROUNDS)] == [True] * ROUNDS


@pytest.mark.parametrize("behind", ["latest", "fetched"])
async def test_what_comes_behind_a_fetch_that_waits_sees_what_the_fetch_brings(tmp_path: Path, behind: str) -> None:
    """Kafka Streams takes the end of a partition from the answer that comes last: it must not be older than the one before."""
    asked = {"latest": latest, "fetched": fetched}[behind]
    async with running(tmp_path, count=1) as cluster:
        broker, client = cluster.brokers[1], cluster.clients[1]
        assert await client.create(1) == 0
        with Line(broker.endpoints[0].port) as other:
            both = [fetched(TOPIC, max_wait_ms=60_000), asked(TOPIC)]
            answers = asyncio.create_task(asyncio.to_thread(ask_together, other, both))
            await cluster.until(lambda: any(ORDER in each.paused_for for each in broker.connections))
            await client.produce(b"first")
            waited, then = await answers
        assert waited.responses[0].partitions[0].high_watermark == 1
        if behind == "latest":
            assert then.topics[0].partitions[0].offset == 1
        else:
            assert then.responses[0].partitions[0].high_watermark == 1


async def test_so_it_does_where_the_controller_is_another_broker(tmp_path: Path) -> None:
    async with running(tmp_path, count=2, **OPEN, auto_create_topics_enable="true") as cluster:
        client = cluster.clients[cluster.others[0]]
        asked = cluster.brokers[cluster.others[0]]
        store = cluster.stores[asked.config.broker_id]
        store.hold_watches()  # this broker sees the controller's changes only by the wait of each answer
        for number, (name, pair) in enumerate(PAIRS.items()):
            seen = await client.in_thread(partial(run, client.line, pair, f"pair-{number}"))
            assert seen, name
        store.release_watches()


async def test_what_comes_behind_acks_all_sees_what_the_replicas_have(tmp_path: Path) -> None:
    async with running(tmp_path, count=2) as cluster:
        topics = []
        for n in range(ROUNDS):
            assert await cluster.clients[1].create(1, f"t{n}", replication_factor=2) == 0
            topics.append(f"t{n}")
        await cluster.until(lambda: all(len(b.partitions) >= ROUNDS for b in cluster.brokers.values()))
        for topic in topics:
            (leader,) = [state.leader for state in cluster.brokers[1].metadata.topics[topic].partitions]
            client = cluster.clients[leader]
            data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch_of(10))])]
            written = Asked(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 9)
            answers = await client.in_thread(partial(ask_together, client.line, [written, written, fetched(topic)]))
            assert [a.responses[0].partition_responses[0].base_offset for a in answers[:2]] == [0, 1]
            assert answers[2].responses[0].partitions[0].high_watermark == 2
