"""aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import OffsetAndMetadata

from tests.interop.conftest import Server
from tests.interop.messages import BASE_TIME_MS, CODECS, MEGABYTE, STEP_MS, Sent, messages
from tests.waiting import until

Unique = Callable[[str], str]
WAIT_S = 30.0


async def create(server: Server, name: str, partitions: int = 1) -> str:
    admin = AIOKafkaAdminClient(bootstrap_servers=server.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, partitions, 1)])
    finally:
        await admin.close()
    return name


async def produce(server: Server, topic: str, sent: list[Sent], **config: object) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=server.bootstrap, acks="all", linger_ms=10, **config)
    await producer.start()
    try:
        waiting = [
            await producer.send(
                topic, each.value, each.key, partition=0, timestamp_ms=each.timestamp_ms, headers=list(each.headers)
            )
            for each in sent
        ]  # fmt: skip
        await asyncio.wait_for(asyncio.gather(*waiting), WAIT_S)
    finally:
        await producer.stop()


@asynccontextmanager
async def consuming(server: Server, group: str | None, *topics: str, **config: object) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        *topics,
        bootstrap_servers=server.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
        **config,
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def read(consumer: AIOKafkaConsumer, count: int) -> list[Sent]:
    async def reading() -> list[ConsumerRecord]:
        return [await consumer.getone() for _ in range(count)]

    found = await asyncio.wait_for(reading(), WAIT_S)
    return [Sent(each.key, each.value, tuple(each.headers), each.timestamp) for each in found]


@pytest.mark.parametrize("codec", CODECS)
async def test_every_codec_with_headers_and_tombstones(codec: str, server: Server, unique: Unique) -> None:
    topic = await create(server, unique("topic"))
    await produce(server, topic, messages(), compression_type=None if codec == "none" else codec)
    async with consuming(server, unique("group"), topic) as consumer:
        assert await read(consumer, len(messages())) == messages()


async def test_messages_of_one_megabyte(server: Server, unique: Unique) -> None:
    topic = await create(server, unique("topic"))
    sent = [Sent(b"k", MEGABYTE)] * 3
    await produce(server, topic, sent, max_request_size=2_000_000)
    async with consuming(server, None, topic) as consumer:
        assert await read(consumer, 3) == sent


async def test_idempotent_producer(server: Server, unique: Unique) -> None:
    topic = await create(server, unique("topic"))
    sent = [Sent(b"k", str(index).encode()) for index in range(500)]
    await produce(server, topic, sent, enable_idempotence=True)
    async with consuming(server, None, topic) as consumer:
        assert await read(consumer, 500) == sent


async def test_seek_by_time(server: Server, unique: Unique) -> None:
    topic = await create(server, unique("topic"))
    await produce(server, topic, messages())
    place = TopicPartition(topic, 0)
    async with consuming(server, None) as consumer:
        consumer.assign([place])
        found = (await consumer.offsets_for_times({place: BASE_TIME_MS + 7 * STEP_MS - 1}))[place]
        assert (found.offset, found.timestamp) == (7, BASE_TIME_MS + 7 * STEP_MS)
        consumer.seek(place, found.offset)
        assert (await read(consumer, 1))[0] == messages()[7]
        assert (await consumer.end_offsets([place]))[place] == len(messages())


async def test_two_consumers_share_and_take_over(server: Server, unique: Unique) -> None:
    topic, group = await create(server, unique("topic"), 4), unique("group")
    async with consuming(server, group, topic) as first:
        await until(lambda: len(first.assignment()) == 4)
        async with consuming(server, group, topic) as second:
            await until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
            assert not first.assignment() & second.assignment()
        await until(lambda: len(first.assignment()) == 4)


async def test_commits_with_metadata(server: Server, unique: Unique) -> None:
    topic, group = await create(server, unique("topic")), unique("group")
    place = TopicPartition(topic, 0)
    async with consuming(server, group) as consumer:
        consumer.assign([place])
        await consumer.commit({place: OffsetAndMetadata(5, "note")})
    async with consuming(server, group) as consumer:
        consumer.assign([place])
        assert await consumer.committed(place) == 5
