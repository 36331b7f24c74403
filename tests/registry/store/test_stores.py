"""The promises of every store, on the fake and on a topic of a real broker; and the writer over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.registry.core import records
from barnabas.registry.core.commands import DeleteSubject, Register
from barnabas.registry.core.entities import Draft, Version
from barnabas.registry.core.registry import Registry
from barnabas.registry.store.interface import Fenced, Store, StoreFailed, TooLarge
from barnabas.registry.store.memory import MemoryLog, MemoryStore
from barnabas.registry.store.topic import TopicStore
from barnabas.registry.store.writer import NotTheWriter, Writer
from barnabas.testing import Broker
from barnabas.web.routing import HttpError
from tests.registry.core.fake_format import fake_format
from tests.waiting import until

MakeStore = Callable[[], Store]
TOPICS = iter(range(1_000))


@pytest.fixture(params=["memory", "topic"])
def make_store(request: pytest.FixtureRequest) -> Iterator[MakeStore]:
    """Makes views of one log."""
    if request.param == "memory":
        log = MemoryLog()
        yield lambda: MemoryStore(log)
        return
    broker: Broker = request.getfixturevalue("kafka_session")
    config = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers})
    topic = f"schemas-{next(TOPICS)}"
    yield lambda: TopicStore(config, topic, f"writer-of-{topic}")


class Reader:
    """A store with what it replayed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seen: list[tuple[bytes, bytes | None]] = []

    def replay(self, key: bytes, value: bytes | None, timestamp_ms: int) -> None:
        assert timestamp_ms > 0
        self.seen.append((key, value))


@asynccontextmanager
async def opened(make_store: MakeStore) -> AsyncIterator[Reader]:
    reader = Reader(make_store())
    await reader.store.start(reader.replay)
    try:
        yield reader
    finally:
        await reader.store.close()
        await reader.store.close()


NOOP = records.encode(records.noop_record())
RECORD = records.mode_record("s", "READONLY")


def test_a_write_is_replayed_to_all_before_it_ends(make_store: MakeStore) -> None:
    async def scenario() -> None:
        async with opened(make_store) as first, opened(make_store) as second:
            assert first.store.is_following()
            await first.store.become_writer()
            await first.store.append([RECORD, records.mode_record("s", None)])
            assert first.seen == [NOOP, records.encode(RECORD), records.encode(records.mode_record("s", None))]
            await until(lambda: second.seen == first.seen)
            async with opened(make_store) as third:
                assert third.seen == first.seen
        assert not first.store.is_following()

    asyncio.run(scenario())


def test_an_older_writer_is_shut_out(make_store: MakeStore) -> None:
    async def scenario() -> None:
        async with opened(make_store) as first, opened(make_store) as second:
            with pytest.raises(Fenced):
                await first.store.append([RECORD])
            await first.store.become_writer()
            await first.store.append([RECORD])
            await second.store.become_writer()
            assert second.seen == [NOOP, records.encode(RECORD), NOOP]
            with pytest.raises(Fenced):
                await first.store.append([RECORD])
            await second.store.append([RECORD])
            await first.store.become_writer()
            assert first.seen == second.seen or len(first.seen) == 5

    asyncio.run(scenario())


def test_too_large_a_record_writes_nothing(kafka_session: Broker) -> None:
    async def scenario() -> None:
        config = ClientConfig.from_options({"bootstrap.servers": kafka_session.bootstrap_servers})
        async with opened(lambda: TopicStore(config, "large", "writer-of-large")) as reader:
            await reader.store.become_writer()
            with pytest.raises(TooLarge):
                await reader.store.append([records.config_record("s", {"alias": "x" * 2_000_000})])
            await reader.store.append([RECORD])
            assert reader.seen == [NOOP, records.encode(RECORD)]

    asyncio.run(scenario())


@pytest.mark.parametrize(("partitions", "policy"), [(2, "compact"), (1, "delete")])
def test_a_topic_that_would_lose_schemas_is_refused(kafka_session: Broker, partitions: int, policy: str) -> None:
    async def scenario() -> None:
        config = ClientConfig.from_options({"bootstrap.servers": kafka_session.bootstrap_servers})
        name = f"unfit-{policy}"
        async with AsyncClient(config) as client:
            await client.create_topics([NewTopic(name, partitions, 1, {"cleanup.policy": policy})])
        store = TopicStore(config, name, "w")
        with pytest.raises(StoreFailed, match=name):
            await store.start(lambda *_: None)
        await store.close()

    asyncio.run(scenario())


# --- the writer


def registered(subject: str, text: str) -> Register:
    return Register(subject, Draft(text))


@asynccontextmanager
async def writing(store: Store) -> AsyncIterator[tuple[Registry, Writer]]:
    registry = Registry(fake_format)
    await store.start(registry.replay)
    writer = Writer(registry, store)
    await writer.take_over()
    try:
        yield registry, writer
    finally:
        await writer.close()
        await store.close()


def test_commands_that_wait_are_written_together(make_store: MakeStore) -> None:
    async def scenario() -> None:
        async with writing(make_store()) as (registry, writer):
            answers = await asyncio.gather(*(writer.submit(registered(f"s{i}", f'{{"f{i}":"int"}}')) for i in range(50)))
            assert sorted(answer["id"] for answer in answers) == list(range(1, 51))
            assert writer.writes == 1
            assert all(registry.state.version(f"s{i}", 1) for i in range(50))

    asyncio.run(scenario())


def test_commands_that_depend_on_each_other_are_not(make_store: MakeStore) -> None:
    async def scenario() -> None:
        async with writing(make_store()) as (_, writer):
            same_content = [writer.submit(registered(f"t{i}", '{"a":"int"}')) for i in range(3)]
            same_subject = [writer.submit(registered("s", f'{{"?f{i}":"int"}}')) for i in range(3)]
            again = [writer.submit(registered("s", '{"?f0":"int"}'))]
            answers = await asyncio.gather(*same_content, *same_subject, *again)
            assert len({answer["id"] for answer in answers[:3]}) == 1
            assert [answer["version"] for answer in answers[3:]] == [1, 2, 3, 1]
            gone, last = await asyncio.gather(writer.submit(DeleteSubject("s")), writer.submit(registered("s", '{"?f9":"int"}')))
            assert (gone, last["version"]) == ([1, 2, 3], 4)

    asyncio.run(scenario())


@pytest.mark.parametrize("happened", [False, True])
def test_a_lost_write_gives_no_id_twice(*, happened: bool) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        async with writing(store) as (registry, writer):
            store.fails = happened
            with pytest.raises(HttpError) as failed:
                await writer.submit(registered("s", '{"a":"int"}'))
            assert failed.value.code == 50002
            await writer.submit(registered("t", '{"b":"int"}'))
            found = {version.id: version.draft.schema for each in registry.state.subjects.values() for version in each.values()}
            assert len(found) == 1 + happened

    asyncio.run(scenario())


def test_a_writer_that_was_shut_out_refuses() -> None:
    async def scenario() -> None:
        log = MemoryLog()
        async with writing(MemoryStore(log)) as (_, first), writing(MemoryStore(log)) as (_, second):
            with pytest.raises(NotTheWriter):
                await first.submit(registered("s", '{"a":"int"}'))
            assert not first.is_writer
            assert (await second.submit(registered("s", '{"b":"int"}')))["id"] == 1

    asyncio.run(scenario())


def test_records_have_the_format_of_the_topic() -> None:
    draft = Draft('"string"')
    key, value = records.encode(records.schema_record(Version("s", 1, 2, draft, draft.identity)))
    assert key == b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    assert value == b'{"subject":"s","version":1,"id":2,"schema":"\\"string\\"","deleted":false}'
    assert NOOP == (b'{"keytype":"NOOP","magic":0}', None)
    assert records.encode(records.config_record(None, {"compatibilityLevel": "FULL"})) == (
        b'{"keytype":"CONFIG","subject":null,"magic":0}',
        b'{"subject":null,"compatibilityLevel":"FULL"}',
    )
    assert records.encode(records.delete_subject_record("s", 3)) == (
        b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
        b'{"subject":"s","version":3}',
    )
    assert records.encode(records.mode_record("s", "IMPORT"))[1] == b'{"subject":"s","mode":"IMPORT"}'


async def test_nothing_is_written_to_a_topic_that_was_made_again(kafka_session: Broker) -> None:
    config = ClientConfig.from_options({"bootstrap.servers": kafka_session.bootstrap_servers})
    topic = f"schemas-{next(TOPICS)}"
    admin = AsyncClient(config)
    try:
        async with opened(lambda: TopicStore(config, topic, f"writer-of-{topic}")) as reader:
            await reader.store.become_writer()
            await reader.store.append([RECORD] * 5)
            await admin.delete_topics([topic])
            await admin.create_topics([NewTopic(topic, 1, 1, {"cleanup.policy": "compact"})])
            with pytest.raises(StoreFailed):  # refused for the sequence of the old topic, or at once for the offset
                await reader.store.append([RECORD])
            with pytest.raises(StoreFailed, match="made again or has lost records; start the registry again"):
                await reader.store.become_writer()
            assert not reader.store.is_following()
    finally:
        await admin.close()


async def test_a_record_may_be_read_before_its_write_is_answered(kafka_session: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    config = ClientConfig.from_options({"bootstrap.servers": kafka_session.bootstrap_servers})
    topic = f"schemas-{next(TOPICS)}"
    async with opened(lambda: TopicStore(config, topic, f"writer-of-{topic}")) as reader:
        produce = AsyncClient.produce

        async def answered_late(client: AsyncClient, *arguments: Any) -> Any:
            seen = len(reader.seen)
            produced = await produce(client, *arguments)
            await until(lambda: len(reader.seen) > seen)
            return produced

        monkeypatch.setattr(AsyncClient, "produce", answered_late)
        await reader.store.become_writer()
        await reader.store.append([RECORD])
        assert reader.store.is_following()
        assert reader.seen == [NOOP, records.encode(RECORD)]
